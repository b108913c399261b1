package e2e

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// agrees waits until both desks and the hub hold the same files, so many of them, and
// returns the hub's revision then.
func agrees(t *testing.T, hist history, files int, ds ...*desk) memory.Revision {
	t.Helper()
	hubtest.Eventually(t, patience, fmt.Sprintf("%d files everywhere", files), func() bool {
		hub := hist.files()
		for _, d := range ds {
			if !cmp.Equal(hub, d.files()) {
				return false
			}
		}
		return len(hub) == files
	})
	return hist.head()
}

// statusOf asks the daemon of a desk.
func (d *desk) statusOf() (s struct {
	Links []struct {
		Phase       string
		UploadsWait *struct {
			Why   string
			Stuck bool
		} `json:"uploads_wait"`
	}
	Dreams []struct {
		Error            string
		Changes, Deleted int
	}
},
) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.run("", "status", "--json")), &s); err != nil {
		d.t.Fatal(err)
	}
	return s
}

// untidy gives a desk three team memories that say the same, and an index with a line that
// leads nowhere and without one that should be there.
func (d *desk) untidy() {
	const body = "Integration tests of the ledger run against a real database, never against a fake."
	for _, name := range []string{"testing", "testing-2", "testing-copy"} {
		d.write("project_"+name+".md", note(name, body))
	}
	d.write("MEMORY.md", "- [testing](project_testing.md) — about testing\n- [gone](project_gone.md) — leads nowhere\n")
}

// tidied waits until a desk holds one of the three, named by the index, and nothing else.
func (d *desk) tidied() {
	d.t.Helper()
	hubtest.Eventually(d.t, patience, d.name+" has the tidy state", func() bool {
		files := d.files()
		for name := range files {
			if name != "MEMORY.md" && !strings.Contains(files["MEMORY.md"], "("+name+")") {
				return false
			}
		}
		return len(files) == 2 && !strings.Contains(files["MEMORY.md"], "gone")
	})
}

// TestDreamGoesUpAsOneCommit: a command of another process dreams beside the daemon. The
// hub gets all of it at once, and so does the other machine.
func TestDreamGoesUpAsOneCommit(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	hist := historyOf(t, h)
	a.untidy()
	before := agrees(t, hist, 4, a, b)
	if got := a.run("", "dream", "--force", "--dry-run"); !strings.Contains(got, "would delete team/project_testing") || !strings.Contains(got, "-- [gone]") {
		t.Errorf("the preview is %s", got)
	}
	if n := len(a.files()); n != 4 {
		t.Fatalf("the preview left %d files", n)
	}
	if got := a.run("", "dream", "--force"); strings.Count(got, "deleted team/project_testing") != 2 {
		t.Errorf("the dream says %s", got)
	}
	a.tidied()
	b.tidied()
	if n := hist.head() - before; n != 1 {
		t.Errorf("%d commits of a dream, want 1: %+v", n, hist.commits("")[:n])
	}
	if got := hist.commits("")[0].Changes; len(got) < 3 {
		t.Errorf("the commit holds %d changes, want both deletes and the index", len(got))
	}
	if got := a.run("", "status"); !strings.Contains(got, "by rules: ") || !strings.Contains(got, "2 deleted") {
		t.Errorf("status does not tell of the dream:\n%s", got)
	}
	// Taking it back is a change set like any other.
	a.run("", "dream", "--undo")
	agrees(t, hist, 4, a, b)
	if n := hist.head() - before; n != 2 {
		t.Errorf("%d commits of a dream and its undoing, want 2", n)
	}
}

// TestUploadsWaitForADream holds a dream up: what others send arrives, what is saved here
// waits and status says why, and then everything goes up at once.
func TestUploadsWaitForADream(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	hist := historyOf(t, h)
	a.untidy()
	a.write("project_own.md", note("own", "one"))
	before := agrees(t, hist, 5, a, b)
	wake := a.dreamsOn()

	a.write("project_own.md", note("own", "two"))
	b.write("project_theirs.md", note("theirs", "of B"))
	hubtest.Eventually(t, patience, "what B sent is here", func() bool { return strings.Contains(a.read("project_theirs.md"), "of B") })
	hubtest.Eventually(t, patience, "status says that uploads wait", func() bool {
		w := a.statusOf().Links[0].UploadsWait
		return w != nil && strings.Contains(w.Why, "a dream (process ")
	})
	if n := hist.head() - before; n != 1 {
		t.Errorf("%d commits while the dream runs, want B's alone", n)
	}
	wake()
	hubtest.Eventually(t, patience, "the edit is there", func() bool { return strings.Contains(b.read("project_own.md"), "two") })
	agrees(t, hist, 4, a, b)
	if n := hist.head() - before; n != 2 {
		t.Errorf("%d commits, want B's and one with the dream and the edit", n)
	}
	hubtest.Eventually(t, patience, "uploads wait no more", func() bool { return a.statusOf().Links[0].UploadsWait == nil })
}

