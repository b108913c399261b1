package syncstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

const link = "acme~payments"

func mustOpen(t testing.TB, dir string) *State {
	t.Helper()
	s, err := Open(dir, link, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// quickDisk spares the fsyncs, for tests that open thousands of states and are about
// something else.
type quickDisk struct{ osDisk }

type quickFile struct{ diskFile }

func (d quickDisk) Open(path string, write bool) (diskFile, error) {
	f, err := d.osDisk.Open(path, write)
	if err != nil {
		return nil, err
	}
	return quickFile{f}, nil
}

func (d quickDisk) Create(path string) (diskFile, error) {
	f, err := d.osDisk.Create(path)
	if err != nil {
		return nil, err
	}
	return quickFile{f}, nil
}

func (quickDisk) SyncDir(string) error { return nil }
func (quickFile) Sync() error          { return nil }

func quickOpen(t testing.TB, dir string) *State {
	t.Helper()
	s, err := open(quickDisk{}, dir, link, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustApply(t testing.TB, s *State, u syncer.Update) {
	t.Helper()
	if err := s.Apply(context.Background(), u); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, s *State) syncer.LinkState {
	t.Helper()
	st, err := s.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// check fails unless s holds want and every text that want refers to.
func check(t testing.TB, s *State, want syncer.LinkState, texts map[memory.ETag]string) {
	t.Helper()
	if diff := cmp.Diff(want, load(t, s)); diff != "" {
		t.Fatalf("state: %s", diff)
	}
	for etag := range want.Texts() {
		if text, ok := texts[etag]; ok {
			got, err := s.Text(context.Background(), etag)
			if err != nil || string(got) != text {
				t.Fatalf("text %.8s: %q, %v; want %q", etag, got, err, text)
			}
		}
	}
}

func journalPath(dir string) string { return filepath.Join(dir, linksDir, link, journalName) }

func readJournal(t testing.TB, dir string) []byte {
	t.Helper()
	b, err := os.ReadFile(journalPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withJournal returns a new state directory below root whose journal is b.
func withJournal(t testing.TB, root string, b []byte) string {
	t.Helper()
	dir, err := os.MkdirTemp(root, "")
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(journalPath(dir)), 0o700))
	must(t, os.WriteFile(journalPath(dir), b, 0o600))
	return dir
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func etag(text string) memory.ETag { return memory.ETagOf([]byte(text)) }

// baseline is an update that agrees on text at path.
func baseline(path memory.Path, text string, rev memory.Revision) syncer.Update {
	e := etag(text)
	return syncer.Update{
		Texts:       [][]byte{[]byte(text)},
		PutBaseline: map[memory.Path]syncer.BaseEntry{path: {Text: e, Hub: e, Local: e, HubRevision: rev}},
	}
}

// full is a state with every field used.
func full() (syncer.Update, map[memory.ETag]string) {
	texts := map[memory.ETag]string{}
	keep := func(s string) memory.ETag { texts[etag(s)] = s; return etag(s) }
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	u := syncer.Update{
		LinkID: "id", Cursor: &memory.Cursor{Epoch: "e", Revision: 7, CommitID: "c"},
		PutMarks: []syncer.Mark{{Revision: 5, ID: "a"}, {Revision: 6, ID: "b"}},
		PutBaseline: map[memory.Path]syncer.BaseEntry{
			"a.md":      {Text: keep("a"), Hub: etag("a"), Local: etag("a"), HubRevision: 3, Author: "ann"},
			"MEMORY.md": {Text: keep("i"), Hub: etag("hub"), Local: etag("local"), HubRevision: -1, Author: "安"},
			"项目.md":     {Text: keep("x"), Hub: "no hash", Local: ""},
		},
		PutConflicts: []syncer.Conflict{{ID: "1", Path: "c.md", Local: keep("l"), Hub: keep("h"), Base: keep("b"), HubRevision: 2, LocalModTime: at, Time: at, Reported: true}},
		PutResolved:  []syncer.Resolved{{ID: "2", Path: "r.md", Local: etag("r")}},
		PutHeld:      []syncer.Held{{Path: "h.md", ETag: etag("secret"), By: syncer.HeldByGuard, Violations: []memory.Violation{{Path: "h.md", Line: 3, Rule: "r", Message: "m"}}, PolicyVersion: 4, Revision: 5, RenamedFrom: "old.md", Since: at}},
		PutIntents:   []syncer.Intent{{Path: "i.md", ToHub: true, Wanted: etag("w"), Base: keep("ib")}},
		PutAhead:     []syncer.Ahead{{Path: "ahead.md", ETag: etag("ahead"), Revision: 8, Author: "bob"}},
		SetHalt:      &syncer.Halt{Reason: "why", Missing: []memory.Path{"a.md"}, Of: 9, Time: at, Accepted: true},
		PutTrash:     []syncer.Trashed{{ID: "t", Path: "t.md", ETag: keep("trash"), Reason: "stale", Time: time.Now().UTC().Truncate(time.Second)}},
		AddNotes:     []syncer.Note{{Time: at, Kind: syncer.NoteShrunk, Path: "a.md", Text: "t", ETag: etag("a"), Origin: "o"}},
		SetRecovery:  &syncer.Recovery{Rewind: 1, From: memory.Cursor{Revision: 2}, Epoch: "f"},
	}
	for _, s := range texts {
		u.Texts = append(u.Texts, []byte(s))
	}
	return u, texts
}

func path(i int) memory.Path { return memory.Path(fmt.Sprintf("dir%d/memory_%d.md", i%7, i)) }
