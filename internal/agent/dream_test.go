package agent

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/memory"
)

// sampleDream is a report with everything that one can hold.
func sampleDream() dream.Report {
	team := func(p memory.Path) memories.Ref { return memories.Ref{Scope: memory.ScopeTeam, Path: p} }
	return dream.Report{
		ID: "20260301T120000Z", Last: noon.Add(-30 * time.Hour), Sessions: 6, By: "rules", Fallback: "the model is busy",
		Changes: []dream.Change{
			{Ref: team("project_a.md"), Kind: dream.Edit, Reasons: []string{"relative dates are absolute now"}, Old: []byte("yesterday\n"), New: []byte("2026-02-28\n")},
			{Ref: team("project_b.md"), Kind: dream.Delete, Reasons: []string{"another memory says the same"}, Old: []byte("b\n"), Into: team("project_a.md")},
			{Ref: team("project_e.md"), Kind: dream.Delete, Reasons: []string{"a newer memory says otherwise in part"}, Old: []byte("Day: Tuesday\n"), Into: team("project_a.md"), Superseded: []string{"Day: Tuesday", "red \x1b[31m"}},
			{Ref: team("project_f.md"), Kind: dream.Delete, Old: []byte("Day: Monday\n"), Into: team("project_a.md"), Superseded: []string{"Day: Monday"}, Skipped: "it was edited meanwhile"},
			{Ref: memories.Ref{Scope: memory.ScopePrivate, Path: "MEMORY.md"}, Kind: dream.Create, New: []byte("- [A](a.md)\n")},
			{Ref: team("project_c.md"), Kind: dream.Edit, Old: []byte("c\n"), New: []byte("d\n"), Skipped: "it was edited meanwhile"},
		},
		Left:   []dream.Left{{Ref: "team/project_d.md", Why: "the guard refuses it"}, {Why: "no more may be deleted at once"}},
		Rounds: 2, Usage: model.Usage{Input: 100, Output: 20}, Took: 1500 * time.Millisecond,
	}
}

// TestDreamShapes keeps what programs and people see of dreams.
func TestDreamShapes(t *testing.T) {
	var out bytes.Buffer
	r := sampleDream()
	dry := r
	dry.DryRun, dry.ID = true, ""
	for _, v := range []any{
		dreamEntryOf(dry), dreamEntryOf(r), dreamEntryOf(dream.Report{By: "rules", Skipped: dream.GateTime, Last: noon}),
		[]pastDream{pastDreamOf(dream.Record{ID: r.ID, Time: noon, By: "rules", Changes: r.Changes[:1], Left: r.Left, Undone: noon.Add(time.Hour)})},
	} {
		if err := printJSON(&out, v); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct {
		x dreamCmd
		r dream.Report
	}{
		{dreamCmd{DryRun: true}, dry}, {dreamCmd{}, r}, {dreamCmd{Undo: true}, dream.Report{ID: "x", Changes: r.Changes[:1]}}, {dreamCmd{}, dream.Report{}},
		{dreamCmd{}, dream.Report{Skipped: dream.GateEmpty}}, {dreamCmd{}, dream.Report{Skipped: dream.GateTime, Last: noon.Add(-3 * time.Hour)}},
		{dreamCmd{}, dream.Report{Skipped: dream.GateLooked}}, {dreamCmd{}, dream.Report{Skipped: dream.GateSessions, Sessions: 1}}, {dreamCmd{}, dream.Report{Skipped: dream.GateLock}},
	} {
		out.WriteString("----\n")
		if err := v.x.print(&out, v.r, dream.Due{}.WithDefaults(), noon); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "dream.golden", out.String())
}

// TestLastDreamIsKept: status tells of each project's last dream, also when that failed,
// and not of one that its gates did not let pass.
func TestLastDreamIsKept(t *testing.T) {
	s := stateDir(t.TempDir())
	note := func(personal string, r dream.Report, err error) {
		t.Helper()
		if err := s.noteDream(personal, r, err, noon); err != nil {
			t.Fatal(err)
		}
	}
	note("/b", sampleDream(), nil)
	note("/b", dream.Report{Skipped: dream.GateTime}, nil)
	note("/b", dream.Report{DryRun: true}, nil)
	note("/a", dream.Report{By: "rules"}, errors.New("disk full"))
	want := []DreamStatus{{Memory: "/a", Time: noon, By: "rules", Error: "disk full"}, {Memory: "/b", Time: noon, By: "rules", Changes: 4, Deleted: 2, ID: sampleDream().ID}}
	if d := cmp.Diff(want, s.dreams()); d != "" {
		t.Error(d)
	}
	// Taken back, it says so; another one that is taken back, or the failed one, does not.
	for _, personal := range []string{"/a", "/b", "/none"} {
		if err := s.noteUndone(personal, "another", noon); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(want, s.dreams()); d != "" {
		t.Error(d)
	}
	if err := s.noteUndone("/b", sampleDream().ID, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	got := s.dreams()[1]
	if got.Undone == nil || !strings.HasSuffix(got.line(noon.Add(2*time.Hour)), "4 changes, 2 deleted; undone 1 h ago\n") {
		t.Errorf("%+v: %s", got, got.line(noon.Add(2*time.Hour)))
	}
	note("/b", sampleDream(), nil)
	if d := cmp.Diff(want, s.dreams()); d != "" {
		t.Error(d)
	}
}
