package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// The bounds of what the watch delivers ahead of the syncer, a link. Past them the
// buffer is emptied and the syncer asks the hub instead.
const (
	maxBufferedCommits = 1000
	maxBufferedBytes   = 2 * memory.MaxCommitBytes
)

// remote is the syncer's Remote: the hub's calls, and in front of them what the watch
// stream has delivered already, so that a commit is applied without another trip.
type remote struct {
	c       *client.Client
	key     memory.ProjectKey
	tracing *telemetry.Tracing // nil: off
	// redacting hears, before the cursor passes it, at which paths texts were redacted;
	// no paths mean that anything may have been. nil = nobody does.
	redacting func(paths []memory.Path) error

	mu      sync.Mutex // guards what follows
	commits []memory.Commit
	cursors []memory.Cursor
	bytes   int64
	at      memory.Cursor // up to where the stream has come
	pushed  memory.Cursor // the head after our own last commit, told before the stream tells it
	live    bool          // the stream stands and has spoken of the project
	// checked is the head that a call found while the stream stood; from there on
	// at is the hub's head as far as anyone can know.
	checked    memory.Revision
	head       memory.Cursor // the last one a call found
	hasChecked bool
	info       syncer.RemoteInfo // of the last call, for what commits do not tell
	stopped    bool              // the hub took the project off the stream
	own        map[memory.Revision]bool
	arrivals   []arrival // commits of others whose application is to be measured
	// printKey is the team's key of fingerprints; nil: to be asked for, as after a listing,
	// since a hub that took the project over may have another.
	printKey []byte
}

// arrival is a commit of someone else, as the stream delivered it.
type arrival struct {
	revision memory.Revision
	time     time.Time // the hub's
	saved    time.Time // when its newest file was saved, by the hub's clock; zero if it has none
	span     *telemetry.Span
	news     []newsEntry
}

func arrivalOf(c memory.Commit) arrival {
	a := arrival{revision: c.Revision, time: c.Time, news: newsOf(c)}
	for _, ch := range c.Changes {
		if ch.Kind == memory.Put && ch.ModTime.After(a.saved) {
			a.saved = ch.ModTime
		}
	}
	return a
}

// event takes what the feed tells of the project and reports whether the syncer
// should look.
func (r *remote) event(ev client.Event) (look bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch ev.Kind {
	case client.EventBookmark:
		if !r.live {
			r.live, r.hasChecked, r.stopped = true, false, false
			r.arrivals = nil // what was missed says nothing of the way
			if r.at != ev.Cursor {
				r.clear()
			}
			r.at = ev.Cursor
			return true
		}
		return false
	case client.EventCommit:
		if !r.live || ev.Commit.Revision <= r.at.Revision {
			return false // another link of the project began earlier
		}
		if ev.Commit.Revision != r.at.Revision+1 {
			r.clear()
		}
		r.at = ev.Cursor
		for _, ch := range ev.Commit.Changes {
			r.bytes += ch.Size
		}
		r.commits, r.cursors = append(r.commits, ev.Commit), append(r.cursors, ev.Cursor)
		a := arrivalOf(ev.Commit)
		if !r.own[a.revision] {
			a.span = r.tracing.Follow(ev.Commit.Author.Session, "memsync.apply")
		}
		r.arrivals = append(r.arrivals, a)
		if len(r.commits) > maxBufferedCommits || r.bytes > maxBufferedBytes {
			r.clear()
		}
		return true
	case client.EventStopped:
		r.live, r.stopped = false, true
		r.clear()
		return true
	case client.EventDown:
		r.live = false
		return false
	}
	return false
}

// furthest returns the last point of the project's history that we know of.
func (r *remote) furthest() memory.Cursor {
	if r.pushed.Epoch == r.at.Epoch && r.pushed.Revision > r.at.Revision {
		return r.pushed
	}
	return r.at
}

func (r *remote) clear() { r.commits, r.cursors, r.bytes = nil, nil, 0 }

// Head answers from the stream when it knows; see syncer.Remote.
func (r *remote) Head(ctx context.Context, seen memory.Cursor) (syncer.RemoteInfo, error) {
	r.mu.Lock()
	if at := r.furthest(); r.live && r.hasChecked && at.Revision >= r.checked && fits(seen, at) {
		info := r.info
		info.Head = at
		r.mu.Unlock()
		return info, nil
	}
	r.mu.Unlock()
	p, err := r.c.Project(ctx, r.key, seen)
	if err != nil {
		return syncer.RemoteInfo{}, err
	}
	info := syncer.RemoteInfo{Head: p.Head, Oldest: p.Oldest, Files: p.Files, Bytes: p.Bytes}
	r.mu.Lock()
	r.info = info
	r.mu.Unlock()
	r.sawHead(p.Head)
	return info, nil
}

