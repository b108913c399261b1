package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestHubAway stops the hub, works on both sides, and starts it again: edits wait as
// files and go up on return, and status says what is wrong meanwhile.
func TestHubAway(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	forty(a, b)
	h.Stop()
	// Also a machine where nothing is edited knows that it may miss something.
	away := func(s agent.LinkStatus) bool {
		return s.Phase == agent.PhaseOffline && !s.InStep && s.LastError != nil && strings.Contains(s.LastError.Message, "cannot be reached")
	}
	b.eventually("says that the hub is away", away)
	a.write("project_00.md", note("0", "offline at A"))
	b.write("project_01.md", note("1", "offline at B"))
	a.remove("project_02.md")
	b.write("deep/er/project_new.md", note("new", "offline at B"))
	a.eventually("says that the hub is away", away)
	hubtest.Eventually(t, patience, "the hub's status says so", func() bool {
		hub := a.d.Status().Hubs[0]
		return !hub.Connected && hub.Error != ""
	})
	h.StartAgain()
	b.has("project_00.md", note("0", "offline at A"))
	a.has("project_01.md", note("1", "offline at B"))
	a.has("deep/er/project_new.md", note("new", "offline at B"))
	b.lacks("project_02.md")
	inStep(t, a, b)
	same(t, a, b)
}

// TestHubKilledUnderLoad cuts the hub off again and again while both sides write.
func TestHubKilledUnderLoad(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	file := h.TokenFile("acme", "pay", "writer")
	a, b := newMachine(t, "A", h.GRPCAddr, file), newMachine(t, "B", h.GRPCAddr, file)
	a.start()
	b.start()
	inStep(t, a, b)
	for round := range 6 {
		for i := range 8 {
			a.write(fmt.Sprintf("project_a%d.md", i), note("a", fmt.Sprintf("%d.%d", round, i)))
			b.write(fmt.Sprintf("project_b%d.md", i), note("b", fmt.Sprintf("%d.%d", round, i)))
		}
		hubtest.Eventually(t, patience, "some commit is under way", func() bool {
			return a.status().Pending > 0 || b.read("project_a0.md") == note("a", fmt.Sprintf("%d.0", round))
		})
		h.Kill()
		h.StartAgain()
	}
	for i := range 8 {
		b.has(fmt.Sprintf("project_a%d.md", i), note("a", fmt.Sprintf("5.%d", i)))
		a.has(fmt.Sprintf("project_b%d.md", i), note("b", fmt.Sprintf("5.%d", i)))
	}
	inStep(t, a, b)
	same(t, a, b)
	hist := historyOf(t, h)
	hist.noDeletes()
	if d := cmp.Diff(a.files(), hist.files()); d != "" {
		t.Errorf("machine and hub differ:\n%s", d)
	}
}

// tunnel forwards to a hub until it is told to go silent, without closing anything.
type tunnel struct {
	ln     net.Listener
	target string
	mu     sync.Mutex // guards what follows
	silent bool
	conns  []net.Conn
}

func newTunnel(t *testing.T, target string) *tunnel {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	tn := &tunnel{ln: ln, target: target}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			tn.mu.Lock()
			tn.conns = append(tn.conns, in, out)
			tn.mu.Unlock()
			wg.Go(func() { tn.pump(out, in) })
			wg.Go(func() { tn.pump(in, out) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		tn.mu.Lock()
		for _, c := range tn.conns {
			c.Close()
		}
		tn.mu.Unlock()
		wg.Wait()
	})
	return tn
}

func (tn *tunnel) pump(dst io.Writer, src io.Reader) {
	buf := make([]byte, 16<<10)
	dead := false
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		tn.mu.Lock()
		dead = dead || tn.silent // once silent, a connection never speaks again
		tn.mu.Unlock()
		if !dead {
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
	}
}

func (tn *tunnel) hush(on bool) {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	tn.silent = on
}

