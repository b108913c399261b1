package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestLinkedInsideLinked lets a directory and one inside it be linked, in either order:
// whoever comes second is refused, and where both came at once the outer link leaves the
// inner directory alone and the inner one stands still.
func TestLinkedInsideLinked(t *testing.T) {
	outer := open(t)
	put(t, outer, "a.md", "a")
	put(t, outer, "deep/b.md", "b")
	inner := openAt(t, filepath.Join(outer.dir, "deep"))
	for _, w := range []*Workspace{outer, inner} {
		if err := CheckOverlap(t.Context(), w.dir); err != nil {
			t.Fatalf("nothing is linked yet: %v", err)
		}
	}
	if err := inner.PutMarker(t.Context(), "inner"); err != nil {
		t.Fatal(err)
	}
	if err := CheckOverlap(t.Context(), outer.dir); !errors.Is(err, ErrUnsuitableRoot) {
		t.Errorf("a directory with a linked one in it: %v", err)
	}
	s := scanOf(t, outer)
	if _, seen := s.Files["deep/b.md"]; seen || len(s.Files) != 1 {
		t.Errorf("the outer link sees %v", s.Files)
	}
	if !slices.Equal(s.Unreadable, []memory.Path{"deep"}) || refusals(s)["deep"] != RuleLinked {
		t.Errorf("unreadable %v, refused %v", s.Unreadable, s.Refused)
	}
	if s := scanOf(t, inner); s.Root != syncer.RootOK {
		t.Errorf("the inner link before the outer one: %v %s", s.Root, s.Detail)
	}
	if err := outer.PutMarker(t.Context(), "outer"); err != nil {
		t.Fatal(err)
	}
	if s := scanOf(t, inner); s.Root != syncer.RootUnknown || s.Detail == "" || len(s.Files) > 0 {
		t.Errorf("the inner link in a linked directory: %v %q %v", s.Root, s.Detail, s.Files)
	}
	for _, dir := range []string{inner.dir, filepath.Join(outer.dir, "new", "team")} {
		if err := CheckOverlap(t.Context(), dir); !errors.Is(err, ErrUnsuitableRoot) {
			t.Errorf("%s in a linked directory: %v", dir, err)
		}
	}
	// By another name it is the same directory.
	alias := filepath.Join(realTemp(t), "alias")
	if err := os.Symlink(inner.dir, alias); err != nil {
		t.Fatal(err)
	}
	if err := CheckOverlap(t.Context(), alias); !errors.Is(err, ErrUnsuitableRoot) {
		t.Errorf("by a link: %v", err)
	}
	// A link that stands must not be kept from starting by a marker that was copied.
	if err := CheckOverlap(t.Context(), outer.dir); err != nil {
		t.Errorf("the outer link itself: %v", err)
	}
	// The marker of another link is left alone, one's own goes.
	if err := RemoveMarker(inner.dir, "other", memory.ProjectKey{}); err != nil || !HasMarker(inner.dir) {
		t.Errorf("another link's marker: %v, there %t", err, HasMarker(inner.dir))
	}
	if err := RemoveMarker(inner.dir, "inner", memory.ProjectKey{}); err != nil || HasMarker(inner.dir) {
		t.Errorf("the marker: %v, there %t", err, HasMarker(inner.dir))
	}
	if s := scanOf(t, outer); len(s.Files) != 2 {
		t.Errorf("after the inner link is gone the outer one sees %v", s.Files)
	}
}

// TestNearMisses: names that were meant to be memories are refused by the rule they
// break; what editors and other programs leave is passed over.
func TestNearMisses(t *testing.T) {
	w := open(t)
	want := map[string]string{
		"notes.MD": memory.RulePathExtension, "Notes.Md": memory.RulePathExtension, `"b.md "`: memory.RulePathTrailing,
		"c.md.": memory.RulePathTrailing, "sub/d.mD": memory.RulePathExtension,
	}
	for _, name := range []string{"notes.MD", "Notes.Md", "b.md ", "c.md.", "sub/d.mD", "fine.md", "x.md~", "#x.md#", "x.md.bak", "x.txt", "4913", "md", "MD ."} {
		put(t, w, name, "text")
	}
	s := scanOf(t, w)
	got := refusals(s)
	for name, rule := range want {
		if got[name] != rule {
			t.Errorf("%s: refused by %q, want %q", name, got[name], rule)
		}
	}
	if len(got) != len(want) || len(s.Files) != 1 {
		t.Errorf("refused %v, files %v", got, s.Files)
	}
	put(t, w, ".memsyncignore", "*.MD\n")
	if got := refusals(scanOf(t, w)); got["notes.MD"] != "" || got["c.md."] == "" {
		t.Errorf("with an ignored name: %v", got)
	}
}
