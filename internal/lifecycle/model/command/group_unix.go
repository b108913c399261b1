//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// group gives the program a process group of its own and ends all of it with the context.
func group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
