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
// at once. Closing f gives it back. The lock belongs to the open file: a second Open of
// the same file in one process is somebody else.
func TryLock(f *os.File) error { return tryLock(f, true) }

// TryShare takes a lock on f that others may share and that keeps TryLock out, or answers
// ErrHeld at once while somebody holds the exclusive one.
func TryShare(f *os.File) error { return tryLock(f, false) }

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
