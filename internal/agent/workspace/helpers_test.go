package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// authored is when the tests' texts were written.
var authored = time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)

// open returns a workspace on a fresh root with a short settle time. Changed ignore
// rules count in full from the second scan on.
func open(t testing.TB) *Workspace {
	t.Helper()
	return openAt(t, filepath.Join(realTemp(t), "team"))
}

func openAt(t testing.TB, dir string) *Workspace {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := New(dir, Options{Settle: 20 * time.Millisecond, RulesGrace: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// put writes a file below the root the way a person's editor would, parents included.
func put(t testing.TB, w *Workspace, name, text string) {
	t.Helper()
	putFile(t, filepath.Join(w.dir, filepath.FromSlash(name)), text)
}

func putFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func scanOf(t testing.TB, w *Workspace) syncer.Snapshot {
	t.Helper()
	s, err := w.Scan(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files scans and returns path to text, after checking each etag against the disk.
func files(t testing.TB, w *Workspace) map[string]string {
	t.Helper()
	s := scanOf(t, w)
	got := map[string]string{}
	for p, f := range s.Files {
		b, err := w.Read(context.Background(), p)
		if err != nil {
			t.Fatalf("read %s: %v", p, err)
		}
		if memory.ETagOf(b) != f.ETag || int64(len(b)) != f.Size {
			t.Errorf("%s: the snapshot says %s, %d bytes; the disk holds %q", p, f.ETag, f.Size, b)
		}
		got[string(p)] = string(b)
	}
	return got
}

func paths(s syncer.Snapshot) []string {
	var out []string
	for p := range s.Files {
		out = append(out, string(p))
	}
	slices.Sort(out)
	return out
}

func unreadable(s syncer.Snapshot) []string {
	var out []string
	for _, p := range s.Unreadable {
		out = append(out, string(p))
	}
	slices.Sort(out)
	return out
}

// refusals returns name to rule.
func refusals(s syncer.Snapshot) map[string]string {
	out := map[string]string{}
	for _, r := range s.Refused {
		out[r.Name] = r.Violation.Rule
	}
	return out
}

func etag(text string) memory.ETag { return memory.ETagOf([]byte(text)) }

func exists(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// tree lists every name below dir with the text of files and the target of links.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			out[rel] = "dir"
		case d.Type()&fs.ModeSymlink != 0:
			out[rel], err = os.Readlink(path)
		default:
			var b []byte
			b, err = os.ReadFile(path)
			out[rel] = "text " + string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func isDisplaced(name string) bool {
	_, ok := parseDisplaced(name)
	return ok
}
