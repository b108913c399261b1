package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/memory"
)

// Few paths and few texts, so that every combination of the three trees comes up.
var (
	somePaths = []memory.Path{"a.md", "b.md", "c.md", "a.md/x.md", "d/e.md", "A.md", "MEMORY.md"}
	someETags = []memory.ETag{"1", "2", "3", "4"}
)

func drawTree(t *rapid.T, label string) Tree {
	return rapid.MapOfN(rapid.SampledFrom(somePaths), rapid.SampledFrom(someETags), 0, len(somePaths)).Draw(t, label)
}

func drawBaseline(t *rapid.T) Baseline {
	b := Baseline{}
	for p, e := range drawTree(t, "base") {
		b[p] = Agreed(e)
		if memory.IsIndex(p) && rapid.Bool().Draw(t, "private lines") {
			b[p] = Base{Text: e, Hub: e, Local: e + "+private"}
		}
	}
	return b
}

// apply carries a plan out on two trees as the syncer would, and returns what was
// kept beside them. A merge ends in the text that merge names, or as a conflict.
func apply(plan []Action, base Baseline, local, remote Tree, merge func(Action) (memory.ETag, bool)) (conflicts []memory.ETag) {
	for _, a := range plan {
		p := a.Path
		switch a.Kind {
		case Agree:
			base[p] = Agreed(a.Local)
		case Forget:
			delete(base, p)
		case Push:
			remote[p], base[p] = a.Local, Agreed(a.Local)
		case Pull:
			local[p], base[p] = a.Remote, Agreed(a.Remote)
		case PushDelete:
			delete(remote, p)
			delete(base, p)
		case PullDelete:
			delete(local, p)
			delete(base, p)
		case Merge:
			text, ok := merge(a)
			if !ok {
				conflicts = append(conflicts, a.Local)
				text = a.Remote
			}
			local[p], remote[p], base[p] = text, text, Agreed(text)
		}
	}
	return conflicts
}

func TestPlanOfEqualSidesIsEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := drawTree(t, "tree")
		base := Baseline{}
		for p, e := range tree {
			base[p] = Agreed(e)
		}
		if plan := Plan(base, tree, tree); len(plan) != 0 {
			t.Fatalf("plan of equal sides: %v", plan)
		}
	})
}

func TestPlanAppliedMakesSidesEqualAndIsThenEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, local, remote := drawBaseline(t), drawTree(t, "local"), drawTree(t, "remote")
		for p, b := range base { // a private line shows on disk, where nothing was edited
			if b.Local != b.Hub && rapid.Bool().Draw(t, "unchanged") {
				local[p], remote[p] = b.Local, b.Hub
			}
		}
		before := slices.Collect(maps.Values(local))
		merges := rapid.Bool().Draw(t, "merges")
		conflicts := apply(Plan(base, local, remote), base, local, remote, func(a Action) (memory.ETag, bool) {
			return a.Local + "|" + a.Remote, merges
		})
		for _, p := range somePaths {
			if local[p] != remote[p] && (base[p].Local != local[p] || base[p].Hub != remote[p]) {
				t.Errorf("%s: local %q, remote %q after the plan", p, local[p], remote[p])
			}
		}
		if again := Plan(base, local, remote); len(again) != 0 {
			t.Errorf("planned again: %v", again)
		}
		if !merges && len(conflicts) > len(before) {
			t.Errorf("%d conflicts of %d texts", len(conflicts), len(before))
		}
	})
}

func TestPlanIsMirrored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, local, remote := drawBaseline(t), drawTree(t, "local"), drawTree(t, "remote")
		mirrored := Baseline{}
		for p, b := range base {
			mirrored[p] = Base{Text: b.Text, Hub: b.Local, Local: b.Hub}
		}
		var want []Action
		for _, a := range Plan(base, local, remote) {
			a.Kind, a.Local, a.Remote = a.Kind.Mirror(), a.Remote, a.Local
			a.Base.Hub, a.Base.Local = a.Base.Local, a.Base.Hub
			want = append(want, a)
		}
		if diff := cmp.Diff(want, Plan(mirrored, remote, local)); diff != "" {
			t.Errorf("mirrored plan (-want +got):\n%s", diff)
		}
	})
}

