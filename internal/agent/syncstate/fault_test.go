package syncstate

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

var errInjected = errors.New("injected fault")

// faultyDisk fails its n-th operation, counted from 1; a write that fails has put half
// of its bytes there.
type faultyDisk struct {
	osDisk
	n, fail int
	op      string // what failed
}

func (d *faultyDisk) step(op string) error {
	d.n++
	if d.n == d.fail {
		d.op = op
		return errInjected
	}
	return nil
}

func (d *faultyDisk) MkdirAll(dir string) error {
	return errors.Join(d.step("mkdir"), d.osDisk.MkdirAll(dir))
}

func (d *faultyDisk) Open(path string, write bool) (diskFile, error) {
	if err := d.step("open"); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Open(path, write)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *faultyDisk) Create(path string) (diskFile, error) {
	if err := d.step("create"); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *faultyDisk) Rename(from, to string) error {
	if err := d.step("rename"); err != nil {
		return err
	}
	return d.osDisk.Rename(from, to)
}

func (d *faultyDisk) Remove(path string) error {
	if err := d.step("remove"); err != nil {
		return err
	}
	return d.osDisk.Remove(path)
}

func (d *faultyDisk) ReadDir(dir string) ([]fs.DirEntry, error) {
	if err := d.step("readdir"); err != nil {
		return nil, err
	}
	return d.osDisk.ReadDir(dir)
}

func (d *faultyDisk) SyncDir(dir string) error {
	if err := d.step("syncdir"); err != nil {
		return err
	}
	return d.osDisk.SyncDir(dir)
}

type faultyFile struct {
	diskFile
	d *faultyDisk
}

func (f *faultyFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.d.step("read"); err != nil {
		return 0, err
	}
	return f.diskFile.ReadAt(b, at)
}

func (f *faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.d.step("write"); err != nil {
		n, _ := f.diskFile.WriteAt(b[:len(b)/2], at)
		return n, err
	}
	return f.diskFile.WriteAt(b, at)
}

func (f *faultyFile) Truncate(n int64) error {
	if err := f.d.step("truncate"); err != nil {
		return err
	}
	return f.diskFile.Truncate(n)
}

func (f *faultyFile) Size() (int64, error) {
	if err := f.d.step("size"); err != nil {
		return 0, err
	}
	return f.diskFile.Size()
}

func (f *faultyFile) Sync() error {
	if err := f.d.step("fsync"); err != nil {
		return err
	}
	return f.diskFile.Sync()
}

// script is a life of a state: updates, a rewrite in the middle, a reopening, a scrub.
func script() []syncer.Update {
	var out []syncer.Update
	for i := range 6 {
		// Long enough that the file is rewritten by itself on the way.
		u := baseline(path(i%2), strings.Repeat(string(rune('a'+i)), 60_000), memory.Revision(i))
		u.Relaxed = i%3 == 2
		out = append(out, u)
	}
	full, _ := full()
	return append(out, full)
}

