// Package synctest holds in-memory ports for tests of the syncer and of all that
// stands on it: a disk, a state and a guard that keep their contracts and can be made
// to fail, or to crash, at any call.
package synctest

// Hook is called around every operation of a fake, with its name and whether its
// effect has happened already. An error it returns is returned by the operation
// (before: without effect, after: with it). A hook may panic to crash the machine.
type Hook func(op string, after bool) error

func (h Hook) before(op string) error {
	if h == nil {
		return nil
	}
	return h(op, false)
}

func (h Hook) after(op string) error {
	if h == nil {
		return nil
	}
	return h(op, true)
}
