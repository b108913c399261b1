package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

var hinted = memory.ProjectKey{Team: "acme", Project: "hinted"}

// reaches commits at from until a notice comes out of c.
func reaches(t *testing.T, from *postgres.Store, c <-chan struct{}, what string) {
	t.Helper()
	end := time.Now().Add(time.Minute)
	for n := 0; time.Now().Before(end); n++ {
		must(t, commitTo(from, hinted, "a.md", fmt.Sprint(what, n)))
		select {
		case <-c:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Fatalf("no notice: %s", what)
}

// TestHintsReachReplicas watches through a replica that as good as never looks unless it
// is told to: each commit's hint makes it look, also after its connection was cut.
func TestHintsReachReplicas(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	a := open(t, postgres.Options{URL: url})
	b := open(t, postgres.Options{URL: url, PollEvery: time.Hour})
	defer func() { _, _ = a.Close(), b.Close() }()
	must(t, a.CreateProject(ctx, hinted, time.Now()))
	c, stop := b.Notify([]memory.ProjectKey{hinted})
	defer stop()
	for n := range 3 {
		reaches(t, a, c, fmt.Sprint("hint ", n))
	}
	admin, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	var cut int
	must(t, admin.QueryRow(ctx, "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND application_name='memsvc-listen' AND datname=current_database()").Scan(&cut))
	if cut != 1 {
		t.Fatalf("%d connections listen, want 1", cut)
	}
	for n := range 3 {
		reaches(t, a, c, fmt.Sprint("hint after the cut ", n))
	}
}

// lateEars passes connections on to a server. What one that has sent LISTEN is told after
// the answer to that comes late, once.
func lateEars(t *testing.T, to string, late time.Duration) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var wg sync.WaitGroup
	pass := func(in net.Conn) {
		defer in.Close()
		out, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer out.Close()
		var listens atomic.Bool
		wg.Go(func() {
			defer in.Close()
			buf := make([]byte, 64<<10)
			for heard := 0; ; {
				n, err := out.Read(buf)
				if listens.Load() {
					if heard++; heard == 2 {
						time.Sleep(late) // the way is slow
					}
				}
				if _, werr := in.Write(buf[:n]); err != nil || werr != nil {
					return
				}
			}
		})
		buf := make([]byte, 64<<10)
		for {
			n, err := in.Read(buf)
			if bytes.Contains(buf[:n], []byte("LISTEN ")) {
				listens.Store(true)
			}
			if _, werr := out.Write(buf[:n]); err != nil || werr != nil {
				return
			}
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
	t.Cleanup(func() { _ = ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

// TestLateProofOfHints has the proof that hints arrive come later than a hint may take, as
// from a server that is busy: the replica listens nevertheless.
func TestLateProofOfHints(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	a := open(t, postgres.Options{URL: url})
	b := open(t, postgres.Options{URL: strings.Replace(url, hostOf(url), lateEars(t, hostOf(url), 4*time.Second), 1), PollEvery: time.Hour})
	defer func() { _, _ = a.Close(), b.Close() }()
	must(t, a.CreateProject(ctx, hinted, time.Now()))
	c, stop := b.Notify([]memory.ProjectKey{hinted})
	defer stop()
	reaches(t, a, c, "after a late proof")
}

// TestPollingAlone turns the hints off, in one replica after the other and in both: every
// commit is noticed nevertheless.
func TestPollingAlone(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, off := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		url := server.Database()
		a, b := open(t, postgres.Options{URL: url, NoHints: off[0]}), open(t, postgres.Options{URL: url, NoHints: off[1]})
		must(t, a.CreateProject(ctx, hinted, time.Now()))
		c, stop := b.Notify([]memory.ProjectKey{hinted})
		deadline := time.After(time.Minute)
		for n := range 20 {
			must(t, commitTo(a, hinted, "a.md", fmt.Sprint(n)))
			select {
			case <-c:
			case <-deadline:
				t.Fatalf("hints off %v: no notice of commit %d", off, n)
			}
		}
		stop()
		must(t, a.Close())
		must(t, b.Close())
	}
}

// logged keeps what a store says.
type logged struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestPoolerDeliversNoHints watches through a pooler, whose sessions last a transaction:
// the replica finds out that LISTEN is deaf there, says so and goes on polling.
func TestPoolerDeliversNoHints(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	p := startPooler(t, url, 3)
	pooled := fmt.Sprintf("postgres://memsvc@%s/%s?sslmode=disable&default_query_exec_mode=cache_describe", p.ln.Addr(), "postgres")
	said := &logged{}
	a := open(t, postgres.Options{URL: url})
	b := open(t, postgres.Options{URL: pooled, Logger: slog.New(slog.NewTextHandler(said, nil))})
	defer func() { _, _ = a.Close(), b.Close() }()
	must(t, a.CreateProject(ctx, hinted, time.Now()))
	c, stop := b.Notify([]memory.ProjectKey{hinted})
	defer stop()
	end := time.Now().Add(time.Minute)
	for !strings.Contains(said.String(), "polling alone") {
		if time.Now().After(end) {
			t.Fatalf("not said: %s", said)
		}
		reaches(t, a, c, "polled")
	}
	reaches(t, a, c, "polled after all")
}
