package memories_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// rules is a guard with the rules of content, and one word that stands for a secret.
type rules struct{ down error }

func (g rules) Check(_ context.Context, path memory.Path, content []byte) (violations, warnings []memory.Violation, err error) {
	if g.down != nil {
		return nil, nil, g.down
	}
	c := memory.CheckContent(path, content)
	if i := strings.Index(string(content), "hunter2"); i >= 0 {
		c.Violations = append(c.Violations, memory.Violation{Path: string(path), Line: 1 + strings.Count(string(content[:i]), "\n"), Rule: "password", Message: "a password"})
	}
	return c.Violations, c.Warnings, nil
}

func newStore(t *testing.T) *memories.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "memory")
	return memories.New(dir, filepath.Join(dir, "team"), rules{})
}

func add(t *testing.T, s *memories.Store, d memories.Draft) memories.Ref {
	t.Helper()
	w, err := s.Add(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return w.Ref
}

func draft(name string) memories.Draft {
	return memories.Draft{Type: memory.TypeProject, Name: name, Description: "about " + name, Body: "Body of " + name + "."}
}

func indexOf(t *testing.T, s *memories.Store, scope memory.Scope) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir(scope), memory.IndexName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func TestAddIsPersonalUnlessSaid(t *testing.T) {
	s := newStore(t)
	r := add(t, s, memories.Draft{Type: memory.TypeFeedback, Name: "Write tests: first", Description: `say "why": always`, Body: "Tests first.\r\n\r\n"})
	if r.String() != "feedback_write_tests_first.md" {
		t.Errorf("ref %s", r)
	}
	m, err := s.Get(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := "---\nname: 'Write tests: first'\ndescription: 'say \"why\": always'\ntype: feedback\n---\n\nTests first.\n"
	if string(m.Content) != want || m.Front.Name != "Write tests: first" {
		t.Errorf("got %q", m.Content)
	}
	if got := indexOf(t, s, memory.ScopePrivate); got != "- [Write tests: first](feedback_write_tests_first.md) — say \"why\": always\n" {
		t.Errorf("index %q", got)
	}
	if _, err := os.Stat(s.Dir(memory.ScopeTeam)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a personal memory made the team's directory")
	}
	team := draft("Freeze")
	team.Scope = memory.ScopeTeam
	if r := add(t, s, team); r.String() != "team/project_freeze.md" {
		t.Errorf("ref %s", r)
	}
	if got := indexOf(t, s, memory.ScopePrivate); strings.Contains(got, "freeze") {
		t.Errorf("the team's memory stands in the personal index: %q", got)
	}
	if _, err := s.Add(t.Context(), team); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second one: %v, want fs.ErrExist", err)
	}
}

// TestComposeIsReadBack: whatever a person calls a memory, its frontmatter reads the same.
func TestComposeIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[A-Za-z日本 :#'"{}\[\],&*!|>%@\\-]{0,59}[A-Za-z日本:#'"{}\[\],&*!|>%@\\-]`)
		d := memories.Draft{Type: memory.TypeReference, Name: "x" + text.Draw(t, "name"), Description: text.Draw(t, "description"), Body: "b"}
		_, content, err := d.Compose()
		if err != nil {
			t.Fatal(err)
		}
		fm, body, err := memory.ParseFrontmatter(content)
		if err != nil || fm.Name != strings.TrimSpace(d.Name) || fm.Description != strings.TrimSpace(d.Description) || fm.Type != "reference" {
			t.Fatalf("%q is read as %q, %q, %q, %v", content, fm.Name, fm.Description, fm.Type, err)
		}
		if string(body) != "\nb\n" {
			t.Fatalf("body %q", body)
		}
	})
}

