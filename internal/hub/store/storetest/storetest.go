// Package storetest tests that a backend keeps the promises of package store: one
// subtest a promise, each on a fresh store, and a model that random sequences of
// calls are compared with.
package storetest

import (
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
)

// Harness makes the stores under test.
type Harness struct {
	// New returns an empty store, which the suite closes.
	New func(t T) store.Backend
	// Reopen closes the store and opens it again, as a restart does; nil for a
	// backend that does not outlive its process.
	Reopen func(t T, b store.Backend) store.Backend
	// Excluded names subtests that the backend does not keep, each with the reason.
	// A name that the suite does not know fails.
	Excluded map[string]string
}

// T is what the suite needs of a test; *testing.T and *rapid.T have it.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// promise is one subtest.
type promise struct {
	name  string
	check func(t *testing.T, e *env)
}

// Run checks every promise.
func Run(t *testing.T, h Harness) {
	t.Helper()
	known := make(map[string]bool)
	for _, group := range [][]promise{commitPromises(), readPromises(), feedPromises(), requestPromises(),
		compactPromises(), redactPromises(), epochPromises(), adminPromises(), recordPromises(), archivePromises(), lifePromises(), sharedPromises(), concurrencyPromises()} {
		for _, p := range group {
			if known[p.name] {
				t.Errorf("two subtests are called %s", p.name)
			}
			known[p.name] = true
			t.Run(p.name, func(t *testing.T) {
				if why := h.Excluded[p.name]; why != "" {
					t.Skip("excluded: " + why)
				}
				t.Parallel()
				e := newEnv(t, h)
				p.check(t, e)
			})
		}
	}
	for name, why := range h.Excluded {
		if !known[name] || why == "" {
			t.Errorf("excluded %q (%q): name a subtest and a reason", name, why)
		}
	}
	t.Run("Model", func(t *testing.T) { runModel(t, h) })
}
