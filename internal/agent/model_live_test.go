package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	e.live = &liveModel{file: w.config, counter: e.state.modelCounter(time.Now), secrets: strictSecrets(), log: e.log}
	talks := 0
	by := func() string {
		t.Helper()
		talks++
		talk := filepath.Join(w.state, "talks", strings.Repeat("t", talks)+".jsonl")
		w.write(t, talk, `{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"Where is the wiki?"}}`+"\n")
		if err := e.take(extractParams{Personal: w.dir, Transcript: talk}); err != nil {
			t.Fatal(err)
		}
		hubtest.Eventually(t, patience, "the work", func() bool { return strings.Count(log.String(), "msg=extract ") == talks })
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

// TestEngineDreams: after a turn the engine tidies if the gates let it, counts that, and
// tells status; not when it is told not to, nor again at once.
func TestEngineDreams(t *testing.T) {
	w := newModelWorld(t, "")
	w.reply = says("nothing")
	w.write(t, filepath.Join(w.dir, "project_freeze_2.md"), "---\nname: Freeze 2\ndescription: when merges are frozen\ntype: project\n---\n\nMerges are frozen again from yesterday on, until the audit ends.\n")
	for i := range 7 {
		w.write(t, filepath.Join(w.state, "talks", strings.Repeat("t", i+1)+".jsonl"), `{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"Where is the wiki?"}}`+"\n")
	}
	var log hubtest.Buffer
	reg := prometheus.NewRegistry()
	e := newEngine(stateDir(w.state), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), time.Now)
	e.live, e.m = &liveModel{file: w.config, counter: e.state.modelCounter(time.Now), secrets: strictSecrets(), log: e.log}, newMetrics(reg)
	e.dream = false
	defer e.close()
	turn := func() {
		t.Helper()
		if err := e.take(extractParams{Personal: w.dir, Transcript: filepath.Join(w.state, "talks", "t.jsonl")}); err != nil {
			t.Fatal(err)
		}
		e.wg.Wait()
	}
	turn()
	if got := e.state.dreams(); got != nil {
		t.Fatalf("dreamt although it is off: %+v", got)
	}
	e.dream = true
	w.reply = callsTools("read", `{"path":"memory/project_freeze.md"}`)
	turn()
	turn()
	got := e.state.dreams()
	if len(got) != 1 || got[0].Memory != w.dir || got[0].Changes == 0 || got[0].Error != "" {
		t.Fatalf("status tells %+v\n%s", got, log.String())
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "project_freeze_2.md")); err != nil || strings.Contains(string(text), "yesterday") {
		t.Errorf("the memory is %s, %v", text, err)
	}
	if n := strings.Count(log.String(), "msg=dream id="); n != 1 || !strings.Contains(log.String(), "skipped=too-soon") {
		t.Errorf("%d dreams in two turns\n%s", n, log.String())
	}
	if n := value(t, reg, "memsync_dreams_total", dreamDone); n != 1 {
		t.Errorf("%v dreams are counted", n)
	}
	if n := value(t, reg, "memsync_dream_files_total", "edit"); n == 0 {
		t.Error("no file is counted")
	}
	lines, _ := auditLines(t, e.state.path(auditFile))
	if last := lines[len(lines)-1]; last.Work != workDream || last.Tool != "read" || last.Target != "memory/project_freeze.md" || last.Memory != w.dir {
		t.Errorf("recorded %+v", last)
	}
}

// value returns a counter by its one label.
func value(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}
