package notes_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

type object = map[string]any

// talk is a transcript that grows.
type talk struct {
	bytes.Buffer
	t    *testing.T
	file string
	n    int
}

func newTalk(t *testing.T) *talk {
	return &talk{t: t, file: filepath.Join(t.TempDir(), "s1.jsonl")}
}

func (k *talk) line(fields object) {
	k.n++
	fields["uuid"], fields["timestamp"], fields["cwd"] = fmt.Sprint(k.n), "2026-03-10T10:00:00Z", "/w"
	if err := json.NewEncoder(k).Encode(fields); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(k.file, k.Bytes(), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) person(text string) {
	k.line(object{"type": "user", "message": object{"content": text}})
}

func (k *talk) assistant(text string) {
	k.line(object{"type": "assistant", "message": object{"content": []object{{"type": "text", "text": text}}}})
}

func (k *talk) tool(name string, input object, result string, failed bool) {
	id := fmt.Sprintf("t%d", k.n)
	k.line(object{"type": "assistant", "message": object{"content": []object{{"type": "tool_use", "id": id, "name": name, "input": input}}}})
	k.line(object{"type": "user", "message": object{"content": []object{{"type": "tool_result", "tool_use_id": id, "content": result, "is_error": failed}}}})
}

// work is a conversation that a person would want notes of.
func (k *talk) work() {
	k.person("Make the parser accept CRLF line ends, and keep the old tests green.")
	k.tool("Read", object{"file_path": "/w/docs/format.md"}, "text", false)
	k.tool("Edit", object{"file_path": "/w/parser.go"}, "ok", false)
	k.tool("Bash", object{"command": "go test ./parser"}, "--- FAIL: TestCRLF\nline 2", true)
	k.person("no, don't change the test; the parser is wrong")
	k.tool("Edit", object{"file_path": "/w/parser.go"}, "ok", false)
	k.tool("Bash", object{"command": "go test ./parser"}, "ok", false)
	k.tool("Bash", object{"command": "make lint"}, "unused variable", true)
	k.person("Always run the linter before you commit.")
	k.assistant("The parser accepts CRLF now; the linter still complains about one variable.")
}

func update(t *testing.T, k notes.Keeper, talk *talk, force bool) (notes.Report, notes.Document) {
	t.Helper()
	r, err := k.Update(t.Context(), talk.file, "/w", force)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.File)
	if err != nil && r.Skipped == "" {
		t.Fatal(err)
	}
	return r, notes.Parse(string(text))
}

func TestFilledByRules(t *testing.T) {
	talk := newTalk(t)
	talk.work()
	r, d := update(t, notes.Keeper{}, talk, true)
	if r.By != "rules" {
		t.Errorf("by %s", r.By)
	}
	want := []string{"Session Title", "Current State", "Task specification", "Files and Functions", "Workflow", "Errors & Corrections",
		"Codebase and System Documentation", "Learnings", "Key results", "Worklog"}
	if diff := cmp.Diff(want, d.Titles()); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	for title, parts := range map[string][]string{
		"Session Title":                     {"Make the parser accept CRLF"},
		"Current State":                     {"Last asked: Always run", "Still failing: Bash make lint"},
		"Task specification":                {"keep the old tests green"},
		"Files and Functions":               {"- parser.go: changed 2 times", "- docs/format.md: read"},
		"Workflow":                          {"- `go test ./parser`"},
		"Errors & Corrections":              {"--- FAIL: TestCRLF (it works since)", "corrected: no, don't change the test", "unused variable"},
		"Codebase and System Documentation": {"docs/format.md"},
		"Learnings":                         {"Always run the linter before you commit"},
		"Key results":                       {"accepts CRLF now"},
		"Worklog":                           {"2026-03-10 10:00 Make the parser", "(1 edits, 1 commands)"},
	} {
		for _, p := range parts {
			if !strings.Contains(d.Body(title), p) {
				t.Errorf("%s lacks %q:\n%s", title, p, d.Body(title))
			}
		}
	}
	fi, err := os.Stat(r.File)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if fi, err := os.Stat(filepath.Dir(r.File)); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("directory mode %v, %v", fi.Mode(), err)
	}
}

