package agent

import "runtime/debug"

// dieByASignal has a hook that the runtime ends, for want of memory or stack, or after a
// panic that nobody caught, end by a signal. The runtime's own exit code for these is 2,
// which clients take for a veto: a session could not go on. What lies in memory stays out
// of core files.
func dieByASignal() {
	noCore()
	debug.SetTraceback("crash")
}