// No text that only one side has is dropped: it reaches the other side, or a merge,
// or it was deleted or replaced by the side that changed it while the other did not.
func TestPlanDropsNoText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, local, remote := drawBaseline(t), drawTree(t, "local"), drawTree(t, "remote")
		for _, a := range Plan(base, local, remote) {
			dropped := memory.ETag("")
			switch a.Kind {
			case Pull, PullDelete:
				dropped = a.Local
			case Push, PushDelete:
				dropped = a.Remote
			}
			if dropped != "" && dropped != a.Base.Local && dropped != a.Base.Hub {
				t.Errorf("%v drops a text that was never agreed", a)
			}
			if (a.Kind == PullDelete || a.Kind == PushDelete) && dropped == "" {
				t.Errorf("%v deletes nothing", a)
			}
		}
	})
}

func TestEditBeatsDelete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, local, remote := drawBaseline(t), drawTree(t, "local"), drawTree(t, "remote")
		plan := map[memory.Path]Action{}
		for _, a := range Plan(base, local, remote) {
			plan[a.Path] = a
		}
		for p, b := range base {
			if l, r := local[p], remote[p]; l == "" && r != "" && r != b.Hub && plan[p].Kind != Pull {
				t.Errorf("%s deleted here, edited there: %v", p, plan[p])
			} else if r == "" && l != "" && l != b.Local && plan[p].Kind != Push {
				t.Errorf("%s edited here, deleted there: %v", p, plan[p])
			}
		}
	})
}

// Machines that sync in any order with one hub, each with edits of its own, end equal.
func TestMachinesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "machines")
		hub := drawTree(t, "hub")
		disks, bases := make([]Tree, n), make([]Baseline, n)
		for i := range disks {
			disks[i], bases[i] = drawTree(t, fmt.Sprintf("disk %d", i)), Baseline{}
		}
		texts := map[memory.ETag]bool{}
		for _, d := range disks {
			for _, e := range d {
				texts[e] = true
			}
		}
		sync := func(i int) {
			apply(Plan(bases[i], disks[i], hub), bases[i], disks[i], hub, func(a Action) (memory.ETag, bool) {
				return max(a.Local, a.Remote), a.Base.Text != ""
			})
		}
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "who")
			switch p := rapid.SampledFrom(somePaths).Draw(t, "path"); rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				disks[i][p] = rapid.SampledFrom(someETags).Draw(t, "text")
			case 1:
				delete(disks[i], p)
			case 2:
				sync(i)
			}
		}
		for range 2 {
			for i := range n {
				sync(i)
			}
		}
		for i, d := range disks {
			if diff := cmp.Diff(hub, d); diff != "" {
				t.Errorf("machine %d (-hub +disk):\n%s", i, diff)
			}
		}
	})
}

