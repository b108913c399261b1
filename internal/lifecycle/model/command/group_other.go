//go:build !unix

package command

import "os/exec"

// group leaves it at the program itself: there are no process groups to kill here.
func group(*exec.Cmd) {}
