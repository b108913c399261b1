//go:build linux

package killtest

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

// TestRestoredFromBackup takes a backup while editors work, goes on, kills the hub and
// restores the backup: the machines delete nothing and offer again what it does not know.
func TestRestoredFromBackup(t *testing.T) {
	t.Parallel()
	for range rounds() {
		restored(t)
	}
}

func restored(t *testing.T) {
	t.Helper()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	a.start()
	b.start()
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 15))
	editors := []*editor{newEditor(a, rnd), newEditor(b, rnd)}
	for _, e := range editors {
		must(t, e.stock())
		for range 30 {
			must(t, e.step())
		}
	}
	waitInStep(t, h, a, b)

	backup := filepath.Join(tempDir(t), "backup.db")
	end := work(t, editors, a, b)
	if _, errOut, code := call(t, "memsvc", "backup", backup, "--hub", h.grpc, "--token-file", h.adminToken); code != 0 {
		t.Fatalf("backup: %s", errOut)
	}
	end()
	for _, e := range editors {
		e.noDeletes = true
		for range 10 {
			must(t, e.step())
		}
	}
	latest := waitInStep(t, h, a, b)
	before := len(h.history())

	// A hub that runs cannot be restored under its feet.
	if _, errOut, code := call(t, "memsvc", "restore-backup", backup, "--data-dir", h.data, "--replace"); code == 0 || !strings.Contains(errOut, "another memsvc") {
		t.Errorf("restore under a running hub: code %d: %s", code, errOut)
	}
	h.kill()
	if _, errOut, code := call(t, "memsvc", "restore-backup", backup, "--data-dir", h.data); code == 0 {
		t.Errorf("restore over a store without being told so: %s", errOut)
	}
	if _, errOut, code := call(t, "memsvc", "restore-backup", backup, "--data-dir", h.data, "--replace"); code != 0 {
		t.Fatalf("restore-backup: code %d: %s", code, errOut)
	}
	// One machine edits while the hub is away, and the hub is killed once more while
	// the machines compare. It edits what it has: a new file at a path whose delete the
	// backup does not know would meet the undeleted one, which is a conflict.
	edited, _ := editors[0].existing()
	must(t, editors[0].save(edited))
	maps.Copy(latest, editors[0].files)
	h.start()
	known := len(h.history())
	h.kill()
	h.start()
	// Where the edit comes first, the other machine meets it with the text that it was
	// made on, which the backup does not know: it cannot tell that from an edit of its
	// own, and keeps both.
	waitEqual(t, h, true, a, b)
	for m, choice := range map[*machine]string{a: "--ours", b: "--theirs"} {
		st := m.status()
		for _, c := range st.Links[0].Conflicts {
			if c.Path != edited {
				t.Errorf("%s: a conflict at %s, which nobody edited", m.name, c.Path)
			}
			t.Logf("%s has a conflict, resolved by %s", m.name, choice)
			if _, errOut, code := call(t, "memsync-agent", "conflicts", "resolve", c.ID, choice, "--state-dir", m.state); code != 0 {
				t.Errorf("%s: resolve %s: %s", m.name, c.Path, errOut)
			}
		}
		if n := len(st.Links[0].Refusals); n > 0 {
			t.Errorf("%s: %d refused", m.name, n)
		}
	}
	got := waitInStep(t, h, a, b)
	for p, text := range latest {
		if got[p] != text {
			t.Errorf("%s: after the restore the hub holds %s", p, excerpt(got[p]))
		}
	}
	history := h.history()
	if known > before {
		t.Errorf("%d revisions after the restore, %d before", known, before)
	}
	for _, c := range history[min(known, len(history)):] {
		for _, ch := range c.Changes {
			if _, there := latest[string(ch.Path)]; ch.Kind == memory.Delete && there {
				t.Errorf("revision %d deletes %s after the restore", c.Revision, ch.Path)
			}
		}
	}
	t.Logf("%d revisions, %d of them in the backup, %d offered again", before, known, len(history)-known)
}
