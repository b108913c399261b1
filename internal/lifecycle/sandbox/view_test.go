package sandbox_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
	"github.com/memsvc/memsvc/internal/lifecycle/sandbox"
	"github.com/memsvc/memsvc/internal/memory"
)

const marked = "[secret left out: password]"

// finder knows "hunter2" and keys in blocks.
func finder(text string) (out []model.Secret, err error) {
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "hunter2") || strings.Contains(line, "-----BEGIN") {
			out = append(out, model.Secret{Line: i + 1, Rule: "password"})
		}
	}
	return out, nil
}

// shown is a store whose guard lets secrets pass, as a team's policy may, and a model
// that is not shown them.
type shown struct {
	t    *testing.T
	file string
	box  sandbox.Box
}

func newShown(t *testing.T) shown {
	t.Helper()
	root := t.TempDir()
	s := memories.New(filepath.Join(root, "memory"), filepath.Join(root, "memory", "team"), lenient{})
	if err := os.MkdirAll(filepath.Join(root, "project"), 0o700); err != nil {
		t.Fatal(err)
	}
	return shown{t, filepath.Join(s.Dir(memory.ScopePrivate), "project_x.md"), sandbox.Box{
		Store: s, Project: filepath.Join(root, "project"), Transcript: filepath.Join(root, "t.jsonl"), Secrets: finder, AllowDelete: true,
	}}
}

func (s shown) put(file, text string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// do lets the model call tools, each in an answer of its own, and returns the last answer.
func (s shown) do(calls ...any) (string, bool) {
	s.t.Helper()
	m := &scripted.Model{}
	for i := 0; i < len(calls); i += 2 {
		in, err := json.Marshal(calls[i+1])
		if err != nil {
			s.t.Fatal(err)
		}
		m.Turns = append(m.Turns, call(calls[i].(string), string(in)))
	}
	m.Turns = append(m.Turns, scripted.Say("done"))
	s.box.MaxRounds = len(m.Turns)
	if _, err := s.box.Run(s.t.Context(), m, "system", say()); err != nil {
		s.t.Fatal(err)
	}
	asked := m.Asked()
	for _, req := range asked {
		for _, msg := range req.Messages {
			for _, p := range msg.Parts {
				if p.Result != nil && (strings.Contains(p.Result.Text, "hunter2") || strings.Contains(p.Result.Text, "AAAA")) {
					s.t.Errorf("the model heard %q", p.Result.Text)
				}
			}
		}
	}
	last := asked[len(asked)-1].Messages
	r := last[len(last)-1].Parts[0].Result
	return r.Text, !r.Error
}

type in map[string]any

// lenient is a guard that lets everything pass.
type lenient struct{}

func (lenient) Check(context.Context, memory.Path, []byte) (violations, warnings []memory.Violation, err error) {
	return nil, nil, nil
}

// TestEditsLeaveWhatIsNotShown: a model's edit never puts a mark over a secret, nor the
// harmless form of a line over the line; what it says about the rest is done.
func TestEditsLeaveWhatIsNotShown(t *testing.T) {
	const head = "---\nname: X\ndescription: about x\ntype: project\n---\n\n"
	const body = "The gate is open.\npw hunter2\nAsk <system-reminder> Anna.\nThe end.\n"
	const plain = "The gate is open.\nAsk <system-reminder> Anna.\n</details>\nThe end.\n"
	const two = "staging:\npw hunter2 a\nproduction:\npw hunter2 b\n"
	const key = "key\n-----BEGIN K\nAAAA\n-----END K\nend of it\n"
	for name, test := range map[string]struct {
		body string
		edit in
		want string // of the body; "" = refused
	}{
		"another line":               {body, in{"old": "open", "new": "shut"}, strings.Replace(body, "open", "shut", 1)},
		"another line, over its end": {body, in{"old": "open.\n", "new": "shut.\n"}, strings.Replace(body, "open", "shut", 1)},
		"from a line's end on":       {body, in{"old": "\nThe end", "new": "\nThat is all"}, strings.Replace(body, "The end", "That is all", 1)},
		"with the mark":              {body, in{"old": "open.\n" + marked + "\nAsk", "new": "shut.\n" + marked + "\nCall"}, ""},
		"with the mark, whole lines": {body, in{"old": "open.\n" + marked + "\nAsk &lt;system-reminder> Anna.", "new": "shut.\n" + marked + "\nCall Bob."}, strings.Replace(strings.Replace(body, "open", "shut", 1), "Ask <system-reminder> Anna", "Call Bob", 1)},
		"the mark alone":             {body, in{"old": marked, "new": marked + "\nmore"}, strings.Replace(body, "hunter2\n", "hunter2\nmore\n", 1)},
		"without the mark":           {body, in{"old": "open.\n" + marked + "\n", "new": "shut.\n"}, ""},
		"the mark twice":             {body, in{"old": marked, "new": marked + "\n" + marked}, ""},
		"the mark elsewhere":         {body, in{"old": "The end.", "new": marked}, ""},
		"within a line":              {body, in{"old": "The end.", "new": "It is " + marked + "."}, ""},
		"half the mark":              {body, in{"old": "secret left out", "new": "x"}, ""},
		"what stands there":          {body, in{"old": "hunter2", "new": "x"}, ""},
		"the whole text":             {body, in{"body": strings.ReplaceAll(body, "pw hunter2", marked)}, ""},
		"the whole without it":       {body, in{"body": "The gate is open. Ask Anna. The end.\n"}, ""},
		"two marks":                  {two, in{"old": marked + "\nproduction:\n" + marked, "new": marked + "\nstaging:\n" + marked}, ""},
		"one of two":                 {two, in{"old": "staging:\n" + marked + "\nproduction", "new": "test:\n" + marked + "\nproduction"}, strings.Replace(two, "staging", "test", 1)},
		"a key":                      {key, in{"old": "key\n" + marked + "\n" + marked + "\n" + marked, "new": "the key\n" + marked + "\n" + marked + "\n" + marked}, "the " + key},
		"half a key":                 {key, in{"old": "key\n" + marked + "\n" + marked + "\n" + marked, "new": "the key\n" + marked}, ""},
		"a harmless form, whole":     {plain, in{"body": strings.NewReplacer("<system", "&lt;system", "</details", "&lt;/details", "open", "shut").Replace(plain)}, strings.Replace(plain, "open", "shut", 1)},
		"a harmless form, quoted":    {plain, in{"old": "Ask &lt;system-reminder> Anna.\n", "new": "Ask &lt;system-reminder> Anna.\nOr Bob.\n"}, strings.Replace(plain, "Anna.\n", "Anna.\nOr Bob.\n", 1)},
		"a part of a harmless form":  {plain, in{"old": "Anna", "new": "Bob"}, ""},
		"a mark that somebody wrote": {"A mark is " + marked + ".\nIt stays.\n", in{"old": "A mark is " + marked + ".\nIt", "new": "A mark is " + marked + ".\nThat"}, "A mark is " + marked + ".\nThat stays.\n"},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			s := newShown(t)
			crlf := func(text string) string { return strings.ReplaceAll(text, "\n", eol) }
			s.put(s.file, crlf(head+test.body))
			test.edit["memory"] = "project_x.md"
			answer, ok := s.do("read", in{"path": "memory/project_x.md"}, "edit", test.edit)
			want := test.want
			if want == "" {
				want = test.body
			}
			got, err := os.ReadFile(s.file)
			if err != nil || string(got) != crlf(head+want) {
				t.Errorf("%s, %q: the file holds %q, %v; want %q (%s)", name, eol, got, err, crlf(head+want), answer)
			}
			if ok != (test.want != "") {
				t.Errorf("%s, %q: %s", name, eol, answer)
			}
		}
	}
}

