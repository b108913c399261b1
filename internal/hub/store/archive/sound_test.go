package archive_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/memory"
)

// damagedStore answers other than the store within.
type damagedStore struct {
	store.Backend
	log   func([]memory.Commit) []memory.Commit
	heads func([]memory.Memory) []memory.Memory
	info  func(*store.ProjectInfo)
}

func (d damagedStore) History(c context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	out, err := d.Backend.History(c, key, after, limit, maxBytes)
	if d.log != nil {
		out = d.log(out)
	}
	return out, err
}

func (d damagedStore) List(c context.Context, key memory.ProjectKey, opts store.ListOptions) ([]memory.Memory, error) {
	out, err := d.Backend.List(c, key, opts)
	if d.heads != nil {
		out = d.heads(out)
	}
	return out, err
}

func (d damagedStore) Project(c context.Context, key memory.ProjectKey) (store.ProjectInfo, error) {
	out, err := d.Backend.Project(c, key)
	if d.info != nil && key == payments {
		d.info(&out)
	}
	return out, err
}

func faults(t testing.TB, b store.Backend) (archive.Count, []string) {
	t.Helper()
	var out []string
	count, err := archive.Sound(ctx, b, nil, func(f string) { out = append(out, f) })
	must(t, err)
	return count, out
}

// TestSoundStores finds nothing in what every kind of change leaves.
func TestSoundStores(t *testing.T) {
	dst := newSQLite(t)
	_, err := archive.Import(ctx, dst, bytes.NewReader(export(t, source(t), archive.Scope{})), options("dst-2"))
	must(t, err)
	for what, b := range map[string]store.Backend{"made": source(t), "imported": dst} {
		_, err := b.Commit(ctx, store.CommitRequest{Project: payments, Now: day0.Add(time.Hour), Changes: []memory.Change{put("f1.md", "again"), put("new.md", "x")}})
		must(t, err)
		count, found := faults(t, b)
		if len(found) > 0 || count.Projects != 3 || count.Commits == 0 || count.Bytes == 0 {
			t.Errorf("%s: %+v, %v, want no fault in three projects", what, count, found)
		}
	}
}

// TestSoundFindsEveryDamage takes away or changes one thing at a time.
func TestSoundFindsEveryDamage(t *testing.T) {
	b := source(t)
	without := func(rev memory.Revision) func([]memory.Commit) []memory.Commit {
		return func(in []memory.Commit) (out []memory.Commit) {
			for _, c := range in {
				if c.Project != payments || c.Revision != rev {
					out = append(out, c)
				}
			}
			return out
		}
	}
	first := func(f func(*memory.Memory)) func([]memory.Memory) []memory.Memory {
		return func(in []memory.Memory) []memory.Memory {
			for i := range in {
				if in[i].Path == "a.md" {
					f(&in[i])
				}
			}
			return in
		}
	}
	change := func(rev memory.Revision, f func(*memory.Commit)) func([]memory.Commit) []memory.Commit {
		return func(in []memory.Commit) []memory.Commit {
			for i := range in {
				if in[i].Project == payments && in[i].Revision == rev {
					f(&in[i])
				}
			}
			return in
		}
	}
	info, err := b.Project(ctx, payments)
	must(t, err)
	for what, c := range map[string]struct {
		d    damagedStore
		says string
	}{
		"a commit":      {damagedStore{log: without(12)}, "after revision 11 comes 13"},
		"the last":      {damagedStore{log: without(info.Head.Revision)}, "the history ends at revision 23 and not with the head, 24"},
		"a change":      {damagedStore{log: change(13, func(c *memory.Commit) { c.Changes = c.Changes[1:] })}, "a change is missing"},
		"a text":        {damagedStore{log: change(13, func(c *memory.Commit) { c.Changes[0].Content = []byte("other") })}, "revision 13: the text of a.md is not the one of its etag"},
		"its id":        {damagedStore{log: change(24, func(c *memory.Commit) { c.ID = "other" })}, "not with the head"},
		"a memory":      {damagedStore{heads: func(in []memory.Memory) []memory.Memory { return in[min(1, len(in)):] }}, "is missing, which revision"},
		"a head's text": {damagedStore{heads: first(func(m *memory.Memory) { m.Content = []byte("other") })}, "the text of a.md is not"},
		"a head's etag": {damagedStore{heads: first(func(m *memory.Memory) { m.ETag = memory.ETagOf([]byte("other")) })}, "a.md is not as revision 20 left it"},
		"a stranger":    {damagedStore{heads: first(func(m *memory.Memory) { m.Path = "b.md" })}, "b.md is there, and no revision has made it"},
		"the counts":    {damagedStore{info: func(i *store.ProjectInfo) { i.Files++ }}, "the head counts"},
	} {
		c.d.Backend = b
		_, found := faults(t, c.d)
		if text := strings.Join(found, "\n"); !strings.Contains(text, c.says) || !strings.Contains(text, payments.String()+": ") || strings.Contains(text, other.String()) && what != "a memory" {
			t.Errorf("%s: %q, want it to say %q of %s", what, text, c.says, payments)
		}
	}
}
