package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memsvc/memsvc/internal/memory"
)

// CheckOverlap refuses a directory that lies in a linked one, whoever linked that and
// from whatever state directory (ruling 13.1): its marker tells. A directory that is
// not linked yet is also refused when a linked one lies in it; one that is linked is
// not, since a scan leaves what is marked alone, and a copied marker must not keep a
// link from starting. It writes nothing. The error matches ErrUnsuitableRoot.
func CheckOverlap(ctx context.Context, dir string) error {
	if above := linkedAbove(dir); above != "" {
		return fmt.Errorf("%w: %s", ErrUnsuitableRoot, insideAnother(dir, above))
	}
	if HasMarker(dir) {
		return nil
	}
	below := ""
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // what cannot be read is left alone by scans, too
		case e.Name() == MarkerName && !e.IsDir():
			below = filepath.Dir(p)
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return err
	}
	if below != "" {
		return fmt.Errorf("%w: %s, which is linked by itself (it holds %s), lies in %s; one directory inside another would be shared twice: unlink it first, or remove that file if it is left over", ErrUnsuitableRoot, below, MarkerName, dir)
	}
	return nil
}

// linkedAbove returns the nearest directory above dir, links resolved, that carries a
// marker; "" = none.
func linkedAbove(dir string) string {
	real, err := realPath(dir)
	if err != nil {
		return ""
	}
	for d := filepath.Dir(real); ; d = filepath.Dir(d) {
		if HasMarker(d) {
			return d
		}
		if filepath.Dir(d) == d {
			return ""
		}
	}
}

// HasMarker reports whether dir carries the marker of a link, whoever made that.
func HasMarker(dir string) bool {
	fi, err := os.Lstat(filepath.Join(dir, MarkerName))
	return err == nil && !fi.IsDir()
}

func insideAnother(dir, above string) string {
	return fmt.Sprintf("%s lies in %s, which is linked by itself (it holds %s); one directory inside another would be shared twice: unlink that one, or remove that file if it is left over", dir, above, MarkerName)
}

// RemoveMarker takes the marker of a link that is no more out of dir, if it is still
// that link's; another one, or none, is left as it is. Two links that took over one
// marker before it named its project have one id; then the project, key, tells.
func RemoveMarker(dir, linkID string, key memory.ProjectKey) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove marker: %w", err)
	}
	defer root.Close()
	m, err := readMarker(root)
	if err != nil || m.id == "" || m.id != linkID || m.foreign(key) {
		return err
	}
	if err := root.Remove(MarkerName); err != nil {
		return fmt.Errorf("remove marker: %w", err)
	}
	return syncDir(root)
}

// RestoreMarker writes the marker of a link of a project that is taken up again into dir.
// It leaves a marker that is there, and a directory that is not, as they are.
func RestoreMarker(dir, linkID string, key memory.ProjectKey) error {
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() || HasMarker(dir) {
		return nil //nolint:nilerr // what is wrong with the directory is the cycle's to say
	}
	w, err := New(dir, Options{Project: key})
	if err != nil {
		return err
	}
	return w.PutMarker(context.Background(), linkID)
}
