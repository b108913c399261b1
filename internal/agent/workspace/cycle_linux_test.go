package workspace_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/agent/workspace"
)

// machine is the syncer on this machine's real disk: workspace and state as shipped.
type machine struct {
	t        *testing.T
	dir      string
	stateDir string
	hub      *synctest.Hub
	state    *syncstate.State
	s        *syncer.Syncer
}

func newMachine(t *testing.T, hub *synctest.Hub, dir string) *machine {
	t.Helper()
	m := &machine{t: t, dir: dir, stateDir: t.TempDir(), hub: hub}
	m.start()
	t.Cleanup(func() { m.state.Close() })
	return m
}

// start is a new process on the same disk.
func (m *machine) start() {
	m.t.Helper()
	if m.state != nil {
		m.state.Close()
	}
	local, err := workspace.New(m.dir, workspace.Options{Settle: time.Millisecond})
	if err != nil {
		m.t.Fatal(err)
	}
	if m.state, err = syncstate.Open(m.stateDir, "link", syncstate.Options{}); err != nil {
		m.t.Fatal(err)
	}
	ids := 0
	m.s = syncer.New(syncer.Ports{
		Local: local, State: m.state, Remote: m.hub.Remote(), Guard: &synctest.Guard{}, Clock: time.Now,
		NewID: func() string {
			ids++
			return fmt.Sprintf("%s-%d-%d", filepath.Base(m.stateDir), time.Now().UnixNano(), ids)
		},
	}, syncer.Options{})
}

func (m *machine) sync() syncer.Result {
	m.t.Helper()
	r, err := m.s.Cycle(context.Background())
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// spelled returns name as this disk has it: a person who edits a file that came in NFC
// does not make an NFD twin of it.
func (m *machine) spelled(name string) string {
	nfc := strings.ReplaceAll(name, "e\u0301", "\u00e9")
	if _, err := os.Lstat(filepath.Join(m.dir, nfc)); err == nil {
		return nfc
	}
	return name
}

// files returns what a person sees in the directory.
func (m *machine) files() map[string]string {
	m.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(m.dir, path)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

func memo(text string) string {
	return "---\nname: n\ndescription: d\ntype: project\n---\n" + text + "\n"
}

// settle syncs all machines until nothing moves any more.
func settle(t *testing.T, hub *synctest.Hub, ms []*machine) {
	t.Helper()
	for range 20 {
		before := len(hub.Commits())
		again := time.Duration(0)
		for _, m := range ms {
			again = max(again, m.sync().Again)
		}
		if len(hub.Commits()) == before && again == 0 {
			return
		}
		time.Sleep(again) // as the agent does: a file that has just gone may be one being saved
	}
	t.Fatal("the machines do not come to rest")
}

func equal(t *testing.T, hub *synctest.Hub, ms []*machine) {
	t.Helper()
	want := map[string]string{}
	for p, text := range hub.Files() {
		want[string(p)] = text
	}
	for i, m := range ms {
		if diff := cmp.Diff(want, m.files()); diff != "" {
			t.Fatalf("machine %d: %s", i, diff)
		}
	}
}

func fleet(t *testing.T, n int) (*synctest.Hub, []*machine) {
	t.Helper()
	hub := synctest.NewHub(time.Now)
	var ms []*machine
	for i := range n {
		ms = append(ms, newMachine(t, hub, filepath.Join(t.TempDir(), fmt.Sprint("team", i))))
		ms[i].sync()
	}
	return hub, ms
}

// W12: a pulled file is never echoed; one edit is one revision with 5 machines, and
// stays one after a restart and after the state was lost (C18).
func TestOneEditIsOneRevision(t *testing.T) {
	hub, ms := fleet(t, 5)
	ms[0].write("a.md", memo("one"))
	settle(t, hub, ms)
	for i := range 5 {
		ms[i].write("a.md", memo(fmt.Sprint("edit ", i)))
		settle(t, hub, ms)
	}
	if n := len(hub.Commits()); n != 6 {
		t.Errorf("%d revisions for 6 edits", n)
	}
	for _, m := range ms[:3] {
		m.start()
	}
	if err := os.RemoveAll(ms[4].stateDir); err != nil {
		t.Fatal(err)
	}
	ms[4].start()
	settle(t, hub, ms)
	if n := len(hub.Commits()); n != 6 {
		t.Errorf("%d revisions after restarts", n)
	}
	equal(t, hub, ms)
}

// N1, N3 and the turns of files into directories, through the whole cycle.
func TestNamesTravel(t *testing.T) {
	const nfc, nfd = "caf\u00e9", "cafe\u0301"
	hub, ms := fleet(t, 2)
	a, b := ms[0], ms[1]
	a.write(nfd+"/"+nfd+".md", memo("x"))
	a.write("Note.md", memo("n"))
	a.write("a.md", memo("file"))
	settle(t, hub, ms)
	if _, ok := hub.Files()[nfc+"/"+nfc+".md"]; !ok || len(hub.Files()) != 3 {
		t.Fatalf("the hub has %v", hub.Files())
	}
	// Both write on; each under the name its own disk has.
	b.write(nfc+"/"+nfc+".md", memo("y"))
	rename(t, b, "Note.md", "note.md")
	if err := os.Remove(filepath.Join(b.dir, "a.md")); err != nil {
		t.Fatal(err)
	}
	b.write("a.md/x.md", memo("below"))
	settle(t, hub, ms)
	want := map[string]string{nfd + "/" + nfd + ".md": memo("y"), "note.md": memo("n"), "a.md/x.md": memo("below")}
	if diff := cmp.Diff(want, a.files()); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(filepath.Join(a.dir, "a.md")); err != nil {
		t.Fatal(err)
	}
	a.write("a.md", memo("file again"))
	settle(t, hub, ms)
	if got := b.files()["a.md"]; got != memo("file again") {
		t.Errorf("%q", got)
	}
}

func rename(t *testing.T, m *machine, from, to string) {
	t.Helper()
	to = filepath.Join(m.dir, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(m.dir, from), to); err != nil {
		t.Fatal(err)
	}
}

// Random edits, deletes, renames and restarts on real disks end with all equal.
func TestRealDisksConverge(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	hub, ms := fleet(t, 3)
	names := []string{"a.md", "b.md", "dir/a.md", "dir/sub/c.md", "项目.md", "cafe\u0301.md"}
	for step := range 150 {
		m := ms[rnd.IntN(len(ms))]
		name := m.spelled(names[rnd.IntN(len(names))])
		switch rnd.IntN(8) {
		case 0, 1, 2:
			m.write(name, memo(fmt.Sprintf("line 1\nstep %d\nline 3", step)))
		case 3:
			_ = os.Remove(filepath.Join(m.dir, name))
		case 4:
			if to := m.spelled(names[rnd.IntN(len(names))]); m.files()[name] != "" {
				rename(t, m, name, to)
			}
		case 5:
			m.start()
		default:
			m.sync()
		}
	}
	// A brake may have stopped a machine that deleted much; a person says yes.
	for _, m := range ms {
		m.sync()
		if m.s.Status().Halt != nil {
			if err := m.s.Resume(context.Background(), syncer.AcceptDeletes); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle(t, hub, ms)
	want := map[string]string{}
	for p, text := range hub.Files() {
		want[string(p)] = text
	}
	for i, m := range ms {
		got := map[string]string{}
		for name, text := range m.files() {
			got[strings.ReplaceAll(name, "e\u0301", "\u00e9")] = text
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("machine %d: %s", i, diff)
		}
	}
}
