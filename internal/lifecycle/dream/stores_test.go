package dream_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// A messy store is an archive of testdata/stores: what it should become, and its files,
// below memory/ (the team's below memory/team/) and project/ (a repository). Files that
// no line of the expectation names may not change. Names are below memory/.
//
//	one of: A B …         say the same: exactly one stays
//	gone: A               goes
//	has A: text|text      holds one of the texts afterwards
//	lacks A: text         does not hold it
//	once A: text          holds it once
//	marked A: text        is another text than before, which still holds this
//	within caps: A        an index, below its caps
//	may: A                may be changed or go; neither is asked for
//	fact: text|text       stands in some memory afterwards
//	crlf: A               is written with Windows line ends, and keeps them
//	time: A DAY           the file's time; else all have the same
//	fill: N               N memories that have nothing in common, with their index lines
//	pairs: N              N texts under two names each
//	at most gone: N       no more files go; and if there is so much to do, that many do
//
// Any other line is a comment.
type messyStore struct {
	name  string
	lines []expectation
	files []txtar.File
}

type expectation struct{ verb, file, text string }

var thatDay = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func messyStores(t *testing.T) []messyStore {
	t.Helper()
	names, err := filepath.Glob("testdata/stores/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no stores: %v", err)
	}
	form := regexp.MustCompile(`^(one of|gone|has|lacks|once|marked|within caps|may|fact|crlf|time|fill|pairs|at most gone)(?: (\S+))?: (.+)$`)
	var out []messyStore
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := messyStore{name: strings.TrimSuffix(filepath.Base(name), ".txtar"), files: a.Files}
		for line := range strings.Lines(string(a.Comment)) {
			if m := form.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				s.lines = append(s.lines, expectation{m[1], m[2], m[3]})
			}
		}
		for _, e := range s.lines {
			n, _ := strconv.Atoi(e.text) // 0 for texts
			switch e.verb {
			case "fill":
				s.fill(n)
			case "pairs":
				s.pairs(n)
			}
		}
		out = append(out, s)
	}
	return out
}

// sayings makes sentences that share hardly a word.
func sayings(n int) []string {
	rng := rand.New(rand.NewPCG(1, 2))
	syllables := strings.Fields("ka lo mi tu ren sal bor dek fin gor hul jan pex quo rud sib tav vin wob zet cra dro flu gri ple")
	word := func() string {
		w := ""
		for range 2 + rng.IntN(2) {
			w += syllables[rng.IntN(len(syllables))]
		}
		return w
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("The %s of the %s is kept in %s until %s has seen the %s and %s the %s.", word(), word(), word(), word(), word(), word(), word())
	}
	return out
}

func (s *messyStore) add(file, name, body string, day time.Time) {
	s.files = append(s.files, txtar.File{Name: "memory/" + file, Data: fmt.Appendf(nil,
		"---\nname: %s\ndescription: %s\nmetadata:\n  type: project\n  modified: %s\n---\n\n%s\n", name, body, day.Format("2006-01-02T15:04:05.000Z"), body)})
	for i := range s.files {
		if f := &s.files[i]; f.Name == "memory/"+memory.IndexName {
			f.Data = fmt.Appendf(slices.Clip(f.Data), "- [%s](%s) — %s\n", name, file, body)
		}
	}
}

func (s *messyStore) fill(n int) {
	for i, text := range sayings(n) {
		s.add(fmt.Sprintf("project_fill_%03d.md", i), fmt.Sprintf("Fill %03d", i), text, thatDay.AddDate(0, 0, -10-i))
	}
}

func (s *messyStore) pairs(n int) {
	for i, text := range sayings(n) {
		for _, half := range []string{"a", "b"} {
			file := fmt.Sprintf("project_pair_%02d_%s.md", i, half)
			s.add(file, fmt.Sprintf("Pair %02d %s", i, half), text, thatDay.AddDate(0, 0, -10))
			s.lines = append(s.lines, expectation{"may", "", file})
		}
		s.lines = append(s.lines, expectation{"fact", "", text})
	}
}

// lay writes the store below dir.
func (s *messyStore) lay(t *testing.T, dir string) {
	t.Helper()
	times := map[string]time.Time{}
	crlf := map[string]bool{}
	for _, e := range s.lines {
		switch e.verb {
		case "time":
			file, day, _ := strings.Cut(e.text, " ")
			at, err := time.Parse(time.DateOnly, day)
			if err != nil {
				t.Fatal(err)
			}
			times["memory/"+file] = at
		case "crlf":
			crlf["memory/"+e.text] = true
		}
	}
	for _, f := range s.files {
		file := filepath.Join(dir, filepath.FromSlash(f.Name))
		data := f.Data
		if crlf[f.Name] {
			data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		}
		at := thatDay.AddDate(0, 0, -9)
		if when, ok := times[f.Name]; ok {
			at = when
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	git := filepath.Join(dir, "project", ".git")
	if err := os.MkdirAll(git, 0o700); err != nil {
		t.Fatal(err)
	}
	index := append([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"), make([]byte, 20)...) // of a repository in which nothing is tracked yet
	if err := os.WriteFile(filepath.Join(git, "index"), index, 0o600); err != nil {
		t.Fatal(err)
	}
}

// held is a file as it is.
type held struct {
	text string
	at   time.Time
}

// look reads every file below dir/memory but the locks.
func look(t *testing.T, dir string) map[string]held {
	t.Helper()
	out := map[string]held{}
	root := filepath.Join(dir, "memory")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(d.Name(), "lock") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(root, path) // of a path below it
		if err == nil {
			out[filepath.ToSlash(rel)] = held{string(text), info.ModTime()}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// realGuard is the product's guard.
type realGuard struct{ scanner *secretscan.Scanner }

func (g realGuard) Check(_ context.Context, path memory.Path, content []byte) (violations, warnings []memory.Violation, err error) {
	c := memory.CheckContent(path, content)
	found, err := g.scanner.Scan(string(path), content)
	for _, f := range found {
		c.Violations = append(c.Violations, memory.Violation{Rule: f.Rule, Line: f.Line, Message: "a secret"})
	}
	return c.Violations, c.Warnings, err
}

func (s *messyStore) dreamer(dir string, guard memories.Guard) *dream.Dreamer {
	personal := filepath.Join(dir, "memory")
	d := &dream.Dreamer{
		Store: memories.New(personal, filepath.Join(personal, "team"), guard), Guard: guard,
		Dir: filepath.Join(dir, "state"), Now: func() time.Time { return thatDay },
	}
	if slices.ContainsFunc(s.files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "project/") }) {
		d.Project = filepath.Join(dir, "project")
	}
	return d
}
