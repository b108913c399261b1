//go:build linux

package killtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// editor is a person's editor: it saves, deletes and renames files of its own in the
// team/ directory and knows what must be there.
type editor struct {
	m   *machine
	rnd *rand.Rand

	// noDeletes keeps the editor from deleting and renaming.
	noDeletes bool

	files   map[string]string // as saved last
	deleted map[string]bool   // every path that it ever deleted or renamed away
	n       int
}

func newEditor(m *machine, rnd *rand.Rand) *editor {
	return &editor{m: m, rnd: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64())), files: map[string]string{}, deleted: map[string]bool{}}
}

// stock saves files that stay as they are. An editor that deletes many of few files
// while nobody looks would meet the brake on mass deletes, which is another test's.
func (e *editor) stock() error {
	for i := range 40 {
		if err := e.save(fmt.Sprintf("%s/stock/project_%d.md", e.m.name, i)); err != nil {
			return err
		}
	}
	return nil
}

// path chooses one of the paths that are this editor's alone.
func (e *editor) path() string {
	dirs := []string{"", e.m.name + "/", e.m.name + "/deep/", e.m.name + fmt.Sprintf("/d%d/", e.rnd.IntN(3))}
	return fmt.Sprintf("%sproject_%s_%d.md", dirs[e.rnd.IntN(len(dirs))], e.m.name, e.rnd.IntN(6))
}

func (e *editor) existing() (string, bool) {
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(e.files)), func(p string) bool { return strings.Contains(p, "/stock/") })
	if len(all) == 0 {
		return "", false
	}
	return all[e.rnd.IntN(len(all))], true
}

// step does one thing.
func (e *editor) step() error {
	at := func(p string) string { return filepath.Join(e.m.team, filepath.FromSlash(p)) }
	switch old, any := e.existing(); {
	case e.noDeletes:
		return e.save(e.path())
	case any && e.rnd.IntN(12) == 0:
		if err := os.Remove(at(old)); err != nil {
			return err
		}
		delete(e.files, old)
		e.deleted[old] = true
		_ = os.Remove(filepath.Dir(at(old))) // goes if it is empty
	case any && e.rnd.IntN(12) == 0:
		p := e.path()
		if p == old {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(at(p)), 0o755); err != nil {
			return err
		}
		if err := os.Rename(at(old), at(p)); err != nil {
			return err
		}
		e.files[p] = e.files[old]
		delete(e.files, old)
		e.deleted[old] = true
	default:
		return e.save(e.path())
	}
	return nil
}

func (e *editor) save(p string) error {
	e.n++
	text := newText(e.rnd, filepath.Base(p), e.n)
	if err := save(filepath.Join(e.m.team, filepath.FromSlash(p)), text); err != nil {
		return err
	}
	e.files[p] = text
	return nil
}

// run works until ctx ends.
func (e *editor) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := e.step()
		if errors.Is(err, fs.ErrNotExist) {
			// The agent may remove a directory that became empty under an editor
			// that is about to write into it; an editor's person saves again.
			if _, gone := e.lost(); gone {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(e.rnd.IntN(60)) * time.Millisecond):
		}
	}
	return nil
}

// lost returns a file that should be there and is not.
func (e *editor) lost() (string, bool) {
	for p := range e.files {
		if _, err := os.Lstat(filepath.Join(e.m.team, filepath.FromSlash(p))); err != nil {
			return p, true
		}
	}
	return "", false
}

// witness reads everything in a team/ directory without pause and notes every text
// that is not whole.
type witness struct {
	reads int
	seen  []string
}

func (w *witness) run(ctx context.Context, m *machine) error {
	for ctx.Err() == nil {
		files, err := m.files()
		if err != nil {
			return err
		}
		for p, text := range files {
			w.reads++
			if why := broken(text); why != "" {
				w.seen = append(w.seen, fmt.Sprintf("%s: %s: %s", p, why, excerpt(text)))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// work runs editors, each on its machine, and a witness on every machine, until the
// returned function is called; that checks what the witnesses saw.
func work(t *testing.T, editors []*editor, machines ...*machine) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	errs := make([]error, len(editors)+len(machines))
	for i, e := range editors {
		wg.Go(func() { errs[i] = e.run(ctx) })
	}
	witnesses := make([]witness, len(machines))
	wctx, wcancel := context.WithCancel(t.Context())
	var wwg sync.WaitGroup
	for i, m := range machines {
		wwg.Go(func() { errs[len(editors)+i] = witnesses[i].run(wctx, m) })
	}
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(func() { stop(); wcancel(); wwg.Wait() })
	return func() {
		t.Helper()
		stop()
		waitInStep(t, machines[0].h, machines...)
		wcancel()
		wwg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		for i, m := range machines {
			if witnesses[i].reads == 0 {
				t.Errorf("nobody read a file of %s", m.name)
			}
			for _, s := range witnesses[i].seen[:min(3, len(witnesses[i].seen))] {
				t.Errorf("half-written on %s: %s", m.name, s)
			}
		}
	}
}

// checkSurvived compares the hub's files with what the editors saved last, and its
// history's deletes with theirs.
func checkSurvived(t *testing.T, h *hub, editors ...*editor) {
	t.Helper()
	want := map[string]string{}
	deleted := map[string]bool{}
	saves := 0
	for _, e := range editors {
		maps.Copy(want, e.files)
		maps.Copy(deleted, e.deleted)
		saves += e.n
	}
	got, err := h.files()
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(want, got); d != "" {
		t.Errorf("what the editors saved last and what the hub has differ: %s", d)
	}
	history := h.history()
	for _, c := range history {
		for _, ch := range c.Changes {
			if ch.ETag == "" && !deleted[string(ch.Path)] {
				t.Errorf("revision %d deletes %s, which nobody deleted", c.Revision, ch.Path)
			}
		}
	}
	t.Logf("%d saves, %d files, %d revisions", saves, len(want), len(history))
}

// checkTidy makes what may be left of killed writes old, gives the agents a reason to
// write, and fails the test if anything but memories stays.
func checkTidy(t *testing.T, h *hub, machines ...*machine) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	left := func(m *machine) (names []string) {
		err := filepath.WalkDir(m.team, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".tmp" {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	n := 0
	for _, m := range machines {
		for _, name := range left(m) {
			n++
			if err := os.Chtimes(name, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := h.client()
	rnd := rand.New(rand.NewPCG(3, 3))
	eventually(t, patience, "no temporary file is left", func() string {
		put(t, c, "project_tidy.md", newText(rnd, "tidy", rnd.Int()))
		for _, m := range machines {
			m.status("--wait", "--timeout", "5s")
			if l := left(m); len(l) > 0 {
				return fmt.Sprint(l)
			}
		}
		return ""
	})
	t.Logf("%d temporary files of killed writes tidied up", n)
}
