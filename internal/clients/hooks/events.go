package hooks

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// The clients whose events are known.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	Gemini     = "gemini"
	OpenCode   = "opencode"
	Cursor     = "cursor"
)

// Event is an event of a client, and how that client is to be configured for it.
type Event struct {
	Name    string        // as the client calls it
	Matcher string        // which tools it is about, in the client's language; "" = all
	Timeout time.Duration // after which the client may go on without an answer

	clients []string
	do      func(*handler, context.Context) (Answer, error)
	say     func(Answer, string) any // nil = nothing to say
}

// patience is long beside what an answer takes, and short for a person who waits.
const patience = 10 * time.Second

// table lists every event of every client, with what is done at it and how the answer
// is written. Adding an event is adding an entry; `install` and the plugin follow it.
func table() []Event {
	claude := []string{ClaudeCode}
	named := []string{ClaudeCode, Codex, OpenCode} // these share most names and the form
	return []Event{
		{Name: "SessionStart", clients: []string{ClaudeCode, Codex, OpenCode, Gemini}, do: (*handler).sessionStart, say: nested},
		{Name: "UserPromptSubmit", clients: named, do: (*handler).prompt, say: nested},
		{Name: "PreToolUse", Matcher: "Write|Edit|MultiEdit|NotebookEdit", clients: claude, do: (*handler).beforeTool, say: nested},
		// After every tool: what was chosen late for a prompt comes with the next one.
		{Name: "PostToolUse", clients: named, do: (*handler).afterTool, say: nested},
		// Memories are made of conversations in Claude Code's form.
		{Name: "Stop", clients: claude, do: (*handler).stop, say: nested},
		{Name: "SessionEnd", clients: claude, do: (*handler).stop, say: nested},
		{Name: "PreCompact", clients: claude, do: (*handler).beforeCompaction, say: nested},
		{Name: "PreToolUse", Matcher: "apply_patch|Edit|Write", clients: []string{Codex, OpenCode}, do: (*handler).beforeTool, say: nested},
		{Name: "BeforeAgent", clients: []string{Gemini}, do: (*handler).prompt, say: nested},
		{Name: "BeforeTool", Matcher: "write_file|replace", clients: []string{Gemini}, do: (*handler).beforeTool, say: decided},
		{Name: "AfterTool", clients: []string{Gemini}, do: (*handler).afterTool, say: nested},
		{Name: "PreCompress", clients: []string{Gemini}, do: (*handler).compacted, say: nested},
		{Name: "PostCompact", clients: []string{Codex}, do: (*handler).compacted, say: nested},
		// Cursor's prompt event takes no context.
		{Name: "sessionStart", clients: []string{Cursor}, do: (*handler).sessionStart, say: snaked},
		{Name: "preToolUse", Matcher: "Write|Edit|StrReplace", clients: []string{Cursor}, do: (*handler).beforeTool, say: snaked},
		{Name: "postToolUse", Matcher: "Write|Edit|StrReplace", clients: []string{Cursor}, do: (*handler).afterTool, say: snaked},
	}
}

// Events returns the events of a client, in the order in which they are configured.
func Events(client string) (out []Event) {
	for _, e := range table() {
		for _, c := range e.clients {
			if c == client {
				e.Timeout = patience
				out = append(out, e)
			}
		}
	}
	return out
}

// find returns the event of a name: as a client writes it, else in any spelling, such as
// session-start.
func find(name string) (Event, bool) {
	for _, e := range table() {
		if e.Name == name {
			return e, true
		}
	}
	flat := func(s string) string { return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) }
	for _, e := range table() {
		if flat(e.Name) == flat(name) {
			return e, true
		}
	}
	return Event{}, false
}

// nested is the form that Claude Code documents, and others with it.
func nested(a Answer, event string) any {
	out := map[string]any{"hookEventName": event}
	switch {
	case a.Deny != "":
		out["permissionDecision"] = "deny"
		out["permissionDecisionReason"] = a.Deny
	case a.Context != "":
		out["additionalContext"] = a.Context
	}
	return map[string]any{"hookSpecificOutput": out}
}

// decided is how Gemini CLI is told what a tool may not do.
func decided(a Answer, event string) any {
	if a.Deny == "" {
		return nested(a, event)
	}
	return map[string]any{"decision": "deny", "reason": a.Deny}
}

// snaked is Cursor's form.
func snaked(a Answer, _ string) any {
	if a.Deny == "" {
		return map[string]any{"additional_context": a.Context}
	}
	return map[string]any{"permission": "deny", "user_message": a.Deny, "agent_message": a.Deny}
}

// write prints the answer in the event's form; nothing is said by printing nothing.
func (e Event) write(w io.Writer, a Answer) error {
	if a == (Answer{}) {
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(e.say(a, e.Name))
}
