package synctest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Hub is a hub of one project in memory, no larger than the tests of the syncer need;
// package simtest puts the real one in its place.
type Hub struct {
	Clock syncer.Clock
	// Refuse, if set, is asked about every put and may return a violation's rule.
	Refuse func(p memory.Path, content []byte) string
	// MaxFiles bounds the living files; 0 is no bound.
	MaxFiles int
	// Unnamed leaves the violations out of refusals.
	Unnamed bool
	// Oldest is the first revision that Changes still returns.
	Oldest memory.Revision
	// PageSize bounds Changes, in commits; 0 is no bound.
	PageSize int
	// GetSize bounds Get, in memories; 0 is no bound.
	GetSize int

	epoch    memory.Epoch
	rewinds  map[memory.Epoch]memory.Revision // of former epochs
	commits  []memory.Commit
	living   map[memory.Path]memory.Memory
	dead     map[memory.Path]memory.Memory
	earlier  map[memory.Path][]memory.ETag
	requests map[string]syncer.CommitResult
	redacted map[memory.ETag]bool
}

// NewHub returns a hub with an empty project.
func NewHub(clock syncer.Clock) *Hub {
	return &Hub{
		Clock: clock, epoch: "epoch-1", rewinds: map[memory.Epoch]memory.Revision{}, living: map[memory.Path]memory.Memory{},
		dead: map[memory.Path]memory.Memory{}, earlier: map[memory.Path][]memory.ETag{}, requests: map[string]syncer.CommitResult{},
	}
}

// Clone returns a copy: a backup.
func (h *Hub) Clone() *Hub {
	c := *h
	c.rewinds, c.living, c.dead, c.requests = maps.Clone(h.rewinds), maps.Clone(h.living), maps.Clone(h.dead), maps.Clone(h.requests)
	c.commits = slices.Clone(h.commits)
	c.earlier = map[memory.Path][]memory.ETag{}
	for p, e := range h.earlier {
		c.earlier[p] = slices.Clone(e)
	}
	return &c
}

// NewEpoch makes the hub a restored one.
func (h *Hub) NewEpoch(e memory.Epoch) {
	h.rewinds[h.epoch] = h.head().Revision
	h.epoch = e
}

// Files returns the living files and their texts.
func (h *Hub) Files() map[memory.Path]string {
	out := map[memory.Path]string{}
	for p, m := range h.living {
		out[p] = string(m.Content)
	}
	return out
}

// Memory returns a living memory.
func (h *Hub) Memory(p memory.Path) memory.Memory { return h.living[p] }

// Commits returns the whole history.
func (h *Hub) Commits() []memory.Commit { return slices.Clone(h.commits) }

// Put commits one text, as another machine would that does not say whose it is; "" deletes.
func (h *Hub) Put(p memory.Path, content string) { h.PutBy("", p, content) }

// PutBy is Put by somebody.
func (h *Hub) PutBy(principal string, p memory.Path, content string) {
	ch := memory.Change{Path: p, Kind: memory.Put, Content: []byte(content), ModTime: h.Clock()}
	if content == "" {
		ch = memory.Change{Path: p, Kind: memory.Delete}
	}
	if _, err := h.commit(syncer.CommitRequest{Changes: []memory.Change{ch}}, principal); err != nil {
		panic(err)
	}
}

func (h *Hub) head() memory.Cursor { return h.cursorAt(len(h.commits)) }

func (h *Hub) cursorAt(n int) memory.Cursor {
	c := memory.Cursor{Epoch: h.epoch, Revision: memory.Revision(n)}
	if n > 0 {
		c.CommitID = h.commits[n-1].ID
	}
	return c
}

