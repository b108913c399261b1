package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

func commitTo(s *postgres.Store, key memory.ProjectKey, path, text string) error {
	_, err := s.Commit(ctx, store.CommitRequest{Project: key, Now: time.Now(),
		Changes: []memory.Change{{Path: memory.Path(path), Kind: memory.Put, Content: []byte(text)}}})
	return err
}

// TestProjectsDoNotWaitForEachOther holds one project's lock while many wait for it,
// more than there are connections: other projects go on.
func TestProjectsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url + "&pool_max_conns=4"})
	defer func() { _ = s.Close() }()
	busy, free := memory.ProjectKey{Team: "acme", Project: "busy"}, memory.ProjectKey{Team: "acme", Project: "free"}
	must(t, s.CreateProject(ctx, busy, time.Now()))
	must(t, s.CreateProject(ctx, free, time.Now()))
	holder, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = holder.Close(context.Background()) }()
	tx, err := holder.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, "SELECT FROM memsvc.projects WHERE project='busy' FOR UPDATE")
	must(t, err)
	const waiting = 30
	var wg sync.WaitGroup
	for n := range waiting {
		wg.Go(func() {
			if err := commitTo(s, busy, fmt.Sprintf("f%d.md", n), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	// Those who wait give up in the end, so that a slow machine must not take long here.
	for n, end := 0, time.Now().Add(3*time.Second); n < 5 || n < 50 && time.Now().Before(end); n++ {
		must(t, commitTo(s, free, "a.md", fmt.Sprint(n)))
	}
	info, err := s.Project(ctx, busy) // readers do not wait either
	must(t, err)
	if info.Head.Revision != 0 {
		t.Errorf("the busy project is at revision %d while its lock is held", info.Head.Revision)
	}
	must(t, tx.Commit(ctx))
	wg.Wait()
	if info, err = s.Project(ctx, busy); err != nil || info.Head.Revision != waiting {
		t.Errorf("the busy project is at %+v, %v, want revision %d", info.Head, err, waiting)
	}
}

// TestLateTransactionsAreNoticed commits, at another handle's back, in a transaction that
// began before others which were seen to end: by time or by number it would be old.
func TestLateTransactionsAreNoticed(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	defer func() { _, _ = a.Close(), b.Close() }()
	late, other := memory.ProjectKey{Team: "acme", Project: "late"}, memory.ProjectKey{Team: "acme", Project: "other"}
	must(t, a.CreateProject(ctx, late, time.Now()))
	must(t, a.CreateProject(ctx, other, time.Now()))
	writer, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = writer.Close(context.Background()) }()
	tx, err := writer.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, "SELECT pg_current_xact_id()") // it has its number now
	must(t, err)
	fired := func(c <-chan struct{}, what string) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatalf("no notice of %s", what)
		}
	}
	ofLate, stopLate := b.Notify([]memory.ProjectKey{late})
	defer stopLate()
	fired(ofLate, "the first look") // which tells whoever is there by then
	ofOther, stopOther := b.Notify([]memory.ProjectKey{other})
	defer stopOther()
	for n := range 3 { // higher numbers, which b has seen
		must(t, commitTo(a, other, "a.md", fmt.Sprint(n)))
		fired(ofOther, "another project's commit")
	}
	_, err = tx.Exec(ctx, `INSERT INTO memsvc.commits(project, rev, id, time, time_ns, bytes, principal, machine, client, session, message)
		SELECT id, 1, 'x', now(), 0, 0, '', '', '', '', '' FROM memsvc.projects WHERE project='late'`)
	must(t, err)
	select {
	case <-ofLate:
		t.Fatal("a notice before the commit")
	default:
	}
	must(t, tx.Commit(ctx))
	fired(ofLate, "the late commit")
}
