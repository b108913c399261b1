package observed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/hub/store/observed"
	"github.com/memsvc/memsvc/internal/memory"
)

// values returns the metrics of the registry by name and labels.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// counting is a store whose totals can be made to fail, and that says how often it
// was asked.
type counting struct {
	store.Backend
	asked int
	fail  bool
	cost  func()
}

func (c *counting) Totals(ctx context.Context) (store.Totals, error) {
	c.asked++
	if c.cost != nil {
		c.cost()
	}
	if c.fail {
		return store.Totals{}, errors.New("down")
	}
	return c.Backend.(store.Totaler).Totals(ctx)
}

func TestTotalsAreAskedSeldom(t *testing.T) {
	now := time.Unix(1000, 0)
	next := &counting{Backend: inmem.New(inmem.Options{})}
	reg := prometheus.NewRegistry()
	b := observed.New(next, observed.Options{Registerer: reg, Now: func() time.Time { return now }})
	if err := b.CreateProject(ctx, key, now); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if _, err := b.Commit(ctx, commit(text, memory.Precondition{})); err != nil {
			t.Fatal(err)
		}
	}
	epoch, err := b.Epoch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got := values(t, reg)
		if got["memsvc_store_projects"] != 1 || got["memsvc_store_revisions"] != 2 || got["memsvc_store_epoch_info epoch="+string(epoch)] != 1 {
			t.Fatalf("got %v", got)
		}
	}
	if next.asked != 1 {
		t.Errorf("asked %d times at once, want once", next.asked)
	}

	// What is dear is asked less often.
	now = now.Add(10 * time.Second)
	next.cost = func() { now = now.Add(time.Second) }
	values(t, reg)
	now = now.Add(40 * time.Second)
	values(t, reg)
	if next.asked != 2 {
		t.Errorf("asked %d times, want 2: an answer that took a second serves for 50", next.asked)
	}

	// A store that does not answer has no totals.
	now, next.fail = now.Add(time.Minute), true
	got := values(t, reg)
	if _, ok := got["memsvc_store_revisions"]; ok || next.asked != 3 {
		t.Errorf("old totals are told of a store that does not answer: %v", got)
	}
}

func TestTotalsNeedATotaler(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := observed.New(broken{inmem.New(inmem.Options{})}, observed.Options{Registerer: reg})
	if _, err := b.Totals(ctx); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("got %v, want UNAVAILABLE", err)
	}
	if _, ok := values(t, reg)["memsvc_store_projects"]; ok {
		t.Error("a store that does not count has totals")
	}
}

func TestErrorsAndTeams(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := observed.New(broken{inmem.New(inmem.Options{})}, observed.Options{
		Registerer: reg, TeamLabel: func(team memory.Team) string { return "team " + string(team) },
	})
	if got := values(t, reg)["memsvc_store_errors_total reason=INTERNAL"]; got != 0 {
		t.Fatalf("%v errors before any", got)
	}
	_, _ = b.Teams(ctx)
	if err := b.CreateProject(ctx, key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _ = b.Commit(ctx, commit("text", memory.Precondition{})) // one revision, then unchanged
	}
	got := values(t, reg)
	if got["memsvc_store_errors_total reason=INTERNAL"] != 1 || got["memsvc_store_errors_total reason=UNAVAILABLE"] != 0 {
		t.Errorf("got %v, want one internal error", got)
	}
	if got["memsvc_team_revisions_total team=team acme"] != 1 {
		t.Errorf("got %v, want one revision of the team", got)
	}
}