func TestBadDrafts(t *testing.T) {
	s := newStore(t)
	for what, d := range map[string]memories.Draft{
		"type":        {Type: "note", Name: "x", Body: "b"},
		"name":        {Type: memory.TypeProject, Name: "…", Body: "b"},
		"description": {Type: memory.TypeProject, Name: "x", Description: "a\nb", Body: "b"},
		"description of a new memory: it is empty": {Type: memory.TypeProject, Name: "x", Description: " ", Body: "b"},
		"body": {Type: memory.TypeProject, Name: "x", Description: "d", Body: " \n"},
	} {
		if _, err := s.Add(t.Context(), d); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.Stat(s.Dir(memory.ScopePrivate)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a refused draft left something behind")
	}
}

func TestTheTeamsPassTheGuard(t *testing.T) {
	s := newStore(t)
	d := draft("Bank access")
	d.Scope, d.Body = memory.ScopeTeam, "first\npassword hunter2"
	_, err := s.Add(t.Context(), d)
	var refused *memories.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "line 8") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want a refusal with the line and without the secret", err)
	}
	user := memories.Draft{Type: memory.TypeUser, Name: "Me", Description: "d", Body: "likes tea", Scope: memory.ScopeTeam}
	if _, err := s.Add(t.Context(), user); !errors.As(err, &refused) || refused.Violations[0].Rule != memory.RuleTypeUser {
		t.Errorf("a memory about a person: %v", err)
	}
	d.Scope = memory.ScopePrivate
	r := add(t, s, d)
	m, err := s.Get(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Share(t.Context(), r, memory.ETagOf(m.Content)); !errors.As(err, &refused) {
		t.Errorf("sharing it: %v", err)
	}
	if _, err := s.Get(t.Context(), r); err != nil {
		t.Errorf("a refused one must stay: %v", err)
	}
	down := memories.New(s.Dir(memory.ScopePrivate), s.Dir(memory.ScopeTeam), rules{down: errors.New("no rules")})
	ok := draft("Harmless")
	ok.Scope = memory.ScopeTeam
	if _, err := down.Add(t.Context(), ok); err == nil {
		t.Error("without a verdict it is shared")
	}
}

