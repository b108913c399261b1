package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/agent/workspace"
)

func TestTakenDirectoryIsRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	first, err := workspace.LockRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := isFree(dir); !errors.Is(err, workspace.ErrRootLocked) {
		t.Errorf("a taken directory: %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // looking takes nothing
		if err := isFree(dir); err != nil {
			t.Errorf("a free directory: %v", err)
		}
	}
}

func TestDamagedStateIsTold(t *testing.T) {
	for want, r := range map[string]syncstate.Report{
		"":                       {Fresh: true},
		"put aside to /s/aside":  {Damage: "damaged at byte 7", Aside: "/s/aside"},
		"(damaged at byte 7)":    {Damage: "damaged at byte 7"},
		"41 bytes of an unfinis": {CutBytes: 41},
	} {
		if got := foundState(r); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q does not say %q", r, got, want)
		}
	}
}