func TestThresholds(t *testing.T) {
	talk := newTalk(t)
	talk.work()
	wait := func(want bool) {
		t.Helper()
		if r, _ := update(t, notes.Keeper{}, talk, false); (r.Skipped == "") != want {
			t.Errorf("written: %v (%s), want %v", r.Skipped == "", r.Skipped, want)
		}
	}
	wait(false)
	talk.assistant(strings.Repeat("word ", 4*notes.FirstAt/5+1000))
	wait(true)
	wait(false) // nothing new
	talk.assistant(strings.Repeat("word ", 4*notes.Every/5-1000))
	wait(false)
	talk.person("and now the next thing")
	talk.tool("Bash", object{"command": "ls"}, "x", false)
	talk.assistant(strings.Repeat("word ", 4*notes.Every/5))
	wait(false) // one call only, in a turn that is under way
	talk.tool("Bash", object{"command": "ls"}, "x", false)
	talk.tool("Bash", object{"command": "ls"}, "x", false)
	wait(true)
	talk.person("thanks, that was all")
	talk.assistant(strings.Repeat("结", notes.Every+10))
	wait(true) // a turn without a call
}

func TestOwnTemplateAndModel(t *testing.T) {
	config := t.TempDir()
	own := filepath.Join(config, "session-memory", "config")
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"template.md": "My notes\n\n# Plan\n_what next_\n_and why_\nkeep\n\n# Worklog\n", "prompt.md": "Write in French."} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	talk := newTalk(t)
	talk.work()
	m := &scripted.Model{Turns: []scripted.Turn{
		scripted.Say("Voilà: {\"Plan\": \"corriger le lint\\n# Worklog\\nfaux\", \"Unknown\": \"x\"}"),
		scripted.Say("no object"),
		{Hang: true},
	}}
	k := notes.Keeper{Config: config, Model: m}
	r, d := update(t, k, talk, true)
	text, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	if r.By != "model" || string(text) != "My notes\n\n# Plan\n_what next_\n_and why_\ncorriger le lint\n # Worklog\nfaux\n\n# Worklog\n" {
		t.Errorf("by %s: %q", r.By, text)
	}
	if diff := cmp.Diff([]string{"Plan", "Worklog"}, d.Titles()); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	if asked := m.Asked()[0]; !strings.HasPrefix(asked.System, "Write in French.") || !strings.Contains(asked.Messages[0].Parts[0].Text, "keep the old tests green") {
		t.Error("the person's prompt, or the conversation, did not reach the model")
	}
	if r, d := update(t, k, talk, true); r.By != "rules" || r.Fallback == "" || !strings.Contains(d.Body("Worklog"), "Make the parser") || d.Body("Plan") == "" {
		t.Errorf("after nonsense: %+v %q", r, d.Body("Plan"))
	}
}

// TestCapsAndHeadings: whatever is put into sections, the headings and hints stay, and
// the notes keep to their bounds.
func TestCapsAndHeadings(t *testing.T) {
	template := notes.Parse(notes.Template())
	rapid.Check(t, func(t *rapid.T) {
		d := notes.Parse(notes.Template())
		line := rapid.SampledFrom([]string{"# Worklog\n", "```\n", "_hint_\n", "text of a line\n", "结算规则的一行\n", "\n", strings.Repeat("long ", 600), "# "})
		for _, title := range template.Titles() {
			d.Set(title, strings.Repeat(strings.Join(rapid.SliceOfN(line, 0, 6).Draw(t, "lines"), ""), rapid.IntRange(1, 60).Draw(t, "times")))
		}
		text := d.String()
		if n := notes.Tokens(text); n > notes.MaxTokens {
			t.Fatalf("%d tokens", n)
		}
		again := notes.Parse(text)
		if diff := cmp.Diff(template.Titles(), again.Titles()); diff != "" {
			t.Fatalf("sections (-want +got):\n%s", diff)
		}
		for _, hint := range strings.Split(notes.Template(), "\n") {
			if strings.HasPrefix(hint, "_") && !strings.Contains(text, hint) {
				t.Fatalf("the hint %q is gone", hint)
			}
		}
	})
}

