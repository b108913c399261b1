//go:build unix && !linux

package pgtest

import "syscall"

func dieWithUs(*syscall.SysProcAttr) {}
