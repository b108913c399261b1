package synctest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Disk is a workspace in memory. Its exported fields and methods are the user's side;
// Local returns the syncer's. It is not safe for concurrent use.
type Disk struct {
	// FoldCase makes names that differ in case only the same, as on a Mac.
	FoldCase bool
	// Clock gives files their mtime.
	Clock syncer.Clock
	// Hook, if set, is called around every operation of the syncer's side.
	Hook Hook
	// Meanwhile, if set, runs inside Write and Remove right before the file is looked
	// at for the last time: an edit that lands at the worst moment.
	Meanwhile func(path memory.Path)

	// Root is what a scan finds; the zero value is RootOK.
	Root       syncer.RootCondition
	Marker     string
	Unreadable []memory.Path
	Refused    []syncer.Refusal
	Ignored    func(memory.Path) bool

	files map[memory.Path]file
}

type file struct {
	content []byte
	modTime time.Time
}

// NewDisk returns an empty workspace.
func NewDisk(clock syncer.Clock) *Disk {
	return &Disk{Clock: clock, files: map[memory.Path]file{}}
}

// Save writes a file as a user's editor does. It reports false where a disk would
// refuse: a directory or file in the way, or another spelling of the name.
func (d *Disk) Save(p memory.Path, content string) bool {
	p = d.Spelled(p)
	if _, there := d.files[p]; !there && d.blocked(p) {
		return false
	}
	d.files[p] = file{content: []byte(content), modTime: d.Clock()}
	return true
}

// Spelled returns the name under which the disk has p, if it has it, else p: a disk
// that folds case keeps the spelling of the first save.
func (d *Disk) Spelled(p memory.Path) memory.Path {
	if _, ok := d.files[p]; ok || !d.FoldCase {
		return p
	}
	for q := range d.files {
		if q.FoldKey() == p.FoldKey() {
			return q
		}
	}
	return p
}

// Delete removes a file, as a user does.
func (d *Disk) Delete(p memory.Path) { delete(d.files, p) }

// Rename moves a file as mv does, replacing what is there. It reports false when the
// disk would refuse.
func (d *Disk) Rename(from, to memory.Path) bool {
	f, ok := d.files[from]
	if !ok || from == to {
		return false
	}
	delete(d.files, from)
	if d.blocked(to) {
		d.files[from] = f
		return false
	}
	d.files[to] = f
	return true
}

// Read returns a file's text.
func (d *Disk) Read(p memory.Path) (string, bool) {
	f, ok := d.files[p]
	return string(f.content), ok
}

// ModTime returns a file's mtime.
func (d *Disk) ModTime(p memory.Path) time.Time { return d.files[p].modTime }

// Touch sets a file's mtime.
func (d *Disk) Touch(p memory.Path, t time.Time) {
	if f, ok := d.files[p]; ok {
		f.modTime = t
		d.files[p] = f
	}
}

// Files returns all files and their texts.
func (d *Disk) Files() map[memory.Path]string {
	out := make(map[memory.Path]string, len(d.files))
	for p, f := range d.files {
		out[p] = string(f.content)
	}
	return out
}

// Paths returns the paths of all files, in order.
func (d *Disk) Paths() []memory.Path { return slices.Sorted(maps.Keys(d.files)) }

// blocked reports whether something other than a file named exactly p stands at p.
func (d *Disk) blocked(p memory.Path) bool {
	fold := func(q memory.Path) string {
		if d.FoldCase {
			return q.FoldKey()
		}
		return string(q)
	}
	want := strings.Split(string(p), "/")
	for q := range d.files {
		if q == p {
			continue
		}
		have := strings.Split(string(q), "/")
		same := 0
		for same < min(len(want), len(have)) && fold(memory.Path(want[same])) == fold(memory.Path(have[same])) {
			same++
		}
		if same == len(want) || same == len(have) {
			return true // a file where a directory must be, the other way round, or another spelling
		}
		if slices.Equal(want[:same], have[:same]) {
			continue
		}
		return true // a directory of another spelling
	}
	return false
}

// Local returns the syncer's side of the disk.
func (d *Disk) Local() syncer.Local { return local{d} }

type local struct{ d *Disk }

