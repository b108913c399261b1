package syncstate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// powerDisk is a disk in memory that can lose power. What was not fsynced may be lost,
// in whole or in part; names count once their directory was fsynced. An fsync that
// fails drops what it should have written, and the next one reports success, as
// systems do.
type powerDisk struct {
	names, lasting map[string]*powerNode // by path: as seen, and as power loss leaves them

	n     int
	fail  int // this operation fails
	dead  int // at this operation the power goes
	off   bool
	syncs int
}

var errPower = errors.New("no power")

type powerNode struct {
	seen, lasting []byte
	dirty         []span // of seen, not in lasting
}

func newPowerDisk() *powerDisk {
	return &powerDisk{names: map[string]*powerNode{}, lasting: map[string]*powerNode{}}
}

func (d *powerDisk) step() error {
	if d.n++; d.n == d.dead {
		d.off = true
	}
	if d.off {
		return errPower
	}
	if d.n == d.fail {
		return errInjected
	}
	return nil
}

// after returns the disk as it is after the power was lost. Of what was not fsynced
// there is, by n: nothing, the first half of each write, all, or the last write alone.
func (d *powerDisk) after(n int) *powerDisk {
	out := newPowerDisk()
	for path, node := range d.lasting {
		b := append([]byte(nil), node.lasting...)
		for i, w := range node.dirty {
			upto := w.at + w.size*int64(min(n, 2))/2
			if n == 3 && i < len(node.dirty)-1 {
				continue
			}
			if upto > int64(len(node.seen)) {
				continue // truncated meanwhile
			}
			if int64(len(b)) < upto {
				b = append(b, make([]byte, upto-int64(len(b)))...)
			}
			copy(b[w.at:upto], node.seen[w.at:upto])
		}
		kept := &powerNode{seen: b, lasting: append([]byte(nil), b...)}
		out.names[path], out.lasting[path] = kept, kept
	}
	return out
}

func (d *powerDisk) MkdirAll(dir string) error { return errors.Join(d.step(), os.MkdirAll(dir, 0o700)) }