// dreamsOn begins a dream of another process that lasts, since its model does not answer,
// until wake is called, which waits for its end.
func (d *desk) dreamsOn() (wake func()) {
	d.t.Helper()
	dir := d.t.TempDir()
	asked, answer, script, settings := filepath.Join(dir, "asked"), filepath.Join(dir, "answer"), filepath.Join(dir, "model"), filepath.Join(dir, "c.yaml")
	must(d.t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\ncat >/dev/null\n: >%s\nwhile [ ! -e %s ]; do sleep 0.02; done\necho '[]'\n", asked, answer), 0o700))
	must(d.t, os.WriteFile(settings, fmt.Appendf(nil, "model:\n  provider: command\n  command: [%s]\n", script), 0o600))
	done := make(chan struct{})
	go func() {
		defer close(done) // also where it fails the test
		d.run("", "dream", "--force", "--config", settings)
	}()
	hubtest.Eventually(d.t, patience, "the dream asks its model", func() bool { _, err := os.Stat(asked); return err == nil })
	return func() {
		d.t.Helper()
		must(d.t, os.WriteFile(answer, nil, 0o600))
		<-done
	}
}

// TestSyncWaitsForADream: the command that syncs once waits for a dream as the daemon does,
// and ends in step.
func TestSyncWaitsForADream(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := desks(t, h, 1)[0]
	hist := historyOf(t, h)
	a.untidy()
	before := agrees(t, hist, 4, a)
	must(t, a.agent.Process.Signal(syscall.SIGTERM))
	_ = a.agent.Wait()
	wake := a.dreamsOn()
	a.write("project_own.md", note("own", "one"))
	ended := make(chan error, 1)
	sync := programCommand("memsync-agent", "sync", "--state-dir", a.state, "--hub", a.link.Hub, "--token-file", a.link.TokenFile,
		"--team", a.link.Team, "--project", a.link.Project, "--dir", a.dir)
	sync.Stdout, sync.Stderr = a.log, a.log
	must(t, sync.Start())
	go func() { ended <- sync.Wait() }()
	select {
	case err := <-ended:
		t.Errorf("sync ended while the dream runs: %v", err)
	case <-time.After(1500 * time.Millisecond): // longer than it takes without a dream
	}
	if n := hist.head() - before; n != 0 {
		t.Errorf("%d commits while the dream runs", n)
	}
	wake()
	if err := <-ended; err != nil {
		t.Errorf("sync: %v\n%s", err, tail(a.log))
	}
	if n := hist.head() - before; n != 1 {
		t.Errorf("%d commits, want one with the dream and the file", n)
	}
	agrees(t, hist, 3, a)
}

// finishedTurn says that a conversation had a turn, which many others had before, until
// something has come of it. A hook has half a second for that: what it did not manage, on a
// busy machine, another one does.
func (d *desk) finishedTurn(done func() bool) {
	d.t.Helper()
	dir := filepath.Join(d.home, "talks")
	for i := range 7 {
		talk := filepath.Join(dir, fmt.Sprintf("s%d.jsonl", i))
		must(d.t, os.MkdirAll(dir, 0o700))
		must(d.t, os.WriteFile(talk, []byte(`{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-03-10T10:00:00Z","message":{"content":"Where is the wiki?"}}`+"\n"), 0o600))
	}
	var last time.Time
	hubtest.Eventually(d.t, patience, "something comes of a finished turn", func() bool {
		if time.Since(last) > 10*time.Second {
			d.hook("Stop", map[string]any{"session_id": "s0", "transcript_path": filepath.Join(dir, "s0.jsonl")})
			last = time.Now()
		}
		return done()
	})
}

// TestDaemonDreams: after a turn, when enough other conversations were had, the daemon
// tidies by itself.
func TestDaemonDreams(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	hist := historyOf(t, h)
	a.untidy()
	before := agrees(t, hist, 4, a, b)
	a.finishedTurn(func() bool { return len(a.files()) < 4 })
	a.tidied()
	b.tidied()
	if n := hist.head() - before; n != 1 {
		t.Errorf("%d commits of a dream, want 1", n)
	}
	hubtest.Eventually(t, patience, "status tells of the dream", func() bool {
		s := a.statusOf().Dreams
		return len(s) == 1 && s[0].Deleted == 2 && s[0].Error == ""
	})
}

// held is the lock that everybody takes for each write into a desk's team directory.
type held struct {
	t      *testing.T
	name   string
	f      *os.File
	moment time.Duration // for which it was let go last
}

func (d *desk) holdTeam() *held {
	d.t.Helper()
	l := &held{t: d.t, name: filepath.Join(d.dir, ".memdir.lock")}
	l.take()
	return l
}

func (l *held) take() {
	l.t.Helper()
	f, err := os.OpenFile(l.name, os.O_RDWR|os.O_CREATE, 0o600)
	must(l.t, err)
	for err = filelock.TryLock(f); errors.Is(err, filelock.ErrHeld); err = filelock.TryLock(f) {
		runtime.Gosched() // whoever waits longer misses the moments between two writes
	}
	must(l.t, err)
	l.f = f
}

// slip lets somebody through, for a moment that grows until whoever waits, and looks again
// every now and then, has met one.
func (l *held) slip() {
	l.t.Helper()
	l.moment = min(max(2*l.moment, time.Millisecond), 30*time.Millisecond)
	l.letGo()
	time.Sleep(l.moment)
	l.take()
}

func (l *held) letGo() {
	l.t.Helper()
	must(l.t, filelock.Release(l.f))
}

// TestKilledDream kills whoever dreams in the middle of a change set: a command beside a
// daemon, one with another state directory, or the daemon itself. Nothing of the half is
// sent; who comes next ends it, if it can, and it goes up as one commit.
func TestKilledDream(t *testing.T) {
	for _, who := range []string{"command", "command of another state", "daemon"} {
		t.Run(who, func(t *testing.T) {
			const many = 300
			h := hubtest.Start(t, hubtest.Options{})
			file := h.TokenFile(string(project.Team), string(project.Project), "writer")
			ds := desks(t, h, 1)
			a, b := ds[0], newMachine(t, "B", h.GRPCAddr, file)
			b.start()
			hist := historyOf(t, h)
			for i := range many {
				a.write(fmt.Sprintf("project_%03d.md", i), note(fmt.Sprint("fact ", i), fmt.Sprintf("Shard %d was moved to the other rack yesterday.", i)))
			}
			before := agrees(t, hist, many, a)
			team := a.holdTeam()
			changed := func() (n int) {
				for name, text := range a.files() {
					if name != "MEMORY.md" && !strings.Contains(text, "yesterday") {
						n++
					}
				}
				return n
			}
			// However long the test is held up, the dream comes no further meanwhile.
			halfway := func() bool {
				if changed() > 0 {
					return true
				}
				team.slip()
				return false
			}
			var dreaming *exec.Cmd
			state := a.state
			if who == "command of another state" {
				state = filepath.Join(t.TempDir(), "other")
			}
			if who != "daemon" {
				dreaming = programCommand("memsync-agent", "dream", "--force", "--state-dir", state)
				dreaming.Dir = a.repo
				dreaming.Env = append(dreaming.Env, "HOME="+a.home, "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE="+a.memory)
				dreaming.Stdout, dreaming.Stderr = a.log, a.log
				must(t, dreaming.Start())
			} else {
				dreaming = a.agent
				a.finishedTurn(halfway)
			}
			hubtest.Eventually(t, patience, "the change set is being applied", halfway)
			must(t, dreaming.Process.Signal(syscall.SIGKILL))
			_ = dreaming.Wait()
			team.letGo()
			if journals, err := filepath.Glob(filepath.Join(state, "dream", "*", "journal.json")); err != nil || len(journals) != 1 {
				t.Fatalf("%d of %d files are changed, and %d journals are left: it was not killed in the middle; %v", changed(), many, len(journals), err)
			}
			switch who {
			case "daemon":
				a.daemon()
			case "command of another state":
				hubtest.Eventually(t, patience, "status says who can end it", func() bool {
					l := a.statusOf().Links[0]
					return l.UploadsWait != nil && l.UploadsWait.Stuck && strings.Contains(l.UploadsWait.Why, "--state-dir "+realPath(t, state))
				})
				// Without a daemon it is told at once, and waits for a person as well.
				must(t, a.agent.Process.Signal(syscall.SIGTERM))
				_ = a.agent.Wait()
				sync := programCommand("memsync-agent", "sync", "--state-dir", a.state, "--hub", a.link.Hub, "--token-file", a.link.TokenFile,
					"--team", a.link.Team, "--project", a.link.Project, "--dir", a.dir)
				if out, _ := sync.CombinedOutput(); sync.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "uploads wait") {
					t.Errorf("sync exits with %d: %s", sync.ProcessState.ExitCode(), out)
				}
				if n := hist.head() - before; n > 0 {
					t.Errorf("%d commits of a dream that was cut off", n)
				}
				own := a.state
				a.state = state
				a.run("", "dream")
				a.state = own
				a.daemon()
			}
			hubtest.Eventually(t, patience, "all of it on the other machine", func() bool {
				files := b.files()
				for name, text := range files {
					if name != "MEMORY.md" && strings.Contains(text, "yesterday") {
						return false
					}
				}
				return len(files) >= many
			})
			if n := hist.head() - before; n != 1 {
				t.Errorf("%d commits of a dream that was killed, want 1", n)
			}
			if _, text, _ := strings.Cut(b.read("project_000.md"), "rack "); !strings.Contains(text, time.Now().AddDate(0, 0, -1).Format("2006-01-02")) && !strings.Contains(text, time.Now().AddDate(0, 0, -2).Format("2006-01-02")) {
				t.Errorf("the date is %q", text)
			}
		})
	}
}

