// Package filelock is an advisory lock on an open file or directory that processes of
// one machine share. It ends with the file, so a process that dies leaves none behind.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrHeld is what TryLock answers while somebody else holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// ErrUnsupported is what TryLock answers where the file system knows no locks, or none
// on directories.
var ErrUnsupported = errors.New("the file system knows no locks here")

// TryLock takes the exclusive lock on f, which may be a directory, or answers ErrHeld
// at once. Release gives it back, and so does the end of the process. The lock belongs to
// the open file: a second Open of the same file in one process is somebody else.
func TryLock(f *os.File) error { return tryLock(f, true) }

// TryShare takes a lock on f that others may share and that keeps TryLock out, or answers
// ErrHeld at once while somebody holds the exclusive one.
func TryShare(f *os.File) error { return tryLock(f, false) }

// Release gives back what TryLock, TryShare or Lock took on f, and closes it. To close f
// alone would not do it at once: a program that this process is just starting holds all
// its open files until its own code is loaded, and with them the lock.
func Release(f *os.File) error {
	_ = unlock(f) // where there are no locks it has none
	return f.Close()
}

// How long Lock waits between two tries: from the first to at most the last.
const (
	firstPause   = 200 * time.Microsecond
	longestPause = 20 * time.Millisecond
)

// Lock takes the exclusive lock on f as soon as it is free, or answers ctx's error. No
// order among those who wait is promised.
func Lock(ctx context.Context, f *os.File) error {
	pause := firstPause
	for {
		err := TryLock(f)
		if !errors.Is(err, ErrHeld) {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		pause = min(2*pause, longestPause)
	}
}
