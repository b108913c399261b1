//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// D5: looking makes nothing.
func TestMissingRootIsNotMade(t *testing.T) {
	parent := realTemp(t)
	w, err := New(filepath.Join(parent, "team"), Options{})
	must(t, err)
	if s := scanOf(t, w); s.Root != syncer.RootMissing || s.Detail == "" {
		t.Errorf("%+v", s)
	}
	if err := w.Write(t.Context(), "a.md", []byte("x"), authored, ""); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("write: %v", err)
	}
	if err := w.Remove(t.Context(), "a.md", etag("x")); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("remove: %v", err)
	}
	if _, err := w.Read(t.Context(), "a.md"); !errors.Is(err, syncer.ErrLocalAbsent) {
		t.Errorf("read: %v", err)
	}
	must(t, CheckRoots([]string{w.dir}))
	if _, err := LockRoot(w.dir); err == nil {
		t.Error("locked what is not there")
	}
	if diff := cmp.Diff(map[string]string{".": "dir"}, tree(t, parent)); diff != "" {
		t.Error(diff)
	}
	putFile(t, w.dir, "a file")
	if s := scanOf(t, w); s.Root != syncer.RootMissing {
		t.Errorf("a file as root: %+v", s)
	}
}

func TestMarker(t *testing.T) {
	w := openAt(t, filepath.Join(realTemp(t), "made", "team"))
	must(t, os.RemoveAll(filepath.Dir(w.dir)))
	must(t, w.PutMarker(t.Context(), "link-1")) // makes the root
	must(t, w.PutMarker(t.Context(), "link-1"))
	for _, v := range []*Workspace{w, openAt(t, w.dir)} {
		if s := scanOf(t, v); s.Root != syncer.RootOK || s.Marker != "link-1" || len(s.Files)+len(s.Refused) != 0 {
			t.Errorf("%+v", s)
		}
	}
	must(t, w.PutMarker(t.Context(), "link-2"))
	if s := scanOf(t, w); s.Marker != "link-2" {
		t.Errorf("%+v", s)
	}
	for _, id := range []string{"", "a\nb", " x", strings.Repeat("x", 1000)} {
		if w.PutMarker(t.Context(), id) == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
	// Nothing that is not a small regular file is believed.
	path := filepath.Join(w.dir, MarkerName)
	must(t, os.Remove(path))
	must(t, os.Symlink("/etc/hostname", path))
	if s := scanOf(t, w); s.Marker != "" {
		t.Errorf("a link as marker: %+v", s)
	}
}

// D1, D2: a root that was emptied, unmounted or swapped is told from deletes, and
// nothing is written into it.
func TestReplacedRoot(t *testing.T) {
	w := open(t)
	put(t, w, "a.md", "x")
	must(t, w.PutMarker(t.Context(), "link-1"))
	scanOf(t, w)
	away := w.dir + ".away"
	must(t, os.Rename(w.dir, away))
	if s := scanOf(t, w); s.Root != syncer.RootMissing {
		t.Errorf("away: %+v", s)
	}
	must(t, os.Mkdir(w.dir, 0o755)) // the empty mount point
	for range 2 {
		s := scanOf(t, w)
		if s.Root != syncer.RootReplaced || s.Detail == "" || len(s.Files) != 0 {
			t.Errorf("replaced: %+v", s)
		}
		if err := w.Write(t.Context(), "b.md", []byte("x"), authored, ""); !errors.Is(err, syncer.ErrLocalChanged) {
			t.Errorf("write: %v", err)
		}
	}
	must(t, os.Remove(w.dir))
	must(t, os.Rename(away, w.dir)) // mounted again
	if s := scanOf(t, w); s.Root != syncer.RootOK || s.Marker != "link-1" || len(s.Files) != 1 {
		t.Errorf("back: %+v", s)
	}
	// A copy that carries the marker is the root, on whatever disk it lies.
	must(t, os.Rename(w.dir, away))
	must(t, os.CopyFS(w.dir, os.DirFS(away)))
	if s := scanOf(t, w); s.Root != syncer.RootOK || len(s.Files) != 1 {
		t.Errorf("a copy: %+v", s)
	}
	// Emptied in place: the snapshot shows it, and no write goes there.
	must(t, os.Remove(filepath.Join(w.dir, MarkerName)))
	must(t, os.Remove(filepath.Join(w.dir, "a.md")))
	if err := w.Write(t.Context(), "b.md", []byte("x"), authored, ""); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("write without the marker: %v", err)
	}
	if s := scanOf(t, w); s.Root != syncer.RootOK || s.Marker != "" {
		t.Errorf("emptied: %+v", s)
	}
	// Accepting the new directory is one call.
	must(t, os.Remove(w.dir))
	must(t, os.Mkdir(w.dir, 0o755))
	must(t, w.PutMarker(t.Context(), "link-1"))
	if s := scanOf(t, w); s.Root != syncer.RootOK || s.Marker != "link-1" {
		t.Errorf("accepted: %+v", s)
	}
	must(t, w.Write(t.Context(), "b.md", []byte("x"), authored, ""))
}

