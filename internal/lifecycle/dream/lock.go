package dream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wholefile"
)

// LockName is the file in the personal directory that clients and we share: its body is
// the PID of who is dreaming, its mtime the last dream. Ours has an empty body when nobody
// dreams. It is hidden and lies above team/, so it is never synced.
const LockName = ".consolidate-lock"

func (d *Dreamer) lockFile() string {
	return filepath.Join(d.Store.Dir(memory.ScopePrivate), LockName)
}

// last returns when the last dream was, of ours or of a client's; zero = never.
func (d *Dreamer) last() (time.Time, error) {
	fi, err := d.lockInfo()
	if err != nil || fi == nil {
		return time.Time{}, err
	}
	return fi.ModTime(), nil
}

// lockInfo looks at the lock; nil = there is none. What else lies there under its name is
// not ours to remove, and nobody's lock: the error says what it is and what helps.
func (d *Dreamer) lockInfo() (fs.FileInfo, error) {
	fi, err := os.Lstat(d.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	what := ""
	switch mode := fi.Mode(); {
	case mode.IsDir():
		what = "a directory"
	case mode&fs.ModeSymlink != 0:
		what = "a link"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case !mode.IsRegular():
		what = "no regular file"
	case fi.Size() > memory.MaxMemoryBytes:
		what = fmt.Sprintf("a file of %d bytes", fi.Size())
	default:
		return fi, nil
	}
	return nil, fmt.Errorf("dream: %s is %s, not the small file by which dreams keep apart; remove it, and dreams go on", d.lockFile(), what)
}

func (d *Dreamer) lockBody() (string, error) {
	fi, err := d.lockInfo()
	if err != nil {
		return "", err
	}
	if fi != nil && fi.Size() > 1024 {
		return "", nil // whatever it is, nobody's PID
	}
	text, err := os.ReadFile(d.lockFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("dream: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// held reports whether somebody else holds the lock: it is younger than StaleAfter, and
// its holder lives. One that is as far in the future is as stale: a clock was put back. Our own PID is what an earlier life of ours left: whoever asks has our
// own lock, under which no dream runs.
func (d *Dreamer) held() (bool, error) {
	at, err := d.last()
	if err != nil || at.IsZero() || d.Now().Sub(at).Abs() >= StaleAfter {
		return false, err
	}
	body, err := d.lockBody()
	if err != nil {
		return false, err
	}
	pid, err := strconv.Atoi(body)
	return err == nil && pid > 0 && pid != os.Getpid() && alive(pid), nil
}

// taken is what is noted beside the lock, so that a kill does not pass for a dream.
type taken struct {
	PID     int
	Had     bool // there was a lock file
	Prior   time.Time
	Started time.Time
	Done    bool // the dream is over, and went well
}

func (d *Dreamer) takenFile() string { return filepath.Join(d.Dir, "lock.json") }

func (d *Dreamer) note(t taken) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = wholefile.Replace(d.takenFile(), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("dream: note the lock: %w", err)
	}
	return nil
}

// take takes the lock that clients know; ok is false when somebody else has it. The
// caller holds our own.
func (d *Dreamer) take(now time.Time) (t taken, ok bool, err error) {
	held, err := d.held()
	if err != nil || held {
		return taken{}, false, err
	}
	prior, err := d.last()
	if err != nil {
		return taken{}, false, err
	}
	t = taken{PID: os.Getpid(), Had: !prior.IsZero(), Prior: prior, Started: now}
	if err := d.note(t); err != nil {
		return taken{}, false, err
	}
	if err := d.writeLock(strconv.Itoa(t.PID), now); err != nil {
		return taken{}, false, errors.Join(err, d.release(t))
	}
	// A client that knows nothing but this file may have written it at the same moment:
	// the later one has it.
	if d.ours(t) {
		return t, true, nil
	}
	return taken{}, false, d.release(t)
}

// ours reports whether the lock is still ours.
func (d *Dreamer) ours(t taken) bool {
	body, err := d.lockBody()
	return err == nil && body == strconv.Itoa(t.PID)
}

// lockPatience bounds how long the lock waits for other writers of the directory.
const lockPatience = 10 * time.Second

// writeLock writes body and time at once, and durably. It does not end with the dream's
// context: a dream that is called off gives its lock back, too.
func (d *Dreamer) writeLock(body string, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	dir, err := memdir.Create(d.Store.Dir(memory.ScopePrivate))
	if err == nil {
		defer func() { _ = dir.Close() }() // the write was synced by itself
		err = dir.Write(ctx, LockName, []byte(body), memory.Precondition{}, at)
	}
	if err != nil {
		return fmt.Errorf("dream: the lock: %w", err)
	}
	return nil
}

// release gives the lock back: after a dream that went well it says when that was, else
// what it said before. A lock that somebody else has taken meanwhile is left alone.
func (d *Dreamer) release(t taken) error {
	if t.Done {
		if err := d.note(t); err != nil {
			return err
		}
	}
	body, err := d.lockBody()
	if err != nil {
		return err
	}
	if body == strconv.Itoa(t.PID) || body == "" {
		switch {
		case t.Done:
			err = d.writeLock("", t.Started)
		case t.Had:
			err = d.writeLock("", t.Prior)
		default:
			err = remove(d.lockFile())
		}
		if err != nil {
			return err
		}
	}
	return remove(d.takenFile())
}

// remove deletes a file that may be gone.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dream: %w", err)
	}
	return nil
}

// settle ends a lock that a killed dream left. done says that its change set was ended.
func (d *Dreamer) settle(done bool) error {
	text, err := os.ReadFile(d.takenFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	var t taken
	if json.Unmarshal(text, &t) != nil {
		return remove(d.takenFile())
	}
	if t.Done = t.Done || done; !t.Done {
		// It may have been killed when all was done but for this file.
		if t.Done, err = d.recorded(t.Started); err != nil {
			return err
		}
	}
	return d.release(t)
}

// recorded reports whether the latest dream on record is the one that began then.
func (d *Dreamer) recorded(began time.Time) (bool, error) {
	ids, err := d.ids()
	if err != nil || len(ids) == 0 {
		return false, err
	}
	r, err := d.record(ids[0])
	return err == nil && r.Time.Equal(began), err
}

// ErrBusy is what Undo and Recover answer while a dream is under way, ours or a client's.
var ErrBusy = errors.New("another dream of this project is under way; try again when it is over")

// exclusive takes our own lock, which ends with the process that holds it.
func (d *Dreamer) exclusive() (release func(), err error) {
	if err := os.MkdirAll(filepath.Join(d.Dir, "dreams"), 0o700); err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(d.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	switch err := filelock.TryLock(f); {
	case err == nil, errors.Is(err, filelock.ErrUnsupported):
		return func() { _ = filelock.Release(f) }, nil
	case errors.Is(err, filelock.ErrHeld):
		_ = f.Close() // nothing was written
		return nil, ErrBusy
	default:
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("dream: %w", err)
	}
}
