package agent

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sample is a status with everything that one can hold.
func sample() Status {
	violation := memory.Violation{Path: "reference_x.md", Line: 8, Rule: "github-pat", Message: "a token; remove it", Fingerprint: "ab12"}
	st := syncer.Status{
		Phase: syncer.PhaseHalted, Cursor: memory.Cursor{Epoch: "e1", Revision: 41, CommitID: "c"}, Files: 12, Pending: 1,
		Refused: []syncer.Held{
			{Path: "reference_x.md", By: syncer.HeldByGuard, Violations: []memory.Violation{violation}, Since: noon.Add(-time.Hour)},
			{Path: "project_y.md", By: syncer.HeldByDisk, RenamedFrom: "project_x.md", Since: noon.Add(-time.Hour)},
		},
		Conflicts: []syncer.Conflict{
			{ID: "1d0d4f1d8e17", Path: "project_z.md", Local: "l", Hub: "h", HubRevision: 40, Time: noon.Add(-2 * time.Minute), Reported: true, Kept: true},
			{ID: "2d0d4f1d8e17", Path: "project_w.md", Local: "l", HubRevision: 39, Time: noon.Add(-3 * 24 * time.Hour), Reported: true, Refusal: "github-pat"},
		},
		Warnings:   []memory.Violation{{Path: "MEMORY.md", Line: 3, Rule: "index-line", Message: "long"}},
		Unreadable: []memory.Path{"sub"},
		Halt:       &syncer.Halt{Reason: "7 of 12 files of the team directory are gone", Missing: []memory.Path{"a.md", "b.md"}, Of: 12, Time: noon.Add(-time.Minute)},
		Asking: []syncer.Note{
			{Time: noon.Add(-8 * 24 * time.Hour), Kind: syncer.NoteDeleteUndone, Path: "project_old.md"},
			{Time: noon.Add(-3 * time.Hour), Kind: syncer.NoteIndexLine, Path: "MEMORY.md", Text: "- [A](a.md) — ours"},
			{Time: noon.Add(-2 * time.Hour), Kind: syncer.NoteIndexLine, Path: "MEMORY.md", Text: "- [B](b.md) — ours"},
			{Time: noon.Add(-time.Hour), Kind: syncer.NotePermission, Path: "project_p.md"},
		},
		RootDetail: "detail", LastSync: noon.Add(-5 * time.Second),
	}
	l := linkStatus(Link{Hub: "127.0.0.1:7420", TokenFile: "/t", Team: "acme", Project: "pay", Dir: "/d/team"}, st, noon)
	l.HubRevision = 42
	l.Watching = WatchingEntry{How: "polling", Reason: "the file system sends no events"}
	l.LastError = &ErrorInfo{Message: "push: no", Reason: "PERMISSION_DENIED", Time: noon.Add(-30 * time.Second)}
	l.Todo = todo(l)
	l.UploadsWait = &UploadsWait{Since: noon.Add(-20 * time.Second), Why: "a dream (process 8) tidies the memories"}
	well := linkStatus(Link{Hub: "127.0.0.1:7420", Team: "acme", Project: "search", Dir: "/e/team"}, syncer.Status{
		Phase: syncer.PhaseInSync, Cursor: memory.Cursor{Epoch: "e1", Revision: 1, CommitID: "c"}, Files: 1, LastSync: noon,
	}, noon)
	well.HubRevision, well.InStep, well.Watching.How = 1, true, "events"
	asks := linkStatus(Link{Hub: "127.0.0.1:7420", Team: "acme", Project: "docs", Dir: "/f/team"}, syncer.Status{
		Phase: syncer.PhaseInSync, Cursor: memory.Cursor{Epoch: "e1", Revision: 3, CommitID: "c"}, Files: 2, LastSync: noon,
		Refused: []syncer.Held{{Path: "reference_x.md", By: syncer.HeldByGuard, Violations: []memory.Violation{violation}, Since: noon.Add(-time.Hour)}},
	}, noon)
	asks.HubRevision, asks.Watching = 3, WatchingEntry{How: "missing", Reason: "the directory is not there"}
	asks.Phase = asks.outward()
	asks.Todo = todo(asks)
	return Status{
		Version: "v1", Running: true, PID: 7, StateDir: "/s",
		Hubs: []HubStatus{
			{Addr: "127.0.0.1:7420", Connected: true, Since: noon.Add(-time.Minute), OffsetMS: -12},
			{Addr: "other:7420", Since: noon.Add(-time.Hour), Error: "cannot be reached"},
		},
		Links: []LinkStatus{l, well, asks},
		Dreams: []DreamStatus{
			{Memory: "/d", Time: noon.Add(-5 * time.Hour), By: "rules", Changes: 4, Deleted: 2},
			{Memory: "/e", Time: noon.Add(-time.Minute), Error: "no space left on device"},
		},
	}
}

