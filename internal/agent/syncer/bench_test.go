package syncer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// BenchmarkCycle measures what a cycle with nothing to do costs by itself, over ports that
// cost next to nothing.
func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{200, 5000} {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		hub, disk, ids := synctest.NewHub(clock), synctest.NewDisk(clock), 0
		for i := range n {
			disk.Save(memory.Path(fmt.Sprintf("project_%04d.md", i)), fmt.Sprint("text ", i, "\n", strings.Repeat("words\n", 100)))
		}
		state := synctest.NewState()
		s := syncer.New(syncer.Ports{
			Local: &quietLocal{Local: disk.Local()}, State: state, Remote: hub.Remote(), Guard: &synctest.Guard{}, Clock: clock,
			NewID: func() string { ids++; return fmt.Sprint(ids) },
		}, syncer.Options{})
		cycle := func() {
			if _, err := s.Cycle(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		cycle()
		b.Run(fmt.Sprint("idle/files=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cycle()
			}
		})
	}
}

// quietLocal scans once, since hashing is the workspace's to avoid.
type quietLocal struct {
	syncer.Local
	last *syncer.Snapshot
}

func (l *quietLocal) Scan(ctx context.Context) (syncer.Snapshot, error) {
	if l.last != nil && l.last.Marker != "" {
		return *l.last, nil
	}
	s, err := l.Local.Scan(ctx)
	l.last = &s
	return s, err
}
