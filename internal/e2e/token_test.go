package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestTokenFileComesLater starts an agent whose token file is not there, is a directory,
// is empty, holds nonsense or goes away: status says which, by name, and what to do, and
// the agent goes on by itself once the token is there.
func TestTokenFileComesLater(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(file string) error
		says  string
	}{
		"missing":   {func(string) error { return nil }, "no such file"},
		"directory": {func(file string) error { return os.Mkdir(file, 0o700) }, "is a directory"},
		"empty":     {func(file string) error { return os.WriteFile(file, nil, 0o600) }, "is empty"},
		"nonsense":  {func(file string) error { return os.WriteFile(file, []byte("two words"), 0o600) }, "more than one word"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hubtest.Start(t, hubtest.Options{})
			token := h.Token("acme", "pay", "writer")
			file := filepath.Join(t.TempDir(), "token")
			must(t, tc.spoil(file))
			a := newMachine(t, "A", h.GRPCAddr, file)
			a.write("project_x.md", note("x", "waits"))
			a.start()
			s := a.eventually("says what is wrong", func(s agent.LinkStatus) bool { return s.Phase == agent.PhaseStopped && s.LastError != nil })
			if !strings.Contains(s.LastError.Message, file) || !strings.Contains(s.LastError.Message, tc.says) || s.LastError.Reason != string(memory.ReasonUnauthenticated) {
				t.Errorf("error %+v", s.LastError)
			}
			if !strings.Contains(s.Todo, "token") {
				t.Errorf("to do %q", s.Todo)
			}
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			must(t, os.WriteFile(file, []byte(token), 0o600))
			inStep(t, a)

			// And away again, while it works.
			must(t, os.Remove(file))
			a.write("project_x.md", note("x", "waits again"))
			a.eventually("says that it is gone", func(s agent.LinkStatus) bool {
				return s.Phase == agent.PhaseStopped && strings.Contains(s.LastError.Message, "no such file")
			})
			must(t, os.WriteFile(file, []byte(token), 0o600))
			inStep(t, a)
			if got := historyOf(t, h).files()["project_x.md"]; got != note("x", "waits again") {
				t.Errorf("the hub has %q", got)
			}
		})
	}
}

// TestRotatedToken replaces a token as different tools do, and revokes the old one only
// then: the agent goes on with the new one, and never stops.
func TestRotatedToken(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second func(t *testing.T, file, token string)
		early         bool // the old one is revoked before the new one is there
	}{
		"written in place": {plainFile, plainFile, false},
		"renamed":          {plainFile, renamedFile, false},
		"mounted secret":   {mountedSecret, mountedSecret, false},
		"of equal age":     {agedFile, agedFile, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := hubtest.Start(t, hubtest.Options{Deps: func(d *hub.Deps) { d.AuthRecheck = 50 * time.Millisecond }})
			b := newMachine(t, "B", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
			b.start()
			old, id := h.TokenWithID("acme", "pay", "writer")
			next := h.Token("acme", "pay", "writer")
			file := filepath.Join(t.TempDir(), "token")
			tc.first(t, file, old)
			a := newMachine(t, "A", h.GRPCAddr, file)
			a.start()
			a.write("project_x.md", note("x", "before"))
			b.has("project_x.md", note("x", "before"))
			revoke := func() { must(t, h.Service().RevokeToken(t.Context(), hubtest.Admin(), id)) }
			if tc.early {
				revoke()
				a.write("project_y.md", note("y", "with a dead token"))
				a.eventually("stops", func(s agent.LinkStatus) bool { return s.Phase == agent.PhaseStopped })
				tc.second(t, file, next)
			} else {
				tc.second(t, file, next)
				revoke()
				a.write("project_y.md", note("y", "with a dead token"))
			}
			b.has("project_y.md", note("y", "with a dead token"))
			b.write("project_x.md", note("x", "after"))
			a.has("project_x.md", note("x", "after"))
			if !tc.early && strings.Contains(a.log.String(), "does not take the token") {
				t.Errorf("it was refused in between:\n%s", tail(a.log))
			}
		})
	}
}

func plainFile(t *testing.T, file, token string) {
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
}

func renamedFile(t *testing.T, file, token string) {
	plainFile(t, file+".new", token)
	must(t, os.Rename(file+".new", file))
}

// agedFile is one whose size and time say nothing, as a tool leaves it that keeps times.
func agedFile(t *testing.T, file, token string) {
	plainFile(t, file, token)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	must(t, os.Chtimes(file, at, at))
}

// mountedSecret is how Kubernetes mounts one: the name is a link through a link, and the
// inner one is exchanged.
func mountedSecret(t *testing.T, file, token string) {
	dir, err := os.MkdirTemp(filepath.Dir(file), "..data-")
	must(t, err)
	plainFile(t, filepath.Join(dir, "token"), token)
	data := filepath.Join(filepath.Dir(file), "..data")
	must(t, os.Symlink(filepath.Base(dir), data+"-new"))
	must(t, os.Rename(data+"-new", data))
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		must(t, os.Symlink(filepath.Join("..data", "token"), file))
	}
}