// TestStatusShapes keeps what programs and people see of a status.
func TestStatusShapes(t *testing.T) {
	var text, doc bytes.Buffer
	s := sample()
	if err := s.print(&text, noon); err != nil {
		t.Fatal(err)
	}
	if err := printJSON(&doc, s); err != nil {
		t.Fatal(err)
	}
	golden(t, "status.txt.golden", text.String())
	golden(t, "status.json.golden", doc.String())
	doc.Reset()
	base := "base\n"
	for _, v := range []any{
		[]conflictListEntry{{Link: "acme/pay", Dir: "/d/team", ConflictEntry: s.Links[0].Conflicts[0]}},
		[]keptConflictEntry{{Link: "acme/pay", ID: "00ff", Path: "x.md", Principal: "token:laptop", Machine: "m", Since: noon}},
		conflictTexts{ConflictEntry: s.Links[0].Conflicts[0], Ours: "ours\n", Theirs: "theirs\n", Base: &base},
		conflictTexts{ConflictEntry: s.Links[0].Conflicts[1], Ours: "ours\n"},
		[]commitEntry{entryOf(memory.Commit{
			Revision: 5, ID: "c5", Time: noon, Message: "sync", Author: memory.Author{Principal: "token:laptop", Machine: "m", Client: "x/1", Session: "s"},
			Changes: []memory.AppliedChange{{Path: "b.md", Kind: memory.Put, ETag: "e", Size: 3, RenamedFrom: "a.md"}, {Path: "a.md", Kind: memory.Delete}},
		})},
		[]checkEntry{{File: "x.md", Path: "x.md", Refused: true, Findings: s.Links[0].Refusals[0].Findings, Warnings: []Finding{}}},
		[]checkup{{About: "agent", Check: "daemon", Result: "warning", Detail: "none is running"}},
		[]Link{s.Links[0].Link},
		[]localEntry{
			localEntryOf(s.Links[0].Link, syncer.Note{Time: noon, Kind: syncer.NoteIndexLine, Path: "MEMORY.md", Text: "- [A](a.md) — ours\n", Origin: "token:laptop"}, nil),
			localEntryOf(s.Links[0].Link, syncer.Note{Time: noon, Kind: syncer.NoteResolved, Path: "project_z.md", ETag: "e"}, map[string]syncer.Trashed{"4d0d4f1d8e17": {Path: "project_z.md", ETag: "e"}}),
		},
		[]trashListEntry{{Link: "acme/pay", Dir: "/d/team", trashEntry: trashEntryOf(syncer.Trashed{ID: "3d0d4f1d8e17", Path: "project_z.md", Reason: "deleted on the hub", Time: noon})}},
	} {
		if err := printJSON(&doc, v); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "others.json.golden", doc.String())
}

// TestInSyncIsInStep: the phase says in-sync exactly when nothing waits for anybody.
func TestInSyncIsInStep(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*LinkStatus)
		want   Phase
	}{
		{"in step", func(l *LinkStatus) { l.InStep = true }, PhaseInSync},
		{"refused", func(l *LinkStatus) { l.Refusals = []Refusal{{}} }, PhaseAttention},
		{"conflict", func(l *LinkStatus) { l.Conflicts = []ConflictEntry{{}} }, PhaseAttention},
		{"unreadable", func(l *LinkStatus) { l.Unreadable = []string{"x"} }, PhaseAttention},
		{"news on their way", func(*LinkStatus) {}, Phase(syncer.PhaseSyncing)},
		{"failing and refused", func(l *LinkStatus) { l.Phase, l.Refusals = PhaseFailing, []Refusal{{}} }, PhaseFailing},
	} {
		l := newLinkStatus(Link{})
		l.Phase = PhaseInSync
		tc.change(&l)
		if got := l.outward(); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	link := func(change func(*LinkStatus)) Status {
		l := newLinkStatus(Link{})
		change(&l)
		return Status{Running: true, Links: []LinkStatus{l}}
	}
	refused := func(l *LinkStatus) { l.Phase, l.Refusals = Phase(syncer.PhaseInSync), []Refusal{{}} }
	for _, tc := range []struct {
		name string
		s    Status
		want int
	}{
		{"in step", link(func(l *LinkStatus) { l.InStep = true }), ExitOK},
		{"refused", link(refused), ExitPerson},
		{"halted", link(func(l *LinkStatus) { l.Halt = &HaltEntry{} }), ExitPerson},
		{"conflict", link(func(l *LinkStatus) { l.Conflicts = []ConflictEntry{{}} }), ExitPerson},
		{"no root", link(func(l *LinkStatus) { l.Phase = Phase(syncer.PhaseNoRoot) }), ExitPerson},
		{"unreadable", link(func(l *LinkStatus) { l.Unreadable = []string{"x"} }), ExitPerson},
		{"offline", link(func(l *LinkStatus) { l.Phase = PhaseOffline }), ExitTrouble},
		{"offline and refused", link(func(l *LinkStatus) { refused(l); l.Phase = PhaseOffline }), ExitTrouble},
		{"not running", Status{}, ExitTrouble},
	} {
		if got := tc.s.exit(); got != tc.want {
			t.Errorf("%s: exit %d, want %d", tc.name, got, tc.want)
		}
	}
}