func TestOrder(t *testing.T) {
	plan := []Action{
		{Path: "MEMORY.md", Kind: Pull},
		{Path: "a.md", Kind: PullDelete},
		{Path: "a.md/x.md", Kind: Pull},
		{Path: "Note.md", Kind: PullDelete},
		{Path: "gone.md", Kind: PullDelete},
		{Path: "note.md", Kind: Pull},
		{Path: "z.md", Kind: Merge},
	}
	var got []memory.Path
	for _, a := range Order(plan) {
		got = append(got, a.Path)
	}
	want := []memory.Path{"Note.md", "a.md", "a.md/x.md", "note.md", "z.md", "MEMORY.md", "gone.md"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestBrake(t *testing.T) {
	tree := func(n int) (Baseline, Tree) {
		b, l := Baseline{}, Tree{}
		for i := range n {
			p := memory.Path(fmt.Sprintf("f%02d.md", i))
			b[p], l[p] = Agreed(memory.ETag(p)), memory.ETag(p)
		}
		return b, l
	}
	tests := []struct {
		name     string
		files    int
		deleted  int
		move     bool // the deleted ones are found in another directory
		accepted bool
		all      bool // the rest vanished too, and nobody accepted that
		halt     bool
	}{
		{name: "nothing", files: 0, deleted: 0},
		{name: "the only file", files: 1, deleted: 1},
		{name: "both of two", files: 2, deleted: 2, halt: true},
		{name: "five of five", files: 5, deleted: 5, halt: true},
		{name: "five of six", files: 6, deleted: 5},
		{name: "six of eight", files: 8, deleted: 6, halt: true},
		{name: "six of 24 is a quarter", files: 24, deleted: 6},
		{name: "six of 23", files: 23, deleted: 6, halt: true},
		{name: "37 of 40", files: 40, deleted: 37, halt: true},
		{name: "37 of 40 moved", files: 40, deleted: 37, move: true},
		{name: "all moved", files: 9, deleted: 9, move: true},
		{name: "37 of 40, accepted", files: 40, deleted: 37, accepted: true},
		{name: "one of two accepted, and the other gone", files: 2, deleted: 1, accepted: true, all: true, halt: true},
		{name: "38 of 40 accepted, and two gone", files: 40, deleted: 38, accepted: true, all: true, halt: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base, local := tree(tt.files)
			var accepted []memory.Path
			for i := range tt.deleted {
				p := memory.Path(fmt.Sprintf("f%02d.md", i))
				delete(local, p)
				if tt.move {
					local["sub/"+p] = memory.ETag(p)
				}
				if tt.accepted {
					accepted = append(accepted, p)
				}
			}
			if tt.all {
				local = Tree{}
			}
			if halt, reason := Brake(base, local, accepted); halt != tt.halt || halt != (reason != "") {
				t.Errorf("Brake = %v, %q; want halt %v", halt, reason, tt.halt)
			}
		})
	}
}

func TestPairRenames(t *testing.T) {
	long := "---\nname: x\n---\nthe first line of a memory\nthe second line of it\nthe third line of it\n"
	type file struct {
		path memory.Path
		text string
	}
	tests := []struct {
		name string
		gone []file
		come []file
		want map[memory.Path]memory.Path // new from old
	}{
		{"same bytes", []file{{"a.md", long}}, []file{{"b.md", long}}, map[memory.Path]memory.Path{"b.md": "a.md"}},
		{"copy", nil, []file{{"b.md", long}}, map[memory.Path]memory.Path{}},
		{"edited", []file{{"a.md", long}}, []file{{"b.md", long + "a fourth line\n"}}, map[memory.Path]memory.Path{"b.md": "a.md"}},
		{"another text", []file{{"a.md", long}}, []file{{"b.md", "something else entirely\n"}}, map[memory.Path]memory.Path{}},
		{"case only, rewritten", []file{{"Note.md", long}}, []file{{"note.md", "something else\n"}}, map[memory.Path]memory.Path{"note.md": "Note.md"}},
		{"two candidates", []file{{"a.md", long}}, []file{{"b.md", long + "x\n"}, {"c.md", long + "y\n"}}, map[memory.Path]memory.Path{}},
		{"two of the same bytes", []file{{"a.md", long}, {"b.md", long}}, []file{{"c.md", long}, {"d.md", long}}, map[memory.Path]memory.Path{"c.md": "a.md", "d.md": "b.md"}},
		{"empty files", []file{{"a.md", ""}}, []file{{"b.md", ""}}, map[memory.Path]memory.Path{}},
		{"file becomes directory", []file{{"a.md", long}}, []file{{"a.md/x.md", long}}, map[memory.Path]memory.Path{"a.md/x.md": "a.md"}},
		{"indexes never move", []file{{"x/MEMORY.md", long}}, []file{{"y/MEMORY.md", long}}, map[memory.Path]memory.Path{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			texts := map[memory.ETag][]byte{}
			tag := func(s string) memory.ETag {
				e := memory.ETagOf([]byte(s))
				texts[e] = []byte(s)
				return e
			}
			base, local, remote := Baseline{}, Tree{}, Tree{}
			for _, f := range tt.gone {
				base[f.path], remote[f.path] = Agreed(tag(f.text)), tag(f.text)
			}
			for _, f := range tt.come {
				local[f.path] = tag(f.text)
			}
			plan := Plan(base, local, remote)
			PairRenames(plan, func(a Action) ([]byte, bool) {
				e := a.Local
				if a.Kind == PushDelete {
					e = a.Base.Text
				}
				b, ok := texts[e]
				return b, ok
			})
			got := map[memory.Path]memory.Path{}
			for _, a := range plan {
				if a.RenamedFrom != "" {
					got[a.Path] = a.RenamedFrom
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("renames (-want +got):\n%s", diff)
			}
		})
	}
}