func (d *powerDisk) Open(path string, _ bool) (diskFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	n, ok := d.names[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &powerFile{d, n}, nil
}

func (d *powerDisk) Create(path string) (diskFile, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	if _, ok := d.names[path]; ok {
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	n := &powerNode{}
	d.names[path] = n
	return &powerFile{d, n}, nil
}

func (d *powerDisk) Rename(from, to string) error {
	if err := d.step(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *powerDisk) Remove(path string) error {
	if err := d.step(); err != nil {
		return err
	}
	if _, ok := d.names[path]; !ok {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	delete(d.names, path)
	return nil
}

func (d *powerDisk) ReadDir(string) ([]fs.DirEntry, error) { return nil, d.step() }

func (d *powerDisk) SyncDir(dir string) error {
	if err := d.step(); err != nil {
		return err
	}
	for path := range d.lasting {
		if filepath.Dir(path) == dir {
			delete(d.lasting, path)
		}
	}
	for path, n := range d.names {
		if filepath.Dir(path) == dir {
			d.lasting[path] = n
		}
	}
	return nil
}

type powerFile struct {
	d *powerDisk
	n *powerNode
}

func (f *powerFile) ReadAt(b []byte, at int64) (int, error) {
	if err := f.d.step(); err != nil {
		return 0, err
	}
	if at > int64(len(f.n.seen)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.seen[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *powerFile) WriteAt(b []byte, at int64) (int, error) {
	err := f.d.step()
	if err != nil {
		b = b[:len(b)/2]
	}
	if need := at + int64(len(b)); int64(len(f.n.seen)) < need {
		f.n.seen = append(f.n.seen, make([]byte, need-int64(len(f.n.seen)))...)
	}
	copy(f.n.seen[at:], b)
	f.n.dirty = append(f.n.dirty, span{at, int64(len(b))})
	return len(b), err
}

func (f *powerFile) Truncate(size int64) error {
	if err := f.d.step(); err != nil {
		return err
	}
	if size < int64(len(f.n.seen)) {
		f.n.seen = f.n.seen[:size]
	}
	return nil
}

func (f *powerFile) Sync() error {
	dirty := f.n.dirty
	f.n.dirty = nil
	if err := f.d.step(); err != nil {
		if f.d.off {
			f.n.dirty = dirty
		}
		return err
	}
	f.d.syncs++
	b := f.n.lasting
	if len(b) > len(f.n.seen) {
		b = b[:len(f.n.seen)]
	}
	for _, w := range dirty {
		upto := min(w.at+w.size, int64(len(f.n.seen)))
		if upto <= w.at {
			continue
		}
		if int64(len(b)) < upto {
			b = append(b, make([]byte, upto-int64(len(b)))...)
		}
		copy(b[w.at:upto], f.n.seen[w.at:upto])
	}
	f.n.lasting = b
	return nil
}

func (f *powerFile) Size() (int64, error) { return int64(len(f.n.seen)), f.d.step() }
func (f *powerFile) Close() error         { return nil }

// The power goes at every single operation, alone and after every single fault, and
// the disk keeps nothing, half or all of what was not fsynced: whatever had been
// acknowledged as durable is there, in order, and never half an update.
func TestPowerLossAtEveryOperation(t *testing.T) {
	dir := t.TempDir()
	updates := script()
	runs := 0
	run := func(fail, dead int) (finished, faulted bool) {
		d := newPowerDisk()
		d.fail, d.dead = fail, dead
		states := []syncer.LinkState{syncer.NewLinkState()} // that may be found afterwards
		least := 0                                          // index of the oldest that may
		s, err := open(d, dir, link, Options{})
		if errors.Is(err, errInjected) {
			s, err = open(d, dir, link, Options{})
		}
		if err == nil {
			for i, u := range updates {
				if i == 3 || i == 5 {
					// The process is killed and started again; the disk goes on. (Close
					// writes nothing.)
					_ = s.Close()
					if s, err = open(d, dir, link, Options{}); errors.Is(err, errInjected) {
						s, err = open(d, dir, link, Options{})
					}
					if err != nil {
						break
					}
					if st := load(t, s); !cmp.Equal(st, states[len(states)-1]) {
						states = append(states, st) // a failed update came to light
					}
				}
				next := clone(states[len(states)-1])
				next.Apply(u)
				err := s.Apply(context.Background(), u)
				if err == nil {
					states = append(states, next)
					if !u.Relaxed {
						least = len(states) - 1
					}
					continue
				}
				if errors.Is(err, errPower) {
					states = append(states, next) // may have come through whole
					break
				}
				// A fault: left out, the next update comes. A crash before that may
				// show it, but not together with later ones.
				states = append(states, next, clone(states[len(states)-1]))
			}
			if s != nil {
				_ = s.Close()
			}
		}
		finished, faulted = !d.off, d.n >= fail
		for kept := range 4 {
			runs++
			what := fmt.Sprintf("fault at %d, power lost at %d, part %d kept", fail, dead, kept)
			got, err := open(d.after(kept), dir, link, Options{})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if r := got.Report(); r.Damage != "" {
				t.Fatalf("%s: %+v", what, r)
			}
			st := load(t, got)
			found := false
			for _, want := range states[least:] {
				found = found || cmp.Equal(want, st)
			}
			if !found {
				t.Fatalf("%s: %d were promised; found %s", what, least, cmp.Diff(states[least], st))
			}
			for e := range st.Texts() {
				if _, err := got.Text(context.Background(), e); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			must(t, got.Close())
		}
		return finished, faulted
	}
	for dead, finished := 1, false; !finished; dead++ {
		finished, _ = run(0, dead)
	}
	for fail, faulted := 1, true; faulted; fail++ {
		// The moments behind a fault are where a lie of the disk shows.
		for dead, finished := fail+1, false; !finished && dead < fail+15; dead++ {
			finished, faulted = run(fail, dead)
		}
	}
	t.Logf("%d power losses", runs)
	if runs < 500 {
		t.Error("the script is too short to mean anything")
	}
}

// An acknowledged update costs one fsync.
func TestOneSyncPerUpdate(t *testing.T) {
	d := newPowerDisk()
	s, err := open(d, t.TempDir(), link, Options{})
	must(t, err)
	defer s.Close()
	mustApply(t, s, baseline("a.md", "x", 1))
	before := d.syncs
	for i := range 10 {
		u := baseline("a.md", strings.Repeat("x", i+1), memory.Revision(i))
		u.Relaxed = i%2 == 1
		mustApply(t, s, u)
	}
	if got := d.syncs - before; got != 5 {
		t.Errorf("%d fsyncs for 5 durable and 5 relaxed updates", got)
	}
}
