package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrUnsuitableRoot is matched by every refusal of CheckRoot and CheckRoots.
var ErrUnsuitableRoot = errors.New("unsuitable directory")

// CheckRoot refuses a directory that is not the team/ directory itself (ruling 13.1):
// one that contains team/, or that is a client's memory/. What does not exist yet is
// fine, and what carries the marker of a link already is not judged by its looks. It
// writes nothing.
func CheckRoot(dir string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("check %s: %w", dir, err)
	}
	fi, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		if lfi, lerr := os.Lstat(abs); lerr == nil && lfi.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s: %w: it is a link that leads nowhere; make what it points to", dir, ErrUnsuitableRoot)
		}
		return checkMemoryName(dir, abs)
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", dir, err)
	}
	if !fi.IsDir() {
		return fmt.Errorf("%s: %w: it is not a directory", dir, ErrUnsuitableRoot)
	}
	if _, err := os.Lstat(filepath.Join(abs, MarkerName)); err == nil {
		return nil // linked already; a team may name a directory team/
	}
	if fi, err := os.Stat(filepath.Join(abs, "team")); err == nil && fi.IsDir() {
		return fmt.Errorf("%s: %w: it contains team/, and only that is shared; give %s", dir, ErrUnsuitableRoot, filepath.Join(dir, "team"))
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return fmt.Errorf("check %s: %w", dir, err)
	}
	for _, p := range []string{abs, real} {
		if err := checkMemoryName(dir, p); err != nil {
			return err
		}
	}
	return nil
}

// checkMemoryName refuses projects/<key>/memory, where a client keeps what is private.
func checkMemoryName(dir, abs string) error {
	if filepath.Base(abs) == "memory" && filepath.Base(filepath.Dir(filepath.Dir(abs))) == "projects" {
		return fmt.Errorf("%s: %w: it is a client's private memory directory; give the team directory below it, %s", dir, ErrUnsuitableRoot, filepath.Join(dir, "team"))
	}
	return nil
}

// CheckRoots runs CheckRoot on each directory and refuses two of which one lies in
// the other or which are the same, by whatever names and links they are reached.
func CheckRoots(dirs []string) error {
	type root struct {
		given, real string
		info        fs.FileInfo
	}
	var roots []root
	for _, d := range dirs {
		if err := CheckRoot(d); err != nil {
			return err
		}
		real, err := realPath(d)
		if err != nil {
			return fmt.Errorf("check %s: %w", d, err)
		}
		r := root{given: d, real: real}
		if fi, err := os.Stat(real); err == nil {
			r.info = fi
		}
		for _, o := range roots {
			switch {
			case r.real == o.real, r.info != nil && o.info != nil && os.SameFile(r.info, o.info):
				return fmt.Errorf("%s: %w: it is the same directory as %s; two links cannot share one", d, ErrUnsuitableRoot, o.given)
			case inside(r.real, o.real):
				return fmt.Errorf("%s: %w: it lies in %s, which is linked too", d, ErrUnsuitableRoot, o.given)
			case inside(o.real, r.real):
				return fmt.Errorf("%s: %w: %s, which is linked too, lies in it", d, ErrUnsuitableRoot, o.given)
			}
		}
		roots = append(roots, r)
	}
	return nil
}

// realPath resolves the links in the part of dir that exists.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(abs)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		parent := filepath.Dir(abs)
		if !errors.Is(err, fs.ErrNotExist) || parent == abs {
			return "", err
		}
		rest = filepath.Join(filepath.Base(abs), rest)
		abs = parent
	}
}

// inside reports whether path lies below dir; team-evil does not lie in team.
func inside(path, dir string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
