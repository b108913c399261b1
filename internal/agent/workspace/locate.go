package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// made remembers the directories that a write had to make, as paths below the root.
type made struct{ dirs []string }

// openParent opens the directory that holds path and returns it with its place below
// the root (a slash at the end, "" for the root) and the file's name in it, as the key
// spells it or as the last scan found it. Each step is a directory
// and no link, verified on what was opened. Missing directories are made and noted in
// mk; with a nil mk they are syncer.ErrLocalAbsent. Anything else in the way is
// syncer.ErrLocalBlocked. The caller closes dir.
func (w *Workspace) openParent(root *os.Root, path memory.Path, mk *made) (dir *os.Root, at, name string, err error) {
	disk, known := w.names[path]
	if !known {
		disk = string(path)
	}
	segments := strings.Split(disk, "/")
	dir, err = root.OpenRoot(".")
	if err != nil {
		return nil, "", "", err
	}
	for _, seg := range segments[:len(segments)-1] {
		var next *os.Root
		next, seg, err = w.step(dir, seg, at, mk)
		_ = dir.Close()
		if err != nil {
			return nil, "", "", err
		}
		dir, at = next, at+seg+"/"
	}
	return dir, at, segments[len(segments)-1], nil
}

// step opens the directory seg of dir, which lies at at.
func (w *Workspace) step(dir *os.Root, seg, at string, mk *made) (*os.Root, string, error) {
	name, fi, err := w.find(dir, seg)
	if errors.Is(err, syncer.ErrLocalAbsent) && mk != nil {
		name = seg
		if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, "", err
		}
		mk.dirs = append(mk.dirs, at+name)
		if err := syncDir(dir); err != nil {
			return nil, "", err
		}
		fi, err = dir.Lstat(name)
	}
	if err != nil {
		return nil, "", err
	}
	if !fi.IsDir() {
		return nil, "", fmt.Errorf("%s%s is no directory: %w", at, name, syncer.ErrLocalBlocked)
	}
	next, err := openDir(dir, name, fi)
	if err != nil {
		return nil, "", err
	}
	return next, name, nil
}

// openDir opens the directory name of dir, which fi describes; what was swapped in
// since is refused.
func openDir(dir *os.Root, name string, fi fs.FileInfo) (*os.Root, error) {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	got, err := sub.Stat(".")
	if err == nil && !os.SameFile(got, fi) {
		err = fmt.Errorf("%s was replaced a moment ago: %w", name, syncer.ErrLocalBlocked)
	}
	if err != nil {
		_ = sub.Close()
		return nil, err
	}
	return sub, nil
}

// find looks for the entry of dir whose name is want, or whose name in NFC is. The
// error is syncer.ErrLocalAbsent when there is none, and syncer.ErrLocalBlocked when
// the disk ignores case and holds another spelling.
func (w *Workspace) find(dir *os.Root, want string) (name string, fi fs.FileInfo, err error) {
	fi, err = dir.Lstat(want)
	switch {
	case err == nil:
		if otherSpelling(dir, want, fi) {
			return "", nil, fmt.Errorf("%s is there in another spelling: %w", want, syncer.ErrLocalBlocked)
		}
		return want, fi, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, err
	case isASCII(want):
		return "", nil, syncer.ErrLocalAbsent
	}
	names, err := listNames(dir)
	if err != nil {
		return "", nil, err
	}
	key := memory.NormalizePath(want)
	for _, n := range names {
		if memory.NormalizePath(n) != key {
			continue
		}
		if fi, err = dir.Lstat(n); err == nil {
			return n, fi, nil
		}
	}
	return "", nil, syncer.ErrLocalAbsent
}

// otherSpelling reports whether the disk found fi under want although its name is
// spelled otherwise. Asking for a spelling that differs in case shows whether the disk
// ignores case; only then are the names listed. Disks that also ignore normal forms
// count NFD as the same spelling.
func otherSpelling(dir *os.Root, want string, fi fs.FileInfo) bool {
	swapped := swapCase(want)
	if swapped == want {
		return false
	}
	alt, err := dir.Lstat(swapped)
	if err != nil || !os.SameFile(alt, fi) {
		return false
	}
	names, err := listNames(dir)
	if err != nil {
		return true
	}
	return !hasSpelling(names, want)
}

func hasSpelling(names []string, want string) bool {
	for _, n := range names {
		if n == want || memory.NormalizePath(n) == memory.NormalizePath(want) {
			return true
		}
	}
	return false
}

func listNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// swapCase turns the first letter that has two cases into the other one.
func swapCase(s string) string {
	for i, r := range s {
		other := unicode.ToUpper(r)
		if other == r {
			other = unicode.ToLower(r)
		}
		if other != r {
			return s[:i] + string(other) + s[i+utf8.RuneLen(r):]
		}
	}
	return s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