// TestHalfOpenConnection makes the line swallow everything without closing (G2): the
// agent finds out by itself and goes on over a new one. The real bound is 30 s; here
// it is scaled.
func TestHalfOpenConnection(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Deps: func(d *hub.Deps) { d.Bookmarks = 50 * time.Millisecond }})
	file := h.TokenFile("acme", "pay", "writer")
	tn := newTunnel(t, h.GRPCAddr)
	a := newMachine(t, "A", tn.ln.Addr().String(), file, func(o *agent.DaemonOptions) {
		o.Client.Silence, o.Client.CallTimeout = 400*time.Millisecond, 400*time.Millisecond
	})
	b := newMachine(t, "B", h.GRPCAddr, file)
	a.start()
	b.start()
	a.write("project_x.md", note("x", "before"))
	b.has("project_x.md", note("x", "before"))
	inStep(t, a, b)
	tn.hush(true)
	b.write("project_x.md", note("x", "while A's line is dead"))
	hubtest.Eventually(t, patience, "A notices", func() bool { return !a.d.Status().Hubs[0].Connected })
	tn.hush(false)
	a.has("project_x.md", note("x", "while A's line is dead"))
	a.write("project_y.md", note("y", "and back"))
	b.has("project_y.md", note("y", "and back"))
}

// TestHubRestoredFromYesterday restores the hub from a backup that lacks the newest
// work (D6): nobody deletes anything, and what the backup did not know is offered again.
func TestHubRestoredFromYesterday(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	file := h.TokenFile("acme", "pay", "writer")
	a, b := newMachine(t, "A", h.GRPCAddr, file), newMachine(t, "B", h.GRPCAddr, file)
	a.start()
	b.start()
	forty(a, b)
	admin := filepath.Join(t.TempDir(), "admin")
	must(t, os.WriteFile(admin, []byte(h.AdminToken+"\n"), 0o600))
	backup := filepath.Join(t.TempDir(), "backup")
	command(t, "memsvc", "backup", "--hub", h.GRPCAddr, "--token-file", admin, backup)

	a.write("project_00.md", note("0", "newer than the backup"))
	b.write("project_late.md", note("late", "newer than the backup"))
	a.remove("project_01.md")
	inStep(t, a, b)
	h.Stop()
	b.write("project_02.md", note("2", "edited while the hub was away"))
	command(t, "memsvc", "restore-backup", "--data-dir", h.DataDir, "--replace", backup)
	h.StartAgain()

	b.has("project_00.md", note("0", "newer than the backup"))
	a.has("project_late.md", note("late", "newer than the backup"))
	a.has("project_02.md", note("2", "edited while the hub was away"))
	inStep(t, a, b)
	same(t, a, b)
	hist := historyOf(t, h)
	hist.noDeletes()
	if d := cmp.Diff(a.files(), hist.files()); d != "" {
		t.Errorf("machine and hub differ:\n%s", d)
	}
	line := regexp.MustCompile(`level=WARN msg="the hub's history was replaced; everything was compared, nothing deleted".* old_revision=\d+ old_epoch=\S+ new_revision=\d+ new_epoch=\S+ shared_revision=\d+ offered_again=\d+ deletes_undone=1 offered=.* undone=project_01.md\n`)
	for _, m := range []*machine{a, b} {
		if n := len(line.FindAllString(m.log.String(), -1)); n != 1 {
			t.Errorf("%s tells it in %d lines, want 1:\n%s", m.name, n, m.log.String())
		}
	}
}

