package archive_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
)

// altered is a store that gives out one text other than it was.
type altered struct {
	store.Backend
	change func(*memory.Commit)
}

func (a altered) History(c context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	commits, err := a.Backend.History(c, key, after, limit, maxBytes)
	for i := range commits {
		a.change(&commits[i])
	}
	return commits, err
}

func TestCheckFindsEveryDifference(t *testing.T) {
	file := export(t, source(t), archive.Scope{})
	dst := inmem.New(inmem.Options{Epoch: "dst-1"})
	if _, err := archive.Check(ctx, dst, bytes.NewReader(file), nil); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("an empty hub: %v", err)
	}
	count, err := archive.Import(ctx, dst, bytes.NewReader(file), options("dst-2"))
	must(t, err)
	first, err := archive.Check(ctx, dst, bytes.NewReader(file), nil)
	must(t, err)
	equal(t, "checked", first.Count, count)
	_, err = dst.Commit(ctx, store.CommitRequest{Project: payments, Now: day0.Add(time.Hour), Changes: []memory.Change{put("later.md", "later")}})
	must(t, err)
	again, err := archive.Check(ctx, dst, bytes.NewReader(file), nil)
	must(t, err)
	equal(t, "after a further commit", again, first)
	if len(first.Digest) != 64 {
		t.Errorf("digest %q", first.Digest)
	}
	for name, change := range map[string]func(*memory.Commit){
		"a text": func(c *memory.Commit) {
			for i := range c.Changes {
				if len(c.Changes[i].Content) > 0 {
					c.Changes[i].Content = append(bytes.Clone(c.Changes[i].Content), ' ')
				}
			}
		},
		"an etag":  func(c *memory.Commit) { c.Changes[0].ETag = memory.ETagOf([]byte("x")) },
		"an id":    func(c *memory.Commit) { c.ID += "0" },
		"a time":   func(c *memory.Commit) { c.Time = c.Time.Add(1) },
		"a path":   func(c *memory.Commit) { c.Changes[0].Path += "x" },
		"a change": func(c *memory.Commit) { c.Changes = c.Changes[1:] },
	} {
		if _, err := archive.Check(ctx, altered{dst, change}, bytes.NewReader(file), nil); !errors.Is(err, memory.ErrInternal) {
			t.Errorf("%s is another: %v", name, err)
		}
	}
}
