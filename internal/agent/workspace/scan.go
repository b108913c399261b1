package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// The rules of a Refusal that are about this machine's disk, not about paths.
const (
	RuleLink      = "local-link"         // a symbolic link
	RuleSpecial   = "local-special-file" // a fifo, socket or device
	RuleTwin      = "local-twin"         // two names that are one in NFC
	RuleCollision = "local-collision"    // two paths that some disks cannot tell apart
	RuleDepth     = "local-depth"        // directories nested too deeply
	RuleIgnore    = "local-ignore-file"  // a .memsyncignore that cannot be understood
	RuleLinked    = "local-linked"       // a directory inside that is linked by itself
)

// maxDepth bounds how deep directories are walked; a path of MaxPathBytes cannot
// have more.
const maxDepth = memory.MaxPathBytes / 2

// scan is one walk.
type scan struct {
	w    *Workspace
	ctx  context.Context
	now  time.Time
	snap *syncer.Snapshot
	// owners maps each key to its file in the cache; twins have none.
	owners map[memory.Path]*file
	twins  map[memory.Path]bool
	later  []unsettled
	shape  uint64 // changes when the set of keys does
}

// unsettled is an empty file that may be about to be written.
type unsettled struct {
	dir  string // on disk, below the root; "" is the root
	name string
	file *file
	seen fs.FileInfo
}

// Scan returns what is there now. It writes nothing.
func (w *Workspace) Scan(ctx context.Context) (syncer.Snapshot, error) {
	for try := 1; ; try++ {
		snap, stood, err := w.scan(ctx)
		if err != nil || stood {
			return snap, err
		}
		if try == walks {
			// Without the rules nobody knows what must stay here.
			snap.Unreadable = append(snap.Unreadable, "")
			return snap, nil
		}
	}
}

// walks is how often a scan begins anew since the ignore rules changed meanwhile.
const walks = 3

// scan walks once. stood says whether the ignore rules at its end are those at its
// beginning: a text that was written after its pattern may have been read otherwise.
func (w *Workspace) scan(ctx context.Context) (_ syncer.Snapshot, stood bool, err error) {
	e := w.enter()
	snap := syncer.Snapshot{Root: e.cond, Detail: e.detail, Marker: e.marker.id, Files: map[memory.Path]syncer.LocalFile{}, Dirs: map[memory.Path]time.Time{}}
	if e.cond != syncer.RootOK {
		return snap, true, nil
	}
	defer e.root.Close()
	if above := linkedAbove(w.dir); above != "" {
		snap.Root, snap.Detail = syncer.RootUnknown, insideAnother(w.dir, above)
		return snap, true, nil
	}
	snap.MarkerBare = e.marker.id != "" && e.marker.project == memory.ProjectKey{} && w.opts.Project != memory.ProjectKey{}
	w.gen++
	w.leftover, w.torn = nil, nil
	s := &scan{w: w, ctx: ctx, now: w.opts.Now(), snap: &snap, owners: make(map[memory.Path]*file, len(w.tree.files))}
	if !s.readIgnore(e.root) {
		// Without the rules nobody knows what must stay here.
		snap.Unreadable = append(snap.Unreadable, "")
		return snap, true, nil
	}
	if len(w.ignore.rules)+len(w.ignore.also) > 0 { // a filter that lets all pass costs copies of every tree
		snap.Ignored = w.ignore.Match
	}
	w.tree.gen = w.gen
	names := w.names
	w.names = make(map[memory.Path]string, len(names))
	if err := s.folder(e.root, w.tree, "", "", 0); err != nil {
		w.names = names
		return syncer.Snapshot{}, false, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	if err := s.settle(e.root); err != nil {
		return syncer.Snapshot{}, false, fmt.Errorf("scan %s: %w", w.dir, err)
	}
	s.refuseTwins()
	s.refuseCollisions()
	for p, f := range s.owners {
		f.accepted = true
		snap.Files[p] = f.local()
	}
	return snap, s.rulesStand(e.root), nil
}

// folder walks one directory: key is its path in NFC with a slash at the end, disk
// the same as spelled on disk; both are "" for the root. The error is ctx's.
func (s *scan) folder(dir *os.Root, d *folder, key, disk string, depth int) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	infos, err := list(dir)
	if err != nil {
		s.unknown(key)
		return nil
	}
	// After the listing: a name that went before it has left its trace by now.
	if fi, err := dir.Stat("."); err == nil {
		s.snap.Dirs[memory.Path(strings.TrimSuffix(key, "/"))] = fi.ModTime()
	}
	if key != "" && slices.ContainsFunc(infos, func(fi fs.FileInfo) bool { return fi.Name() == MarkerName }) {
		// Another link's. What is shared twice grows without end: nothing is done here.
		s.refuse(strings.TrimSuffix(disk, "/"), "", RuleLinked, "this directory is linked by itself (it holds "+MarkerName+"), so it is left alone; unlink it, or remove that file if it is a copy")
		s.unknown(key)
		return nil
	}
	for _, fi := range infos {
		name := fi.Name()
		if isHidden(name) {
			if isTempName(name) && fi.Mode().IsRegular() && s.now.Sub(fi.ModTime()) > s.w.opts.StaleTemp {
				s.w.leftover = append(s.w.leftover, disk+name)
			}
			if _, moved := parseDisplaced(name); moved && fi.Mode().IsRegular() {
				s.w.torn, s.snap.Torn = append(s.w.torn, disk+name), true
			}
			continue
		}
		switch mode := fi.Mode(); {
		case mode.IsDir():
			if err := s.subfolder(dir, d, fi, key, disk, depth); err != nil {
				return err
			}
		case mode&fs.ModeSymlink != 0:
			s.link(key, disk, name)
		case mode.IsRegular() && (isMemoryName(name) || isNearMiss(name)):
			s.file(dir, d, fi, key, disk)
		case mode.IsRegular() || !isMemoryName(name):
		default:
			s.refuse(disk+name, keyOf(key, name), RuleSpecial, "it is no regular file; only files are shared")
		}
	}
	d.sweep(s.w.gen)
	return nil
}