// ask asks the hub where the project is, whatever the stream has told.
func (r *remote) ask(ctx context.Context, seen memory.Cursor) (memory.Cursor, error) {
	p, err := r.c.Project(ctx, r.key, seen)
	if err != nil {
		return memory.Cursor{}, err
	}
	r.sawHead(p.Head)
	return p.Head, nil
}

// sawHead notes where a call found the project.
func (r *remote) sawHead(head memory.Cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head = head
	if r.live && r.at.Epoch == head.Epoch {
		r.hasChecked, r.checked = true, head.Revision
	}
}

// knownHead returns the furthest point of the project that anything has told.
func (r *remote) knownHead() memory.Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.furthest(); at.Epoch != r.head.Epoch && r.live || at.Revision > r.head.Revision {
		return at
	}
	return r.head
}

// checkedHead reports whether the stream is known to have come to the hub's head.
func (r *remote) checkedHead() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live && r.hasChecked && r.furthest().Revision >= r.checked
}

// onlyOwn reports whether the stream has delivered commits after the cursor, and none
// but our own.
func (r *remote) onlyOwn(cursor memory.Cursor) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live || !r.hasChecked || r.at.Epoch != cursor.Epoch || r.at.Revision <= cursor.Revision {
		return false
	}
	for rev := cursor.Revision + 1; rev <= r.at.Revision; rev++ {
		if !r.own[rev] {
			return false
		}
	}
	return true
}

// wasStopped reports whether the hub took the project off the stream.
func (r *remote) wasStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// restart forgets the place on the stream; the next bookmark gives a new one.
func (r *remote) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live, r.stopped, r.hasChecked = false, false, false
	r.clear()
}

// appliedUpTo returns, once each, the commits of others that the stream delivered and
// the cursor has passed.
func (r *remote) appliedUpTo(cursor memory.Cursor) []arrival {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []arrival
	for len(r.arrivals) > 0 && r.arrivals[0].revision <= cursor.Revision {
		if a := r.arrivals[0]; !r.own[a.revision] {
			out = append(out, a)
		}
		delete(r.own, r.arrivals[0].revision)
		r.arrivals = r.arrivals[1:]
	}
	if len(r.arrivals) > maxBufferedCommits {
		r.arrivals = nil
	}
	return out
}

// fits reports whether seen is surely a point of the history that at is from. What is not
// certain, as of any earlier revision, is asked of the hub.
func fits(seen, at memory.Cursor) bool {
	switch {
	case seen == (memory.Cursor{}):
		return true
	case seen.Epoch != at.Epoch || seen.Revision != at.Revision:
		return false
	}
	return seen.CommitID == at.CommitID
}

// Changes returns what the stream has delivered after the cursor, else asks the hub.
func (r *remote) Changes(ctx context.Context, after memory.Cursor) (syncer.ChangePage, error) {
	page, err := r.changes(ctx, after)
	if err != nil || r.redacting == nil {
		return page, err
	}
	var paths []memory.Path
	for _, c := range page.Commits {
		for _, ch := range c.Changes {
			if ch.Kind == memory.Redact {
				paths = append(paths, ch.Path)
			}
		}
	}
	if len(paths) > 0 {
		err = r.redacting(paths)
	}
	return page, err
}

func (r *remote) changes(ctx context.Context, after memory.Cursor) (syncer.ChangePage, error) {
	if page, ok := r.buffered(after); ok {
		return page, nil
	}
	page, err := r.c.Changes(ctx, r.key, after)
	if err != nil {
		return syncer.ChangePage{}, err
	}
	r.sawHead(page.Head)
	return syncer.ChangePage{Commits: page.Commits, Cursors: page.Cursors, More: page.More}, nil
}

func (r *remote) buffered(after memory.Cursor) (syncer.ChangePage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live {
		return syncer.ChangePage{}, false
	}
	for len(r.commits) > 0 && r.commits[0].Revision <= after.Revision {
		for _, ch := range r.commits[0].Changes {
			r.bytes -= ch.Size
		}
		r.commits[0] = memory.Commit{} // let its contents go
		r.commits, r.cursors = r.commits[1:], r.cursors[1:]
	}
	if len(r.commits) > 0 {
		if r.commits[0].Revision != after.Revision+1 || r.cursors[0].Epoch != after.Epoch && after.Epoch != "" {
			return syncer.ChangePage{}, false
		}
		page := syncer.ChangePage{Commits: r.commits[:len(r.commits):len(r.commits)], Cursors: r.cursors[:len(r.cursors):len(r.cursors)]}
		return page, true
	}
	// Nothing is buffered: nothing is missing only when the cursor is the furthest
	// point we know of, and the stream is known to have come to the head once.
	if at := r.furthest(); r.hasChecked && at.Revision >= r.checked && at == after {
		return syncer.ChangePage{}, true
	}
	return syncer.ChangePage{}, false
}

