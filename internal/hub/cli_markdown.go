package hub

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// exportMarkdown writes a project's memories as plain files into a directory that is
// new or empty. at 0 is the present. What was written goes again when it fails.
func (e *env) exportMarkdown(hub *client.Client, key memory.ProjectKey, at memory.Revision, dir string) (err error) {
	list, err := hub.List(e.ctx, key, client.ListOptions{Deleted: true})
	if err != nil {
		return err
	}
	if at > list.Head.Revision {
		return usage("export: revision %d is beyond the head, %d", at, list.Head.Revision)
	}
	at = cmp.Or(at, list.Head.Revision)
	paths := make([]memory.Path, 0, len(list.Memories))
	for _, m := range list.Memories {
		paths = append(paths, m.Path)
	}
	if text := leftOut(list.Unfit); text != "" {
		e.tell(text)
	}
	out, err := newTree(dir)
	if err != nil {
		return err
	}
	defer func() { err = out.end(err) }()
	written := int64(0)
	// By revision, so that commits made meanwhile do not mix in.
	for len(paths) > 0 {
		batch, err := hub.BatchGet(e.ctx, key, paths, at)
		if err != nil {
			return err
		}
		for _, m := range batch.Memories {
			if m.Deleted {
				continue
			}
			if err := out.write(m); err != nil {
				return fmt.Errorf("export: %s: %w", m.Path, bare(err))
			}
			written++
		}
		if len(batch.Remaining) >= len(paths) {
			return errors.New("export: the hub gives no more memories; try again")
		}
		paths = batch.Remaining
	}
	return e.done("export: wrote %s of %s at revision %d to %s", count(written, "memory", "memories"), key, at, dir)
}

// leftOut says which memories of a newer hub this program cannot write; "" if it can all.
func leftOut(unfit []memory.Unfit) string {
	var names []string
	for _, u := range unfit {
		if !u.Deleted {
			names = append(names, fmt.Sprintf("%.256q", u.Path))
		}
	}
	if len(names) == 0 {
		return ""
	}
	more := ""
	if n := len(names) - 10; n > 0 {
		names, more = names[:10], fmt.Sprintf(" and %d more", n)
	}
	return "warning: left out, since this memsvc, older than the hub, cannot hold files of such names: " + strings.Join(names, ", ") + more
}

// tree is a directory that is filled from nothing, or emptied again.
type tree struct {
	dir  string
	made bool // the directory itself is ours
	root *os.Root
	tops map[string]bool // what we made in it
}

func newTree(dir string) (*tree, error) {
	t := &tree{dir: dir, tops: map[string]bool{}}
	switch err := os.Mkdir(dir, 0o777); {
	case err == nil:
		t.made = true
	case !errors.Is(err, fs.ErrExist):
		return nil, usage("--markdown %s: %v", dir, bare(err))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, usage("--markdown %s: %v", dir, bare(err))
	}
	if len(entries) > 0 {
		return nil, usage("--markdown %s: not empty; name a new or an empty directory", dir)
	}
	if t.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	return t, nil
}

// write makes one file; one that is there already is an error.
func (t *tree) write(m memory.Memory) error {
	name := string(m.Path)
	top, _, _ := strings.Cut(name, "/")
	t.tops[top] = true
	if err := t.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(m.Content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil || m.ModTime.IsZero() {
		return err
	}
	return t.root.Chtimes(name, m.ModTime, m.ModTime)
}

// end closes the directory, after a failure without what was written.
func (t *tree) end(err error) error {
	if err != nil {
		for top := range t.tops {
			err = errors.Join(err, t.root.RemoveAll(top))
		}
	}
	err = errors.Join(err, t.root.Close())
	if err != nil && t.made {
		return errors.Join(err, os.Remove(t.dir))
	}
	return err
}

// markdownFile is a file that may become a memory.
type markdownFile struct {
	name    string // as it is shown
	path    memory.Path
	content []byte
	info    fs.FileInfo
}

// readTree returns the Markdown files below dir, in path order, and how many other
// files and hidden directories were left out. What cannot become a memory, whatever the
// hub has, is refused.
func readTree(dir string, refuse func(memory.Violation)) (files []markdownFile, others int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, usage("--markdown %s: %v", dir, bare(err))
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	seen := map[memory.Path]string{}
	err = fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error {
		shown := filepath.Join(dir, printable(rel))
		no := func(rule, msg string) error {
			refuse(memory.Violation{Path: shown, Rule: rule, Message: msg})
			return nil
		}
		switch {
		case err != nil && rel == ".":
			return err
		case err != nil:
			return no(ruleUnreadable, bare(err).Error())
		case d.IsDir() && rel != "." && strings.HasPrefix(d.Name(), "."):
			others++
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !strings.EqualFold(path.Ext(rel), memory.Extension):
			others++
			return nil
		case !d.Type().IsRegular():
			return no(ruleNotRegular, "not a regular file; put the text itself in its place")
		}
		p, err := memory.ParsePath(memory.NormalizePath(rel))
		var bad *memory.Error
		if errors.As(err, &bad) {
			for _, v := range bad.Violations {
				v.Path = shown
				refuse(v)
			}
			return nil
		}
		if err != nil {
			return err
		}
		if other, twice := seen[p]; twice {
			return no(rulePathCollision, "the same name as "+other+" in Unicode normal form C; rename one")
		}
		f := markdownFile{name: shown, path: p}
		if f.content, f.info, err = readRegular(root, rel); err != nil {
			return no(ruleUnreadable, bare(err).Error())
		}
		if size := max(f.info.Size(), int64(len(f.content))); size > memory.MaxMemoryBytes {
			return no(memory.RuleContentSize, memory.TooLarge(size))
		}
		seen[p] = shown
		files = append(files, f)
		return nil
	})
	return files, others, err
}

// readRegular reads at most one byte more than a memory may have.
func readRegular(root *os.Root, name string) (content []byte, info fs.FileInfo, err error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("not a regular file")
	}
	content, err = readAtMost(f, memory.MaxMemoryBytes+1)
	return content, info, err
}

// The rules that import adds to those of paths, contents and the guard.
const (
	ruleUnreadable    = "unreadable"
	ruleNotRegular    = "not-regular"
	rulePathCollision = "path-collision"
	ruleExists        = "exists"
	ruleChanged       = "changed-meanwhile"
	ruleGuardFailed   = "guard-failed"
)

// bare returns what went wrong with a file without the operation and its path.
func bare(err error) error {
	var perr *fs.PathError
	if errors.As(err, &perr) {
		return perr.Err
	}
	return err
}
