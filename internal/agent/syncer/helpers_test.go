package syncer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// world is one hub, some machines and a clock that only tests move.
type world struct {
	t   *testing.T
	now time.Time
	hub *synctest.Hub
	ids int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.hub = synctest.NewHub(w.clock)
	return w
}

func (w *world) clock() time.Time { return w.now }

type machine struct {
	*synctest.Disk
	w      *world
	name   string
	state  *synctest.State
	remote *synctest.Remote
	guard  *synctest.Guard
	gate   *gate
	s      *syncer.Syncer
	opts   syncer.Options
	last   syncer.Result
}

func (w *world) machine(name string) *machine {
	m := &machine{
		Disk: synctest.NewDisk(w.clock), w: w, name: name, state: synctest.NewState(),
		remote: w.hub.Remote(), guard: &synctest.Guard{}, gate: &gate{},
	}
	m.restart()
	return m
}

// restart is a new process on the same disk and state.
func (m *machine) restart() {
	m.s = syncer.New(syncer.Ports{
		Local: m.Disk.Local(), State: m.state, Remote: m.remote, Guard: m.guard, Uploads: m.gate, Clock: m.w.clock,
		NewID: func() string { m.w.ids++; return fmt.Sprintf("id-%d", m.w.ids) },
	}, m.opts)
}

// sync runs one cycle that must not fail.
func (m *machine) sync() syncer.Result {
	m.w.t.Helper()
	m.w.now = m.w.now.Add(5 * time.Second)
	r, err := m.s.Cycle(context.Background())
	if err != nil {
		m.w.t.Fatalf("%s: cycle: %v", m.name, err)
	}
	m.last = r
	return r
}

// syncErr runs one cycle that must fail.
func (m *machine) syncErr() error {
	m.w.t.Helper()
	m.w.now = m.w.now.Add(5 * time.Second)
	_, err := m.s.Cycle(context.Background())
	if err == nil {
		m.w.t.Fatalf("%s: the cycle did not fail", m.name)
	}
	return err
}

func (m *machine) save(p memory.Path, content string) {
	m.w.t.Helper()
	if !m.Save(p, content) {
		m.w.t.Fatalf("%s: cannot save %s", m.name, p)
	}
}

type files = map[memory.Path]string

func (m *machine) want(want files) {
	m.w.t.Helper()
	if diff := cmp.Diff(want, m.Files()); diff != "" {
		m.w.t.Errorf("%s: disk (-want +got):\n%s", m.name, diff)
	}
}

func (w *world) want(want files) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.hub.Files()); diff != "" {
		w.t.Errorf("hub (-want +got):\n%s", diff)
	}
}

// settle runs cycles of all machines until none has anything to do.
func (w *world) settle(ms ...*machine) {
	w.t.Helper()
	for range 10 {
		idle := true
		for _, m := range ms {
			r := m.sync()
			idle = idle && r.Pulled+r.Pushed+r.Deleted == 0
		}
		if idle {
			return
		}
	}
	w.t.Fatal("the machines do not come to rest")
}
