package verify

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
)

// errBounds is a tree that is too large to say that something is nowhere in it.
var errBounds = errors.New("the tree is larger than is searched")

// symbolsGone returns those of the symbols that no plain file of the tree holds, not
// even in a comment. In a tree beyond the bounds none is.
func (r *Repository) symbolsGone(ctx context.Context, wanted []Citation) ([]Citation, error) {
	left := slices.Clone(wanted)
	if len(left) == 0 {
		return nil, nil
	}
	files, total := 0, int64(0)
	tree := r.root.FS()
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return errBounds // what cannot be read may hold it
		case e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules"):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		fi, err := e.Info()
		if err != nil || fi.Size() > maxSearchedBytes {
			return nil // no source code has so much
		}
		if files, total = files+1, total+fi.Size(); files > maxFiles || total > maxTreeBytes {
			return errBounds
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return errBounds
		}
		left = slices.DeleteFunc(left, func(c Citation) bool { return bytes.Contains(text, []byte(c.Text)) })
		if len(left) == 0 {
			return fs.SkipAll
		}
		return nil
	})
	if errors.Is(err, errBounds) {
		return nil, nil
	}
	return left, err
}