func TestShareMoves(t *testing.T) {
	s := newStore(t)
	r := add(t, s, draft("Deploy"))
	m, err := s.Get(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(s.File(r), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Share(t.Context(), r, memory.ETagOf([]byte("older"))); err == nil {
		t.Error("a text that was not shown is shared")
	}
	w, err := s.Share(t.Context(), r, memory.ETagOf(m.Content))
	if err != nil || w.String() != "team/project_deploy.md" {
		t.Fatalf("%v, %v", w, err)
	}
	if _, err := s.Get(t.Context(), r); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still here: %v", err)
	}
	if got, _ := s.Get(t.Context(), w.Ref); string(got.Content) != string(m.Content) || !got.Age().Equal(old) {
		t.Errorf("shared as %q, of %s", got.Content, got.Age())
	}
	if indexOf(t, s, memory.ScopePrivate) != "" || !strings.Contains(indexOf(t, s, memory.ScopeTeam), "project_deploy.md") {
		t.Errorf("indexes: %q, %q", indexOf(t, s, memory.ScopePrivate), indexOf(t, s, memory.ScopeTeam))
	}
	// A kill between the two steps leaves both; sharing again ends it.
	add(t, s, draft("Deploy"))
	if _, err := s.Share(t.Context(), r, memory.ETagOf(m.Content)); err != nil {
		t.Errorf("again: %v", err)
	}
	other := draft("Deploy")
	other.Body = "Another text."
	add(t, s, other)
	m, _ = s.Get(t.Context(), r)
	if _, err := s.Share(t.Context(), r, memory.ETagOf(m.Content)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another text: %v, want fs.ErrExist", err)
	}
}

func TestReplaceAndRemoveAskForTheOldText(t *testing.T) {
	s := newStore(t)
	r := add(t, s, draft("Deploy"))
	m, _ := s.Get(t.Context(), r)
	next := []byte(strings.ReplaceAll(string(m.Content), "about Deploy", "how we ship"))
	if _, err := s.Replace(t.Context(), r, next, "other"); !errors.Is(err, memdir.ErrChanged) {
		t.Errorf("over a text not seen: %v", err)
	}
	if _, err := s.Replace(t.Context(), r, next, memory.ETagOf(m.Content)); err != nil {
		t.Fatal(err)
	}
	if got := indexOf(t, s, memory.ScopePrivate); !strings.Contains(got, "how we ship") {
		t.Errorf("index %q", got)
	}
	if err := s.Remove(t.Context(), r, memory.ETagOf(m.Content)); !errors.Is(err, memdir.ErrChanged) {
		t.Errorf("removing a text not seen: %v", err)
	}
	if !strings.Contains(indexOf(t, s, memory.ScopePrivate), r.String()) {
		t.Error("a refused removal took the line")
	}
	if err := s.Remove(t.Context(), r, ""); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	s := newStore(t)
	mine := add(t, s, draft("Deploy"))
	team := draft("Release Freeze")
	team.Scope = memory.ScopeTeam
	theirs := add(t, s, team)
	for text, want := range map[string]memories.Ref{
		"project_deploy.md": mine, "project_deploy": mine, "Deploy": mine, "deploy": mine,
		"team/project_release_freeze.md": theirs, "project_release_freeze.md": theirs, "Release Freeze": theirs,
		s.File(theirs): theirs, s.File(mine): mine,
	} {
		if m, err := s.Find(t.Context(), text); err != nil || m.Ref != want {
			t.Errorf("%s: %v, %v; want %s", text, m.Ref, err, want)
		}
	}
	if _, err := s.Find(t.Context(), "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	twin := draft("Deploy")
	twin.Scope = memory.ScopeTeam
	add(t, s, twin)
	if _, err := s.Find(t.Context(), "Deploy"); err == nil || !strings.Contains(err.Error(), "project_deploy.md, team/project_deploy.md") {
		t.Errorf("two of a name: %v", err)
	}
}

func TestLint(t *testing.T) {
	s := newStore(t)
	add(t, s, draft("Fine"))
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(s.Dir(memory.ScopePrivate), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user_me.md", "---\nname: Me\ndescription: tea\ntype: user\n---\nx\n") // personal: fine
	write("odd.md", "---\nname: Odd\ndescription: x\ntype: note\n---\nx\n")
	write("plain.md", "no head\n")
	write("broken.md", "---\nname: [x\n---\n")
	write("aux.md", "reserved\n")
	write("team/gone_text.md", memory.RedactionMarker)
	write("team/user_me.md", "---\nname: Me\ndescription: tea\ntype: user\n---\nx\n")
	write("team/secret.md", "---\nname: S\ndescription: s\ntype: reference\n---\nhunter2\n")
	write("team/MEMORY.md", "- [S](secret.md)\n- [Me](user_me.md)\n- [Gone](gone.md)\n- [Text](gone_text.md)\n")
	problems, err := s.Lint(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, p := range problems {
		got[p.Ref+" "+p.Rule] = p.Error
	}
	want := map[string]bool{
		" unreadable":                   true, // aux.md
		"odd.md type-unknown":           true,
		"plain.md type-missing":         false,
		"plain.md no-name":              false,
		"plain.md no-hook":              false,
		"broken.md frontmatter-invalid": true,
		"team/user_me.md type-user":     true,
		"team/secret.md password":       true,
		"MEMORY.md index-missing":       true,
		"team/MEMORY.md index-ghost":    true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, p := range problems {
		if p.Rule == memory.RuleTypeUnknown && !strings.Contains(p.Message, "user, feedback, project, reference") {
			t.Errorf("the four types are not named: %s", p.Message)
		}
	}
	list, _, err := s.List(t.Context())
	if err != nil || slices.ContainsFunc(list, func(m memories.Memory) bool { return m.Redacted() }) {
		t.Errorf("a redaction's marker is listed as a memory: %v, %v", list, err)
	}
	if m, err := s.Find(t.Context(), "gone_text"); err != nil || !m.Redacted() {
		t.Errorf("the marker is found as %v, %v", m, err)
	}
	before := indexOf(t, s, memory.ScopeTeam)
	if _, err := s.Lint(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if after := indexOf(t, s, memory.ScopeTeam); strings.Contains(after, "gone.md") || after == before {
		t.Errorf("the ghost stays: %q", after)
	}
	problems, err = s.Lint(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Rule, "index-") {
			t.Errorf("after fixing: %+v", p)
		}
	}
}

// TestAChangedMemorySaysWhen: a memory that says when it was changed says so of every
// change, unless the change itself says otherwise; no other byte of its head differs.
func TestAChangedMemorySaysWhen(t *testing.T) {
	s := newStore(t)
	s.Now = func() time.Time { return time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC) }
	text := func(modified, body string) string {
		return "---\nname: Deploy day\nmetadata: \n  type: project\n  modified: " + modified + "\n  x: 1\n---\n\nDeploy day: " + body + "\n"
	}
	const old, now = "2026-01-01T00:00:00.000Z", "2026-11-30T09:00:00.000Z"
	for name, test := range map[string]struct{ next, want string }{
		"kept":         {text(old, "Friday"), text(now, "Friday")},
		"set":          {text("2026-02-02", "Friday"), text("2026-02-02", "Friday")},
		"taken out":    {"Deploy day: Friday\n", "Deploy day: Friday\n"},
		"not a change": {text(old, "Wednesday"), text(old, "Wednesday")},
	} {
		r := memories.Ref{Scope: memory.ScopePrivate, Path: "project_deploy.md"}
		if err := os.MkdirAll(s.Dir(r.Scope), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.File(r), []byte(text(old, "Wednesday")), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := s.Replace(t.Context(), r, []byte(test.next), memory.ETagOf([]byte(text(old, "Wednesday"))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(s.File(r))
		if err != nil || string(got) != test.want || string(w.Content) != test.want {
			t.Errorf("%s: got %q, %v; told %q", name, got, err, w.Content)
		}
	}
}
