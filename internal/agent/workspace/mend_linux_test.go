package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cutOff leaves the disk as a kill does right after the file took its temporary name:
// text is what was found under it then, now what stands in its place ("" = nothing).
func cutOff(t *testing.T, w *Workspace, name, in, out, text, now string) {
	t.Helper()
	dir, base := filepath.Split(filepath.Join(w.dir, name))
	inTag := etag(in)
	if in == "" {
		inTag = ""
	}
	putFile(t, dir+newDisplacedName(inTag, etag(out), base), text)
	if now != "" {
		putFile(t, dir+base, now)
	}
}

// TestKillBetweenExchangeAndLook: an edit that landed in the moment of the exchange is
// under the temporary name when the process is killed. It is never thrown away.
func TestKillBetweenExchangeAndLook(t *testing.T) {
	long := strings.Repeat("n", 200) + ".md"
	for _, tc := range []struct {
		name, file         string
		in, out, text, now string
		want               map[string]string
	}{
		{"the old text", "a.md", "new", "old", "old", "new", map[string]string{"a.md": "new"}},
		{"our own text, not exchanged yet", "a.md", "new", "old", "new", "old", map[string]string{"a.md": "old"}},
		{"an edit", "a.md", "new", "old", "edit", "new", map[string]string{"a.md": "edit"}},
		{"an edit, in a folder", "sub/a-b.md", "new", "old", "edit", "new", map[string]string{"sub/a-b.md": "edit"}},
		{"an edit, and one since", "a.md", "new", "old", "edit", "later", map[string]string{"a.md": "later", "a.rescued-" + string(etag("edit")[:12]) + ".md": "edit"}},
		{"an edit, saved once more", "a.md", "new", "old", "edit", "edit", map[string]string{"a.md": "edit"}},
		{"an edit, and the file gone since", "a.md", "new", "old", "edit", "", map[string]string{"a.md": "edit"}},
		{"a removed file", "a.md", "", "old", "old", "", map[string]string{}},
		{"an edit that was removed", "a.md", "", "old", "edit", "", map[string]string{"a.md": "edit"}},
		{"an edit that was removed, and a new file", "a.md", "", "old", "edit", "new file", map[string]string{"a.md": "new file", "a.rescued-" + string(etag("edit")[:12]) + ".md": "edit"}},
		{"an edit of a file with a long name", long, "new", "old", "edit", "new", map[string]string{long: "new", "rescued-" + string(etag("edit")[:12]) + ".md": "edit"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := open(t)
			cutOff(t, w, tc.file, tc.in, tc.out, tc.text, tc.now)
			w.opts.StaleTemp = time.Nanosecond
			if s := scanOf(t, w); !s.Torn {
				t.Error("nothing was found torn")
			}
			must(t, w.Mend(t.Context()))
			got := files(t, w)
			if len(got) != len(tc.want) {
				t.Errorf("files %v", got)
			}
			for name, text := range tc.want {
				if got[name] != text {
					t.Errorf("%.40s holds %q, want %q", name, got[name], text)
				}
			}
			if s := scanOf(t, w); s.Torn {
				t.Error("it is torn still")
			}
			for name := range tree(t, w.dir) {
				if base := filepath.Base(name); isTempName(base) || isDisplaced(base) {
					t.Errorf("left over: %s", name)
				}
			}
		})
	}
}

// TestTakenAwayEditComesBack: what stands at a path when it is removed is looked at once
// more under a name where nothing can slip in.
func TestTakenAwayEditComesBack(t *testing.T) {
	w := open(t)
	put(t, w, "a.md", "old")
	root, err := os.OpenRoot(w.dir)
	must(t, err)
	defer root.Close()
	seen, err := w.look(root, "a.md")
	must(t, err)
	put(t, w, "b.md", "edit") // saved by rename, after the look
	must(t, unix.Rename(filepath.Join(w.dir, "b.md"), filepath.Join(w.dir, "a.md")))
	if err := w.takeAway(root, seen); err == nil {
		t.Error("an edit was removed")
	}
	if got := files(t, w); len(got) != 1 || got["a.md"] != "edit" {
		t.Errorf("files %v", got)
	}
}

// TestDisplacedNames: a name says what it was made of, and fits on disks with short names.
func TestDisplacedNames(t *testing.T) {
	in, out := etag("in"), etag("out")
	for _, name := range []string{"a.md", "a-b-c.md", "规则.md", strings.Repeat("x", 77) + ".md"} {
		temp := newDisplacedName(in, out, name)
		want := displaced{in: string(in[:12]), out: string(out[:12]), name: name}
		if len(name) > displacedName {
			want.name = ""
		}
		if got, ok := parseDisplaced(temp); !ok || got != want {
			t.Errorf("%s: %+v, %v", temp, got, ok)
		}
		if len(temp) > 143 || isTempName(temp) || !isHidden(temp) {
			t.Errorf("a name of %d bytes: %s", len(temp), temp)
		}
	}
	for _, other := range []string{".msync-0123456789abcdef.tmp", ".msync-mine-a-b-c.tmp", "x.md", ".msync-0123456789abcdef-zz-00-x.tmp"} {
		if isDisplaced(other) {
			t.Errorf("%s is none", other)
		}
	}
}

// TestWriteLeavesHardLinksAlone: a file whose bytes have another name elsewhere is replaced
// and removed as a name; what lies elsewhere stays.
func TestWriteLeavesHardLinksAlone(t *testing.T) {
	w := open(t)
	elsewhere := filepath.Join(realTemp(t), "config")
	putFile(t, elsewhere, "mine")
	must(t, os.Link(elsewhere, filepath.Join(w.dir, "a.md")))
	must(t, os.Link(elsewhere, filepath.Join(w.dir, "b.md")))
	if got := files(t, w); got["a.md"] != "mine" {
		t.Fatalf("files %v", got)
	}
	must(t, w.Write(t.Context(), "a.md", []byte("the team's"), time.Time{}, etag("mine")))
	must(t, w.Remove(t.Context(), "b.md", etag("mine")))
	if got := files(t, w); len(got) != 1 || got["a.md"] != "the team's" {
		t.Errorf("files %v", got)
	}
	if b, err := os.ReadFile(elsewhere); err != nil || string(b) != "mine" {
		t.Errorf("elsewhere: %q, %v", b, err)
	}
}