// TestSecretsAreLeftOut: wherever a secret was said, run or noted, neither the notes nor
// the model that writes them get it, nor the half of one that a cut would leave.
func TestSecretsAreLeftOut(t *testing.T) {
	const secret = "hunter2hunter2"
	found := func(text string) ([]model.Secret, error) {
		if strings.Contains(text, "unjudgeable") {
			return nil, errors.New("too large")
		}
		var lines []model.Secret
		for i, line := range strings.Split(text, "\n") {
			if strings.Contains(line, secret) || strings.Contains(line, "-----BEGIN PRIVATE") {
				lines = append(lines, model.Secret{Line: i + 1, Rule: "memsvc-password"})
			}
		}
		return lines, nil
	}
	talk := newTalk(t)
	talk.work()
	pad := strings.Repeat("x", 150-len("Bash curl "))
	talk.person("Always use the password " + secret + " for staging.\nAlways squash before you merge.")
	talk.tool("Bash", object{"command": "curl " + pad + " " + secret}, "ok", false)
	talk.tool("Bash", object{"command": "login " + secret}, "bad "+secret, true)
	talk.tool("Read", object{"file_path": "/w/" + secret}, "ok", false)
	talk.person("no, the password is " + secret)
	talk.assistant("The key:\n-----BEGIN PRIVATE KEY-----\nMIIBlines\nlines\n-----END PRIVATE KEY-----\nAll done with " + secret)
	talk.person("unjudgeable")
	m := &scripted.Model{Turns: []scripted.Turn{scripted.Say("{\"Learnings\": \"good\\nit is " + secret + "\"}"), scripted.Say("none")}}
	for _, k := range []notes.Keeper{{Secrets: found}, {Secrets: found, Model: m}, {Secrets: found, Model: m}} {
		_, d := update(t, k, talk, true)
		text := d.String()
		for _, part := range []string{"hunter", "MIIB", "unjudgeable"} {
			if strings.Contains(text, part) {
				t.Errorf("%q stands in the notes:\n%s", part, text)
			}
		}
		if !strings.Contains(text, "[secret left out: memsvc-password]") || k.Model == nil && !strings.Contains(d.Body("Learnings"), "Always squash before you merge") {
			t.Errorf("too little or too much is left out:\n%s", text)
		}
	}
	for _, asked := range m.Asked() {
		if strings.Contains(asked.Messages[0].Parts[0].Text, "hunter") {
			t.Error("the model was shown a secret")
		}
	}
	// Notes that hold one already lose it.
	file := notes.Path(talk.file)
	old := notes.Parse(notes.Template())
	old.Set("Learnings", "it is "+secret)
	if err := os.WriteFile(file, []byte(old.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	m = &scripted.Model{Turns: []scripted.Turn{scripted.Say("{\"Worklog\": \"new\"}")}}
	if _, d := update(t, notes.Keeper{Secrets: found, Model: m}, talk, true); d.Body("Worklog") != "new" || strings.Contains(d.String()+m.Asked()[0].Messages[0].Parts[0].Text, "hunter") {
		t.Errorf("%s", d.String())
	}
}

// TestAVeryLongText: what is pasted into one message is looked at at its ends; all of it,
// tag by tag, would never end. It counts whole as what was said.
func TestAVeryLongText(t *testing.T) {
	k := newTalk(t)
	k.person("Fix the importer. " + strings.Repeat("<", 4<<20) + "\nRemember that we always deploy on Fridays.")
	k.tool("Bash", object{"command": "make " + strings.Repeat("x ", 1<<20)}, strings.Repeat("broken ", 1<<20), true)
	k.assistant(strings.Repeat("以后都用这个。", 100_000) + "Done.")
	r, err := notes.Keeper{}.Update(t.Context(), k.file, "/w", false)
	if err != nil || r.Skipped != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	text, err := os.ReadFile(r.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Fix the importer.", "always deploy on Fridays", "make x x", "broken broken"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the notes lack %q", want)
		}
	}
	if len(text) > 64<<10 {
		t.Errorf("the notes have %d bytes", len(text))
	}
}

