//go:build unix

package e2e

import (
	"os/exec"
	"syscall"
)

// runAs makes a command run as another user.
func runAs(c *exec.Cmd, id uint32) {
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
}
