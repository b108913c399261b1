//go:build !unix

package agent

import "errors"

// rootLock does nothing here: directories cannot be locked. The lock on the state
// directory remains.
type rootLock struct{}

func newRootLock(string) *rootLock { return &rootLock{} }

var errDirTaken = errors.New("another memsync-agent keeps this directory in step; stop one of the two")

func (l *rootLock) hold() error { return nil }
func (l *rootLock) release()    {}
