package e2e

import "os/exec"

// runAs is never called: nobody is root there.
func runAs(*exec.Cmd, uint32) {}
