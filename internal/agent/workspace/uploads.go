package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
)

// UploadsName is the hidden file in the root by which processes agree on when its files
// may be sent. Its lock says that they are sent or held back at this moment, and ends
// with the process; its text, a Holder, outlives a process that died in between.
const UploadsName = ".memsync-uploads"

// maxHolder bounds the text of the file, in bytes.
const maxHolder = 16 << 10

// ErrHeldBack means that somebody changes several files that are to be sent together.
var ErrHeldBack = errors.New("uploads of this directory wait")

// Holder says who holds uploads back. It names whoever can bring an unfinished change
// set to its end: the directories belong together.
type Holder struct {
	PID      int       `json:"pid"`
	Since    time.Time `json:"since"`
	StateDir string    `json:"state_dir"` // where the change set is recorded
	Personal string    `json:"personal"`  // the memory directory that this root is shared from
}

// Hold keeps the files of a root from being sent, for all processes of this machine,
// until it is released.
type Hold struct{ f *os.File }

// HoldUploads waits until nobody sends files of dir, and keeps it so. Who is durable
// before it returns: a process that dies while it holds leaves it there, and nobody
// sends anything before that was seen to. The second result is such a leftover, of an
// earlier holder.
func HoldUploads(ctx context.Context, dir string, who Holder) (*Hold, *Holder, error) {
	f, err := openUploads(dir, true)
	if err != nil {
		return nil, nil, err
	}
	if err := filelock.Lock(ctx, f); err != nil {
		_ = f.Close()
		if errors.Is(err, filelock.ErrUnsupported) {
			err = fmt.Errorf("%w, so that what belongs together cannot be kept from being sent in parts", err)
		}
		return nil, nil, fmt.Errorf("hold the uploads of %s: %w", dir, err)
	}
	h := &Hold{f: f}
	left, err := readHolder(f)
	if err == nil && left == nil {
		err = h.write(who)
	}
	if err != nil {
		_ = filelock.Release(f)
		return nil, nil, fmt.Errorf("hold the uploads of %s: %w", dir, err)
	}
	return h, left, nil
}

func (h *Hold) write(who Holder) error {
	text, err := json.Marshal(who)
	if err != nil {
		return err
	}
	if err := h.f.Truncate(0); err != nil { // what was not written to its end
		return err
	}
	if _, err := h.f.WriteAt(append(text, '\n'), 0); err != nil {
		return err
	}
	return h.f.Sync()
}

// Release lets files be sent again if whole says that what is there belongs together.
// Else the leftover stays, as after a kill.
func (h *Hold) Release(whole bool) error {
	var err error
	if whole {
		if err = h.f.Truncate(0); err == nil {
			err = h.f.Sync()
		}
	}
	return errors.Join(err, filelock.Release(h.f))
}

// EnterUploads asks whether files of dir may be sent, without waiting. If so nobody
// holds them back until leave is called. Else the error matches ErrHeldBack; a holder
// is told where it is known, and left means that it is gone without an end.
func EnterUploads(dir string) (leave func(), holder *Holder, left bool, err error) {
	f, err := openUploads(dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		// Nobody ever held anything here, and where this file cannot be made nobody can.
		return func() {}, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	err = filelock.TryShare(f)
	holder, herr := readHolder(f)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		_ = f.Close()
		return nil, holder, false, fmt.Errorf("%s: %w", dir, ErrHeldBack)
	case err != nil && !errors.Is(err, filelock.ErrUnsupported): // where there are no locks nobody holds one
		_ = f.Close()
		return nil, nil, false, fmt.Errorf("uploads of %s: %w", dir, err)
	case herr != nil:
		_ = filelock.Release(f)
		return nil, nil, false, fmt.Errorf("uploads of %s: %w", dir, herr)
	case holder != nil:
		_ = filelock.Release(f)
		return nil, holder, true, fmt.Errorf("%s: %w", dir, ErrHeldBack)
	}
	return func() { _ = filelock.Release(f) }, nil, false, nil
}

// readHolder reads the text of the file. One that was not written to its end is none: it
// is durable before anything is changed.
func readHolder(f *os.File) (*Holder, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxHolder))
	if err != nil {
		return nil, err
	}
	var h Holder
	if json.Unmarshal(text, &h) != nil || h.StateDir == "" {
		return nil, nil
	}
	return &h, nil
}

// openUploads opens the file, and makes it if need be. A link or a pipe of its name is
// an error: nothing is written through it.
func openUploads(dir string, write bool) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if fi, err := root.Lstat(UploadsName); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s in %s is not a regular file; remove it", UploadsName, dir)
	}
	f, err := root.OpenFile(UploadsName, os.O_RDWR|os.O_CREATE|openFlags, 0o644)
	if err != nil && !write { // the disk is full, or not ours to write
		f, err = root.OpenFile(UploadsName, os.O_RDONLY|openFlags, 0)
	}
	if err != nil {
		return nil, err
	}
	at, err := root.Lstat(UploadsName)
	if err == nil {
		var fi fs.FileInfo
		if fi, err = f.Stat(); err == nil && !os.SameFile(fi, at) {
			err = fmt.Errorf("%s in %s was exchanged", UploadsName, dir)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