// TestRedactionLeavesTheDreams: what is redacted on the hub is in no record of a dream any
// more, so that taking the dream back does not bring it back.
func TestRedactionLeavesTheDreams(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := desks(t, h, 1)[0]
	hist := historyOf(t, h)
	const name = "Wilhelmina Oddball"
	a.write("project_rack.md", note("rack", name+" moved the shard to the other rack yesterday."))
	agrees(t, hist, 1, a)
	a.run("", "dream", "--force")
	hubtest.Eventually(t, patience, "the tidied text on the hub", func() bool {
		text := hist.files()["project_rack.md"]
		return strings.Contains(text, name) && !strings.Contains(text, "yesterday")
	})
	holds := func() (found []string) {
		must(t, filepath.WalkDir(a.state, func(file string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				if text, err := os.ReadFile(file); err == nil && (strings.Contains(string(text), name) || strings.Contains(string(text), base64Of(name))) {
					found = append(found, file)
				}
			}
			return nil
		}))
		return found
	}
	if found := holds(); !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, "/dream/") }) {
		t.Fatalf("the text is not in the records to begin with: %v", found)
	}
	_, err := hist.c.Redact(t.Context(), project, "project_rack.md", nil, "a name")
	must(t, err)
	hubtest.Eventually(t, patience, "the text is gone from the state", func() bool { return len(holds()) == 0 })
	a.run("", "dream", "--undo")
	if strings.Contains(a.read("project_rack.md"), name) {
		t.Error("taking the dream back brought the text back")
	}
}

