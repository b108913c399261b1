package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
	end := time.Now().Add(20 * time.Second)
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
	must(t, admin.QueryRow(ctx, "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND application_name='memsvc-listen'").Scan(&cut))
	if cut != 1 {
		t.Fatalf("%d connections listen, want 1", cut)
	}
	for n := range 3 {
		reaches(t, a, c, fmt.Sprint("hint after the cut ", n))
	}
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
		deadline := time.After(20 * time.Second)
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
	end := time.Now().Add(20 * time.Second)
	for !strings.Contains(said.String(), "polling alone") {
		if time.Now().After(end) {
			t.Fatalf("not said: %s", said)
		}
		reaches(t, a, c, "polled")
	}
	reaches(t, a, c, "polled after all")
}