// TestMetricNames keeps the names and labels that dashboards stand on.
func TestMetricNames(t *testing.T) {
	r := prometheus.NewRegistry()
	m := newMetrics(r)
	m.refused("l", []syncer.Held{{By: "hub"}, {By: "guard", Violations: []memory.Violation{{Rule: "type-user"}}}})
	m.pushes.WithLabelValues("l")
	m.pulls.WithLabelValues("l")
	m.conflicts.WithLabelValues("l")
	m.halts.WithLabelValues("l")
	m.pending.WithLabelValues("l")
	m.errors.WithLabelValues("l", "UNAVAILABLE")
	m.cycles.WithLabelValues("l")
	m.lastSuccess.WithLabelValues("l")
	names := func() map[string]int {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int{}
		for _, f := range families {
			out[f.GetName()] = len(f.GetMetric())
		}
		return out
	}
	want := map[string]int{
		"memsync_conflicts": 1, "memsync_cycle_errors_total": 1, "memsync_cycle_seconds": 1, "memsync_dream_files_total": 3, "memsync_dream_seconds": 1, "memsync_dreams_total": 2, "memsync_end_to_end_seconds": 1, "memsync_halted": 1,
		"memsync_last_success_timestamp_seconds": 1, "memsync_pending_changes": 1, "memsync_propagation_seconds": 1,
		"memsync_pulls_total": 1, "memsync_pushes_total": 1, "memsync_refused_files": 2,
	}
	if d := cmp.Diff(want, names()); d != "" {
		t.Errorf("metrics (-want +got):\n%s", d)
	}
	m.drop("l")
	if d := cmp.Diff(map[string]int{"memsync_dream_files_total": 3, "memsync_dream_seconds": 1, "memsync_dreams_total": 2, "memsync_end_to_end_seconds": 1, "memsync_propagation_seconds": 1}, names()); d != "" {
		t.Errorf("after the link is gone (-want +got):\n%s", d)
	}
}

// TestTodoAboutNamesOfANewerHub sends nobody to correct a file that is not here.
func TestTodoAboutNamesOfANewerHub(t *testing.T) {
	newer := Refusal{By: syncer.HeldByAgent}
	if got := todo(LinkStatus{Refusals: []Refusal{newer}}); !strings.Contains(got, "update this agent") {
		t.Errorf("to do: %s", got)
	}
	if got := todo(LinkStatus{Refusals: []Refusal{newer, {By: syncer.HeldByGuard}}}); !strings.Contains(got, "correct the files") {
		t.Errorf("to do beside a file of ours: %s", got)
	}
}

// TestStatusShowsAnything prints what a hub said, and does not obey it.
func TestStatusShowsAnything(t *testing.T) {
	evil := "a\x1b[2Jb\u202ec"
	l := LinkStatus{LastError: &ErrorInfo{Message: evil, Time: noon}, Refusals: []Refusal{{By: evil, Path: evil}}}
	var out bytes.Buffer
	if err := (Status{Hubs: []HubStatus{{Addr: "h", Error: evil}}, Links: []LinkStatus{l}}).print(&out, noon); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.ContainsAny(s, "\x1b\u202e") || strings.Count(s, "a·[2Jb·c") != 4 {
		t.Errorf("printed %q", s)
	}
	if got := whose("token:"+evil, evil); strings.ContainsAny(got, "\x1b\u202e") {
		t.Errorf("printed %q", got)
	}
}
