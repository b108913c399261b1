package watcher

import (
	"errors"
	"io/fs"
	"syscall"
)

// reasonOf says in words why a root cannot be watched by events, and what to do.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the limit of inotify watches is reached; raise fs.inotify.max_user_watches"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "the limit of inotify instances or open files is reached; raise fs.inotify.max_user_instances or the limit of open files"
	}
	return err.Error()
}

// missingReason says in words why a root cannot be entered.
func missingReason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the directory is not there"
	}
	return err.Error()
}
