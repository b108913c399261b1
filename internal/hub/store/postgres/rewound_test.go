package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestDatabasePutBackUnderARunningStore takes commits away below a store that knows
// of them, as a restore does, and puts others in their place: the store judges on what
// is there.
func TestDatabasePutBackUnderARunningStore(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	url := server.Database()
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	defer func() { _, _ = a.Close(), b.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, a.CreateProject(ctx, key, time.Now()))
	commit := func(s *postgres.Store, path, text string, pre memory.Precondition) (store.CommitResult, error) {
		return s.Commit(ctx, store.CommitRequest{Project: key, Now: time.Now(),
			Changes: []memory.Change{{Path: memory.Path(path), Kind: memory.Put, Content: []byte(text), Precondition: pre}}})
	}
	for n := range 3 {
		_, err := commit(a, fmt.Sprintf("f%d.md", n), fmt.Sprint(n), memory.IfAbsent())
		must(t, err)
	}
	database := &pgtest.Server{URL: url}
	back := func() { // to revision 2
		t.Helper()
		for _, sql := range []string{
			"DELETE FROM memsvc.commits WHERE rev > 2", "DELETE FROM memsvc.versions WHERE rev > 2", "DELETE FROM memsvc.heads WHERE rev > 2",
			"UPDATE memsvc.projects SET head=2, head_id=(SELECT id FROM memsvc.commits WHERE rev=2), files=2, bytes=2",
		} {
			must(t, database.Exec(ctx, sql))
		}
	}
	back()
	res, err := commit(a, "f2.md", "new", memory.IfAbsent()) // a knew of an f2.md
	if err != nil || res.Head.Revision != 3 {
		t.Fatalf("after the restore: %+v, %v, want revision 3", res, err)
	}
	back()
	for _, path := range []string{"g.md", "h.md"} { // as many as a knew of, and more, by another
		_, err := commit(b, path, "x", memory.IfAbsent())
		must(t, err)
	}
	res, err = commit(a, "f2.md", "again", memory.IfAbsent())
	if err != nil || res.Head.Revision != 5 {
		t.Fatalf("after a restore and commits of another: %+v, %v, want revision 5", res, err)
	}
	if _, err := commit(a, "G.md", "x", memory.IfAbsent()); err == nil {
		t.Error("a path that collides with one of the other history was accepted")
	}
}
