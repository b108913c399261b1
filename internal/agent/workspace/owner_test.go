package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestMarkerNamesItsProject: a directory whose marker names another project is not the
// root of this one, is not written into, and keeps its marker. A marker of before, which
// names none, is everybody's; it gets the project with the next PutMarker, and its first
// line, which is all that older agents read, stays the id.
func TestMarkerNamesItsProject(t *testing.T) {
	pay := memory.ProjectKey{Team: "acme", Project: "pay"}
	shop := memory.ProjectKey{Team: "acme", Project: "shop"}
	dir := realTemp(t)
	of := func(key memory.ProjectKey) *Workspace {
		t.Helper()
		w, err := New(dir, Options{Project: key})
		must(t, err)
		return w
	}
	file := func() string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, MarkerName))
		must(t, err)
		return string(b)
	}

	old := "0b6e2d2c-6c3e-4a1e-9a53-2f6f3a1d9c11"
	putFile(t, filepath.Join(dir, MarkerName), old+"\n"+markerNote)
	for _, key := range []memory.ProjectKey{pay, shop} {
		if s := scanOf(t, of(key)); s.Root != syncer.RootOK || s.Marker != old || !s.MarkerBare {
			t.Errorf("a marker of before, to %s: %+v", key, s)
		}
		must(t, CheckOwner(dir, key))
	}
	must(t, of(pay).PutMarker(t.Context(), old))
	if first, rest, _ := strings.Cut(file(), "\n"); first != old || !strings.Contains(rest, "\nproject: acme/pay\n") {
		t.Errorf("the marker is %q", file())
	}
	if s := scanOf(t, of(pay)); s.Root != syncer.RootOK || s.Marker != old || s.MarkerBare {
		t.Errorf("its own: %+v", s)
	}
	must(t, CheckOwner(dir, pay))

	other := of(shop)
	for range 2 {
		if s := scanOf(t, other); s.Root != syncer.RootReplaced || !strings.Contains(s.Detail, "is linked to acme/pay") || !strings.Contains(s.Detail, "unlink --forget") {
			t.Errorf("another's: %+v", s)
		}
	}
	if err := CheckOwner(dir, shop); !errors.Is(err, ErrUnsuitableRoot) || !strings.Contains(err.Error(), "acme/pay") {
		t.Errorf("another's: %v", err)
	}
	if err := other.Write(t.Context(), "a.md", []byte("x"), authored, ""); !errors.Is(err, syncer.ErrLocalChanged) {
		t.Errorf("write: %v", err)
	}
	before := file()
	for _, id := range []string{old, "another-id"} {
		if err := other.PutMarker(t.Context(), id); !errors.Is(err, ErrUnsuitableRoot) {
			t.Errorf("put marker %s: %v", id, err)
		}
	}
	must(t, RemoveMarker(dir, old, shop))
	if file() != before {
		t.Errorf("the marker became %q", file())
	}
	must(t, RemoveMarker(dir, old, pay))
	if HasMarker(dir) {
		t.Error("its own link did not take the marker away")
	}
	must(t, RestoreMarker(dir, old, pay))
	if file() != before {
		t.Errorf("restored: %q", file())
	}

	// What cannot be a project's name is none.
	for _, bad := range []string{"acme", "acme/", "/pay", "acme/pay/more", "ACME/pay", "acme/../pay"} {
		putFile(t, filepath.Join(dir, MarkerName), old+"\nproject: "+bad+"\n")
		if s := scanOf(t, of(shop)); s.Root != syncer.RootOK || !s.MarkerBare {
			t.Errorf("%q: %+v", bad, s)
		}
	}
}
