package inject_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
)

func read(t *testing.T, r inject.Record, session, turn string) (all, inTurn []inject.Given) {
	t.Helper()
	all, inTurn, err := r.Read(session, turn)
	if err != nil {
		t.Fatal(err)
	}
	return all, inTurn
}

func add(t *testing.T, r inject.Record, session, turn string, given ...inject.Given) {
	t.Helper()
	if err := r.Add(session, turn, given); err != nil {
		t.Fatal(err)
	}
}

func TestRecord(t *testing.T) {
	r := inject.Record{Dir: filepath.Join(t.TempDir(), "sessions")}
	a, b, c := inject.Given{Ref: "a.md", Bytes: 1}, inject.Given{Ref: "team/b.md", Bytes: 2}, inject.Given{Ref: "规则.md", Bytes: 3}
	if all, _ := read(t, r, "s", "1"); all != nil {
		t.Errorf("a new session has had %v", all)
	}
	if _, err := os.Stat(r.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the directory: %v", err)
	}
	add(t, r, "s", "1", a, b)
	add(t, r, "s", "2", c)
	add(t, r, "../../etc/passwd\x00", "1", c)
	all, inTurn := read(t, r, "s", "2")
	if diff := cmp.Diff([][]inject.Given{{a, b, c}, {c}}, [][]inject.Given{all, inTurn}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, f := range files {
		if fi, err := os.Stat(f); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, fi, err)
		}
	}
	// A kill in the middle of a line takes that line, and no other.
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, text[:len(text)-5], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	add(t, r, "s", "3", c)
	if all, _ := read(t, r, "s", ""); !cmp.Equal(all, []inject.Given{a, b, c}) {
		t.Errorf("after a line was cut: %v", all)
	}
	if err := r.Forget("s"); err != nil {
		t.Fatal(err)
	}
	if all, _ := read(t, r, "s", "1"); all != nil {
		t.Errorf("what was forgotten: %v", all)
	}
	if err := r.Forget("s"); err != nil {
		t.Errorf("once more: %v", err)
	}
	// Without a directory, or a session, nothing is kept and nothing fails.
	for _, none := range []inject.Record{{}, r} {
		session := "s"
		if none.Dir != "" {
			session = ""
		}
		add(t, none, session, "1", a)
		if all, _ := read(t, none, session, "1"); all != nil {
			t.Errorf("%+v keeps %v", none, all)
		}
	}
}

// Hooks of one session may write at the same time.
func TestRecordTakesManyWritersAtOnce(t *testing.T) {
	r := inject.Record{Dir: t.TempDir()}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := r.Add("s", "t", []inject.Given{{Ref: fmt.Sprintf("%d.md", i), Bytes: i}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, _ := read(t, r, "s", "t"); len(all) != 20 {
		t.Errorf("%d of 20 are there", len(all))
	}
}

// The newest sessions are kept, and a file never grows past its bound.
func TestRecordIsBounded(t *testing.T) {
	r := inject.Record{Dir: t.TempDir()}
	long := inject.Given{Ref: strings.Repeat("x", 1000), Bytes: 1}
	var err error
	for i := 0; err == nil && i < 2000; i++ {
		err = r.Add("long", "t", []inject.Given{long})
	}
	if err == nil {
		t.Error("a session's file grows without end")
	}
	for i := range 250 {
		name := fmt.Sprint(i)
		before, err := filepath.Glob(filepath.Join(r.Dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		add(t, r, name, "t", inject.Given{Ref: "a.md", Bytes: 1})
		after, err := filepath.Glob(filepath.Join(r.Dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range after { // the new one is the latest, whatever the clock's steps are
			if !slices.Contains(before, f) {
				at := time.Unix(int64(1e9+i), 0)
				if err := os.Chtimes(f, at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"))
	if err != nil || len(files) != 200 {
		t.Errorf("%d sessions are kept, %v", len(files), err)
	}
	for session, want := range map[string]int{"249": 1, "60": 1, "40": 0} {
		if all, _ := read(t, r, session, ""); len(all) != want {
			t.Errorf("session %s: %v", session, all)
		}
	}
}

func TestHeard(t *testing.T) {
	r := inject.Record{Dir: filepath.Join(t.TempDir(), "sessions")}
	heard := func(session string) inject.Heard {
		t.Helper()
		h, err := r.Heard(session)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if h := heard("s"); !cmp.Equal(h, inject.Heard{}) {
		t.Errorf("a new session heard %+v", h)
	}
	want := inject.Heard{Until: time.Date(2026, 3, 10, 15, 0, 0, 1, time.UTC)}
	for _, h := range []inject.Heard{{Until: time.Unix(1, 0)}, want} {
		if err := r.Hear("s", h); err != nil {
			t.Fatal(err)
		}
	}
	// A compaction takes what was given, not what was heard.
	add(t, r, "s", "1", inject.Given{Ref: "a.md", Bytes: 1})
	if err := r.Forget("s"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, heard("s")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	if fi, err := os.Stat(files[0]); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	// A kill in the middle of a write takes what was noted, and breaks nothing.
	if err := os.WriteFile(files[0], []byte(`{"until":"20`), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := heard("s"); !cmp.Equal(h, inject.Heard{}) {
		t.Errorf("of half a file: %+v", h)
	}
	// The newest sessions are kept, and take no room from what others were given.
	add(t, r, "s", "1", inject.Given{Ref: "a.md", Bytes: 1})
	for i := range 250 {
		if err := r.Hear(fmt.Sprint(i), want); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(r.Dir, "*.heard")); err != nil || len(files) != 200 {
		t.Errorf("%d are kept, %v", len(files), err)
	}
	if all, _ := read(t, r, "s", ""); len(all) != 1 {
		t.Errorf("what a session was given: %v", all)
	}
}
