package sqlite_test

import (
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/hub/store/storetest"
)

func open(t storetest.T, opts sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	s.SetLateLimit(7)
	return s
}

// harness opens stores whose cache holds almost nothing, so that states are loaded
// again and again, and whose table of revisions catches up every few commits. Under the race detector it holds one project, since loading them for
// every single call takes minutes there; several still push each other out.
func harness(t *testing.T) storetest.Harness {
	entries := 1
	if raceOn {
		entries = 200
	}
	dirs := make(chan map[store.Backend]string, 1)
	dirs <- make(map[store.Backend]string)
	keep := func(b store.Backend, dir string) store.Backend {
		m := <-dirs
		m[b] = dir
		dirs <- m
		return b
	}
	return storetest.Harness{
		New: func(ht storetest.T) store.Backend {
			dir := t.TempDir()
			return keep(open(ht, sqlite.Options{Dir: dir, CacheEntries: entries}), dir)
		},
		Reopen: func(ht storetest.T, b store.Backend) store.Backend {
			if err := b.Close(); err != nil {
				ht.Fatalf("close: %v", err)
			}
			m := <-dirs
			dir := m[b]
			dirs <- m
			return keep(open(ht, sqlite.Options{Dir: dir}), dir)
		},
	}
}

func TestPromises(t *testing.T) { storetest.Run(t, harness(t)) }
