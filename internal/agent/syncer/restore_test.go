package syncer_test

import (
	"errors"
	"testing"
)

// The hub falls back behind a text that two machines agreed on. One of them edited it
// meanwhile, the other offers it again first: that is what the edit was made on, so
// there is no conflict.
func TestOthersOfferAgainWhatOursWasMadeOn(t *testing.T) {
	killed := errors.New("killed")
	for _, inBackup := range []bool{true, false} {
		// When the other one comes: before our comparison; after it, when the process
		// died before it sent; or just before our commit arrives.
		for _, when := range []string{"before", "after a kill", "meanwhile"} {
			w := newWorld(t)
			a, b := w.machine("a"), w.machine("b")
			a.save("other.md", "other\n")
			if inBackup {
				a.save("x.md", "one\n")
			}
			w.settle(a, b)
			backup := w.hub.Clone()
			a.save("x.md", "two\n")
			w.settle(a, b)
			backup.NewEpoch("epoch-2")
			w.hub = backup
			a.remote.Hub, b.remote.Hub = backup, backup
			a.save("x.md", "three\n")
			switch when {
			case "after a kill":
				a.remote.Hook = func(op string, after bool) error {
					if op == "push" {
						return killed
					}
					return nil
				}
				if err := a.syncErr(); !errors.Is(err, killed) {
					t.Fatal(err)
				}
				a.state.PowerLoss()
				a.restart()
			case "meanwhile":
				a.remote.Hook = func(op string, after bool) error {
					if op == "push" && !after {
						a.remote.Hook = nil
						b.sync()
					}
					return nil
				}
				a.sync()
			}
			a.remote.Hook = nil
			b.sync()
			w.settle(a, b)
			w.want(files{"other.md": "other\n", "x.md": "three\n"})
			if c := a.s.Status().Conflicts; len(c) != 0 {
				t.Errorf("in the backup %v, %s: a conflict of the edit with what it was made on: %+v", inBackup, when, c)
			}
			if n := len(a.state.Link().Intents); n != 0 {
				t.Errorf("in the backup %v, %s: %d intents left over", inBackup, when, n)
			}
		}
	}
}
