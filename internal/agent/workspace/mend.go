package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// A file leaves its place by a step that gives it a temporary name, and only what is then
// found under that name says whether it was the one that should go. A kill right there
// leaves the name behind, and under it, if an edit slipped in, the only copy of that. So
// the name tells what may be thrown away, and where anything else belongs:
//
//	.msync-<random>-<text that goes in>-<text that goes out>-<name of the file>.tmp
//
// with the beginnings of the two etags. A name too long for it is left out.
const (
	displacedETag = 12
	displacedName = 80
)

// errDisplaced means that an edit lies under a temporary name and could not be put back.
var errDisplaced = errors.New("an edit that was made meanwhile waits under a temporary name")

// displaced is what a temporary name of the second kind tells.
type displaced struct {
	in, out string // beginnings of etags; zeros where nothing goes in
	name    string // "" when it was too long
}

func newDisplacedName(in, out memory.ETag, name string) string {
	brief := func(e memory.ETag) string {
		return (string(e) + strings.Repeat("0", displacedETag))[:displacedETag]
	}
	if len(name) > displacedName {
		name = ""
	}
	return strings.TrimSuffix(newTempName(), tempSuffix) + "-" + brief(in) + "-" + brief(out) + "-" + name + tempSuffix
}

// parseDisplaced is the inverse of newDisplacedName.
func parseDisplaced(temp string) (d displaced, ok bool) {
	mid, pre := strings.CutPrefix(temp, tempPrefix)
	mid, post := strings.CutSuffix(mid, tempSuffix)
	parts := strings.SplitN(mid, "-", 4)
	if !pre || !post || len(parts) != 4 {
		return d, false
	}
	for i, n := range []int{tempHex, displacedETag, displacedETag} {
		if len(parts[i]) != n || strings.Trim(parts[i], "0123456789abcdef") != "" {
			return d, false
		}
	}
	return displaced{in: parts[1], out: parts[2], name: parts[3]}, true
}

// rescuedPrefix names an edit whose file's name is not known any more.
const rescuedPrefix = "rescued-"

// Mend puts right what a kill in the middle of a write or a remove left behind, as the
// last scan saw it; see syncer.Mender.
func (w *Workspace) Mend(_ context.Context) error {
	torn := w.torn
	w.torn = nil
	e := w.enter()
	if e.cond != syncer.RootOK {
		return nil // the next scan says why
	}
	defer e.root.Close()
	var errs []error
	for _, path := range torn {
		if err := w.mend(e.root, path); err != nil {
			errs = append(errs, fmt.Errorf("%s, which a kill left behind: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

func (w *Workspace) mend(root *os.Root, path string) error {
	parent, temp := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		parent, temp = path[:i], path[i+1:]
	}
	d, ok := parseDisplaced(temp)
	if !ok {
		return nil
	}
	dir, err := root.OpenRoot(parent)
	if err != nil {
		return err
	}
	defer dir.Close()
	fi, err := dir.Lstat(temp)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	etag, _, err := w.hashFile(dir, temp, fi)
	if err != nil {
		return err
	}
	if is := string(etag[:displacedETag]); is == d.in || is == d.out {
		return dir.Remove(temp)
	}
	if err := w.putBack(dir, temp, d, etag); err != nil {
		return err
	}
	return syncDir(dir)
}

// putBack gives an edit its place again. Where its file holds what was written over it,
// that is on the hub too, and gives way: then the two meet as any two edits do. Where
// something else is by now, the edit gets a name beside it.
func (w *Workspace) putBack(dir *os.Root, temp string, d displaced, etag memory.ETag) error {
	name := d.name
	if !isMemoryName(name) || isHidden(name) || strings.ContainsAny(name, "/\\") {
		name = ""
	}
	if name != "" {
		now, err := w.look(dir, name)
		switch {
		case err != nil && !errors.Is(err, syncer.ErrLocalBlocked) && !errors.Is(err, syncer.ErrLocalChanged):
			return err
		case err != nil || now.isDir:
		case now.etag == etag:
			return dir.Remove(temp)
		case now.info == nil, strings.HasPrefix(string(now.etag), d.in):
			if err = w.put(dir, temp, now); !errors.Is(err, syncer.ErrLocalChanged) {
				return err
			}
		}
	}
	mark := string(etag[:displacedETag])
	beside := rescuedPrefix + mark + memory.Extension
	if name != "" {
		beside = strings.TrimSuffix(name, memory.Extension) + "." + rescuedPrefix + mark + memory.Extension
	}
	if now, err := w.look(dir, beside); err == nil && now.etag == etag {
		return dir.Remove(temp) // a kill came between the two steps of the line below
	}
	return putNew(dir, temp, beside)
}
