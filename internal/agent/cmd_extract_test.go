package agent

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExtractByRulesWhereTheModelFails: whatever is wrong with the model or its settings,
// what was said in so many words is remembered, and the report says why by rules.
func TestExtractByRulesWhereTheModelFails(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, c := range map[string]struct {
		reply    http.HandlerFunc
		more     string // settings beside the model's
		settings string // instead of the model's
		warned   bool   // there is no model, and a line says why
	}{
		"refused key":    {reply: status(http.StatusUnauthorized)},
		"garbage":        {reply: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		"hangs":          {reply: hangs, more: "  timeout: 200ms\n"},
		"tokens used up": {reply: says("nothing"), more: "  daily-tokens: 1\n"},
		"no key":         {settings: "  provider: openai\n  name: tiny\n  key-file: /nonexistent/key\n"},
		"no connection":  {settings: "  provider: openai\n  name: tiny\n  endpoint: http://127.0.0.1:1/v1\n"},
		"program fails":  {settings: "  provider: command\n  command: [\"false\"]\n"},
		"no program":     {settings: "  provider: command\n  command: [/nonexistent/program]\n"},
		"bad settings":   {settings: "  provider: bogus\n", warned: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, now := newModelWorld(t, c.more), stopped()
			w.reply = c.reply
			if c.settings != "" {
				w.write(t, w.config, "model:\n"+c.settings)
			}
			talk := filepath.Join(filepath.Dir(w.dir), "talk.jsonl")
			// Used up are the tokens of a day once a call was made.
			if c.more != "" && c.reply != nil && strings.Contains(c.more, "daily-tokens") {
				_, _, _ = invokeAt(t, now, "model", "check")
			}
			w.write(t, talk, `{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"Remember that the audit log is kept for a year."}}`+"\n")
			out, stderr, code := invokeAt(t, now, "extract", "--transcript", talk, "--json")
			var got extractEntry
			if err := json.Unmarshal([]byte(out), &got); err != nil || code != ExitOK {
				t.Fatalf("exit %d, %v: %s%s", code, err, out, stderr)
			}
			if diff := cmp.Diff([]string{"project_the_audit_log_is_kept_for_a.md"}, got.Added); diff != "" || got.By != "rules" || (got.Fallback == "") != c.warned {
				t.Errorf("%s (-want +got):\n%s", out, diff)
			}
			if (strings.Count(stderr, "\n") == 1 && strings.Contains(stderr, "cannot be used")) != c.warned || strings.Contains(out+stderr, modelKey) {
				t.Errorf("stderr %q", stderr)
			}
			if out, _, code := invoke(t, "extract", "--transcript", talk); code != ExitOK || !strings.Contains(out, "nothing new was said") {
				t.Errorf("again: exit %d: %s", code, out)
			}
			if out, stderr, code := invoke(t, "recall", "--query", "when are merges frozen this month"); code != ExitOK || !strings.Contains(out, "project_freeze.md") || strings.Contains(stderr, "cannot be used") != c.warned {
				t.Errorf("recall: exit %d: %s%s", code, out, stderr)
			}
		})
	}
}

// TestNotesLeaveSecretsOut: the guard's own scan stands before the notes.
func TestNotesLeaveSecretsOut(t *testing.T) {
	w := newModelWorld(t, "")
	w.write(t, w.config, "{}\n")
	secret := "Tr0ub4" + "dor&3x"
	talk := filepath.Join(filepath.Dir(w.dir), "talk.jsonl")
	w.write(t, talk, `{"type":"user","uuid":"u1","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"Remember that the staging password is `+"`"+secret+"`"+`.\nAlways squash before you merge."}}`+"\n")
	t.Chdir(filepath.Dir(w.dir))
	if out, stderr, code := invoke(t, "notes", "update", "--transcript", talk); code != ExitOK {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	out, stderr, code := invoke(t, "notes", "show", "--transcript", talk)
	if code != ExitOK || strings.Contains(out, secret[:6]) || !strings.Contains(out, "[secret left out: memsvc-password]") || !strings.Contains(out, "- Always squash before you merge") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}