// Scan is syncer.Local's.
func (l local) Scan(ctx context.Context) (syncer.Snapshot, error) {
	d := l.d
	if err := firstError(ctx.Err(), d.Hook.before("scan")); err != nil {
		return syncer.Snapshot{}, err
	}
	s := syncer.Snapshot{
		Root: d.root(), Marker: d.Marker, Files: map[memory.Path]syncer.LocalFile{},
		Unreadable: slices.Clone(d.Unreadable), Refused: slices.Clone(d.Refused), Ignored: d.Ignored,
	}
	if s.Root != syncer.RootOK {
		s.Marker = ""
		return s, d.Hook.after("scan")
	}
	for p, f := range d.files {
		if d.Ignored != nil && d.Ignored(p) || slices.ContainsFunc(d.Unreadable, func(u memory.Path) bool {
			return u == p || strings.HasPrefix(string(p), string(u)+"/")
		}) {
			continue
		}
		s.Files[p] = syncer.LocalFile{ETag: memory.ETagOf(f.content), Size: int64(len(f.content)), ModTime: f.modTime}
	}
	return s, d.Hook.after("scan")
}

// Same is syncer.Glancer's.
func (l local) Same(_ context.Context, seen syncer.Snapshot) bool {
	d := l.d
	if d.root() != syncer.RootOK || d.Marker != seen.Marker || len(d.Unreadable)+len(d.Refused) > 0 {
		return false
	}
	n := 0
	for p := range d.files {
		if d.Ignored != nil && d.Ignored(p) {
			continue
		}
		if _, known := seen.Files[p]; !known {
			return false
		}
		n++
	}
	return n == len(seen.Files)
}

func (d *Disk) root() syncer.RootCondition {
	if d.Root == 0 {
		return syncer.RootOK
	}
	return d.Root
}

// Read is syncer.Local's.
func (l local) Read(ctx context.Context, p memory.Path) ([]byte, error) {
	if err := firstError(ctx.Err(), l.d.Hook.before("read")); err != nil {
		return nil, err
	}
	f, ok := l.d.files[p]
	if !ok {
		return nil, syncer.ErrLocalAbsent
	}
	content := bytes.Clone(f.content[:min(len(f.content), memory.MaxMemoryBytes+1)])
	return content, l.d.Hook.after("read")
}

// Write is syncer.Local's.
func (l local) Write(ctx context.Context, p memory.Path, content []byte, modTime time.Time, expect memory.ETag) error {
	d := l.d
	if err := firstError(ctx.Err(), d.Hook.before("write")); err != nil {
		return err
	}
	if d.Meanwhile != nil {
		d.Meanwhile(p)
	}
	if d.root() != syncer.RootOK {
		return syncer.ErrLocalChanged
	}
	f, there := d.files[p]
	current := memory.ETag("")
	if there {
		current = memory.ETagOf(f.content)
	}
	switch {
	case there && bytes.Equal(f.content, content):
	case current != expect:
		return syncer.ErrLocalChanged
	case !there && d.blocked(p):
		return syncer.ErrLocalBlocked
	default:
		if modTime.IsZero() {
			modTime = d.Clock()
		}
		d.files[p] = file{content: bytes.Clone(content), modTime: modTime}
	}
	return d.Hook.after("write")
}

// Remove is syncer.Local's.
func (l local) Remove(ctx context.Context, p memory.Path, expect memory.ETag) error {
	d := l.d
	if err := firstError(ctx.Err(), d.Hook.before("remove")); err != nil {
		return err
	}
	if d.Meanwhile != nil {
		d.Meanwhile(p)
	}
	if d.root() != syncer.RootOK {
		return syncer.ErrLocalChanged
	}
	if f, there := d.files[p]; there {
		if memory.ETagOf(f.content) != expect {
			return syncer.ErrLocalChanged
		}
		delete(d.files, p)
	}
	return d.Hook.after("remove")
}

// PutMarker is syncer.Local's.
func (l local) PutMarker(ctx context.Context, id string) error {
	if err := firstError(ctx.Err(), l.d.Hook.before("mark")); err != nil {
		return err
	}
	if l.d.Root == syncer.RootMissing {
		l.d.Root = syncer.RootOK
	}
	l.d.Marker = id
	return l.d.Hook.after("mark")
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