// A memory is not deleted for what was seen of it, and no mark becomes one.
func TestWhatIsNotShownStays(t *testing.T) {
	s := newShown(t)
	s.put(s.file, "---\nname: X\ndescription: d\ntype: project\n---\n\nA\npw hunter2\n")
	if answer, ok := s.do("read", in{"path": "memory/project_x.md"}, "delete", in{"memory": "project_x.md"}); ok || !strings.Contains(answer, "left out") {
		t.Errorf("deleted: %s", answer)
	}
	for _, field := range []string{"name", "description", "body"} {
		d := in{"type": "project", "name": "New", "description": "d", "body": "b"}
		d[field] = "It is " + marked
		if answer, ok := s.do("write", d); ok {
			t.Errorf("written: %s", answer)
		}
	}
	list, _, err := s.box.Store.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Ref != (memories.Ref{Scope: memory.ScopePrivate, Path: "project_x.md"}) {
		t.Errorf("%v, %v", list, err)
	}
}

// TestToolsAnswerWithoutSecrets: no way of asking shows a secret, a part of a key, or
// whether a pattern fits what is left out.
func TestToolsAnswerWithoutSecrets(t *testing.T) {
	s := newShown(t)
	const key = "begin\n-----BEGIN K\nAAAA1\nAAAA2\n-----END K\nend\n"
	s.put(s.file, "---\nname: X\ndescription: pw hunter2\ntype: project\n---\n\n"+key+"pw hunter2\n")
	s.put(filepath.Join(s.box.Project, "key.txt"), key+"pw hunter2 bad \xff\n")
	s.put(filepath.Join(s.box.Project, "long.txt"), "x"+strings.Repeat(" x", 990)+" hunter2"+strings.Repeat(" y", 500)+"\n")
	s.put(s.box.Transcript, `{"text":"pw hunter2"}`+"\nlast words\n")
	s.put(filepath.Join(s.box.Project, "huge.txt"), strings.Repeat("word \n", 200_000))
	for _, c := range []struct {
		tool string
		in   in
		want string // "" = refused
	}{
		{"list", in{"path": "memory"}, "memory/project_x.md"},
		{"read", in{"path": "memory/project_x.md"}, "begin\n" + marked},
		{"read", in{"path": "memory/project_x.md", "offset": 9, "limit": 2}, marked + "\n"},
		{"read", in{"path": "project/key.txt", "offset": 3, "limit": 1}, marked + "\n[more"},
		{"read", in{"path": "project/long.txt"}, marked},
		{"read", in{"path": "transcript"}, marked + "\nlast words\n"},
		{"read", in{"path": "project/huge.txt"}, ""},
		{"grep", in{"pattern": "AAAA1|words|begin", "path": "project"}, "project/key.txt:1: begin\n"},
		{"grep", in{"pattern": "^pw h", "path": "project/key.txt"}, "none"},
		{"grep", in{"pattern": "hunter", "path": "transcript"}, "none"},
		{"grep", in{"pattern": "hunter|AAAA|BEGIN", "path": "memory"}, "none"},
		{"grep", in{"pattern": ".", "path": "memory"}, "memory/project_x.md:8: " + marked},
	} {
		answer, ok := s.do(c.tool, c.in)
		if ok != (c.want != "") || !strings.Contains(answer, c.want) {
			t.Errorf("%s %v: %q, want %q", c.tool, c.in, answer, c.want)
		}
	}
}
