package pgtest

import "syscall"

// dieWithUs ends the server when the test's process is killed: it then shuts down by
// itself.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
