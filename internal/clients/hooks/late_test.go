package hooks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/clients/hooks"
	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// lookups is a daemon whose model says what the test says.
type lookups struct {
	begun []hooks.Lookup
	ended []string
	now   hooks.Chosen // what Begin answers
	later hooks.Chosen // what Late hands out, once
	err   error
}

func (l *lookups) Begin(_ context.Context, p hooks.Lookup) (hooks.Chosen, error) {
	l.begun = append(l.begun, p)
	return l.now, l.err
}

func (l *lookups) Late(context.Context, string) (hooks.Chosen, error) {
	c := l.later
	l.later = hooks.Chosen{}
	if c.State == hooks.LookupDone && c.Turn == "" {
		c.Turn = l.begun[len(l.begun)-1].Turn
	}
	return c, l.err
}

func (l *lookups) End(_ context.Context, session string) error {
	l.ended = append(l.ended, session)
	return l.err
}

const howWeRelease = "---\nname: Release freeze\ndescription: no merges until the audit is over\ntype: project\n---\n\nUntil 2026-03-09.\n"

// TestLateChoiceComesWithTheNextTool: the ranker answers a prompt whose lookup is not
// ready; what the model chose comes after a tool, once, without what was given already.
func TestLateChoiceComesWithTheNextTool(t *testing.T) {
	e := newEngine(t)
	e.write("feedback_testing.md", howWeTest)
	e.write("project_freeze.md", howWeRelease)
	l := &lookups{now: hooks.Chosen{State: hooks.LookupPending}}
	e.lookups = l
	got, _ := e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "write unit tests"})
	if !strings.Contains(got, "Never a mock.") || strings.Contains(got, "2026-03-09") {
		t.Errorf("the prompt brings %s", got)
	}
	if len(l.begun) != 1 || l.begun[0].Session != "s" || l.begun[0].Turn == "" || l.begun[0].Personal != e.dir || l.begun[0].Prompt != "write unit tests" {
		t.Errorf("handed over: %+v", l.begun)
	}
	tool := map[string]any{"session_id": "s", "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}}
	if got, _ := e.fire("PostToolUse", tool); got != "" {
		t.Errorf("before the model has chosen: %s", got)
	}
	chosen := hooks.Chosen{State: hooks.LookupDone, Refs: []string{"feedback_testing.md", "gone.md", "project_freeze.md"}}
	l.later = chosen
	sub := map[string]any{"session_id": "s", "agent_id": "a1", "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}}
	if got, _ := e.fire("PostToolUse", sub); got != "" || l.later.State == "" {
		t.Errorf("a sub-agent is given %s", got)
	}
	got, _ = e.fire("PostToolUse", tool)
	if strings.Contains(got, "Never a mock.") || !strings.Contains(got, "Until 2026-03-09.") || strings.Count(got, "<memsvc-memory ") != 1 {
		t.Errorf("after the tool: %s", got)
	}
	for _, again := range []hooks.Chosen{{}, chosen} {
		l.later = again
		if got, _ := e.fire("PostToolUse", tool); got != "" {
			t.Errorf("given again: %s", got)
		}
	}
}

// What the model chose in time is the answer, in its order; the ranker is not asked.
func TestChoiceInTimeIsTheAnswer(t *testing.T) {
	e := newEngine(t)
	e.write("feedback_testing.md", howWeTest)
	e.write("project_freeze.md", howWeRelease)
	e.lookups = &lookups{now: hooks.Chosen{State: hooks.LookupDone, Refs: []string{"project_freeze.md"}}}
	if got, _ := e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "write unit tests"}); strings.Contains(got, "Never a mock.") || !strings.Contains(got, "2026-03-09") {
		t.Errorf("got %s", got)
	}
	// It may choose nothing.
	e.lookups.now.Refs = nil
	if got, _ := e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "write unit tests"}); got != "" {
		t.Errorf("got %s", got)
	}
	// Without a daemon that has a model, and with one that fails, the ranker answers.
	for _, l := range []lookups{{}, {err: errors.New("broken")}, {now: hooks.Chosen{State: hooks.LookupPending}}} {
		e.lookups = &l
		if got, _ := e.fire("UserPromptSubmit", map[string]any{"session_id": fmt.Sprintf("%+v", l), "prompt": "write unit tests"}); !strings.Contains(got, "Never a mock.") {
			t.Errorf("%+v: got %s", l, got)
		}
	}
}

// A lookup dies with the turn: at its end, and with a prompt that asks for nothing.
func TestLookupDiesWithItsTurn(t *testing.T) {
	e := newEngine(t)
	l := &lookups{now: hooks.Chosen{State: hooks.LookupPending}}
	e.lookups = l
	e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "write unit tests"})
	e.fire("Stop", map[string]any{"session_id": "s", "agent_id": "a1", "transcript_path": "/t.jsonl"})
	if l.ended != nil {
		t.Errorf("a sub-agent's end ends %v", l.ended)
	}
	e.fire("Stop", map[string]any{"session_id": "s"})
	e.fire("SessionEnd", map[string]any{"session_id": "s", "transcript_path": "/t.jsonl"})
	e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "ok"})
	e.fire("UserPromptSubmit", map[string]any{"transcript_path": "/t.jsonl", "prompt": "ok"})
	if diff := cmp.Diff([]string{"s", "s", "s", "/t.jsonl"}, l.ended); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTurnKeepsItsBudget: what comes late counts with what the prompt has brought.