// list returns what is in dir, each entry with its own stat, links not followed.
func list(dir *os.Root) ([]fs.FileInfo, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdir(-1)
}

func (s *scan) subfolder(dir *os.Root, d *folder, fi fs.FileInfo, key, disk string, depth int) error {
	name := fi.Name()
	sub := d.folder(name)
	sub.gen = s.w.gen
	path := memory.NormalizePath(key + name)
	if s.w.ignore.matchDir(path) {
		*sub = folder{gen: s.w.gen}
		return nil
	}
	if depth >= maxDepth {
		s.refuse(disk+name, "", RuleDepth, "directories are nested too deeply; move its files up")
		s.unknown(path + "/")
		return nil
	}
	r, err := openDir(dir, name, fi)
	if err != nil {
		// Unreadable, or replaced since it was listed; a next scan may know more.
		// What was remembered stays, so that nothing is hashed anew then.
		s.unknown(path + "/")
		return nil
	}
	defer r.Close()
	return s.folder(r, sub, path+"/", disk+name+"/", depth+1)
}

// unknown notes that nothing is known at or below key, which ends in a slash.
func (s *scan) unknown(key string) {
	if n := len(key); n > 0 {
		key = key[:n-1]
	}
	s.snap.Unreadable = append(s.snap.Unreadable, memory.Path(key))
}

// link refuses a symbolic link. It may have replaced a directory, so all below its
// name is unknown, not deleted.
func (s *scan) link(key, disk, name string) {
	path := keyOf(key, name)
	if s.w.ignore.Match(path) || s.w.ignore.matchDir(string(path)) {
		return
	}
	s.refuse(disk+name, path, RuleLink, "it is a symbolic link, which could lead outside; replace it by what it points to")
	s.unknown(string(path) + "/")
}

// keyOf returns the key of name below the directory key.
func keyOf(key, name string) memory.Path {
	return memory.Path(memory.NormalizePath(key + name))
}

// refuse notes a name that cannot become a memory. path counts as unknown if it is
// a valid key.
func (s *scan) refuse(disk string, path memory.Path, rule, message string) {
	r := syncer.Refusal{Name: plain(disk), Violation: memory.Violation{Path: plain(disk), Rule: rule, Message: message}}
	if _, err := memory.ParsePath(string(path)); err == nil {
		r.Path = path
	}
	s.snap.Refused = append(s.snap.Refused, r)
}

