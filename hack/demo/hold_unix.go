//go:build unix

package main

import (
	"os"
	"syscall"
)

// hold stops a process where it is, and resume lets it go on.
func hold(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