// base64Of is how JSON holds the bytes of a text, if it begins at a multiple of three.
func base64Of(s string) string {
	return base64.StdEncoding.EncodeToString([]byte(s))[:16]
}

// TestTwoMachinesDreamApart: two machines that tidy the same team memories while neither
// hears of the other choose alike, whatever times their disks keep, so that what one lets
// go in favour of another is not let go by the other's choice.
func TestTwoMachinesDreamApart(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	hist := historyOf(t, h)
	const body = "Integration tests of the ledger run against a real database, never against a fake."
	names := []string{"project_testing.md", "project_testing_2.md"}
	for _, name := range names {
		a.write(name, note("testing", body))
	}
	agrees(t, hist, 2, a, b)
	// As after two authors whose clocks differ by more than lies between their saves.
	for i, d := range ds {
		for j, name := range names {
			at := time.Now().Add(-time.Hour).Add(time.Duration((i^j)*5) * time.Millisecond)
			must(t, os.Chtimes(d.path(name), at, at))
		}
	}
	h.Stop()
	for _, d := range ds {
		if got := d.run("", "dream", "--force"); strings.Count(got, "deleted team/") != 1 {
			t.Fatalf("the dream says %s", got)
		}
	}
	h.StartAgain()
	hubtest.Eventually(t, patience, "both machines and the hub agree on one of the two", func() bool {
		hub := hist.files()
		_, one := hub[names[0]]
		_, other := hub[names[1]]
		return one != other && cmp.Equal(hub, a.files()) && cmp.Equal(hub, b.files())
	})
}

func realPath(t *testing.T, name string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(name)
	must(t, err)
	return real
}
