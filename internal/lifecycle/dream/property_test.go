package dream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/memory"
)

// facts of which random memories are made: some are the same in other words, some have a
// key, some contradict one another.
var facts = []string{
	"Use pnpm for every package of the monorepo, never npm or yarn.", "- use pnpm for every package of the monorepo, never npm or yarn",
	"The deploys run at five in the afternoon.", "Deploys run at five in the afternoon", "Deploys run at six in the afternoon.",
	"URL: https://a.example.test", "URL: https://b.example.test", "**Owner:** Ada", "Owner: Grace", "**Why:** a mocked test hid a broken migration.", "**Why:** it was slow.",
	"发布前必须先跑完整的回归测试。", "- 发布前必须先跑完整的回归测试", "数据库：PostgreSQL", "数据库：MySQL",
	"## Setup", "## Other", "```\nmake x\n```", "```\nmake y\n```", "| a | b |\n| - | - |\n| 1 | 2 |", "- top\n  - below one\n  - below two", "",
	"See [[Topic a]] and [b](b.md).", "Two things. One sentence more of it. Another sentence of it.", "One sentence more of it.",
}

// TestNothingVanishes: whatever a store holds, a dream keeps every line of every memory, or
// says that one supersedes it that is newer by its own time and its file's; it keeps to its caps, never writes a personal line
// to the team, never touches a head, and is done at once.
func TestNothingVanishes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		w := &world{T: t, dir: filepath.Join(base, "memory"), d: dreamerOf(base)}
		if err := os.MkdirAll(filepath.Join(w.dir, "team"), 0o700); err != nil {
			rt.Fatal(err)
		}
		ages := map[string][2]int{} // in days: of the memory's own time, of its file's
		n := rapid.IntRange(1, 14).Draw(rt, "memories")
		for i := range n {
			name := rapid.SampledFrom([]string{"Topic a", "Topic b", "topic-a", "Staging", "Production", "x v1", "x v2"}).Draw(rt, "name")
			typ := rapid.SampledFrom([]string{"project", "feedback", "user", "reference"}).Draw(rt, "type")
			lines := rapid.SliceOfN(rapid.SampledFrom(facts), 1, 6).Draw(rt, "lines")
			where := ""
			if typ != "user" && rapid.IntRange(0, 2).Draw(rt, "team") == 0 {
				where = "team/"
			}
			extra := rapid.SampledFrom([]string{"", "", "x-own: 1\n", "x-own: 2\n", "pinned: true\n"}).Draw(rt, "field")
			end := rapid.SampledFrom([]string{"\n", "\n", "\r\n"}).Draw(rt, "end")
			age := rapid.IntRange(0, 9).Draw(rt, "age")
			own := age
			if rapid.Bool().Draw(rt, "dated") {
				own = rapid.IntRange(0, 9).Draw(rt, "own age")
				extra += "modified: " + now.AddDate(0, 0, -own).Format(time.RFC3339) + "\n"
			}
			text := fmt.Sprintf("---\nname: %s\ntype: %s\n%s---\n\n%s\n", name, typ, extra, strings.Join(lines, "\n"))
			file := fmt.Sprintf("%sm%d.md", where, i)
			ages[file] = [2]int{own, age}
			w.write(file, strings.ReplaceAll(text, "\n", end), age)
		}
		w.write("MEMORY.md", rapid.SampledFrom([]string{"", "# Index\n- [m0](m0.md)\n- [gone](gone.md)\n- [m0](m0.md)\n"}).Draw(rt, "index"), 1)
		before := w.files()
		r, err := w.d.Run(t.Context(), dream.Options{Force: true})
		if err != nil {
			rt.Fatal(err)
		}
		after := w.files()
		check(rt, before, after, r)
		supersededByNewer(rt, before, ages, r)
		again, err := w.d.Run(t.Context(), dream.Options{Force: true})
		if err != nil || len(again.Changes) > 0 && len(r.Left) == 0 {
			rt.Fatalf("again: %q, %v; first %q\n%q\n%q", said(again), err, said(r), before, after)
		}
		if len(again.Changes) == 0 {
			if len(r.Changes) > 0 {
				if _, err := w.d.Undo(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
			for name, text := range w.files() {
				if text != before[name] {
					rt.Fatalf("undone, %s is %q, not %q", name, text, before[name])
				}
			}
		}
	})
}

