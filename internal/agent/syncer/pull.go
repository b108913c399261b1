package syncer

import (
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// remoteFile is what the hub holds at a path.
type remoteFile struct {
	ETag     memory.ETag
	Revision memory.Revision
	Size     int64
	ModTime  time.Time
	Author   memory.Author
	Content  []byte // nil until fetched
}

// pull learns what the hub holds: by its changes since the cursor, or in full after
// a lost state, a changed epoch or a cursor that is too old.
func (c *cycle) pull(ctx context.Context) error {
	s := c.s
	if s.state.Fresh {
		// The first saved step ends Fresh; the empty recovery keeps the rest of the
		// first comparison going across a crash.
		c.todo.SetRecovery = &Recovery{}
		return c.pullAll(ctx, reasonFresh, memory.Cursor{}, 0)
	}
	if r := s.state.Recovery; r != nil {
		if r.From == (memory.Cursor{}) {
			return c.pullAll(ctx, reasonFresh, memory.Cursor{}, 0)
		}
		return c.recover(ctx, r.From)
	}
	if c.fitNow() {
		return c.pullAll(ctx, reasonUpdated, s.state.Cursor, 0)
	}
	err := c.pullChanges(ctx)
	if err == nil {
		c.admit()
		var rewound bool
		if rewound, err = c.rewound(ctx); rewound {
			return c.recover(ctx, s.state.Cursor)
		}
	}
	switch {
	case errors.Is(err, memory.ErrRevisionCompacted):
		return c.pullAll(ctx, reasonCompacted, s.state.Cursor, 0)
	case errors.Is(err, memory.ErrEpochChanged):
		return c.recover(ctx, s.state.Cursor)
	}
	return err
}

// rewound reports whether the hub fell back to a point that our cursor fits, but not
// all we agreed on: a commit of ours that came after others we had not pulled yet is
// in the baseline although the cursor stands before it. Such a commit must be in what
// follows the cursor.
func (c *cycle) rewound(ctx context.Context) (bool, error) {
	st := &c.s.state
	beyond, missing := memory.Revision(0), false
	look := func(p memory.Path, e memory.ETag, rev memory.Revision) {
		was, told := c.told[p][rev]
		switch {
		case rev <= st.Cursor.Revision:
		case rev > c.cursor.Revision:
			beyond = max(beyond, rev)
		default:
			missing = missing || !told || was != e
		}
	}
	for p, b := range st.Baseline {
		look(p, b.Hub, b.HubRevision)
	}
	for p, a := range st.Ahead {
		look(p, a.ETag, a.Revision)
	}
	if missing {
		return true, nil
	}
	if beyond == 0 {
		return false, nil
	}
	info, err := c.s.ports.Remote.Head(ctx, c.cursor)
	if err != nil {
		return false, err
	}
	return info.Head.Revision < beyond, nil
}

// pullChanges folds the commits since the cursor into the tree that the state knows.
func (c *cycle) pullChanges(ctx context.Context) error {
	st := &c.s.state
	c.remote = make(map[memory.Path]remoteFile, len(c.base))
	for p, b := range c.base {
		if b.Hub != "" {
			c.remote[p] = remoteFile{ETag: b.Hub, Revision: b.HubRevision}
		}
	}
	for p, a := range st.Ahead {
		if c.base[p].HubRevision > a.Revision {
			continue
		}
		c.touched[p] = a.Revision
		if a.ETag == "" {
			delete(c.remote, p)
		} else {
			c.pass(p, a.ETag, a.Revision)
			c.remote[p] = remoteFile{ETag: a.ETag, Revision: a.Revision}
			if a.Author != "" {
				c.authors[p] = credit{a.ETag, a.Author}
			}
		}
	}
	c.cursor = st.Cursor
	c.keepUnfit()
	for {
		page, err := c.s.ports.Remote.Changes(ctx, c.cursor)
		if err != nil {
			return &stepError{step: "pull changes", err: err}
		}
		for i := range page.Commits {
			c.fold(ctx, &page.Commits[i])
			c.cursor = page.Cursors[i]
		}
		c.passMarks(page.Cursors)
		if !page.More || len(page.Commits) == 0 {
			return nil
		}
	}
}

// fold takes one commit into the remote tree. What the baseline has seen already, as
// after a crash before the cursor was saved, is passed over.
func (c *cycle) fold(ctx context.Context, commit *memory.Commit) {
	for _, u := range commit.Unfit {
		c.holdUnfit(u)
	}
	for _, ch := range commit.Changes {
		p := ch.Path
		if _, err := memory.ParsePath(string(p)); err != nil {
			c.holdUnfit(memory.Unfit{Path: string(p), Deleted: ch.Kind == memory.Delete})
			continue
		}
		if ch.ETag != "" {
			c.pass(p, ch.ETag, commit.Revision)
		}
		if c.told[p] == nil {
			c.told[p] = map[memory.Revision]memory.ETag{}
		}
		c.told[p][commit.Revision] = ch.ETag
		if c.base[p].HubRevision <= commit.Revision {
			c.credited(ctx, p, ch.ETag, commit.Author)
		}
		if ch.Kind == memory.Redact {
			c.redactedAt[p] = true
		}
		if b, known := c.base[p]; known && b.HubRevision >= commit.Revision || c.touched[p] >= commit.Revision {
			continue
		}
		if was := c.remote[p].ETag; ch.Kind == memory.Redact && was != ch.ETag {
			c.redacted[was] = true // that hubs told which cannot be asked
		}
		c.touched[p] = commit.Revision
		c.inline -= int64(len(c.remote[p].Content))
		if ch.Kind == memory.Delete {
			delete(c.remote, p)
			delete(c.renamed, p)
			continue
		}
		if ch.RenamedFrom != "" {
			c.renamed[p] = ch.RenamedFrom
		}
		f := remoteFile{ETag: ch.ETag, Revision: commit.Revision, Size: ch.Size, ModTime: ch.ModTime, Author: commit.Author}
		if c.inline+int64(len(ch.Content)) <= inlineBytes && memory.ETagOf(ch.Content) == ch.ETag {
			f.Content = ch.Content
			c.inline += int64(len(ch.Content))
		}
		c.remote[p] = f
	}
}

// pass notes that a path went through a text on the hub.
func (c *cycle) pass(p memory.Path, e memory.ETag, rev memory.Revision) {
	if c.passed[p] == nil {
		c.passed[p] = map[memory.ETag]memory.Revision{}
	}
	c.passed[p][e] = rev
}

// fetch makes sure that the contents of these paths are in c.remote, as far as the
// hub still holds the texts that were planned with.
func (c *cycle) fetch(ctx context.Context, paths []memory.Path) error {
	var want []memory.Path
	for _, p := range paths {
		if f, living := c.remote[p]; living && f.Content == nil {
			want = append(want, p)
		}
	}
	for len(want) > 0 {
		ask := want[:min(len(want), batchFiles)]
		batch, err := c.s.ports.Remote.Get(ctx, ask)
		if err != nil {
			return &stepError{step: "fetch memories", err: err}
		}
		for _, m := range batch.Memories {
			f := c.remote[m.Path]
			if m.ETag == f.ETag && memory.ETagOf(m.Content) == m.ETag {
				f.Content, f.ModTime, f.Author, f.Size = m.Content, m.ModTime, m.Author, m.Size
				c.credited(ctx, m.Path, m.ETag, m.Author)
				if f.Content == nil {
					f.Content = []byte{}
				}
				c.remote[m.Path] = f
			}
		}
		if len(batch.Remaining) >= len(ask) {
			return &stepError{step: "fetch memories", err: errors.New("the hub answered none of them")}
		}
		want = append(append([]memory.Path(nil), batch.Remaining...), want[len(ask):]...)
	}
	return nil
}