func (h *Hub) commit(req syncer.CommitRequest, principal string) (syncer.CommitResult, error) {
	if r, again := h.requests[req.RequestID]; again && req.RequestID != "" {
		return r, nil
	}
	if req.Epoch != "" && req.Epoch != h.epoch {
		return syncer.CommitResult{}, h.epochChanged(req.Epoch)
	}
	stale := &memory.Error{Reason: memory.ReasonETagMismatch, Head: h.head()}
	refused := &memory.Error{Reason: memory.ReasonSecretDetected, Message: "refused"}
	files := len(h.living)
	x := &memory.CollisionIndex{}
	for p := range h.living {
		x.Add(p)
	}
	var removed, added []memory.Path
	for _, ch := range req.Changes {
		now := h.living[ch.Path]
		if !ch.Precondition.Holds(now.ETag) {
			if now.ETag == "" {
				now = h.dead[ch.Path]
				now.Path, now.Deleted = ch.Path, true
			}
			stale.Current = append(stale.Current, now)
		}
		if ch.Kind == memory.Delete {
			removed, files = append(removed, ch.Path), files-1
			continue
		}
		added = append(added, ch.Path)
		if now.ETag == "" {
			files++
		}
		if h.Refuse != nil {
			if rule := h.Refuse(ch.Path, ch.Content); rule != "" {
				refused.Violations = append(refused.Violations, memory.Violation{Path: string(ch.Path), Line: 1, Rule: rule})
			}
		}
	}
	switch {
	case len(refused.Violations) > 0:
		if h.Unnamed {
			refused.Violations = nil
		}
		return syncer.CommitResult{}, refused
	case len(stale.Current) > 0:
		return syncer.CommitResult{}, stale
	case h.MaxFiles > 0 && files > h.MaxFiles:
		return syncer.CommitResult{}, &memory.Error{Reason: memory.ReasonQuotaExceeded, Message: "too many files"}
	}
	if pairs := x.CheckAfter(removed, added); len(pairs) > 0 {
		e := &memory.Error{Reason: memory.ReasonPathCollision}
		for _, p := range pairs {
			e.Violations = append(e.Violations, memory.Violation{Path: string(p[0]), Rule: "path-collision"})
		}
		return syncer.CommitResult{}, e
	}
	res := h.append(req, principal)
	h.requests[req.RequestID] = res
	return res, nil
}

func (h *Hub) append(req syncer.CommitRequest, principal string) syncer.CommitResult {
	now := h.Clock()
	c := memory.Commit{Revision: memory.Revision(len(h.commits) + 1), Time: now, Message: req.Message, Author: memory.Author{Principal: principal}}
	for _, ch := range req.Changes {
		old := h.living[ch.Path]
		a := memory.AppliedChange{Path: ch.Path, Kind: ch.Kind, PreviousETag: old.ETag, RenamedFrom: ch.RenamedFrom}
		if ch.Kind == memory.Put {
			a.ETag, a.Content, a.Size, a.ModTime = memory.ETagOf(ch.Content), bytes.Clone(ch.Content), int64(len(ch.Content)), ch.ModTime
		}
		if a.ETag == a.PreviousETag {
			continue
		}
		c.Changes = append(c.Changes, a)
	}
	if len(c.Changes) == 0 {
		last := memory.Commit{}
		if n := len(h.commits); n > 0 {
			last = h.commits[n-1]
		}
		return syncer.CommitResult{Commit: last, Head: h.head()}
	}
	c.ID = memory.NextCommitID(h.head().CommitID, h.epoch, &c)
	h.commits = append(h.commits, c)
	for _, a := range c.Changes {
		if a.PreviousETag != "" {
			h.earlier[a.Path] = append([]memory.ETag{a.PreviousETag}, h.earlier[a.Path]...)
		}
		if a.Kind == memory.Delete {
			delete(h.living, a.Path)
			h.dead[a.Path] = memory.Memory{Path: a.Path, Revision: c.Revision, Deleted: true, LastETag: a.PreviousETag, CommitTime: now}
			continue
		}
		delete(h.dead, a.Path)
		h.living[a.Path] = memory.Memory{Path: a.Path, ETag: a.ETag, Content: a.Content, Size: a.Size, Revision: c.Revision, ModTime: a.ModTime, CommitTime: now, Author: c.Author}
	}
	return syncer.CommitResult{Commit: c, Created: true, Head: h.head()}
}

func (h *Hub) epochChanged(seen memory.Epoch) error {
	e := &memory.Error{Reason: memory.ReasonEpochChanged, Head: h.head(), RewindRevision: h.rewinds[seen]}
	return e // of one epoch with another history: nothing is known to be shared
}

