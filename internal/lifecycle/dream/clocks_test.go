package dream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// dated is a memory that says that it is days old.
func dated(name string, days int, body string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\nmetadata:\n  type: project\n  modified: " + now.AddDate(0, 0, -days).Format(time.RFC3339) + "\n---\n\n" + body
}

// TestTheNewerValueHolds: of a line "X: value" the newer one holds where both clocks of a
// memory, its own time and its file's, say which that is. Where they do not, nothing goes.
func TestTheNewerValueHolds(t *testing.T) {
	const friday, wednesday = "Deploy day: Friday\n", "Deploy day: Wednesday\n"
	for name, test := range map[string]struct {
		a, b string
		// how old the files are, in days
		fileA, fileB int
		want         string // the value that holds; "" = both stay
	}{
		"both clocks":                               {dated("Deploy", 1, friday), dated("Deploy", 90, wednesday), 1, 90, "Friday"},
		"the file's alone":                          {mem("Deploy", "project", friday), mem("Deploy", "project", wednesday), 1, 90, "Friday"},
		"its own alone":                             {dated("Deploy", 1, friday), dated("Deploy", 90, wednesday), 5, 5, "Friday"},
		"edited by who does not know the field":     {dated("Deploy", 300, friday), dated("Deploy", 90, wednesday), 0, 90, ""},
		"copied in another order":                   {dated("Deploy", 1, friday), dated("Deploy", 90, wednesday), 5, 4, ""},
		"one says nothing, and its file is newer":   {mem("Deploy", "project", friday), dated("Deploy", 90, wednesday), 1, 90, "Friday"},
		"one says nothing, and the other is copied": {mem("Deploy", "project", friday), dated("Deploy", 90, wednesday), 2, 1, ""},
		"of the same time":                          {mem("Deploy", "project", friday), mem("Deploy", "project", wednesday), 5, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("project_a.md", test.a, test.fileA)
			w.write("project_b.md", test.b, test.fileB)
			r := w.dreams()
			left := w.read("project_a.md") + w.read("project_b.md")
			for _, value := range []string{"Friday", "Wednesday"} {
				if want := test.want == "" || test.want == value; strings.Contains(left, value) != want {
					t.Errorf("%s stands there: %v; said %q, left %q", value, !want, said(r), r.Left)
				}
			}
			for _, c := range r.Changes {
				if c.Kind == dream.Delete && (cmp.Diff([]string{"Deploy day: Wednesday"}, c.Superseded) != "" || !strings.Contains(c.Reasons[0], "says otherwise in part")) {
					t.Errorf("superseded %q, because %q", c.Superseded, c.Reasons)
				}
			}
			if told := len(r.Left) == 1 && strings.Contains(r.Left[0].Why, "which is newer cannot be told"); told != (test.want == "") {
				t.Errorf("left: %q", r.Left)
			}
		})
	}
}

// TestWhatWasEditedJustNowStays: what a tool of ours changed is newer than what was written
// after its old text, and the dream lets the right one go.
func TestWhatWasEditedJustNowStays(t *testing.T) {
	w := newWorld(t)
	w.write("project_a.md", dated("Deploy", 300, "Deploy day: Tuesday\n"), 300)
	w.write("project_b.md", dated("Deploy", 90, "Deploy day: Wednesday\n"), 90)
	ref := memories.Ref{Scope: memory.ScopePrivate, Path: "project_a.md"}
	m, err := w.d.Store.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.d.Store.Replace(t.Context(), ref, bytes.Replace(m.Content, []byte("Tuesday"), []byte("Friday"), 1), memory.ETagOf(m.Content)); err != nil {
		t.Fatal(err)
	}
	r := w.dreams()
	if got := w.read("project_a.md"); !strings.Contains(got, "Friday") || w.read("project_b.md") != "" {
		t.Errorf("a is %q, b %q; said %q, left %q", got, w.read("project_b.md"), said(r), r.Left)
	}
}

// TestAMergedMemoryIsAsNewAsItsNewestFile: a text that took in what another file said later
// is not older than that, so that no dream after it takes the next one for newer.
func TestAMergedMemoryIsAsNewAsItsNewestFile(t *testing.T) {
	w := newWorld(t)
	const shared = "Use pnpm for every package of the monorepo, never npm or yarn.\n"
	w.write("project_a.md", dated("Deploy", 60, shared+"The lockfile is checked in.\n"), 60)
	w.write("project_b.md", dated("Deploy", 300, shared+"Deploy day: Friday\n"), 0)
	w.dreams()
	if fi, err := os.Stat(filepath.Join(w.dir, "project_a.md")); err != nil || !fi.ModTime().Equal(now) {
		t.Fatalf("%v, %v; the file of the merged memory has to be as new as what it took in", fi, err)
	}
	w.write("project_c.md", dated("Deploy", 30, shared+"Deploy day: Wednesday\n"), 30)
	w.time = w.time.Add(time.Hour)
	r := w.dreams()
	if all := w.read("project_a.md") + w.read("project_c.md"); !strings.Contains(all, "Friday") || !strings.Contains(all, "Wednesday") {
		t.Errorf("got %q; said %q", all, said(r))
	}
}

// TestAnOldValueIsNotMadeNewByWhatTookItIn: a line of January in a memory of today drops no
// line of July.
func TestAnOldValueIsNotMadeNewByWhatTookItIn(t *testing.T) {
	w := newWorld(t)
	const much = "Use pnpm for every package of the monorepo, never npm or yarn; the lockfile is checked in.\n"
	// The first and the last are near enough only through the second.
	w.write("project_a.md", dated("Packages", 1, much+"Ask Ada for access.\n"), 1)
	w.write("project_b.md", dated("Packages", 300, "Registry: old.example.test\n"), 300)
	w.write("project_c.md", dated("Package registry", 100, much+"Registry: new.example.test\n"), 100)
	r := w.dreams()
	if all := w.read("project_a.md") + w.read("project_b.md") + w.read("project_c.md"); !strings.Contains(all, "new.example.test") {
		t.Errorf("got %q; said %q", all, said(r))
	}
}

// TestADescriptionIsAFact: one that says otherwise in nearly the same words goes only for a
// newer one, and is reported.
func TestADescriptionIsAFact(t *testing.T) {
	text := func(day string) string {
		return "---\nname: Deploy\ndescription: the deploy day of this team is " + day + "\ntype: project\n---\n\nUse pnpm for every package of the monorepo, never npm or yarn.\n"
	}
	for _, days := range []int{0, 10} {
		w := newWorld(t)
		w.write("project_a.md", text("Friday"), 10-days)
		w.write("project_b.md", text("Wednesday"), 10)
		r := w.dreams()
		all, superseded := w.read("project_a.md")+w.read("project_b.md"), []string(nil)
		for _, c := range r.Changes {
			superseded = append(superseded, c.Superseded...)
		}
		if strings.Contains(all, "Wednesday") != (days == 0) || cmp.Diff([]string{"the deploy day of this team is Wednesday"}, superseded) != "" != (days == 0) {
			t.Errorf("%d days newer: %q, superseded %q, left %q", days, all, superseded, r.Left)
		}
	}
}