func (s *scan) file(dir *os.Root, d *folder, fi fs.FileInfo, key, disk string) {
	name := fi.Name()
	f := d.file(name)
	f.gen = s.w.gen
	if f.path == "" && f.broken == nil {
		f.path, f.broken = parse(key + name)
	}
	if f.broken != nil {
		if s.w.ignore.Match(keyOf(key, name)) {
			return
		}
		v := *f.broken
		v.Path = plain(disk + name)
		s.snap.Refused = append(s.snap.Refused, syncer.Refusal{Name: v.Path, Violation: v})
		return
	}
	if f.ignoredBy != s.w.ignore {
		f.ignoredBy, f.ignored = s.w.ignore, s.w.ignore.Match(f.path)
	}
	if f.ignored {
		f.accepted = false
		return
	}
	if !f.trusted(statOf(fi), s.w.opts.Racy) {
		if fi.Size() == 0 && s.age(fi) < s.w.opts.Settle {
			s.later = append(s.later, unsettled{dir: disk, name: name, file: f, seen: fi})
		} else if !s.hash(dir, name, f, fi) {
			return
		}
	}
	if disk+name != string(f.path) {
		s.w.names[f.path] = disk + name
	}
	s.own(f)
}

// parse returns the key of a name, or the rule it breaks.
func parse(raw string) (memory.Path, *memory.Violation) {
	path, err := memory.ParsePath(memory.NormalizePath(raw))
	if err == nil {
		return path, nil
	}
	var e *memory.Error
	if errors.As(err, &e) && len(e.Violations) > 0 {
		return "", &e.Violations[0]
	}
	return "", &memory.Violation{Path: plain(raw), Message: err.Error()}
}

// age is how long ago fi was modified; times in the future are long ago, since
// waiting for them would take for ever.
func (s *scan) age(fi fs.FileInfo) time.Duration {
	if age := s.now.Sub(fi.ModTime()); age >= 0 {
		return age
	}
	return s.w.opts.Settle
}

// hash learns what f holds; false means that it cannot be known now.
func (s *scan) hash(dir *os.Root, name string, f *file, fi fs.FileInfo) bool {
	hashed := s.w.opts.Now()
	etag, got, err := s.w.hashFile(dir, name, fi)
	switch {
	case err == nil:
		f.remember(etag, got, hashed)
		return true
	case errors.Is(err, fs.ErrNotExist):
		return false // deleted since it was listed
	}
	s.snap.Unreadable = append(s.snap.Unreadable, f.path)
	return false
}

// own gives f its key, or makes its key a twin's.
func (s *scan) own(f *file) {
	if s.owners[f.path] != nil {
		if s.twins == nil {
			s.twins = make(map[memory.Path]bool)
		}
		s.twins[f.path] = true
		f.accepted = false
		return
	}
	s.owners[f.path] = f
	s.shape += hashKey(s.w.clashes.seed, f.path)
}

// settle looks again at the empty files that were too young to be believed.
func (s *scan) settle(root *os.Root) error {
	if len(s.later) == 0 {
		return nil
	}
	wait := time.Duration(0)
	for _, u := range s.later {
		wait = max(wait, s.w.opts.Settle-s.age(u.seen))
	}
	timer := time.NewTimer(min(wait, s.w.opts.Settle))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	for _, u := range s.later {
		if !s.again(root, u) && s.owners[u.file.path] == u.file {
			delete(s.owners, u.file.path)
			s.shape -= hashKey(s.w.clashes.seed, u.file.path)
		}
	}
	return nil
}

// again looks at one file again; false means that it is gone or unknown.
func (s *scan) again(root *os.Root, u unsettled) bool {
	dir := "."
	if u.dir != "" {
		dir = u.dir[:len(u.dir)-1]
	}
	r, err := root.OpenRoot(dir)
	if err != nil {
		s.snap.Unreadable = append(s.snap.Unreadable, u.file.path)
		return false
	}
	defer r.Close()
	fi, err := r.Lstat(u.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil || !fi.Mode().IsRegular() {
		s.snap.Unreadable = append(s.snap.Unreadable, u.file.path)
		return false
	}
	return s.hash(r, u.name, u.file, fi)
}
