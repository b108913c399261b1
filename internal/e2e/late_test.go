package e2e

import (
	"cmp"
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
	// A hook gives up on a daemon that is too busy, and on itself after some seconds: then the
	// model is not asked, or nothing is said, and the next prompt has to do.
	prompt := func(session string) string {
		t.Helper()
		before, got := m.asked.Load(), ""
		var last time.Time
		hubtest.Eventually(t, patience, "the model is asked", func() bool {
			if time.Since(last) > 5*time.Second {
				got = cmp.Or(got, alone(session))
				last = time.Now()
			}
			return m.asked.Load() > before
		})
		return got
	}
	first := func(session string) (got string) {
		t.Helper()
		hubtest.Eventually(t, patience, "the prompt brings something", func() bool { got = prompt(session); return got != "" })
		return got
	}
	tool := func(session string) string {
		return d.hook("PostToolUse", map[string]any{"session_id": session, "tool_name": "Bash", "tool_input": map[string]any{"command": "ls"}})
	}
	// A hook waits a tenth of a second only for the daemon to hear of an end: on a busy
	// machine it may take a few.
	hungUp := func(before int64, again func()) {
		t.Helper()
		hubtest.Eventually(t, patience, "the model is left alone", func() bool { again(); return m.hungUp.Load() > before })
	}
	// Those of prompts that were asked again may still wait for an answer, too.
	chosen := func(session, files string) (got string) {
		t.Helper()
		hubtest.Eventually(t, patience, "the late choice", func() bool {
			select {
			case m.answers <- `{"files":[` + files + `]}`:
			default:
			}
			got = tool(session)
			return got != ""
		})
		return got
	}
	stop := func(session string) { d.hook("Stop", map[string]any{"session_id": session}) }

	// Late.
	if got := first("late"); !strings.Contains(got, "Frozen from") || strings.Contains(got, "The wiki.") {
		t.Errorf("the prompt brings %s", got)
	}
	if got := tool("late"); got != "" {
		t.Errorf("before the model has chosen: %s", got)
	}
	got := chosen("late", `"reference_wiki.md","project_freeze.md"`)
	if !strings.Contains(got, "The wiki.") || strings.Contains(got, "Frozen from") || !strings.Contains(got, `"hookEventName":"PostToolUse"`) {
		t.Errorf("the tool brings %s", got)
	}
	if got := tool("late"); got != "" {
		t.Errorf("brought again: %s", got)
	}

	// The turn's end.
	if got := first("stopped"); !strings.Contains(got, "Frozen from") {
		t.Errorf("the prompt brings %s", got)
	}
	hungUp(m.hungUp.Load(), func() { stop("stopped") })
	if got := tool("stopped"); got != "" {
		t.Errorf("after the turn: %s", got)
	}
	// Ready, but nobody came for it before the turn ended.
	// Where the daemon did not hear of the end either, another turn has to do.
	turn := 0
	hubtest.Eventually(t, patience, "of a turn that is over nothing comes", func() bool {
		turn++
		session := fmt.Sprint("ready ", turn)
		prompt(session)
		m.answers <- `{"files":["reference_wiki.md"]}`
		for range 3 {
			stop(session)
		}
		return tool(session) == ""
	})

	// A newer prompt, here one that asks for nothing, and then one that does.
	prompt("newer")
	hungUp(m.hungUp.Load(), func() { d.hook("UserPromptSubmit", map[string]any{"session_id": "newer", "prompt": "ok"}) })
	prompt("newer")
	before := m.hungUp.Load()
	prompt("newer")
	hungUp(before, func() {})
	got = chosen("newer", `"reference_cake.md"`)
	if !strings.Contains(got, "The cake.") {
		t.Errorf("the tool brings %s", got)
	}

	// In time. On a busy machine that takes more than one prompt.
	turn = 0
	session := ""
	hubtest.Eventually(t, patience, "a choice in time", func() bool {
		turn++
		session = fmt.Sprint("in time ", turn)
		done, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case m.answers <- `{"files":["reference_wiki.md"]}`:
			case <-over: // nobody was asked
			}
		}()
		got := alone(session)
		close(over)
		<-done
		if got == "" || strings.Contains(got, "Frozen from") {
			return false
		}
		if !strings.Contains(got, "The wiki.") {
			t.Errorf("in time: %s", got)
		}
		return true
	})
	if got := tool(session); got != "" {
		t.Errorf("brought again: %s", got)
	}

	// The daemon's end.
	prompt("gone")
	before = m.hungUp.Load()
	must(t, d.agent.Process.Kill())
	hungUp(before, func() {})
	began := time.Now()
	if got := tool("gone"); got != "" || time.Since(began) > patience {
		t.Errorf("without the daemon: %s after %s", got, time.Since(began))
	}
	hubtest.Eventually(t, patience, "without the daemon", func() bool { return strings.Contains(alone("alone"), "Frozen from") })
}