func (h *Hub) check(seen memory.Cursor) error {
	switch n := int(seen.Revision); {
	case seen == memory.Cursor{}:
	case seen.Epoch != h.epoch, n > len(h.commits), h.cursorAt(n).CommitID != seen.CommitID:
		return h.epochChanged(seen.Epoch)
	}
	return nil
}

// Marker is what stands in the place of a redacted text.
const Marker = "<!-- redacted -->\n"

// Redact takes a text away, at every path and from all of history, as the hub does: one
// commit a path, with the etags of the past rewritten.
func (h *Hub) Redact(text string) {
	e, mark := memory.ETagOf([]byte(text)), memory.ETagOf([]byte(Marker))
	if h.redacted == nil {
		h.redacted = map[memory.ETag]bool{}
	}
	h.redacted[e] = true
	hit := map[memory.Path]bool{}
	for i := range h.commits {
		h.commits[i].Changes = slices.Clone(h.commits[i].Changes)
		for j := range h.commits[i].Changes {
			ch := &h.commits[i].Changes[j]
			if ch.ETag == e {
				ch.ETag, ch.Content, ch.Size, hit[ch.Path] = mark, []byte(Marker), int64(len(Marker)), true
			}
			if ch.PreviousETag == e {
				ch.PreviousETag, hit[ch.Path] = mark, true
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(hit)) {
		for i, earlier := range h.earlier[p] {
			if earlier == e {
				h.earlier[p][i] = mark
			}
		}
		now := h.living[p]
		if now.ETag == e {
			now.ETag, now.Content, now.Size = mark, []byte(Marker), int64(len(Marker))
		}
		if dead := h.dead[p]; dead.LastETag == e {
			dead.LastETag = mark
			h.dead[p] = dead
		}
		c := memory.Commit{Revision: memory.Revision(len(h.commits) + 1), Time: h.Clock(), Changes: []memory.AppliedChange{{
			Path: p, Kind: memory.Redact, ETag: now.ETag, PreviousETag: now.ETag, Content: now.Content, Size: now.Size, ModTime: now.ModTime,
		}}}
		c.ID = memory.NextCommitID(h.head().CommitID, h.epoch, &c)
		h.commits = append(h.commits, c)
		if now.ETag != "" {
			now.Revision = c.Revision
			h.living[p] = now
		}
	}
}

// Remote returns a machine's connection to the hub.
func (h *Hub) Remote() *Remote { return &Remote{Hub: h} }

// Remote is one machine's connection to a Hub.
type Remote struct {
	Hub *Hub
	// Principal is whose commits this side makes.
	Principal string
	// Hook, if set, is called around every call.
	Hook Hook
	// Older reports which paths this side does not take, as a program would that is older
	// than the hub; nil is none.
	Older func(memory.Path) bool
	// Skew is what Offset returns.
	Skew time.Duration
	// TooOld says that the hub cannot be asked about redactions.
	TooOld bool
	// Calls counts the calls by name.
	Calls map[string]int
}

func (r *Remote) begin(ctx context.Context, op string) error {
	if r.Calls == nil {
		r.Calls = map[string]int{}
	}
	r.Calls[op]++
	return firstError(ctx.Err(), r.Hook.before(op))
}

// Head is syncer.Remote's.
func (r *Remote) Head(ctx context.Context, seen memory.Cursor) (syncer.RemoteInfo, error) {
	if err := r.begin(ctx, "head"); err != nil {
		return syncer.RemoteInfo{}, err
	}
	if err := r.Hub.check(seen); err != nil {
		return syncer.RemoteInfo{}, err
	}
	return syncer.RemoteInfo{Head: r.Hub.head(), Oldest: max(r.Hub.Oldest, 1), Files: int64(len(r.Hub.living))}, r.Hook.after("head")
}

// Changes is syncer.Remote's.
func (r *Remote) Changes(ctx context.Context, after memory.Cursor) (syncer.ChangePage, error) {
	h := r.Hub
	if err := r.begin(ctx, "changes"); err != nil {
		return syncer.ChangePage{}, err
	}
	if err := h.check(after); err != nil {
		return syncer.ChangePage{}, err
	}
	if after.Revision+1 < h.Oldest {
		return syncer.ChangePage{}, &memory.Error{Reason: memory.ReasonRevisionCompacted, Oldest: h.Oldest, Head: h.head()}
	}
	var page syncer.ChangePage
	for n := int(after.Revision); n < len(h.commits); n++ {
		if h.PageSize > 0 && len(page.Commits) == h.PageSize {
			page.More = true
			break
		}
		page.Commits = append(page.Commits, r.read(h.commits[n]))
		page.Cursors = append(page.Cursors, h.cursorAt(n+1))
	}
	return page, r.Hook.after("changes")
}

// read is how a program reads a commit that does not take some of its paths.
func (r *Remote) read(c memory.Commit) memory.Commit {
	if r.Older == nil {
		return c
	}
	var fit []memory.AppliedChange
	for _, ch := range c.Changes {
		if r.Older(ch.Path) {
			c.Unfit = append(c.Unfit, memory.Unfit{Path: string(ch.Path), Deleted: ch.Kind == memory.Delete})
		} else {
			fit = append(fit, ch)
		}
	}
	c.Changes = fit
	return c
}

// List is syncer.Remote's.
func (r *Remote) List(ctx context.Context, opts syncer.ListOptions) (syncer.Listing, error) {
	h := r.Hub
	if err := r.begin(ctx, "list"); err != nil {
		return syncer.Listing{}, err
	}
	out := syncer.Listing{Head: h.head()}
	all := maps.Clone(h.living)
	if opts.Deleted {
		maps.Copy(all, h.dead)
	}
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if r.Older != nil && r.Older(p) {
			out.Unfit = append(out.Unfit, memory.Unfit{Path: string(p), Deleted: all[p].Deleted})
			continue
		}
		m := all[p]
		m.Content = nil
		if opts.EarlierETags {
			m.EarlierETags = slices.Clone(h.earlier[p])
		}
		out.Memories = append(out.Memories, m)
	}
	return out, r.Hook.after("list")
}

// Get is syncer.Remote's.
func (r *Remote) Get(ctx context.Context, paths []memory.Path) (syncer.Batch, error) {
	if err := r.begin(ctx, "get"); err != nil {
		return syncer.Batch{}, err
	}
	var b syncer.Batch
	for i, p := range paths {
		if r.Hub.GetSize > 0 && i == r.Hub.GetSize {
			b.Remaining = paths[i:]
			break
		}
		if m, ok := r.Hub.living[p]; ok {
			m.Content = bytes.Clone(m.Content)
			b.Memories = append(b.Memories, m)
		}
	}
	return b, r.Hook.after("get")
}

// Push is syncer.Remote's.
func (r *Remote) Push(ctx context.Context, req syncer.CommitRequest) (syncer.CommitResult, error) {
	if err := r.begin(ctx, "push"); err != nil {
		return syncer.CommitResult{}, err
	}
	size := 0
	for _, ch := range req.Changes {
		size += len(ch.Content)
	}
	if n := len(req.Changes); n == 0 || n > memory.MaxCommitChanges || size > memory.MaxCommitBytes {
		return syncer.CommitResult{}, &memory.Error{Reason: memory.ReasonCommitTooLarge, Message: fmt.Sprintf("%d changes, %d bytes", n, size)}
	}
	res, err := r.Hub.commit(req, r.Principal)
	if err != nil {
		return syncer.CommitResult{}, err
	}
	return res, r.Hook.after("push")
}

// Redacted is syncer.Remote's.
func (r *Remote) Redacted(ctx context.Context, texts [][]byte) ([]bool, error) {
	if err := r.begin(ctx, "redacted"); err != nil {
		return nil, err
	}
	if r.TooOld {
		return nil, syncer.ErrCannotTell
	}
	out := make([]bool, len(texts))
	for i, t := range texts {
		out[i] = r.Hub.redacted[memory.ETagOf(t)]
	}
	return out, r.Hook.after("redacted")
}

// Offset is syncer.Remote's.
func (r *Remote) Offset() time.Duration { return r.Skew }
