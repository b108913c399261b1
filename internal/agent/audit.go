package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/lifecycle/sandbox"
)

// maxAudit bounds the audit record in bytes; what was there then is kept once more, as
// auditOld.
const maxAudit = 1 << 20

// The files of the audit record in the state directory; see docs/lifecycle.md.
const (
	auditFile = "model-calls.jsonl"
	auditOld  = "model-calls.1.jsonl"
	auditLock = "model-calls.lock"
)

// The kinds of work that a model does with our tools.
const (
	workExtract = "extract"
	workDream   = "dream"
)

// auditEntry is one call of a tool by a language model. It holds no content: a target is
// the name of a memory or of a file, an error words of ours.
type auditEntry struct {
	Time   time.Time `json:"time"`
	Work   string    `json:"work"`       // one of the kinds above
	Memory string    `json:"memory_dir"` // the personal directory
	// Session is the conversation; "" for work on several, or where its name is none.
	Session string `json:"session,omitempty"`
	Round   int    `json:"round"`
	Tool    string `json:"tool"`
	Target  string `json:"target,omitempty"`
	Bytes   int    `json:"bytes"`
	Error   string `json:"error,omitempty"`
	MS      int64  `json:"ms"`
}

// audit notes what a model does with our tools while it works for a project. A record that
// cannot be kept is told to trouble, and stops nothing.
func (s stateDir) audit(work, personal, session string, now func() time.Time, trouble func(error)) func(sandbox.Call) {
	if !isSessionID(session) {
		session = ""
	}
	return func(c sandbox.Call) {
		e := auditEntry{
			Time: now().UTC(), Work: work, Memory: personal, Session: session,
			Round: c.Round, Tool: c.Tool, Target: c.Target, Bytes: c.Bytes, Error: c.Error, MS: c.Took.Milliseconds(),
		}
		if err := s.appendAudit(e, maxAudit); err != nil {
			trouble(fmt.Errorf("the call of a tool by the model is not recorded: %w", err))
		}
	}
}

// isSessionID knows the ids that clients give to conversations.
func isSessionID(s string) bool {
	return len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

// appendAudit adds a line, under a lock that all processes share.
func (s stateDir) appendAudit(e auditEntry, limit int64) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if err := s.create(); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.path(auditLock), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = filelock.Release(lock) }()
	// What holds the lock writes one line; a lock that lasts is somebody else's trouble.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := filelock.Lock(ctx, lock); err != nil && !errors.Is(err, filelock.ErrUnsupported) {
		return err
	}
	name := s.path(auditFile)
	if fi, err := os.Stat(name); err == nil && fi.Size()+int64(len(line)) >= limit {
		if err := os.Rename(name, s.path(auditOld)); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if cut, err := endsCutOff(f); err == nil && cut {
		line = append([]byte("\n"), line...)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// endsCutOff reports whether the last line was cut off, by a kill or a full disk.
func endsCutOff(f *os.File) (cut bool, err error) {
	var last [1]byte
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return false, err
	}
	_, err = f.ReadAt(last[:], end-1)
	return last[0] != '\n', err
}
