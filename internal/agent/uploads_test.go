package agent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// gateWorld is a link whose uploads may have to wait.
type gateWorld struct {
	state    stateDir
	personal string
	link     Link
	gate     *uploadGate
}

func newGateWorld(t *testing.T) gateWorld {
	t.Helper()
	root := t.TempDir()
	w := gateWorld{state: stateDir(filepath.Join(root, "state")), personal: filepath.Join(root, "memory")}
	w.link = Link{Hub: "127.0.0.1:7420", Team: "acme", Project: "pay", Dir: filepath.Join(w.personal, "team")}
	for _, dir := range []string{w.link.Dir, string(w.state)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.gate = w.state.newUploadGate(w.link, time.Now)
	return w
}

// enters asks the gate, and fails the test unless it answers as wanted.
func (w gateWorld) enters(t *testing.T, want bool) string {
	t.Helper()
	leave, ok := w.gate.Enter(t.Context())
	if ok != want {
		t.Fatalf("entered %v, want %v: %+v", ok, want, w.gate.waiting())
	}
	if ok {
		leave()
		if wait := w.gate.waiting(); wait != nil {
			t.Fatalf("entered, and waits: %+v", wait)
		}
		return ""
	}
	wait := w.gate.waiting()
	if wait == nil {
		t.Fatal("did not enter, and does not say why")
	}
	return wait.Why
}

// leftover is what a process leaves that died while it held the uploads back.
func (w gateWorld) leftover(t *testing.T, who workspace.Holder) {
	t.Helper()
	hold, _, err := workspace.HoldUploads(t.Context(), w.link.Dir, who)
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(false); err != nil {
		t.Fatal(err)
	}
}

func TestUploadsWaitWhileSomebodyTidies(t *testing.T) {
	w := newGateWorld(t)
	w.enters(t, true)
	since := time.Now().Add(-3 * time.Minute).UTC().Truncate(time.Second)
	hold, err := w.state.holdUploads(t.Context(), w.personal, w.link.Dir, since)
	if err != nil {
		t.Fatal(err)
	}
	if why := w.enters(t, false); !strings.Contains(why, "a dream (process ") {
		t.Errorf("it waits because %q", why)
	}
	if got := w.gate.waiting().Since; !got.Equal(since) {
		t.Errorf("waits since %v, want %v", got, since)
	}
	if err := hold.Release(true); err != nil {
		t.Fatal(err)
	}
	w.enters(t, true)
}

// TestDeadDreamIsEndedBeforeUploads: whoever finds what a dream left looks whether there
// is a change set to end, and lets files go only then.
func TestDeadDreamIsEndedBeforeUploads(t *testing.T) {
	w := newGateWorld(t)
	w.leftover(t, workspace.Holder{PID: 1, StateDir: realDir(string(w.state)), Personal: w.personal})
	w.enters(t, true)
	w.enters(t, true)
}

// TestDreamOfAnotherStateIsNotGuessed: only the state directory that holds the journal can
// end it; the others wait, say what to do, and neither read nor write what the file names.
func TestDreamOfAnotherStateIsNotGuessed(t *testing.T) {
	w := newGateWorld(t)
	other := filepath.Join(t.TempDir(), "other")
	w.leftover(t, workspace.Holder{PID: 1, StateDir: other, Personal: w.personal})
	why := w.enters(t, false)
	for _, want := range []string{other, "memsync-agent dream", workspace.UploadsName} {
		if !strings.Contains(why, want) {
			t.Errorf("%q lacks %q", why, want)
		}
	}
	doc := &doctor{c: &command{state: w.state}}
	if doc.uploads(w.link); len(doc.found) != 1 || doc.found[0].Result != "failure" || !strings.Contains(doc.found[0].Detail, other) {
		t.Errorf("doctor says %+v", doc.found)
	}
	if _, err := w.state.holdUploads(t.Context(), w.personal, w.link.Dir, time.Now()); err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("another dream begins over it: %v", err)
	}
	w.enters(t, false)
	if err := os.Remove(filepath.Join(w.link.Dir, workspace.UploadsName)); err != nil {
		t.Fatal(err)
	}
	w.enters(t, true)

	// The file may come with a repository: a directory that it names gets nothing.
	victim := filepath.Join(t.TempDir(), "victim")
	w.leftover(t, workspace.Holder{PID: 1, StateDir: realDir(string(w.state)), Personal: victim})
	w.enters(t, true)
	if _, err := os.Lstat(victim); err == nil {
		t.Error("the directory that the file named was made")
	}
	w.leftover(t, workspace.Holder{PID: 1, StateDir: "/x\x1b[31m\n", Personal: "/y"})
	if why := w.enters(t, false); strings.ContainsAny(why, "\x1b\n") {
		t.Errorf("%q moves the cursor", why)
	}
}

// TestLongWaitIsToldOnce: the log mentions uploads that wait for long, and when they go on.
func TestLongWaitIsToldOnce(t *testing.T) {
	w := newGateWorld(t)
	var log hubtest.Buffer
	now := time.Now()
	w.gate.now = func() time.Time { return now }
	hold, err := w.state.holdUploads(t.Context(), w.personal, w.link.Dir, now)
	if err != nil {
		t.Fatal(err)
	}
	tell := func() string {
		w.gate.tell(slog.New(slog.NewTextHandler(&log, nil)))
		return log.String()
	}
	w.enters(t, false)
	if got := tell(); got != "" {
		t.Errorf("told at once: %s", got)
	}
	now = now.Add(longWait + time.Second)
	w.enters(t, false)
	tell()
	if got := tell(); strings.Count(got, "uploads wait") != 1 || !strings.Contains(got, "a dream (process ") {
		t.Errorf("after a minute: %s", got)
	}
	if err := hold.Release(true); err != nil {
		t.Fatal(err)
	}
	w.enters(t, true)
	tell()
	if got := tell(); strings.Count(got, "uploads go on") != 1 {
		t.Errorf("at the end: %s", got)
	}
}
