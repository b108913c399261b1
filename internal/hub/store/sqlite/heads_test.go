package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Whatever the table of heads lacks comes from the commits: a project that is loaded
// anew is as it was, before and after the table catches up, with deletes, and when a
// compaction has thinned the rows out.
func TestHeadsFallBehindAndCatchUp(t *testing.T) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(3, 4))
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.CreateProject(ctx, key, day0); err != nil {
		t.Fatal(err)
	}
	state := func() []memory.Memory {
		t.Helper()
		ms, err := s.List(ctx, key, store.ListOptions{Deleted: true, Content: true})
		if err != nil {
			t.Fatal(err)
		}
		return ms
	}
	now := day0
	for round, commits := range []int{1, 100, maxLooseCommits, 3, 2*maxLooseCommits + 5, 40} {
		for i := range commits {
			now = now.Add(time.Minute)
			req := store.CommitRequest{Project: key, Now: now}
			for _, n := range rnd.Perm(30)[:1+rnd.IntN(3)] {
				ch := memory.Change{Path: memory.Path(fmt.Sprintf("f%d.md", n)), Kind: memory.Put, Content: []byte(fmt.Sprint(round, i, n))}
				if rnd.IntN(4) == 0 {
					ch.Kind, ch.Content = memory.Delete, nil
				}
				req.Changes = append(req.Changes, ch)
			}
			if _, err := s.Commit(ctx, req); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 1 {
			if _, err := s.Compact(ctx, key, now.Add(-20*time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		want, info := state(), projectInfo(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openTest(t, Options{Dir: dir})
		if diff := cmp.Diff(want, state()); diff != "" {
			t.Fatalf("round %d: loaded anew (-want +got):\n%s", round, diff)
		}
		if diff := cmp.Diff(info, projectInfo(t, s)); diff != "" {
			t.Fatalf("round %d: the project loaded anew (-want +got):\n%s", round, diff)
		}
		p, err := s.acquire(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if behind := p.rev - p.headed; behind > maxLooseCommits {
			t.Errorf("round %d: the table of heads is %d commits behind, at most %d", round, behind, maxLooseCommits)
		}
		s.release(p)
	}
}

func projectInfo(t *testing.T, s *Store) store.ProjectInfo {
	t.Helper()
	info, err := s.Project(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A database of the first schema, whose heads are complete, goes on.
func TestFirstSchemaGoesOn(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.CreateProject(ctx, key, day0); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.md", "b.md", "a.md"} {
		if _, err := s.Commit(ctx, put(name, name+time.Now().String())); err != nil {
			t.Fatal(err)
		}
	}
	// Back to the first schema: the heads complete, the column gone.
	p, err := s.acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	err = s.change(ctx, "settle", func(tr *transaction) error { return tr.settle(tr.on(p)) })
	if err != nil {
		t.Fatal(err)
	}
	s.release(p)
	want := projectInfo(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := open(dir+"/"+FileName, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script(`ALTER TABLE projects DROP COLUMN headed; DROP TABLE revs; DROP TABLE settled;
		ALTER TABLE audit DROP COLUMN count; ALTER TABLE audit DROP COLUMN last;
		INSERT INTO audit(time,team,principal,action,subject,detail,request) VALUES(x'0000','acme','token:ann','token.create','tokens/x','','q');
		CREATE UNIQUE INDEX commits_rev ON commits(project, rev); PRAGMA user_version=1;`); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}

	s = openTest(t, Options{Dir: dir})
	if diff := cmp.Diff(want, projectInfo(t, s)); diff != "" {
		t.Errorf("after the migration (-want +got):\n%s", diff)
	}
	events, err := s.AuditEvents(ctx, "", 0, 0)
	if err != nil || len(events) != 1 || events[0].Count != 1 || !events[0].LastTime.IsZero() || events[0].Subject != "tokens/x" {
		t.Errorf("audit log %+v, %v: want the event of before, once", events, err)
	}
	p, err = s.acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(p)
	if p.headed != 3 || len(p.unheaded) != 0 {
		t.Errorf("heads as of revision %d with %d paths behind, want 3 and none", p.headed, len(p.unheaded))
	}
}
