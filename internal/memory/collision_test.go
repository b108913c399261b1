package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCollisions(t *testing.T) {
	for _, tc := range []struct {
		name  string
		paths []Path
		want  [][2]Path
	}{
		{"none", []Path{"a.md", "b.md", "a/x.md", "a/y.md"}, nil},
		{"case of a file", []Path{"Note.md", "note.md"}, [][2]Path{{"Note.md", "note.md"}}},
		{"case of a directory", []Path{"A/x.md", "a/y.md"}, [][2]Path{{"A/x.md", "a/y.md"}}},
		{"case deep below", []Path{"a/B/c/x.md", "a/b/d/y.md"}, [][2]Path{{"a/B/c/x.md", "a/b/d/y.md"}}},
		{"file and directory", []Path{"a.md", "a.md/x.md"}, [][2]Path{{"a.md", "a.md/x.md"}}},
		{"file and directory in other case", []Path{"A.md", "a.md/x.md"}, [][2]Path{{"A.md", "a.md/x.md"}}},
		{"full folding", []Path{"straße.md", "STRASSE.md"}, [][2]Path{{"STRASSE.md", "straße.md"}}},
		{"the same path twice", []Path{"a.md", "a.md"}, nil},
		{"three spellings", []Path{"aa.md", "aA.md", "AA.md"}, [][2]Path{{"AA.md", "aA.md"}, {"AA.md", "aa.md"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Collisions(tc.paths)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckAfterJudgesTheStateAfter(t *testing.T) {
	x := NewCollisionIndex([]Path{"Note.md", "a.md", "dir/x.md"})
	for _, tc := range []struct {
		name           string
		removed, added []Path
		want           [][2]Path
	}{
		{"rename in case only", []Path{"Note.md"}, []Path{"note.md"}, nil},
		{"the same without the delete", nil, []Path{"note.md"}, [][2]Path{{"note.md", "Note.md"}}},
		{"a file becomes a directory", []Path{"a.md"}, []Path{"a.md/x.md"}, nil},
		{"two new ones collide", nil, []Path{"N/x.md", "n/y.md"}, [][2]Path{{"N/x.md", "n/y.md"}, {"n/y.md", "N/x.md"}}},
		{"an update", nil, []Path{"a.md"}, nil},
		{"removed and put again", []Path{"a.md"}, []Path{"a.md"}, nil},
		{"removing what is not there", []Path{"zzz.md"}, []Path{"dir"}, [][2]Path{{"dir", "dir/x.md"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, x.CheckAfter(tc.removed, tc.added)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if x.Len() != 3 || !x.has("Note.md") || !x.has("a.md") || !x.has("dir/x.md") {
				t.Errorf("CheckAfter changed the index")
			}
		})
	}
}

// collide is the definition, word by word: equal folded prefixes that differ, or a
// file where the other has a directory.
func collide(p, q Path) bool {
	a, b := p.Segments(), q.Segments()
	for i := 0; i < min(len(a), len(b)); i++ {
		if foldText(a[i]) != foldText(b[i]) {
			return false
		}
		if a[i] != b[i] {
			return true
		}
	}
	return len(a) != len(b)
}

// TestCollisionIndexIsTheDefinition: after any additions and removals, Check answers
// what comparing with every living path answers, and the root is empty when all are gone.
func TestCollisionIndexIsTheDefinition(t *testing.T) {
	path := rapid.Custom(func(t *rapid.T) Path {
		segs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "A", "b", "a.md", "A.md", "é", "É"}), 1, 3).Draw(t, "segments")
		return Path(strings.Join(segs, "/"))
	})
	rapid.Check(t, func(t *rapid.T) {
		var x CollisionIndex
		living := map[Path]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			p := path.Draw(t, "path")
			if rapid.Bool().Draw(t, "remove") {
				x.Remove(p)
				delete(living, p)
			} else {
				x.Add(p)
				living[p] = true
			}
			q := path.Draw(t, "asked")
			want := false
			for l := range living {
				want = want || collide(q, l)
			}
			other, got := x.Check(q)
			if got != want {
				t.Fatalf("Check(%q) = %q, %v; want %v among %v", q, other, got, want, living)
			}
			if got && (!living[other] || !collide(q, other)) {
				t.Fatalf("Check(%q) names %q, which is no collision among %v", q, other, living)
			}
			if x.Len() != len(living) {
				t.Fatalf("Len = %d, want %d", x.Len(), len(living))
			}
		}
		for l := range living {
			x.Remove(l)
		}
		if len(x.root.children) != 0 || x.Len() != 0 {
			t.Fatalf("an empty index still holds %v", x.root.children)
		}
	})
}

func TestCheckDoesNotDependOnOrder(t *testing.T) {
	paths := []Path{"a/z.md", "a/b/c.md", "a/b.md", "a/y.md"}
	forward := NewCollisionIndex(paths)
	slices.Reverse(paths)
	backward := NewCollisionIndex(paths)
	one, _ := forward.Check("A/q.md")
	two, _ := backward.Check("A/q.md")
	if one != "a/b.md" || two != one {
		t.Errorf("Check names %q and %q, want the first in path order", one, two)
	}
}

func BenchmarkCollisionIndex(b *testing.B) {
	var paths []Path
	for i := range MaxProjectFiles {
		paths = append(paths, Path(fmt.Sprintf("dir%d/Project_note_%d.md", i%50, i)))
	}
	x := NewCollisionIndex(paths)
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Check("dir7/project_new.md")
		}
	})
	b.Run("commit", func(b *testing.B) {
		added := []Path{"dir7/project_new.md"}
		for b.Loop() {
			x.CheckAfter(nil, added)
		}
	})
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			NewCollisionIndex(paths)
		}
	})
}
