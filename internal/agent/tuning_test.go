package agent

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

// TestTuning: the defaults of the flags are those of the packages, and flag, variable and
// settings file set them.
func TestTuning(t *testing.T) {
	parse := func(args ...string) (*grammar, error) {
		var g grammar
		opts := options(t.Output(), t.Output(), t.TempDir())
		_, err := config.Parse(&g, opts, append([]string{"run"}, args...))
		return &g, err
	}
	g, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	how, err := g.Run.tuning()
	if err != nil {
		t.Fatal(err)
	}
	want := everything()
	want.dreamDue = dream.Due{}.WithDefaults()
	want.notesDue = notes.Due{FirstAt: notes.FirstAt, Every: notes.Every, CallsSince: notes.CallsSince}
	if how.engine != want {
		t.Errorf("the engine does %+v, want %+v", how.engine, want)
	}
	if d := (watcher.Options{Quiet: 300 * time.Millisecond, Ceiling: 2 * time.Second, FullScan: 5 * time.Minute}); how.watcher != d {
		t.Errorf("directories are watched as %+v, want %+v", how.watcher, d)
	}
	t.Setenv("MEMSYNC_NOTES_FIRST", "7")
	g, err = parse("--no-extract", "--dream-every", "1h", "--drain", "0s", "--debounce", "1s")
	if err != nil {
		t.Fatal(err)
	}
	how, err = g.Run.tuning()
	if err != nil {
		t.Fatal(err)
	}
	want.extract, want.drain, want.dreamDue.Pause, want.notesDue.FirstAt = false, 0, time.Hour, 7
	if how.engine != want || how.watcher.Quiet != time.Second {
		t.Errorf("the engine does %+v, want %+v; quiet %v", how.engine, want, how.watcher.Quiet)
	}
}

// TestTuningThatCannotBe is refused before anything is made.
func TestTuningThatCannotBe(t *testing.T) {
	base := t.TempDir()
	for _, flag := range []string{"debounce", "debounce-max", "full-scan", "trash-age", "dream-every", "dream-look-every"} {
		state := filepath.Join(base, flag)
		if _, stderr, code := invoke(t, "run", "--"+flag, "0s", "--state-dir", state); code != ExitUsage || !strings.Contains(stderr, "--"+flag) || exists(state) {
			t.Errorf("--%s 0s: exit %d, %s", flag, code, stderr)
		}
	}
	for _, flag := range []string{"notes-first", "notes-every", "notes-calls", "dream-sessions"} {
		if _, stderr, code := invoke(t, "run", "--"+flag+"=-1", "--state-dir", base); code != ExitUsage || !strings.Contains(stderr, "--"+flag) {
			t.Errorf("--%s -1: exit %d, %s", flag, code, stderr)
		}
	}
	if _, stderr, code := invoke(t, "run", "--drain=-1s", "--state-dir", base); code != ExitUsage || !strings.Contains(stderr, "--drain") {
		t.Errorf("--drain -1s: exit %d, %s", code, stderr)
	}
	if _, stderr, code := invoke(t, "run", "--debounce", "3s", "--state-dir", base); code != ExitUsage || !strings.Contains(stderr, "--debounce-max") {
		t.Errorf("--debounce 3s: exit %d, %s", code, stderr)
	}
}