// plain is what a line says, by other means than those of the product: its letters and
// digits without articles and plurals.
func plain(line string) string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return strings.ContainsRune(" \t\r\n-*#>.,。;", r) }) {
		if w != "the" {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

func check(rt *rapid.T, before, after map[string]string, r dream.Report) {
	all, team := "", ""
	for name, text := range after {
		if strings.HasSuffix(name, memory.IndexName) {
			continue
		}
		for l := range strings.Lines(text) {
			all += plain(l) + "\n"
			if strings.HasPrefix(name, "team/") {
				team += plain(l) + "\n"
			}
		}
		if was, ok := before[name]; ok {
			head, _, _ := strings.Cut(text, "---\n\n")
			for l := range strings.Lines(was[:strings.LastIndex(was, "---")]) {
				if !strings.Contains(head, strings.TrimRight(l, "\r\n")) {
					rt.Fatalf("the head of %s lacks %q", name, l)
				}
			}
		}
	}
	deleted := 0
	superseded := ""
	for _, c := range r.Changes {
		for _, l := range c.Superseded {
			superseded += plain(l) + "\n"
		}
		if c.Kind == dream.Delete {
			deleted++
			if c.Into.Path == "" {
				rt.Fatalf("%s is deleted, and nothing has its place", c.Ref)
			}
		}
	}
	if files := len(before) - 1; deleted > max(5, files/5) {
		rt.Fatalf("%d of %d are deleted", deleted, files)
	}
	teamBefore := ""
	for name, text := range before {
		if strings.HasPrefix(name, "team/") {
			teamBefore += strings.ReplaceAll(text, "\r\n", "\n")
		}
	}
	for name, text := range before {
		if strings.HasSuffix(name, memory.IndexName) {
			continue
		}
		_, body, _ := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "---\n\n")
		for l := range strings.Lines(body) {
			p := plain(l)
			if p == "" || strings.HasPrefix(l, "See [[") || strings.HasPrefix(l, "#") {
				continue // links may lead elsewhere; a heading without text may go
			}
			if !strings.Contains(all, p) && !strings.Contains(superseded, p) && !inPieces(all, l) {
				rt.Fatalf("%s: %q is gone, of %s:\n%q\n%q", name, l, said(r), before, after)
			}
		}
	}
	for name, text := range after {
		if !strings.HasPrefix(name, "team/") || strings.HasSuffix(name, memory.IndexName) {
			continue
		}
		for l := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
			if !strings.Contains(teamBefore, l) && !strings.HasPrefix(l, "See [[") && !strings.HasPrefix(l, "Also noted as: ") {
				rt.Fatalf("%s: %q was not the team's", name, l)
			}
		}
	}
}

// supersededByNewer wants a newer memory, by both clocks, with another value for every line
// that went.
func supersededByNewer(rt *rapid.T, before map[string]string, ages map[string][2]int, r dream.Report) {
	for _, c := range r.Changes {
		for _, line := range c.Superseded {
			key, _, _ := strings.Cut(plain(line), ":")
			key, _, _ = strings.Cut(key, "：")
			found := false
			for name, text := range before {
				newer := ages[name][0] <= ages[c.Ref.String()][0] && ages[name][1] <= ages[c.Ref.String()][1]
				for l := range strings.Lines(text) {
					found = found || newer && strings.HasPrefix(plain(l), key) && plain(l) != plain(line)
				}
			}
			if !found {
				rt.Fatalf("%s: %q went, and nothing newer says otherwise: %v\n%q", c.Ref, line, ages, before)
			}
		}
	}
}

// inPieces reports whether all sentences of a line are there.
func inPieces(all, line string) bool {
	for _, s := range strings.SplitAfter(line, ". ") {
		if !strings.Contains(all, plain(s)) {
			return false
		}
	}
	return true
}