func TestTurnKeepsItsBudget(t *testing.T) {
	e := newEngine(t)
	var refs []string
	for i := range 9 {
		name := fmt.Sprintf("project_x%d.md", i)
		e.write(name, fmt.Sprintf("---\nname: X%d\ndescription: about x%d\ntype: project\n---\n\ntext\n", i, i))
		refs = append(refs, name)
	}
	l := &lookups{now: hooks.Chosen{State: hooks.LookupDone, Refs: refs[:3]}}
	e.lookups = l
	first, _ := e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "what of it all?"})
	l.later = hooks.Chosen{State: hooks.LookupDone, Refs: refs}
	late, _ := e.fire("PostToolUse", map[string]any{"session_id": "s", "tool_input": map[string]any{"command": "ls"}})
	if n, m := strings.Count(first, "<memsvc-memory "), strings.Count(late, "<memsvc-memory "); n != 3 || m != inject.MaxTurnMemories-3 {
		t.Errorf("the prompt brings %d, the tool %d", n, m)
	}
	// The next turn has a budget of its own.
	l.now.Refs = refs
	next, _ := e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "and what else?"})
	if n := strings.Count(next, "<memsvc-memory "); n != 4 || strings.Contains(next, "project_x4.md") {
		t.Errorf("the next prompt brings %d: %s", n, next)
	}
}

// TestOtherClientsHearAMemoryOnce: where no transcript of a known form tells what a
// conversation has had, we remember it ourselves, until it is compacted.
func TestOtherClientsHearAMemoryOnce(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "rollout.jsonl")
	if err := os.WriteFile(foreign, []byte(`{"type":"response_item","payload":{"role":"user"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		prompt     string
		transcript string
		compacted  string
		source     string
	}{
		"no transcript":     {"UserPromptSubmit", "", "SessionStart", "compact"},
		"another form":      {"UserPromptSubmit", foreign, "SessionStart", "compact"},
		"cleared":           {"UserPromptSubmit", foreign, "SessionStart", "clear"},
		"before it is lost": {"BeforeAgent", foreign, "PreCompress", ""},
		"after it was lost": {"UserPromptSubmit", foreign, "PostCompact", ""},
	} {
		e := newEngine(t)
		e.write("feedback_testing.md", howWeTest)
		ask := func(session string) string {
			t.Helper()
			got, _ := e.fire(test.prompt, map[string]any{"session_id": session, "prompt": "write unit tests", "transcript_path": test.transcript})
			return got
		}
		if got := ask("s"); !strings.Contains(got, "Never a mock.") {
			t.Errorf("%s: the first prompt brings %s", name, got)
		}
		if got := ask("s"); got != "" {
			t.Errorf("%s: given again: %s", name, got)
		}
		if got := ask("other"); !strings.Contains(got, "Never a mock.") {
			t.Errorf("%s: another session hears %s", name, got)
		}
		e.fire("SessionStart", map[string]any{"session_id": "s", "source": "resume"})
		if got := ask("s"); got != "" {
			t.Errorf("%s: given again when taken up: %s", name, got)
		}
		e.fire(test.compacted, map[string]any{"session_id": "s", "source": test.source})
		if got := ask("s"); !strings.Contains(got, "Never a mock.") {
			t.Errorf("%s: after a compaction: %s", name, got)
		}
	}
}

// A transcript of the known form is believed, whatever we noted.
func TestTranscriptIsBelieved(t *testing.T) {
	e := newEngine(t)
	e.write("feedback_testing.md", howWeTest)
	e.fire("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "write unit tests"})
	talk := filepath.Join(t.TempDir(), "s.jsonl")
	write := func(lines ...any) {
		t.Helper()
		var b strings.Builder
		for _, l := range lines {
			text, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(append(text, '\n'))
		}
		if err := os.WriteFile(talk, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := map[string]any{"type": "user", "message": map[string]any{"content": "hello"}}
	had := map[string]any{"type": "attachment", "attachment": transcript.Mark("feedback_testing.md", 100) + ">"}
	compaction := map[string]any{"type": "system", "subtype": "compact_boundary"}
	input := map[string]any{"session_id": "s", "prompt": "write unit tests", "transcript_path": talk}
	write(said, had)
	if got, _ := e.fire("UserPromptSubmit", input); got != "" {
		t.Errorf("given again: %s", got)
	}
	write(said, had, compaction) // and no hook told us
	if got, _ := e.fire("UserPromptSubmit", input); !strings.Contains(got, "Never a mock.") {
		t.Errorf("after a compaction: %s", got)
	}
}