// Every operation on the disk fails once, each in a run of its own. Whatever fails:
// what was acknowledged is there after reopening, what was not is there whole or not
// at all, and the state goes on working.
func TestEveryOperationFailsOnce(t *testing.T) {
	seen := map[string]bool{}
	for fail := 1; ; fail++ {
		dir := t.TempDir()
		d := &faultyDisk{fail: fail}
		s, err := open(d, dir, link, Options{})
		if err != nil {
			if !errors.Is(err, errInjected) {
				t.Fatalf("fault %d (%s): open: %v", fail, d.op, err)
			}
			if s, err = open(d, dir, link, Options{}); err != nil {
				t.Fatalf("fault %d (%s): open again: %v", fail, d.op, err)
			}
		}
		model := syncer.NewLinkState()
		var tail *syncer.LinkState // the model with an update that failed
		for i, u := range script() {
			err := s.Apply(context.Background(), u)
			if err != nil && !errors.Is(err, errInjected) {
				t.Fatalf("fault %d (%s): apply %d: %v", fail, d.op, i, err)
			}
			after := clone(model)
			after.Apply(u)
			if err != nil {
				if diff := cmp.Diff(model, load(t, s)); diff != "" {
					t.Fatalf("fault %d (%s): a failed update took effect: %s", fail, d.op, diff)
				}
				if i%2 == 0 { // tried again, or left at that
					if err := s.Apply(context.Background(), u); err != nil {
						t.Fatalf("fault %d (%s): apply %d again: %v", fail, d.op, i, err)
					}
					model = after
					continue
				}
				tail = &after
				break
			}
			model = after
		}
		if err := s.Close(); err != nil {
			t.Fatalf("fault %d (%s): close: %v", fail, d.op, err)
		}
		got, err := Open(dir, link, Options{})
		if err != nil {
			t.Fatalf("fault %d (%s): reopen: %v", fail, d.op, err)
		}
		st := load(t, got)
		if diff := cmp.Diff(model, st); diff != "" && (tail == nil || cmp.Diff(*tail, st) != "") {
			t.Fatalf("fault %d (%s): reopened: %s", fail, d.op, diff)
		}
		for e := range st.Texts() {
			if _, err := got.Text(context.Background(), e); err != nil {
				t.Fatalf("fault %d (%s): %v", fail, d.op, err)
			}
		}
		if r := got.Report(); r.Damage != "" {
			t.Fatalf("fault %d (%s): %+v", fail, d.op, r)
		}
		if names, _ := filepath.Glob(filepath.Join(dir, linksDir, link, "*")); len(names) > 1 {
			t.Fatalf("fault %d (%s): left %v", fail, d.op, names)
		}
		must(t, got.Close())
		if d.op == "" {
			break // the run was over before this operation
		}
		seen[d.op] = true
	}
	for _, op := range []string{"mkdir", "open", "create", "rename", "remove", "syncdir", "read", "write", "truncate", "fsync"} {
		if !seen[op] {
			t.Errorf("no %s ever failed", op)
		}
	}
}

func clone(s syncer.LinkState) syncer.LinkState {
	out := syncer.NewLinkState()
	u := snapshotOf(&s)
	out.Apply(u)
	out.Fresh = s.Fresh
	return out
}

// A full disk fails every write for a while; then the state works on by itself.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	d := &faultyDisk{fail: -1}
	s, err := open(d, dir, link, Options{})
	must(t, err)
	defer s.Close()
	must(t, s.Apply(context.Background(), baseline("a.md", "one", 1)))
	full := &fullDisk{faultyDisk: d}
	s.disk = full
	s.file = &fullFile{s.file, full}
	full.on = true
	for range 5 {
		if err := s.Apply(context.Background(), baseline("a.md", "two", 2)); !errors.Is(err, errInjected) {
			t.Fatalf("a full disk: %v", err)
		}
	}
	if got, err := s.Text(context.Background(), etag("one")); err != nil || string(got) != "one" {
		t.Fatalf("%q, %v", got, err)
	}
	full.on = false
	must(t, s.Apply(context.Background(), baseline("a.md", "three", 3)))
	must(t, s.Close())
	again := mustOpen(t, dir)
	if e := load(t, again).Baseline["a.md"]; e.HubRevision != 3 || again.Report() != (Report{}) {
		t.Errorf("%+v, %+v", e, again.Report())
	}
}

type fullDisk struct {
	*faultyDisk
	on bool
}

func (d *fullDisk) Create(path string) (diskFile, error) {
	f, err := d.faultyDisk.Create(path)
	if err != nil {
		return nil, err
	}
	return &fullFile{f, d}, nil
}

type fullFile struct {
	diskFile
	d *fullDisk
}

func (f *fullFile) WriteAt(b []byte, at int64) (int, error) {
	if f.d.on {
		n, _ := f.diskFile.WriteAt(b[:1], at)
		return n, errInjected
	}
	return f.diskFile.WriteAt(b, at)
}