func TestRootMayBeALink(t *testing.T) {
	parent := realTemp(t)
	real := filepath.Join(parent, "real")
	must(t, os.Mkdir(real, 0o755))
	link := filepath.Join(parent, "team")
	must(t, os.Symlink("real", link))
	w := openAt(t, link)
	must(t, w.Write(t.Context(), "sub/a.md", []byte("x"), authored, ""))
	if diff := cmp.Diff(map[string]string{"sub/a.md": "x"}, files(t, w)); diff != "" {
		t.Error(diff)
	}
	if !exists(t, filepath.Join(real, "sub", "a.md")) {
		t.Error("the file is not behind the link")
	}
}

// Ruling 13.1.
func TestCheckRoots(t *testing.T) {
	base := realTemp(t)
	mk := func(p string) string {
		dir := filepath.Join(base, filepath.FromSlash(p))
		must(t, os.MkdirAll(dir, 0o755))
		return dir
	}
	team := mk("projects/-home-me-repo/memory/team")
	evil := mk("projects/-home-me-repo/memory/team-evil")
	other := mk("other")
	sub := mk("other/sub")
	withTeam := mk("holds/team")
	file := filepath.Join(base, "file")
	putFile(t, file, "x")
	linkTo := filepath.Join(base, "link")
	must(t, os.Symlink(other, linkTo))
	must(t, os.Symlink("nowhere", filepath.Join(base, "dangling")))
	must(t, os.Symlink(filepath.Join(base, "projects", "-home-me-repo", "memory"), filepath.Join(base, "hidden-memory")))

	for name, c := range map[string]struct {
		dirs []string
		want string // part of the error, "" = fine
	}{
		"team":              {[]string{team}, ""},
		"common prefix":     {[]string{team, evil, other}, ""},
		"absent":            {[]string{filepath.Join(base, "absent", "team"), other}, ""},
		"contains team":     {[]string{filepath.Dir(withTeam)}, "contains team/"},
		"client's memory":   {[]string{mk("projects/k2/memory")}, "private memory"},
		"absent memory":     {[]string{filepath.Join(base, "projects", "k3", "memory")}, "private memory"},
		"memory by link":    {[]string{filepath.Join(base, "hidden-memory")}, "contains team/"},
		"file":              {[]string{file}, "not a directory"},
		"dangling":          {[]string{filepath.Join(base, "dangling")}, "leads nowhere"},
		"twice":             {[]string{other, other + "/."}, "same directory"},
		"twice by link":     {[]string{other, linkTo}, "same directory"},
		"inside":            {[]string{other, sub}, "lies in"},
		"outside":           {[]string{sub, linkTo}, "lies in it"},
		"absent inside":     {[]string{other, filepath.Join(linkTo, "not", "yet")}, "lies in"},
		"filesystem's root": {[]string{other, "/"}, "lies in it"},
	} {
		err := CheckRoots(c.dirs)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (!errors.Is(err, ErrUnsuitableRoot) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

const childEnv = "MEMSYNC_TEST_ROOT_CHILD"

// TestMain lets the test binary be the other agent.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if _, err := LockRoot(dir); err != nil {
			fmt.Println("refused:", err)
			os.Exit(1)
		}
		fmt.Println("locked")
		select {} // until killed
	}
	if dir := os.Getenv(killEnv); dir != "" {
		fmt.Println(writeWithoutEnd(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// C9: two agents on one directory, whatever path they take; the second refuses.
func TestLockRoot(t *testing.T) {
	w := open(t)
	link := w.dir + "-link"
	must(t, os.Symlink(w.dir, link))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+w.dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := make([]byte, 64)
	n, err := out.Read(said)
	if err != nil || string(said[:n]) != "locked\n" {
		t.Fatalf("the other agent said %q, %v", said[:n], err)
	}
	if _, err := LockRoot(link); !errors.Is(err, ErrRootLocked) {
		t.Errorf("the second agent: %v", err)
	} else {
		t.Log(err)
	}
	if len(tree(t, w.dir)) != 1 {
		t.Errorf("locking left %v", tree(t, w.dir))
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	l, err := LockRoot(link)
	must(t, err)
	must(t, l.Release())
	l, err = LockRoot(w.dir)
	must(t, err)
	must(t, l.Release())
}
