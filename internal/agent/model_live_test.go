package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestModelSettingsAreReadAgain changes the settings file under a running engine: each
// piece of work is done by who is named at that moment.
func TestModelSettingsAreReadAgain(t *testing.T) {
	w := newModelWorld(t, "")
	w.reply = says(`[]`)
	withModel, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, w.config, "log-level: info\n")
	var log hubtest.Buffer
	e := newEngine(stateDir(w.state), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), time.Now)
	defer e.close()
	e.live = &liveModel{file: w.config, counter: e.state.modelCounter(time.Now), log: e.log}
	talks := 0
	by := func() string {
		t.Helper()
		talks++
		talk := filepath.Join(w.state, "talks", strings.Repeat("t", talks)+".jsonl")
		w.write(t, talk, `{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"Where is the wiki?"}}`+"\n")
		if err := e.take(extractParams{Personal: w.dir, Transcript: talk}); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, time.Minute, "the work", func() bool { return strings.Count(log.String(), "msg=extract ") == talks })
		_, line, _ := cutLast(log.String(), "msg=extract ")
		for _, who := range []string{"rules", "model"} {
			if strings.Contains(line, "by="+who) {
				return who
			}
		}
		return line
	}
	step := func(settings, want string) {
		t.Helper()
		w.write(t, w.config, settings)
		if got := by(); got != want {
			t.Errorf("with %.30q: by %s, want %s\n%s", settings, got, want, log.String())
		}
	}
	step("log-level: info\n", "rules")
	step(string(withModel), "model")
	step(string(withModel), "model")
	step("model:\n  provider: nobody\n", "rules") // who was taken out is not asked for a slip
	if _, err := e.live.read(); err == nil || !strings.Contains(log.String(), "cannot be used") {
		t.Errorf("bad settings: %v\n%s", err, log.String())
	}
	step(string(withModel), "model")
	step("{}\n", "rules")
	if strings.Contains(log.String(), modelKey) {
		t.Error("the log holds the key")
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
