package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/memory"
)

// Ruling 13.4, case by case. The rewind revision is 10; the baseline stands at at.
func TestRebase(t *testing.T) {
	const rewind = 10
	tests := []struct {
		name   string
		at     memory.Revision
		local  memory.ETag // base is "b"
		remote *Facts
		want   Kind
		none   bool
	}{
		{name: "unchanged since, shared baseline", at: 7, local: "b", remote: &Facts{ETag: "b", Revision: 7}, none: true},
		{name: "shared baseline, edited there", at: 7, local: "b", remote: &Facts{ETag: "c", Revision: 12, Earlier: []memory.ETag{"b"}}, want: Pull},
		{name: "shared revision, but the hub never knew the text", at: 7, local: "b", remote: &Facts{ETag: "c", Revision: 12}, want: Merge},
		{name: "shared baseline, edited here", at: 7, local: "l", remote: &Facts{ETag: "b", Revision: 7}, want: Push},
		{name: "shared baseline, deleted here", at: 7, local: "", remote: &Facts{ETag: "b", Revision: 7}, want: PushDelete},
		{name: "hub fell back: ours again", at: 14, local: "b", remote: &Facts{ETag: "old", Revision: 9}, want: Push},
		{name: "hub fell back, edited here", at: 14, local: "l", remote: &Facts{ETag: "old", Revision: 9}, want: Push},
		{name: "hub fell back, deleted here", at: 14, local: "", remote: &Facts{ETag: "old", Revision: 9}, want: PushDelete},
		{name: "hub fell back to our very text", at: 14, local: "b", remote: &Facts{ETag: "b", Revision: 9}, none: true},
		{name: "changed there after the restore", at: 14, local: "b", remote: &Facts{ETag: "new", Revision: 12}, want: Merge},
		{name: "offered again by another and edited", at: 14, local: "b", remote: &Facts{ETag: "new", Revision: 13, Earlier: []memory.ETag{"b"}}, want: Pull},
		{name: "missing", at: 14, local: "b", remote: nil, want: Push},
		{name: "missing, shared", at: 7, local: "b", remote: nil, want: Push},
		{name: "deleted since", at: 7, local: "b", remote: &Facts{Revision: 12, Last: "b"}, want: Push},
		{name: "missing on both", at: 14, local: "", remote: nil, none: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			facts := map[memory.Path]Facts{}
			if tt.remote != nil {
				facts["p.md"] = *tt.remote
			}
			local := Tree{}
			if tt.local != "" {
				local["p.md"] = tt.local
			}
			base := Rebase(Baseline{"p.md": Agreed("b")}, map[memory.Path]memory.Revision{"p.md": tt.at}, facts, rewind)
			plan := Plan(base, local, TreeOf(facts))
			switch {
			case tt.none && len(plan) != 0:
				t.Errorf("plan %v, want none", plan)
			case !tt.none && (len(plan) != 1 || plan[0].Kind != tt.want):
				t.Errorf("plan %v, want %v", plan, tt.want)
			}
		})
	}
}

// SPEC 3.6: with a changed epoch no local file is deleted.
func TestRebaseDeletesNoLocalFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, local := drawBaseline(t), drawTree(t, "local")
		facts := map[memory.Path]Facts{}
		for p, e := range drawTree(t, "remote") {
			facts[p] = Facts{ETag: e, Revision: memory.Revision(rapid.IntRange(1, 20).Draw(t, "rev"))}
		}
		at := map[memory.Path]memory.Revision{}
		for p := range base {
			at[p] = memory.Revision(rapid.IntRange(1, 20).Draw(t, "base rev"))
		}
		rewind := memory.Revision(rapid.IntRange(0, 20).Draw(t, "rewind"))
		for _, a := range Plan(Rebase(base, at, facts, rewind), local, TreeOf(facts)) {
			if a.Kind == PullDelete {
				t.Errorf("%v", a)
			}
		}
	})
}

func TestAdopt(t *testing.T) {
	facts := map[memory.Path]Facts{
		"same.md":    {ETag: "1", Revision: 1},
		"stale.md":   {ETag: "2", Revision: 5, Earlier: []memory.ETag{"1"}},
		"edited.md":  {ETag: "2", Revision: 5, Earlier: []memory.ETag{"1"}},
		"deleted.md": {Revision: 6, Last: "1"},
		"new.md":     {ETag: "9", Revision: 7},
	}
	local := Tree{"same.md": "1", "stale.md": "1", "edited.md": "x", "deleted.md": "1", "mine.md": "7"}
	base, stale := Adopt(local, facts)
	if diff := cmp.Diff([]memory.Path{"deleted.md", "stale.md"}, stale); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
	got := map[memory.Path]Kind{}
	for _, a := range Plan(base, local, TreeOf(facts)) {
		got[a.Path] = a.Kind
	}
	want := map[memory.Path]Kind{"stale.md": Pull, "edited.md": Merge, "deleted.md": PullDelete, "new.md": Pull, "mine.md": Push}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestUndoneDeletes(t *testing.T) {
	facts := map[memory.Path]Facts{
		"back.md":   {ETag: "1", Revision: 3},  // deleted at 12, the hub fell back to 10
		"new.md":    {ETag: "2", Revision: 11}, // made after the restore
		"unseen.md": {ETag: "3", Revision: 9},
	}
	got := UndoneDeletes(Baseline{}, Tree{}, facts, 10, 8)
	if diff := cmp.Diff([]memory.Path{"back.md"}, got); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}
