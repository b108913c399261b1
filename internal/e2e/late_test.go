package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// slowModel is a provider that answers when the test lets it.
type slowModel struct {
	asked, given, hungUp atomic.Int64
	answers              chan string
}

// newSlowModel returns the provider, and settings that name it.
func newSlowModel(t *testing.T) (m *slowModel, config string) {
	t.Helper()
	m = &slowModel{answers: make(chan string)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_, _ = http.MaxBytesReader(w, r.Body, 1<<20).Read(make([]byte, 1<<20)) // the server sees a caller leave once its words are read
		m.asked.Add(1)
		select {
		case <-r.Context().Done():
			m.hungUp.Add(1)
		case text := <-m.answers:
			m.given.Add(1)
			fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":90,"completion_tokens":10}}`, text)
		}
	}))
	t.Cleanup(s.Close)
	config = filepath.Join(t.TempDir(), "memsync.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, "model:\n  provider: openai\n  name: tiny\n  endpoint: %s/v1\n", s.URL), 0o600))
	return m, config
}

// TestLateChoice: the model of the daemon chooses memories for a prompt, which does not
// wait long for it; what it chooses then comes with the next tool, once, without what the
// prompt brought; the turn's end and a newer prompt end the lookup, as does the daemon's.
func TestLateChoice(t *testing.T) {
	m, config := newSlowModel(t)
	d := desks(t, hubtest.Start(t, hubtest.Options{}), 1, "MEMSYNC_CONFIG="+config)[0]
	for name, text := range map[string]string{
		"project_freeze.md": "---\nname: Freeze\ndescription: when merges are frozen\ntype: project\n---\n\nFrozen from 2026-03-05.\n",
		"reference_wiki.md": "---\nname: Wiki\ndescription: where documents are\ntype: reference\n---\n\nThe wiki.\n",
		"reference_cake.md": "---\nname: Cake\ndescription: what there is on Fridays\ntype: reference\n---\n\nThe cake.\n",
	} {
		must(t, os.WriteFile(filepath.Join(d.memory, name), []byte(text), 0o600))
	}
	hubtest.Eventually(t, patience, "the daemon's model", func() bool {
		return strings.Contains(d.run("", "status"), "model openai tiny")
	})
	alone := func(session string) string {
		return d.hook("UserPromptSubmit", map[string]any{"session_id": session, "prompt": "when are merges frozen this month"})
	}
	prompt := func(session string) string {
		t.Helper()
		before := m.asked.Load()
		got := alone(session)
		hubtest.Eventually(t, patience, "the model is asked", func() bool { return m.asked.Load() > before })
		return got
	}
	tool := func(session string) string {
		return d.hook("PostToolUse", map[string]any{"session_id": session, "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}})
	}
	// A hook waits a tenth of a second only for the daemon to hear of an end: on a busy
	// machine it may take a few.
	hungUp := func(n int64, again func()) {
		t.Helper()
		hubtest.Eventually(t, patience, "the model is left alone", func() bool { again(); return m.hungUp.Load() >= n })
	}
	stop := func(session string) { d.hook("Stop", map[string]any{"session_id": session}) }

	// Late.
	if got := prompt("late"); !strings.Contains(got, "Frozen from") || strings.Contains(got, "The wiki.") {
		t.Errorf("the prompt brings %s", got)
	}
	if got := tool("late"); got != "" {
		t.Errorf("before the model has chosen: %s", got)
	}
	m.answers <- `{"files":["reference_wiki.md","project_freeze.md"]}`
	var got string
	hubtest.Eventually(t, patience, "the late choice", func() bool { got = tool("late"); return got != "" })
	if !strings.Contains(got, "The wiki.") || strings.Contains(got, "Frozen from") || !strings.Contains(got, `"hookEventName":"PostToolUse"`) {
		t.Errorf("the tool brings %s", got)
	}
	if got := tool("late"); got != "" {
		t.Errorf("brought again: %s", got)
	}

	// The turn's end.
	if got := prompt("stopped"); !strings.Contains(got, "Frozen from") {
		t.Errorf("the prompt brings %s", got)
	}
	hungUp(1, func() { stop("stopped") })
	if got := tool("stopped"); got != "" {
		t.Errorf("after the turn: %s", got)
	}
	// Ready, but nobody came for it before the turn ended.
	prompt("ready")
	m.answers <- `{"files":["reference_wiki.md"]}`
	for range 3 {
		stop("ready")
	}
	if got := tool("ready"); got != "" {
		t.Errorf("of a turn that is over: %s", got)
	}

	// A newer prompt, here one that asks for nothing, and then one that does.
	prompt("newer")
	hungUp(2, func() { d.hook("UserPromptSubmit", map[string]any{"session_id": "newer", "prompt": "ok"}) })
	prompt("newer")
	prompt("newer")
	hungUp(3, func() {})
	m.answers <- `{"files":["reference_cake.md"]}`
	hubtest.Eventually(t, patience, "the newer choice", func() bool { got = tool("newer"); return got != "" })
	if !strings.Contains(got, "The cake.") {
		t.Errorf("the tool brings %s", got)
	}

	// In time. On a busy machine that takes more than one prompt.
	hubtest.Eventually(t, patience, "a choice in time", func() bool {
		done := make(chan struct{})
		go func() {
			defer close(done)
			m.answers <- `{"files":["reference_wiki.md"]}`
		}()
		got := prompt("in time")
		<-done
		if strings.Contains(got, "Frozen from") {
			return false
		}
		if !strings.Contains(got, "The wiki.") {
			t.Errorf("in time: %s", got)
		}
		return true
	})
	if got := tool("in time"); got != "" {
		t.Errorf("brought again: %s", got)
	}

	// The daemon's end.
	prompt("gone")
	must(t, d.agent.Process.Kill())
	hungUp(4, func() {})
	began := time.Now()
	if got := tool("gone"); got != "" || time.Since(began) > patience {
		t.Errorf("without the daemon: %s after %s", got, time.Since(began))
	}
	if got := alone("alone"); !strings.Contains(got, "Frozen from") {
		t.Errorf("without the daemon: %s", got)
	}
}