// List returns all memories; see syncer.Remote.
func (r *remote) List(ctx context.Context, opts syncer.ListOptions) (syncer.Listing, error) {
	l, err := r.c.List(ctx, r.key, client.ListOptions{Deleted: opts.Deleted, EarlierETags: opts.EarlierETags})
	if err != nil {
		return syncer.Listing{}, err
	}
	r.mu.Lock()
	r.printKey = nil
	r.mu.Unlock()
	if r.redacting != nil {
		// Whoever lists does not see the commits in between.
		if err := r.redacting(nil); err != nil {
			return syncer.Listing{}, err
		}
	}
	return syncer.Listing{Memories: l.Memories, Unfit: l.Unfit, Head: l.Head}, nil
}

// Get returns the memories at paths; see syncer.Remote.
func (r *remote) Get(ctx context.Context, paths []memory.Path) (syncer.Batch, error) {
	b, err := r.c.BatchGet(ctx, r.key, paths, 0)
	if err != nil {
		return syncer.Batch{}, err
	}
	return syncer.Batch{Memories: b.Memories, Remaining: b.Remaining}, nil
}

// fingerprintKey returns the team's key.
func (r *remote) fingerprintKey(ctx context.Context) ([]byte, error) {
	r.mu.Lock()
	key := r.printKey
	r.mu.Unlock()
	if key != nil {
		return key, nil
	}
	p, err := r.c.Policy(ctx, r.key.Team)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.printKey = p.FingerprintKey
	r.mu.Unlock()
	return p.FingerprintKey, nil
}

// Redacted asks the hub which texts it redacted; see syncer.Remote. They go there as
// fingerprints under the team's key.
func (r *remote) Redacted(ctx context.Context, texts [][]byte) ([]bool, error) {
	key, err := r.fingerprintKey(ctx)
	if err != nil {
		return nil, err
	}
	prints := make([]string, len(texts))
	for i, text := range texts {
		prints[i] = memory.RedactionFingerprint(key, text)
	}
	found, err := r.c.FindRedacted(ctx, r.key, prints)
	if errors.Is(err, client.ErrHubTooOld) {
		return nil, syncer.ErrCannotTell
	}
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(texts))
	for i, f := range prints {
		out[i] = slices.Contains(found, f)
	}
	return out, nil
}

// Push commits; see syncer.Remote.
func (r *remote) Push(ctx context.Context, req syncer.CommitRequest) (syncer.CommitResult, error) {
	span := r.tracing.Start("", "memsync.upload")
	res, err := r.c.Commit(ctx, client.CommitRequest{
		Project: r.key, Changes: req.Changes, Message: req.Message, RequestID: req.RequestID, Epoch: req.Epoch,
		Trace: span.Context(), SkipWarnings: true, // the guard has said them
	})
	if span != nil {
		span.Set("memsvc.project", r.key.String())
		span.SetInt("memsvc.revision", int64(res.Commit.Revision))
		span.SetInt("memsvc.changes", int64(len(req.Changes)))
		span.End(failureOf(err))
	}
	if err != nil {
		return syncer.CommitResult{}, err
	}
	if res.Created {
		r.mu.Lock()
		if res.Head.Revision == res.Commit.Revision {
			r.pushed = res.Head
		}
		if r.own == nil {
			r.own = map[memory.Revision]bool{}
		}
		r.own[res.Commit.Revision] = true
		r.mu.Unlock()
	}
	return syncer.CommitResult{Commit: res.Commit, Created: res.Created, Head: res.Head}, nil
}

// failureOf is why a call failed, as a span may say it.
func failureOf(err error) string {
	var e *memory.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return string(e.Reason)
	}
	return "LOCAL"
}

// Offset returns the hub's time minus this machine's; see syncer.Remote.
func (r *remote) Offset() time.Duration { return r.c.Offset() }

// delivered returns up to where the stream has come; ok is false while it is away.
func (r *remote) delivered() (memory.Cursor, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at, r.live
}
