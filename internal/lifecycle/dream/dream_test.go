package dream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// rules is a guard with the rules of content, and one word that stands for a secret.
type rules struct{}

func (rules) Check(_ context.Context, path memory.Path, content []byte) (violations, warnings []memory.Violation, err error) {
	c := memory.CheckContent(path, content)
	if bytes.Contains(content, []byte("hunter2")) {
		c.Violations = append(c.Violations, memory.Violation{Path: string(path), Rule: "password", Message: "a password"})
	}
	return c.Violations, c.Warnings, nil
}

// now is a Thursday.
var now = time.Date(2026, 3, 12, 3, 0, 0, 0, time.UTC)

// world is a project's directories and its dreamer.
type world struct {
	*testing.T
	d    *dream.Dreamer
	dir  string // personal
	time time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base := t.TempDir()
	w := &world{T: t, dir: filepath.Join(base, "memory"), d: dreamerOf(base), time: now}
	w.d.Now = func() time.Time { return w.time }
	if err := os.MkdirAll(filepath.Join(w.dir, "team"), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// dreamerOf is the dreamer of a directory that newWorld made.
func dreamerOf(base string) *dream.Dreamer {
	dir := filepath.Join(base, "memory")
	return &dream.Dreamer{Store: memories.New(dir, filepath.Join(dir, "team"), rules{}), Guard: rules{}, Dir: filepath.Join(base, "state"), Now: func() time.Time { return now }}
}

// write puts a file there that is days old.
func (w *world) write(name, text string, days int) {
	w.Helper()
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	at := now.AddDate(0, 0, -days)
	if err := os.Chtimes(file, at, at); err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// files returns every file below the personal directory but for hidden ones.
func (w *world) files() map[string]string {
	w.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(w.dir, file)
		out[filepath.ToSlash(name)] = w.read(name)
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) run(o dream.Options) dream.Report {
	w.Helper()
	r, err := w.d.Run(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// dreams runs once and again, and wants the second to find nothing.
func (w *world) dreams() dream.Report {
	w.Helper()
	r := w.run(dream.Options{Force: true})
	if r.Skipped != "" {
		w.Fatalf("skipped: %s", r.Skipped)
	}
	after := w.files()
	w.time = w.time.Add(time.Hour)
	again := w.run(dream.Options{Force: true})
	if len(again.Changes) > 0 {
		w.Errorf("a second dream finds %+v", said(again))
	}
	if diff := cmp.Diff(after, w.files()); diff != "" {
		w.Errorf("the second dream (-first +second):\n%s", diff)
	}
	return r
}

// said is a report as a person would read it.
func said(r dream.Report) (out []string) {
	for _, c := range r.Changes {
		line := fmt.Sprintf("%s %s", c.Kind, c.Ref)
		if c.Into != (memories.Ref{}) {
			line += " into " + c.Into.String()
		}
		if c.Skipped != "" {
			line += " (not: " + c.Skipped + ")"
		}
		out = append(out, line)
	}
	return out
}

func mem(name, typ, body string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\ntype: " + typ + "\n---\n\n" + body
}

func line(name, file string) string { return "- [" + name + "](" + file + ") — about " + name + "\n" }

func TestRules(t *testing.T) {
	long := "Integration tests run against a real database, never against a mock of it.\n"
	for name, test := range map[string]struct {
		before map[string]string // file → text; the later in "order" the older
		order  []string
		after  map[string]string
		said   []string
	}{
		"exact duplicates": {
			before: map[string]string{"a.md": mem("Tests", "feedback", long), "b.md": mem("Tests", "feedback", "* "+strings.ToUpper(long[:1])+long[1:]+"\n\n"),
				"MEMORY.md": line("Tests", "a.md") + line("Tests", "b.md")},
			order: []string{"a.md", "b.md"},
			after: map[string]string{"a.md": mem("Tests", "feedback", long), "MEMORY.md": line("Tests", "a.md")},
			said:  []string{"edit MEMORY.md", "delete b.md into a.md"},
		},
		"exact duplicates in Chinese": {
			before: map[string]string{"a.md": mem("发布", "project", "发布前必须先跑完整的回归测试。\n"), "b.md": mem("发布", "project", "发布前必须先跑完整的回归测试\n"), "MEMORY.md": line("发布", "a.md")},
			order:  []string{"a.md", "b.md"},
			after:  map[string]string{"a.md": mem("发布", "project", "发布前必须先跑完整的回归测试。\n"), "MEMORY.md": line("发布", "a.md")},
			said:   []string{"delete b.md into a.md"},
		},
		"markers of redactions": {
			before: map[string]string{"team/reference_a.md": memory.RedactionMarker, "team/reference_b.md": memory.RedactionMarker, "team/MEMORY.md": line("A", "reference_a.md")},
			order:  []string{"team/reference_a.md", "team/reference_b.md"},
		},
		"an index that was redacted": {
			before: map[string]string{"team/reference_a.md": mem("A", "reference", "The board is at b.example.test.\n"), "team/MEMORY.md": memory.RedactionMarker},
			order:  []string{"team/reference_a.md"},
			after:  map[string]string{"team/reference_a.md": mem("A", "reference", "The board is at b.example.test.\n"), "team/MEMORY.md": line("A", "reference_a.md")},
			said:   []string{"edit team/MEMORY.md"},
		},
		"short texts under different names": {
			before: map[string]string{"a.md": mem("Billing", "project", "Owner: Ada\n"), "b.md": mem("Search", "project", "Owner: Ada\n"), "MEMORY.md": line("Billing", "a.md") + line("Search", "b.md")},
			order:  []string{"a.md", "b.md"},
		},
		"same name and type": {
			before: map[string]string{
				"a.md":      mem("Staging", "project", "URL: https://new.example.test\nDeploys run at five.\n"),
				"b.md":      "---\nname: staging\ntype: project\nowner: ops\n---\nURL: https://old.example.test\nThe deploys run at five.\nAsk Ada for access.\n",
				"MEMORY.md": line("Staging", "a.md") + line("staging", "b.md")},
			order: []string{"a.md", "b.md"},
			after: map[string]string{
				"a.md": "---\nname: Staging\ndescription: about Staging\ntype: project\nowner: ops\n---\n\n" +
					"URL: https://new.example.test\nDeploys run at five.\n\nAsk Ada for access.\n",
				"MEMORY.md": line("Staging", "a.md")},
			said: []string{"edit a.md", "edit MEMORY.md", "delete b.md into a.md"},
		},
		"pinned ones": {
			before: map[string]string{
				"a.md":      mem("Staging", "project", "URL: https://new.example.test\n"),
				"b.md":      "---\nname: Staging\ntype: project\npinned: true\n---\nURL: https://old.example.test\nAsk Ada for access.\n",
				"c.md":      mem("Review", "feedback", long),
				"d.md":      "---\nname: Review\nmetadata:\n  type: feedback\n  pinned: true\n---\n" + long,
				"MEMORY.md": line("Staging", "a.md") + line("Staging", "b.md") + line("Review", "c.md") + line("Review", "d.md")},
			order: []string{"a.md", "b.md", "c.md", "d.md"},
			after: map[string]string{
				"a.md":      "---\nname: Staging\ndescription: about Staging\ntype: project\npinned: true\n---\n\nURL: https://new.example.test\n\nAsk Ada for access.\n",
				"d.md":      "---\nname: Review\nmetadata:\n  type: feedback\n  pinned: true\n---\n" + long,
				"MEMORY.md": line("Staging", "a.md") + line("Review", "d.md")},
			said: []string{"edit a.md", "edit MEMORY.md", "delete b.md into a.md", "delete c.md into d.md"},
		},
		"near duplicates": {
			before: map[string]string{
				"a.md": mem("Package manager", "feedback", "Use pnpm for every package of the monorepo, never npm or yarn.\n\n- The lockfile is checked in.\n"),
				"b.md": mem("Packages", "feedback", "Use pnpm for every package of the monorepo, never npm or yarn.\n\n- Node 22 is required, see [tests](c.md).\n"),
				"c.md": mem("Other", "feedback", "Look into [[Packages]] and into [it](b.md#top) first, whatever it is.\n"), "MEMORY.md": line("Package manager", "a.md") + line("Other", "c.md")},
			order: []string{"a.md", "b.md", "c.md"},
			after: map[string]string{
				"a.md": mem("Package manager", "feedback", "Use pnpm for every package of the monorepo, never npm or yarn.\n\n- The lockfile is checked in.\n- Node 22 is required, see [tests](c.md).\n"),
				"c.md": mem("Other", "feedback", "Look into [[a]] and into [it](a.md#top) first, whatever it is.\n"), "MEMORY.md": line("Package manager", "a.md") + line("Other", "c.md")},
			said: []string{"edit a.md", "edit c.md", "delete b.md into a.md"},
		},
		"alike, but of different things": {
			before: map[string]string{
				"a.md": mem("API v1 limits", "project", "The limit of the interface is set to 100 requests a minute for every client key.\n"),
				"b.md": mem("API v2 limits", "project", "The limit of the interface is set to 250 requests a minute for every client key.\n"),
				"c.md": mem("Deploy staging", "project", "To deploy to staging tag the commit, wait for the pipeline and approve the job.\n"),
				"d.md": mem("Deploy production", "project", "To deploy to production tag the commit, wait for the pipeline and approve the job.\n"),
				"MEMORY.md": line("API v1 limits", "a.md") + line("API v2 limits", "b.md") + line("Deploy staging", "c.md") +
					line("Deploy production", "d.md")},
			order: []string{"a.md", "b.md", "c.md", "d.md"},
		},
		"alike, and each of its own place": {
			before: map[string]string{
				"a.md":      mem("Deploy staging", "project", "- Tag the commit.\n- Wait for the pipeline to turn green.\n- Approve the job of the release train by hand.\n- Compare latency, memory, queue length with those before.\n- Watch the dashboards for errors.\n- Tell the channel.\n- Runs on the staging cluster.\n"),
				"b.md":      mem("Deploy production", "project", "- Tag the commit.\n- Wait for the pipeline to turn green.\n- Approve the job of the release train by hand.\n- Compare latency, memory, queue length with those before.\n- Watch the dashboards for errors.\n- Tell the channel.\n- A second person looks, since it is production.\n"),
				"MEMORY.md": line("Deploy staging", "a.md") + line("Deploy production", "b.md")},
			order: []string{"a.md", "b.md"},
		},
		"what restates the team's with a field of its own": {
			before: map[string]string{
				"a.md":      "---\nname: Tests\ntype: feedback\nx-own: 1\n---\n" + long,
				"MEMORY.md": line("Tests", "a.md"), "team/t.md": mem("Tests", "feedback", long), "team/MEMORY.md": line("Tests", "t.md")},
			order: []string{"a.md", "team/t.md"},
		},
		"what restates the team's": {
			before: map[string]string{
				"a.md": mem("Tests", "feedback", "integration tests run against a real database, never against a mock of it\n"),
				"b.md": mem("Tests", "feedback", long+"And my own machine needs port 5433.\n"), "MEMORY.md": line("Tests", "b.md"),
				"team/t.md": mem("Tests", "feedback", long), "team/MEMORY.md": line("Tests", "t.md")},
			order: []string{"b.md", "a.md", "team/t.md"},
			after: map[string]string{
				"b.md": mem("Tests", "feedback", long+"And my own machine needs port 5433.\n"), "MEMORY.md": line("Tests", "b.md"),
				"team/t.md": mem("Tests", "feedback", long), "team/MEMORY.md": line("Tests", "t.md")},
			said: []string{"delete a.md into team/t.md"},
		},
		"the team's are merged only if they are the same": {
			before: map[string]string{
				"team/a.md": mem("Tests", "feedback", long), "team/b.md": mem("Tests", "feedback", long),
				"team/c.md": mem("Tests", "feedback", long+"Port 5433.\n"), "team/MEMORY.md": line("Tests", "c.md") + line("Tests", "a.md")},
			order: []string{"team/a.md", "team/b.md", "team/c.md"},
			after: map[string]string{
				"team/a.md": mem("Tests", "feedback", long), "team/c.md": mem("Tests", "feedback", long+"Port 5433.\n"), "team/MEMORY.md": line("Tests", "c.md") + line("Tests", "a.md")},
			said: []string{"delete team/b.md into team/a.md"},
		},
		"index lines": {
			before: map[string]string{"a.md": mem("A", "project", "x\n"), "team/t.md": mem("T", "project", "y\n"),
				"MEMORY.md":      "# Mine\n\n- [Gone](gone.md) — x\n- [A](a.md): my own words\n- [A](./a.md) — twice\n- [T](team/t.md) — the team's\n- [No](team/no.md)\n\nprose\n",
				"team/MEMORY.md": "- [No](no.md)\n"},
			order: []string{"a.md", "team/t.md"},
			after: map[string]string{"a.md": mem("A", "project", "x\n"), "team/t.md": mem("T", "project", "y\n"),
				"MEMORY.md":      "# Mine\n\n- [A](a.md): my own words\n- [T](team/t.md) — the team's\n\nprose\n",
				"team/MEMORY.md": line("T", "t.md")},
			said: []string{"edit MEMORY.md", "edit team/MEMORY.md"},
		},
		"relative dates": {
			before: map[string]string{
				"a.md":      "---\nname: A\ndescription: freeze since yesterday\ntype: project\nmetadata: \n  modified: 2026-03-03T10:00:00Z\n---\nSince yesterday merges wait; in two weeks they go on. 昨天开始，上周三决定。`yesterday` stays.\n",
				"team/t.md": "Decided last Tuesday.\n", "MEMORY.md": "- [A](a.md) — freeze since yesterday\n* [T](team/t.md): in my words, last Tuesday (project)\n", "team/MEMORY.md": line("t", "t.md")},
			order: []string{"a.md", "team/t.md"}, // team/t.md is of 2026-03-10, a Tuesday
			after: map[string]string{
				"a.md":      "---\nname: A\ndescription: freeze since 2026-03-02\ntype: project\nmetadata: \n  modified: 2026-03-03T10:00:00Z\n---\nSince 2026-03-02 merges wait; on 2026-03-17 they go on. 2026-03-02开始，2026-02-25决定。`yesterday` stays.\n",
				"team/t.md": "Decided 2026-03-03.\n", "MEMORY.md": "- [A](a.md) — freeze since 2026-03-02\n* [T](team/t.md): in my words, 2026-03-03 (project)\n", "team/MEMORY.md": line("t", "t.md")},
			said: []string{"edit a.md", "edit team/t.md", "edit MEMORY.md"},
		},
		"unreadable heads are left alone": {
			before: map[string]string{"a.md": "---\nname: [x\n---\nyesterday\n", "b.md": "---\nname: [x\n---\nyesterday\n", "MEMORY.md": line("a", "a.md") + line("b", "b.md")},
			order:  []string{"a.md", "b.md"},
		},
		"bytes survive": {
			before: map[string]string{
				"a.md":      "\ufeff---\r\nname: \"Q: x\"\r\ntype: project # why\r\nx-own:\r\n  - a\r\n---\r\nSeen yesterday.\r\n",
				"MEMORY.md": line("Q: x", "a.md")},
			order: []string{"a.md"}, // of 2026-03-11
			after: map[string]string{
				"a.md":      "\ufeff---\r\nname: \"Q: x\"\r\ntype: project # why\r\nx-own:\r\n  - a\r\n---\r\nSeen 2026-03-10.\r\n",
				"MEMORY.md": line("Q: x", "a.md")},
			said: []string{"edit a.md"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for file, text := range test.before {
				w.write(file, text, 1+slices.Index(test.order, file))
			}
			if test.after == nil {
				test.after = test.before
			}
			r := w.dreams()
			if diff := cmp.Diff(test.after, w.files()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.said, said(r)); diff != "" {
				t.Errorf("said (-want +got):\n%s", diff)
			}
		})
	}
}
