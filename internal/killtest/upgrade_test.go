//go:build linux

package killtest

import (
	"fmt"
	"os"
	"testing"
)

// olderVariable names a directory with the programs of an older version.
const olderVariable = "MEMSVC_UPGRADE_FROM"

// TestRollingUpgrade goes from older programs to those of this source as docs/operating.md
// says: the schema first, then one replica after the other, agents at any time. Clients
// see no error, both versions serve side by side, and edits travel between an older and a
// newer agent all the while.
func TestRollingUpgrade(t *testing.T) {
	older := os.Getenv(olderVariable)
	if older == "" {
		t.Skip(olderVariable + " names no directory of older programs; make upgrade FROM=REVISION builds them")
	}
	t.Parallel()
	f := newFleetOf(t, older, 3)
	a, b := newMachine(t, f.front, "older"), newMachine(t, f.front, "newer")
	a.programs = older
	a.start()
	b.start()
	exchange := func(name string) {
		t.Helper()
		for from, to := range map[*machine]*machine{a: b, b: a} {
			file := "project_" + name + "_" + from.name + ".md"
			text := "---\nname: n\ndescription: d\ntype: project\n---\n" + name + "\n"
			from.write(file, text)
			eventually(t, patience, file+" arrives", func() string {
				got, err := to.files()
				if err != nil || got[file] != text {
					return fmt.Sprintf("%q, %v", got[file], err)
				}
				return ""
			})
		}
	}
	exchange("before")
	f.underClients(func() {
		if _, errOut, code := call(t, "memsvc", "migrate", "--database-url", f.url); code != 0 {
			t.Errorf("migrate: code %d: %s", code, errOut)
		}
		exchange("migrated")
		for i, h := range f.hubs {
			f.replace(h, "")
			exchange("replica" + string(rune('1'+i)))
		}
	})
	if code := a.process().stop(t); code != 0 {
		t.Errorf("the older agent ended with code %d", code)
	}
	a.programs = ""
	a.start()
	exchange("after")
}