// TestHubRestoredFromBeforeTheProject puts the hub back to before the project was made. The
// agents stop, say so, delete nothing and do not make it by themselves; a person does, and
// then everything is offered again, the edits made meanwhile too.
func TestHubRestoredFromBeforeTheProject(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	file := h.TokenFile("acme", "", "writer")
	admin := filepath.Join(t.TempDir(), "admin")
	must(t, os.WriteFile(admin, []byte(h.AdminToken+"\n"), 0o600))
	backup := filepath.Join(t.TempDir(), "backup")
	command(t, "memsvc", "backup", "--hub", h.GRPCAddr, "--token-file", admin, backup)
	a, b := newMachine(t, "A", h.GRPCAddr, file), newMachine(t, "B", h.GRPCAddr, file)
	cmd := a.background(t)
	b.start()
	a.write("project_a.md", note("a", "made at A"))
	b.has("project_a.md", note("a", "made at A"))
	b.write("project_b.md", note("b", "made at B"))
	a.has("project_b.md", note("b", "made at B"))
	b.settle()
	h.Stop()
	command(t, "memsvc", "restore-backup", "--data-dir", h.DataDir, "--replace", backup)
	h.StartAgain()
	b.write("project_b.md", note("b", "edited at B since"))
	s := b.eventually("stops", func(s agent.LinkStatus) bool { return s.Phase == agent.PhaseStopped })
	if !strings.Contains(s.LastError.Message, "restored from before it was made") || !strings.Contains(s.Todo, "resume --create") || !strings.Contains(s.Todo, "nothing is deleted") {
		t.Errorf("error %q, to do %q", s.LastError.Message, s.Todo)
	}
	if n := len(b.files()); n != 2 {
		t.Errorf("%d files are left", n)
	}
	hubtest.Eventually(t, patience, "the other agent stops, too", func() bool { return strings.Contains(a.log.String(), "restored from before") })
	if out := command(t, "memsync-agent", "resume", "--create", "--state-dir", a.state); !strings.Contains(out, "the project is on the hub") {
		t.Errorf("resume says %q", out)
	}
	hist := historyOf(t, h)
	hubtest.Eventually(t, patience, "A offers its files again, at once", func() bool { return len(hist.files()) == 2 })
	must(t, b.d.Apply([]agent.Link{b.link})) // as 'resume --create' or a reload there does
	a.has("project_b.md", note("b", "edited at B since"))
	inStep(t, b)
	hist.noDeletes()
	if d := cmp.Diff(b.files(), hist.files()); d != "" {
		t.Errorf("machine and hub differ:\n%s", d)
	}
	if c := b.status().Conflicts; len(c) != 0 {
		t.Errorf("conflicts %+v", c)
	}
	must(t, cmd.Process.Kill())
}

// TestRevokedToken revokes a machine's token and gives it a new one (C16): it stops
// trying, says so, and goes on by itself when the file changes.
func TestRevokedToken(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{Deps: func(d *hub.Deps) { d.AuthRecheck = 50 * time.Millisecond }})
	good := h.TokenFile("acme", "pay", "writer")
	text, id := h.TokenWithID("acme", "pay", "writer")
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	a, b := newMachine(t, "A", h.GRPCAddr, file), newMachine(t, "B", h.GRPCAddr, good)
	a.start()
	b.start()
	a.write("project_x.md", note("x", "before"))
	b.has("project_x.md", note("x", "before"))
	must(t, h.Service().RevokeToken(t.Context(), hubtest.Admin(), id))
	hubtest.Eventually(t, patience, "the stream ends", func() bool { return !a.d.Status().Hubs[0].Connected })
	// Nothing was edited, and it is plain all the same.
	a.eventually("says so without an edit", func(s agent.LinkStatus) bool {
		return s.Phase == agent.PhaseStopped && s.LastError != nil && s.LastError.Reason == string(memory.ReasonUnauthenticated) && s.Todo != ""
	})
	a.write("project_y.md", note("y", "with a dead token"))
	s := a.eventually("stops", func(s agent.LinkStatus) bool { return s.Phase == agent.PhaseStopped })
	if s.LastError.Reason != string(memory.ReasonUnauthenticated) || s.Todo == "" {
		t.Errorf("status %+v, todo %q", s.LastError, s.Todo)
	}
	must(t, os.WriteFile(file, []byte(h.Token("acme", "pay", "writer")+"\n"), 0o600))
	b.has("project_y.md", note("y", "with a dead token"))
	b.write("project_x.md", note("x", "after"))
	a.has("project_x.md", note("x", "after"))
}

// TestReaderPullsAndSaysWhyItDoesNotPush gives a machine a reader's token.
func TestReaderPullsAndSaysWhyItDoesNotPush(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := newMachine(t, "A", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
	b := newMachine(t, "B", h.GRPCAddr, h.TokenFile("acme", "pay", "reader"))
	a.start()
	b.start()
	a.write("project_x.md", note("x", "from a writer"))
	b.has("project_x.md", note("x", "from a writer"))
	b.write("project_y.md", note("y", "from a reader"))
	b.eventually("says that it may not write", func(s agent.LinkStatus) bool {
		return s.LastError != nil && s.LastError.Reason == string(memory.ReasonPermissionDenied)
	})
	a.write("project_x.md", note("x", "still pulled"))
	b.has("project_x.md", note("x", "still pulled"))
}
