package workspace

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

var _ syncer.Glancer = (*Workspace)(nil)

// Same reports whether the files that seen, a snapshot of this workspace, holds are all
// there, by name, and no others, in the same root under the same ignore rules. It reads
// directories and looks at no file, which is many times cheaper than Scan. Whatever is
// not plain (a link, a name that is refused) is not the same. A file whose kind changed
// under its name counts as edited. It writes nothing.
func (w *Workspace) Same(ctx context.Context, seen syncer.Snapshot) bool {
	e := w.enter()
	if e.cond != syncer.RootOK {
		return false
	}
	defer e.root.Close()
	if e.marker.id != seen.Marker || linkedAbove(w.dir) != "" {
		return false
	}
	rules, err := readSmall(e.root, IgnoreName, maxIgnoreBytes+1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || !bytes.Equal(rules, w.ignoreText) || len(w.keptRules) > 0 {
		return false
	}
	g := glance{w: w, ctx: ctx, seen: seen.Files}
	return g.folder(e.root, "", 0) && g.found == len(seen.Files)
}

// glance is one run of Same.
type glance struct {
	w     *Workspace
	ctx   context.Context //nolint:containedctx // one call
	seen  map[memory.Path]syncer.LocalFile
	found int
}

// folder looks at one directory, key being its path with a slash at the end; false =
// not the same.
func (g *glance) folder(dir *os.Root, key string, depth int) bool {
	if g.ctx.Err() != nil || depth > maxDepth {
		return false
	}
	names, err := listNames(dir)
	if err != nil {
		return false
	}
	for _, name := range names {
		if isHidden(name) {
			if key != "" && name == MarkerName {
				return false
			}
			continue
		}
		if isMemoryName(name) {
			if _, known := g.seen[memory.Path(key+name)]; known {
				g.found++
				continue
			}
			if p := keyOf(key, name); g.has(p) {
				// Spelled in NFD on disk. Beside the same name in NFC it would be a twin.
				if _, err := dir.Lstat(string(p)[len(key):]); err == nil {
					return false
				}
				g.found++
				continue
			}
		}
		if !g.other(dir, name, key, depth) {
			return false
		}
	}
	return true
}

func (g *glance) has(p memory.Path) bool {
	_, known := g.seen[p]
	return known
}

// other looks at what is no file of the snapshot.
func (g *glance) other(dir *os.Root, name, key string, depth int) bool {
	fi, err := dir.Lstat(name)
	switch {
	case err != nil:
		return false
	case fi.IsDir():
		return g.subfolder(dir, fi, key, depth)
	case fi.Mode()&fs.ModeSymlink != 0 || isNearMiss(name):
		return false
	}
	return !isMemoryName(name) || g.w.ignore.Match(keyOf(key, name))
}

func (g *glance) subfolder(dir *os.Root, fi fs.FileInfo, key string, depth int) bool {
	path := memory.NormalizePath(key + fi.Name())
	if g.w.ignore.matchDir(path) {
		return true
	}
	sub, err := openDir(dir, fi.Name(), fi)
	if err != nil {
		return false
	}
	defer sub.Close()
	return g.folder(sub, path+"/", depth+1)
}
