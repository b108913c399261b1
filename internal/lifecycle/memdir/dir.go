package memdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Dir is an open directory of memories, personal or a team's, with an index of its own.
// It is safe for concurrent use, by several processes too. Names go through
// memory.ParsePath and every access through os.Root, so nothing outside is touched.
type Dir struct {
	path string
	root *os.Root
	mode fs.FileMode // of new files
}

// TeamDir is the directory below a personal one that is shared. A personal Dir does not
// look into it.
const TeamDir = "team"

// File is a memory on disk.
type File struct {
	Path    memory.Path
	Size    int64 // bytes
	ModTime time.Time
}

// Open opens the directory at path, which must exist (fs.ErrNotExist otherwise).
func Open(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("memory directory: %w", err)
	}
	mode := fs.FileMode(0o600)
	if filepath.Base(path) == TeamDir {
		mode = 0o644 // what is shared is no secret on this machine
	}
	return &Dir{path: path, root: root, mode: mode}, nil
}

// Create opens the directory at path, making it (0700) and its parents if need be.
func Create(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("memory directory: %w", err)
	}
	return Open(path)
}

// Path returns the directory as it was opened.
func (d *Dir) Path() string { return d.path }

// Close releases the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Files returns the memories below the directory, indexes included, in path order, and
// the names that look like memories but break a path rule, with that rule. Hidden
// names, links and a team/ below are passed over; what cannot be read is an error.
func (d *Dir) Files(ctx context.Context) (files []File, bad []error, err error) {
	err = fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone meanwhile
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == ".":
			return nil
		case strings.HasPrefix(e.Name(), "."), name == TeamDir && e.IsDir():
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), memory.Extension):
			return nil
		}
		path, err := memory.ParsePath(memory.NormalizePath(name))
		if err != nil {
			bad = append(bad, err)
			return nil
		}
		fi, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		files = append(files, File{Path: path, Size: fi.Size(), ModTime: fi.ModTime()})
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list %s: %w", d.path, err)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return files, bad, nil
}

// ErrUnreadable is what a file is that cannot be a memory or an index: no regular file, or
// one over memory.MaxMemoryBytes. It stays so until somebody does something about it.
var ErrUnreadable = errors.New("it can be no memory")

// unreadable is an ErrUnreadable that says why.
type unreadable string

func (u unreadable) Error() string { return string(u) }

func (u unreadable) Is(err error) bool { return err == ErrUnreadable }

// Read returns the memory at path and its mtime. A missing one is fs.ErrNotExist; one
// over memory.MaxMemoryBytes, or that is no regular file, ErrUnreadable.
func (d *Dir) Read(path memory.Path) ([]byte, time.Time, error) {
	content, fi, err := d.read(string(path))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", path, err)
	}
	return content, fi.ModTime(), nil
}

func (d *Dir) read(name string) ([]byte, fs.FileInfo, error) {
	// A pipe would hold whoever opens it.
	if fi, err := d.root.Stat(name); err != nil {
		return nil, nil, cause(err)
	} else if !fi.Mode().IsRegular() {
		return nil, nil, unreadable("not a regular file")
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, nil, cause(err)
	}
	defer func() { _ = f.Close() }() // only read
	fi, err := f.Stat()
	if err != nil {
		return nil, nil, cause(err)
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, unreadable("not a regular file")
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(f, memory.MaxMemoryBytes+1))
	if err != nil {
		return nil, nil, cause(err)
	}
	if n > memory.MaxMemoryBytes {
		return nil, nil, unreadable(fmt.Sprintf("it has more than %d bytes", memory.MaxMemoryBytes))
	}
	return b.Bytes(), fi, nil
}

// cause drops the operation and name that the caller's own message gives.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