// Before a compaction notes are due however little was said since the last ones, unless the
// conversation is too short for any.
func TestNotesAreDueBeforeACompaction(t *testing.T) {
	k := newTalk(t)
	k.person("Take the parser apart.")
	keeper := notes.Keeper{Due: notes.Due{Compacting: true}}
	if r, err := keeper.Update(t.Context(), k.file, "/w", false); err != nil || r.Skipped == "" {
		t.Fatalf("of a short conversation: %+v, %v", r, err)
	}
	k.assistant(strings.Repeat("word ", 10_000))
	for _, said := range []string{"the first", "the second"} {
		k.person("This is " + said + " prompt.")
		r, err := keeper.Update(t.Context(), k.file, "/w", false)
		text, rerr := os.ReadFile(r.File)
		if err != nil || rerr != nil || r.Skipped != "" || !strings.Contains(string(text), "This is "+said) {
			t.Errorf("%s: %+v, %v, %v", said, r, err, rerr)
		}
	}
}

// TestWithinKeepsEverySection: where there is no room for all of the notes, no section that
// has something goes whole, and what is told first and last in each stays.
func TestWithinKeepsEverySection(t *testing.T) {
	d := notes.Parse(notes.Template())
	for i, title := range d.Titles() {
		if i == 2 {
			continue // an empty one takes no room
		}
		d.Set(title, fmt.Sprintf("the first of %d\n", i)+strings.Repeat(fmt.Sprintf("line of section %d\n", i), 80)+fmt.Sprintf("the last of %d", i))
	}
	d.Set("Session Title", "short")
	text, cut := d.Within(4500)
	if n := len([]rune(text)); n > 4500 || n < 4300 || !cut {
		t.Errorf("%d characters, cut %v", n, cut)
	}
	for i, title := range d.Titles() {
		first, last := fmt.Sprintf("# %s\nthe first of %d\n", title, i), fmt.Sprintf("\nthe last of %d", i)
		if i == 0 {
			first, last = "# "+title+"\nshort", ""
		}
		if has := strings.Contains(text, first); has != (i != 2) || has && !strings.Contains(text, last) {
			t.Errorf("%s is there: %v", title, has)
		}
	}
	if text, cut := notes.Parse("# A\n_hint_\nx\n").Within(100); text != "# A\n_hint_\nx" || cut {
		t.Errorf("short notes: %q, cut %v", text, cut)
	}
	if text, cut := notes.Parse("# A\n_" + strings.Repeat("hint ", 100) + "_\nx\n").Within(100); text != "# A\nx" || cut {
		t.Errorf("a long hint: %q, cut %v", text, cut)
	}
	if text, cut := notes.Parse(strings.Repeat("no heading\n", 100)).Within(100); !strings.HasSuffix(text, "no heading") || !cut {
		t.Errorf("no heading: %q, cut %v", text, cut)
	}
}

// However a person's template looks, the room is kept to.
func TestWithinNeverExceedsItsRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-z#_ 时]{0,3}|# [a-z]{1,9}|_[a-z]{1,30}_|[a-z时]{40}`), 0, 60).Draw(t, "lines")
		d := notes.Parse(strings.Join(lines, "\n"))
		n := rapid.IntRange(0, 500).Draw(t, "n")
		text, cut := d.Within(n)
		if got := len([]rune(text)); got > n {
			t.Fatalf("%d characters of %d", got, n)
		}
		if !cut {
			for _, title := range d.Titles() {
				if !strings.Contains(text, strings.TrimSpace(d.Body(title))) {
					t.Fatalf("%q is missing and nothing says so", title)
				}
			}
		}
	})
}
