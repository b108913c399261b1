package dream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
)

func (w *world) lock() (body string, at time.Time) {
	w.Helper()
	file := filepath.Join(w.dir, dream.LockName)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "none", time.Time{}
	}
	if err != nil {
		w.Fatal(err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		w.Fatal(err)
	}
	return string(text), fi.ModTime().UTC()
}

func (w *world) setLock(body string, at time.Time) {
	w.Helper()
	file := filepath.Join(w.dir, dream.LockName)
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		w.Fatal(err)
	}
	if err := os.Chtimes(file, at, at); err != nil {
		w.Fatal(err)
	}
}

// talk touches n conversations at a time.
func (w *world) talk(n int, at time.Time) {
	w.Helper()
	if len(w.d.Transcripts) == 0 {
		w.d.Transcripts = []string{w.TempDir()}
	}
	for i := range n {
		file := filepath.Join(w.d.Transcripts[0], fmt.Sprintf("s%d.jsonl", i))
		if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
			w.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			w.Fatal(err)
		}
	}
}

func TestGates(t *testing.T) {
	w := newWorld(t)
	want := func(gate dream.Gate, o dream.Options) {
		t.Helper()
		if r := w.run(o); r.Skipped != gate {
			t.Errorf("skipped %q, want %q", r.Skipped, gate)
		}
	}
	w.write("a.md", mem("A", "project", "x\n"), 1)
	w.setLock("", now.Add(-dream.Pause+time.Minute))
	w.talk(9, now)
	want(dream.GateTime, dream.Options{})
	if _, err := os.Stat(filepath.Join(w.d.Dir, "looked")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the transcripts were looked at before it was time")
	}
	w.setLock("", now.Add(-dream.Pause))
	w.talk(9, now.Add(-2*dream.Pause))
	w.talk(4, now)
	want(dream.GateSessions, dream.Options{})
	w.talk(9, now)
	want(dream.GateLooked, dream.Options{})
	want("", dream.Options{DryRun: true}) // who only wants to see it need not wait for that
	w.time = now.Add(dream.LookPause)
	w.setLock(strconv.Itoa(os.Getppid()), w.time.Add(-dream.Pause))
	want("", dream.Options{DryRun: true}) // the holder lives, but its hour is over
	w.d.Session = "s0"
	w.talk(5, now)
	for i := 5; i < 9; i++ {
		old := now.Add(-2 * dream.Pause)
		if err := os.Chtimes(filepath.Join(w.d.Transcripts[0], fmt.Sprintf("s%d.jsonl", i)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	want(dream.GateSessions, dream.Options{}) // the one that asks is not counted
	w.d.Session = ""
	w.time = w.time.Add(dream.LookPause)
	r := w.run(dream.Options{})
	if body, at := w.lock(); r.Skipped != "" || r.Sessions != 5 || body != "" || !at.Equal(w.time) {
		t.Errorf("%+v; the lock is %q of %s", r, body, at)
	}
	want(dream.GateTime, dream.Options{})
	want("", dream.Options{Force: true})
	empty := newWorld(t)
	if err := os.RemoveAll(empty.dir); err != nil {
		t.Fatal(err)
	}
	if r := empty.run(dream.Options{Force: true}); r.Skipped != dream.GateEmpty {
		t.Errorf("without directories: %q", r.Skipped)
	}
	if _, err := os.Stat(empty.dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("the directory was made")
	}
}

func TestLock(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		age  time.Duration
		held bool
	}{
		"a living holder":         {strconv.Itoa(os.Getppid()), time.Minute, true},
		"with a line end":         {strconv.Itoa(os.Getppid()) + "\n", time.Minute, true},
		"after its hour":          {strconv.Itoa(os.Getppid()), dream.StaleAfter, false},
		"a dead holder":           {"999999999", time.Minute, false},
		"nobody":                  {"", time.Minute, false},
		"no number":               {"me", time.Minute, false},
		"a little in the future":  {strconv.Itoa(os.Getppid()), -time.Minute, true},
		"far in the future":       {strconv.Itoa(os.Getppid()), -48 * time.Hour, false},
		"an earlier life of ours": {strconv.Itoa(os.Getpid()), time.Minute, false},
	} {
		w := newWorld(t)
		w.write("a.md", mem("A", "project", "x\n"), 1)
		at := now.Add(-test.age)
		w.setLock(test.body, at)
		for _, o := range []dream.Options{{Force: true, DryRun: true}, {Force: true}} {
			r := w.run(o)
			if held := r.Skipped == dream.GateLock; held != test.held {
				t.Errorf("%s: skipped %q", name, r.Skipped)
			}
			body, mtime := w.lock()
			switch {
			case (test.held || o.DryRun) && (body != test.body || !mtime.Equal(at)):
				t.Errorf("%s: the lock became %q of %s", name, body, mtime)
			case !test.held && !o.DryRun && (body != "" || !mtime.Equal(now)):
				t.Errorf("%s: after the dream the lock is %q of %s", name, body, mtime)
			}
		}
	}
}

func TestAFailedDreamPutsTheLockBack(t *testing.T) {
	for _, had := range []bool{true, false} {
		w := newWorld(t)
		w.write("a.md", mem("A", "project", "x\n"), 1)
		at := now.Add(-48 * time.Hour)
		if had {
			w.setLock("999999999", at)
		}
		w.d.Hold = func(context.Context) (func(), error) { return nil, errors.New("no") }
		if _, err := w.d.Run(t.Context(), dream.Options{Force: true}); err == nil {
			t.Fatal("no error")
		}
		body, mtime := w.lock()
		if had && (body != "" || !mtime.Equal(at)) || !had && body != "none" {
			t.Errorf("had one: %v; now %q of %s", had, body, mtime)
		}
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", "Seen yesterday.\n"), 1)
	w.talk(6, now)
	before := w.files()
	r := w.run(dream.Options{DryRun: true})
	if len(r.Changes) != 2 || r.ID != "" {
		t.Errorf("%+v", said(r))
	}
	if len(before) != len(w.files()) || w.read("a.md") != before["a.md"] {
		t.Error("something was written")
	}
	if _, err := os.Stat(w.d.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("state was written")
	}
	if body, _ := w.lock(); body != "none" {
		t.Errorf("the lock is %q", body)
	}
}

func TestUploadsWait(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", "Seen yesterday.\n"), 1)
	held, times := false, 0
	w.d.Hold = func(context.Context) (func(), error) {
		held, times = true, times+1
		return func() { held = false }, nil
	}
	w.d.StopAt(func(step string) error {
		if !held {
			t.Errorf("at %s uploads do not wait", step)
		}
		return nil
	})
	w.run(dream.Options{Force: true})
	if _, err := w.d.Undo(t.Context()); err != nil {
		t.Fatal(err)
	}
	if held || times != 2 {
		t.Errorf("held %d times, and still: %v", times, held)
	}
}

// TestAClientThatTakesTheLockHasIt: a client that knows nothing but the file may take it
// while we are at work. Then nothing is changed, and its lock is left alone.
func TestAClientThatTakesTheLockHasIt(t *testing.T) {
	w := newWorld(t)
	w.write("a.md", mem("A", "project", "Seen yesterday.\n"), 1)
	client := strconv.Itoa(os.Getppid())
	w.d.Hold = func(context.Context) (func(), error) {
		w.setLock(client, now)
		return func() {}, nil
	}
	if _, err := w.d.Run(t.Context(), dream.Options{Force: true}); err == nil {
		t.Error("no error")
	}
	if body, at := w.lock(); body != client || !at.Equal(now) || !strings.Contains(w.read("a.md"), "yesterday") {
		t.Errorf("the lock is %q of %s, the memory %q", body, at, w.read("a.md"))
	}
	w.d.Hold = nil
	if r := w.run(dream.Options{Force: true}); r.Skipped != dream.GateLock {
		t.Errorf("beside a client: %q", r.Skipped)
	}
	if _, err := w.d.Undo(t.Context()); !errors.Is(err, dream.ErrNoDream) {
		t.Errorf("undo: %v", err)
	}
}

// TestWhatIsNoLock: under the lock's name lies something else. Nobody but a person may
// remove it, and is told so; nothing is changed.
func TestWhatIsNoLock(t *testing.T) {
	for what, put := range map[string]func(file string) error{
		"a directory": func(file string) error { return os.MkdirAll(filepath.Join(file, "below"), 0o700) },
		"a link":      func(file string) error { return os.Symlink(filepath.Join(filepath.Dir(file), "a.md"), file) },
		"a file of":   func(file string) error { return os.WriteFile(file, make([]byte, 1<<20), 0o600) },
	} {
		w := newWorld(t)
		w.write("a.md", mem("A", "project", "Seen yesterday.\n"), 1)
		w.run(dream.Options{Force: true})
		w.write("b.md", mem("B", "project", "Seen yesterday.\n"), 1)
		file := filepath.Join(w.dir, dream.LockName)
		if err := errors.Join(os.Remove(file), put(file)); err != nil {
			t.Fatal(err)
		}
		before := w.files()
		for range 2 {
			_, err := w.d.Run(t.Context(), dream.Options{Force: true})
			_, undo := w.d.Undo(t.Context())
			for _, err := range []error{err, undo} {
				if err == nil || !strings.Contains(err.Error(), file+" is "+what) || !strings.Contains(err.Error(), "remove it") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		if diff := cmp.Diff(before, w.files()); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		w.dreams()
		if strings.Contains(w.read("b.md"), "yesterday") {
			t.Errorf("%s: no dream after it was removed", what)
		}
	}
}
