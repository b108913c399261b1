//go:build linux

package killtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hub/changefeed/changefeedtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
	"github.com/memsvc/memsvc/internal/porttest"
)

// fleet is several hubs on one PostgreSQL database of its own, with a load balancer in
// front of them.
type fleet struct {
	t        *testing.T
	database *pgtest.Server
	url      string // of the database
	hubs     []*hub
	front    *hub // the balancer as if it were a hub, for what speaks to one
}

// newFleet starts the database, with a disk that it waits for, and so many hubs on it.
func newFleet(t *testing.T, hubs int, settings ...string) *fleet {
	t.Helper()
	return newFleetOf(t, "", hubs, settings...)
}

// newFleetOf is newFleet with the programs of a directory, the schema and the first token theirs too.
func newFleetOf(t *testing.T, programs string, hubs int, settings ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, database: pgtest.Start(t, pgtest.Options{Own: true, Durable: true, Settings: settings})}
	url := f.database.Database()
	f.url = url
	if out, err := of(programs, command(t.Context(), "memsvc", "migrate", "--database-url", url)).CombinedOutput(); err != nil {
		t.Fatalf("migrate: %v: %s", err, out)
	}
	admin := filepath.Join(tempDir(t), "admin.token")
	if _, errOut, code := finish(t, of(programs, command(t.Context(), "memsvc", "token", "bootstrap", "--database-url", url, "--out", admin))); code != 0 {
		t.Fatalf("token bootstrap: %s", errOut)
	}
	for range hubs {
		h := &hub{t: t, data: filepath.Join(tempDir(t), "unused"), grpc: porttest.Free(t), web: porttest.Free(t), ops: porttest.Free(t),
			adminToken: admin, programs: programs, extra: []string{"--database-url", url}}
		h.start()
		f.hubs = append(f.hubs, h)
	}
	f.front = &hub{t: t, grpc: balance(t, f.hubs), adminToken: admin}
	f.front.writerToken = f.front.token(project)
	for _, h := range f.hubs {
		h.writerToken = f.front.writerToken
	}
	return f
}

// balance listens on an address and passes each connection on to the next hub that
// takes it, as a load balancer does.
func balance(t *testing.T, hubs []*hub) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", porttest.Free(t))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var turn atomic.Uint64
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		wg.Wait()
	})
	pass := func(in net.Conn) {
		defer in.Close()
		for range hubs {
			to := hubs[int(turn.Add(1))%len(hubs)]
			out, err := net.DialTimeout("tcp", to.grpc, 10*time.Second)
			if err != nil {
				continue
			}
			defer out.Close()
			stop := context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
			defer stop()
			done := make(chan struct{}, 2)
			for _, p := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() {
					_, _ = io.Copy(p[0], p[1]) // either end's end is the other's
					done <- struct{}{}
				}()
			}
			<-done
			_, _ = in.Close(), out.Close()
			<-done
			return
		}
	}
	wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pass(in) })
		}
	})
	return ln.Addr().String()
}

// watch follows the project through an address and holds every event against the
// promises of a watch.
type watch struct {
	name string
	feed *client.Feed

	begin time.Time // streams may be down for long, so silence is not judged

	mu    sync.Mutex // guards what follows
	check *changefeedtest.Checker
	at    memory.Revision
	errs  []error
	downs []error // why streams ended
}

// startWatch follows from the beginning until the test ends.
func startWatch(t *testing.T, h *hub, name string) *watch {
	t.Helper()
	w := &watch{name: name, begin: time.Now()}
	w.check = changefeedtest.New(map[memory.ProjectKey]memory.Revision{key(): 0}, w.begin)
	w.feed = h.client().NewFeed(w.event)
	w.feed.Follow(key(), memory.Cursor{}, false)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.feed.Run(ctx) }) // ctx's error
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

func (w *watch) event(ev client.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch ev.Kind {
	case client.EventCommit:
		w.at = ev.Commit.Revision
		if err := w.check.Commit(ev.Project, ev.Commit.Revision, ev.Commit.ID, len(ev.Commit.Changes), w.begin); err != nil {
			w.errs = append(w.errs, err)
		}
	case client.EventBookmark:
		if err := w.check.Bookmark(ev.Project, ev.Cursor.Revision, w.begin); err != nil {
			w.errs = append(w.errs, err)
		}
	case client.EventStopped:
		w.errs = append(w.errs, fmt.Errorf("the watch was ended: %w", ev.Err))
	case client.EventDown:
		w.downs = append(w.downs, ev.Err)
	}
}

// complete waits until the watch has come to the history's end, and checks that it saw
// all of it.
func (w *watch) complete(t *testing.T, history []memory.Commit) {
	t.Helper()
	eventually(t, patience, w.name+" has seen everything", func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		if err := errors.Join(w.errs...); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		if int(w.at) < len(history) {
			return fmt.Sprintf("it is at revision %d of %d; streams ended with %v", w.at, len(history), w.downs)
		}
		return ""
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.check.Complete(key(), history); err != nil {
		t.Errorf("%s: %v", w.name, err)
	}
}

// sameEverywhere checks that every hub tells the same history, and returns it.
func (f *fleet) sameEverywhere() []memory.Commit {
	f.t.Helper()
	history := f.front.history()
	for i, h := range f.hubs {
		own := h.history()
		if len(own) != len(history) {
			f.t.Fatalf("hub %d tells of %d revisions, the balancer of %d", i, len(own), len(history))
		}
		for r := range own {
			if own[r].ID != history[r].ID {
				f.t.Fatalf("revision %d is another commit at hub %d", r+1, i)
			}
		}
	}
	return history
}

// ready asks /readyz as an operator would.
func (h *hub) ready() bool {
	_, _, code := call(h.t, "memsvc", "healthcheck", "--ops-addr", h.ops, "--timeout", "3s")
	return code == 0
}
