package workspace

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

var (
	errNotRegular = errors.New("not a regular file")
	errUnsettled  = errors.New("the file changes while it is read")
)

// stableTries is how often a file is read again that changed meanwhile.
const stableTries = 5

// stat is what must be equal for a file to count as unchanged (ruling 13.16).
type stat struct {
	size         int64
	mtime, ctime int64
	inode        uint64
}

func statOf(fi fs.FileInfo) stat {
	inode, ctime := identityOf(fi)
	return stat{size: fi.Size(), mtime: fi.ModTime().UnixNano(), ctime: ctime, inode: inode}
}

// openRegular opens the regular file name of dir, which fi describes, without ever
// waiting for it: a fifo that was swapped in is opened and closed again, a device
// never, since fi said regular and the disk would have to change in between. A link
// that was swapped in is noticed by identity.
func openRegular(dir *os.Root, name string, fi fs.FileInfo) (*os.File, fs.FileInfo, error) {
	if !fi.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("open %s: %w", name, errNotRegular)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	got, err := f.Stat()
	if err == nil && !got.Mode().IsRegular() {
		err = fmt.Errorf("open %s: %w", name, errNotRegular)
	}
	if err == nil && !os.SameFile(got, fi) {
		err = errUnsettled
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, got, nil
}

// stable runs use on the file name of dir until the file's stat was the same before
// and after, and returns that. errUnsettled means that it never was.
func stable(dir *os.Root, name string, fi fs.FileInfo, use func(f *os.File) error) (fs.FileInfo, error) {
	for range stableTries {
		before, after, err := func() (before, after fs.FileInfo, err error) {
			f, before, err := openRegular(dir, name, fi)
			if err != nil {
				return nil, nil, err
			}
			defer f.Close()
			if err := use(f); err != nil {
				return nil, nil, err
			}
			after, err = f.Stat()
			return before, after, err
		}()
		switch {
		case errors.Is(err, errUnsettled):
		case err != nil:
			return nil, err
		case statOf(before) == statOf(after):
			return after, nil
		}
		if fi, err = dir.Lstat(name); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %w", name, errUnsettled)
}

// hashFile returns the etag of the regular file name of dir and the stat it had.
// It reads through a fixed buffer, whatever the size.
func (w *Workspace) hashFile(dir *os.Root, name string, fi fs.FileInfo) (memory.ETag, fs.FileInfo, error) {
	fi, err := stable(dir, name, fi, func(f *os.File) error {
		w.hasher.Reset()
		for {
			n, err := f.Read(w.buf)
			w.hasher.Write(w.buf[:n])
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	if err != nil {
		return "", nil, err
	}
	var sum [32]byte
	var text [64]byte
	hex.Encode(text[:], w.hasher.Sum(sum[:0]))
	return memory.ETag(text[:]), fi, nil
}

// Read returns the bytes of a regular file, at most memory.MaxMemoryBytes+1 of them.
// The error is syncer.ErrLocalAbsent when there is none and syncer.ErrLocalBlocked
// when something else stands there.
func (w *Workspace) Read(_ context.Context, path memory.Path) ([]byte, error) {
	if _, err := memory.ParsePath(string(path)); err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	e := w.enter()
	if e.cond != syncer.RootOK {
		if e.err != nil {
			return nil, fmt.Errorf("read %s: %w", path, e.err)
		}
		return nil, fmt.Errorf("read %s: %s: %w", path, e.detail, syncer.ErrLocalAbsent)
	}
	defer e.root.Close()
	dir, _, name, err := w.openParent(e.root, path, nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer dir.Close()
	name, fi, err := w.find(dir, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, syncer.ErrLocalBlocked)
	}
	var content []byte
	if _, err := stable(dir, name, fi, func(f *os.File) error {
		size := int64(0)
		if fi, err := f.Stat(); err == nil {
			size = fi.Size()
		}
		content = make([]byte, 0, min(size, memory.MaxMemoryBytes)+1)
		content, err = readAtMost(f, content, memory.MaxMemoryBytes+1)
		return err
	}); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = syncer.ErrLocalAbsent
		}
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return content, nil
}

// readAtMost appends what f holds to b until len(b) is limit.
func readAtMost(f *os.File, b []byte, limit int) ([]byte, error) {
	for len(b) < limit {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):min(cap(b), limit)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}
