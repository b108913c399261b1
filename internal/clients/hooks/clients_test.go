package hooks_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/clients/hooks"
)

// say runs an event under a client's name for it and returns the JSON that it reads.
func (e *engine) say(event string, input map[string]any) map[string]any {
	e.t.Helper()
	in, err := json.Marshal(input)
	if err != nil {
		e.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := hooks.Run(e.t.Context(), e, event, bytes.NewReader(in), &out, now); err != nil {
		e.t.Fatal(err)
	}
	var got map[string]any
	if out.Len() > 0 {
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			e.t.Fatal(err)
		}
	}
	return got
}

// Every client is answered in its own form, and says nothing where nothing is to say.
func TestEachClientsForm(t *testing.T) {
	e := newEngine(t)
	e.write("feedback_testing.md", howWeTest)
	e.write("MEMORY.md", "- [Testing](feedback_testing.md) — how we test\n")
	team := filepath.Join(e.dir, "team")
	secret := map[string]any{"cwd": e.dir, "tool_name": "w", "tool_input": map[string]any{"file_path": filepath.Join(team, "x.md"), "content": "hunter2"}}
	why := filepath.Join(team, "x.md") + " is shared with the team, and this may not be:\n- line 1: a password (password)"
	for event, want := range map[string]map[string]any{
		"PreToolUse":   {"hookSpecificOutput": map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why}},
		"pre-tool-use": {"hookSpecificOutput": map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": why}},
		"BeforeTool":   {"decision": "deny", "reason": why},
		"preToolUse":   {"permission": "deny", "user_message": why, "agent_message": why},
	} {
		if diff := cmp.Diff(want, e.say(event, secret)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", event, diff)
		}
	}
	prompt := map[string]any{"cwd": e.dir, "prompt": "write unit tests please"}
	got, _ := e.say("BeforeAgent", prompt)["hookSpecificOutput"].(map[string]any)
	if text, _ := got["additionalContext"].(string); got["hookEventName"] != "BeforeAgent" || !strings.Contains(text, "Never a mock.") {
		t.Errorf("BeforeAgent: %v", got)
	}
	if text, _ := e.say("sessionStart", map[string]any{"workspace_roots": []string{e.dir}})["additional_context"].(string); !strings.Contains(text, "how we test") {
		t.Errorf("sessionStart: %s", text)
	}
	for _, event := range []string{"BeforeTool", "AfterTool", "preToolUse", "postToolUse"} {
		if got := e.say(event, map[string]any{"cwd": e.dir, "tool_input": map[string]any{"command": "ls"}}); got != nil {
			t.Errorf("%s has something to say: %v", event, got)
		}
	}
}

// Every client has events, each with the same bound, and each is answered.
func TestEventsOfClients(t *testing.T) {
	for _, c := range []string{hooks.ClaudeCode, hooks.Codex, hooks.Gemini, hooks.OpenCode, hooks.Cursor} {
		seen := map[string]bool{}
		for _, ev := range hooks.Events(c) {
			if ev.Timeout <= 0 || seen[ev.Name] {
				t.Errorf("%s: %s has no bound, or is there twice", c, ev.Name)
			}
			seen[ev.Name] = true
			newEngine(t).say(ev.Name, map[string]any{"cwd": t.TempDir()})
		}
		if len(seen) < 3 {
			t.Errorf("%s has events %v", c, seen)
		}
	}
}

// A patch is judged as the files that it makes, however it is handed over.
func TestPatchesAreJudged(t *testing.T) {
	for name, test := range map[string]struct{ patch, want string }{
		"a new file":        {"*** Add File: TEAM/x.md\n+a\n+hunter2\n", "line 2"},
		"relative":          {"*** Add File: team/x.md\n+hunter2\n", "line 1"},
		"an update":         {"*** Update File: TEAM/bank.md\n@@\n one\n-two\n+hunter2\n", "line 2"},
		"a context astray":  {"*** Update File: TEAM/bank.md\n@@\n uno\n-dos\n+hunter2\n", "a password"},
		"the second file":   {"*** Add File: src/x.go\n+x\n*** Add File: TEAM/x.md\n+hunter2\n", "x.md"},
		"moved there":       {"*** Update File: draft.md\n*** Move to: TEAM/x.md\n@@\n-safe\n+safe \n", "line 2"},
		"a bad name":        {"*** Add File: TEAM/con.md\n+x\n", "path-reserved-name"},
		"elsewhere":         {"*** Add File: notes.md\n+hunter2\n", ""},
		"clean":             {"*** Update File: TEAM/bank.md\n@@\n-two\n+2\n", ""},
		"a deletion":        {"*** Delete File: TEAM/bank.md\n", ""},
		"taken out again":   {"*** Update File: TEAM/leak.md\n@@\n-hunter2\n+gone\n", ""},
		"nothing of a file": {"*** Update File: TEAM/none.md\n@@\n-a\n+hunter2\n", ""},
	} {
		e := newEngine(t)
		e.write("team/bank.md", "one\ntwo\nthree\n")
		e.write("team/leak.md", "hunter2\n")
		e.write("draft.md", "safe\nhunter2\n")
		patch := "*** Begin Patch\n" + strings.ReplaceAll(test.patch, "TEAM", filepath.Join(e.dir, "team")) + "*** End Patch\n"
		for form, input := range map[string]any{"command": map[string]any{"command": patch}, "patchText": map[string]any{"patchText": patch}, "bare": patch} {
			_, deny := e.fire("PreToolUse", map[string]any{"tool_name": "apply_patch", "tool_input": input})
			if test.want == "" && deny != "" || !strings.Contains(deny, test.want) {
				t.Errorf("%s, %s: denied with %q, want %q", name, form, deny, test.want)
			}
		}
		e.fire("PostToolUse", map[string]any{"tool_name": "apply_patch", "tool_input": map[string]any{"command": patch}})
		if inTeam := strings.Contains(patch, "/team") && name != "a deletion"; inTeam && e.nudged != 1 {
			t.Errorf("%s: the daemon was told %d times", name, e.nudged)
		}
	}
}
