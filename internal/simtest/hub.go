package simtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
)

// hubSecret is a word that the hub's guard refuses and the machines' guards do not:
// rules that differ for a while.
const hubSecret = "hub-only-secret"

var project = memory.ProjectKey{Team: "team", Project: "project"}

// hub is the real service over the store that stands for its disk.
type hub struct {
	w       *world
	backend *inmem.Store
	svc     *service.Service
	feed    *changefeed.Feed
}

func newHub(w *world) *hub {
	h := &hub{w: w, backend: inmem.New(inmem.Options{Epoch: "epoch-1"})}
	h.start()
	if err := h.backend.CreateProject(context.Background(), project, w.now); err != nil {
		panic(err)
	}
	return h
}

// start is a new process over the same store.
func (h *hub) start() {
	if h.feed != nil {
		h.feed.Close()
	}
	h.feed = changefeed.New(h.backend, changefeed.Options{})
	h.svc = service.New(service.Config{
		Backend: h.backend, Feed: h.feed, Guard: hubGuard{}, Observer: nobody{}, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return h.w.now },
	})
}

// restore puts another store in place, as a restored backup with an epoch or as a
// snapshot of the volume without one.
func (h *hub) restore(backup *inmem.Store, epoch memory.Epoch) {
	h.backend = backup.Clone()
	if epoch != "" {
		if err := h.backend.NewEpoch(context.Background(), epoch, h.w.now); err != nil {
			panic(err)
		}
	}
	h.start()
}

// call is the call of a machine with a writer's token.
func call(name string) service.Call {
	return service.Call{Principal: service.Principal{Name: "token:" + name, TokenID: name, Team: project.Team, Role: service.Writer}}
}

// files returns what is living on the hub.
func (h *hub) files() map[memory.Path]memory.Memory {
	list, err := h.backend.List(context.Background(), project, store.ListOptions{Content: true})
	if err != nil {
		panic(err)
	}
	out := map[memory.Path]memory.Memory{}
	for _, m := range list {
		out[m.Path] = m
	}
	return out
}

// history returns every text of the kept history, joined.
func (h *hub) history() string {
	var b strings.Builder
	commits, err := h.backend.History(context.Background(), project, 0, 0, 1<<40)
	if err != nil {
		panic(err)
	}
	for _, c := range commits {
		for _, ch := range c.Changes {
			b.Write(ch.Content)
			b.WriteByte('\n')
		}
	}
	for _, m := range h.files() {
		b.Write(m.Content)
		b.WriteByte('\n')
	}
	return b.String()
}

// hubGuard refuses both planted words.
type hubGuard struct{}

func (hubGuard) Scan(_ service.Policy, path string, content []byte) ([]service.Finding, error) {
	for i, line := range strings.Split(string(content), "\n") {
		if strings.Contains(line, synctest.Secret) || strings.Contains(line, hubSecret) {
			return []service.Finding{{Path: path, Line: i + 1, Rule: "planted", Description: "planted"}}, nil
		}
	}
	return nil, nil
}

func (hubGuard) RulesVersion(service.Policy) (string, error) { return "1", nil }

// nobody counts nothing.
type nobody struct{}

func (nobody) Commit(string)                 {}
func (nobody) Refused(string)                {}
func (nobody) Delivered(time.Duration)       {}
func (nobody) AuditLost(int64)               {}
func (nobody) AuditTrimmed(int64)            {}
func (nobody) RescanHits(memory.Team, int)   {}
func (nobody) Compacted(int64, int64, int64) {}

var errNetwork = errors.New("the network failed")

// remote is a machine's connection to the hub, through a network that loses, delays
// and repeats.
type remote struct{ m *machine }

// reach is asked before a request leaves and before its answer arrives.
func (r remote) reach(op string, answer bool) error {
	if err := r.m.hook(op, answer); err != nil {
		return err
	}
	w := r.m.w
	if r.m.cut || w.hubDown {
		return errNetwork
	}
	if w.rng != nil && w.chance(r.m.loss) {
		w.tracef("%s: %s lost (answer=%v)", r.m.name, op, answer)
		return errNetwork
	}
	return nil
}

// Head is syncer.Remote's.
func (r remote) Head(ctx context.Context, seen memory.Cursor) (syncer.RemoteInfo, error) {
	if err := r.reach("head", false); err != nil {
		return syncer.RemoteInfo{}, err
	}
	p, err := r.m.w.hub.svc.Project(ctx, call(r.m.name), project, seen)
	if err != nil {
		return syncer.RemoteInfo{}, err
	}
	return syncer.RemoteInfo{Head: p.Head, Oldest: p.Oldest, Files: p.Files, Bytes: p.Bytes}, r.reach("head", true)
}

// Changes is syncer.Remote's.
func (r remote) Changes(ctx context.Context, after memory.Cursor) (syncer.ChangePage, error) {
	if err := r.reach("changes", false); err != nil {
		return syncer.ChangePage{}, err
	}
	p, err := r.m.w.hub.svc.Project(ctx, call(r.m.name), project, after)
	if err != nil {
		return syncer.ChangePage{}, err
	}
	commits, err := r.m.w.hub.backend.Changes(ctx, project, after.Revision, 1+r.m.w.pick(7), 1<<20)
	if err != nil {
		return syncer.ChangePage{}, err
	}
	page := syncer.ChangePage{Commits: commits}
	for _, c := range commits {
		page.Cursors = append(page.Cursors, memory.Cursor{Epoch: p.Head.Epoch, Revision: c.Revision, CommitID: c.ID})
	}
	page.More = len(commits) > 0 && commits[len(commits)-1].Revision < p.Head.Revision
	return page, r.reach("changes", true)
}

// List is syncer.Remote's.
func (r remote) List(ctx context.Context, opts syncer.ListOptions) (syncer.Listing, error) {
	var out syncer.Listing
	if err := r.reach("list", false); err != nil {
		return out, err
	}
	q := service.ListQuery{Deleted: opts.Deleted, EarlierETags: opts.EarlierETags, Page: service.Page{Size: 5}}
	for {
		l, err := r.m.w.hub.svc.List(ctx, call(r.m.name), project, q)
		if err != nil {
			return out, err
		}
		if out.Head == (memory.Cursor{}) {
			out.Head = l.Head
		}
		out.Memories = append(out.Memories, l.Memories...)
		if l.Next == "" {
			return out, r.reach("list", true)
		}
		q.Page.Token = l.Next
	}
}

// Get is syncer.Remote's.
func (r remote) Get(ctx context.Context, paths []memory.Path) (syncer.Batch, error) {
	if err := r.reach("get", false); err != nil {
		return syncer.Batch{}, err
	}
	b, err := r.m.w.hub.svc.BatchGet(ctx, call(r.m.name), project, paths, 0)
	if err != nil {
		return syncer.Batch{}, err
	}
	return syncer.Batch{Memories: b.Memories, Remaining: b.Remaining}, r.reach("get", true)
}

// Push is syncer.Remote's.
func (r remote) Push(ctx context.Context, req syncer.CommitRequest) (syncer.CommitResult, error) {
	w := r.m.w
	r.m.checkOutgoing(req.Changes)
	if err := r.reach("push", false); err != nil {
		if w.rng != nil && w.chance(30) {
			// Not lost but late: it arrives when nobody waits for it any more.
			w.delayed = append(w.delayed, delayed{r.m.name, req})
		}
		return syncer.CommitResult{}, err
	}
	res, err := w.deliver(r.m.name, req)
	if err != nil {
		w.tracef("%s: push of %d refused: %v", r.m.name, len(req.Changes), reason(err))
		return syncer.CommitResult{}, err
	}
	if w.solo {
		// A request that overtakes nothing may be late. One that comes after a later
		// request of the same machine was answered could bring back what was deleted.
		w.delayed = slices.DeleteFunc(w.delayed, func(d delayed) bool { return d.from == r.m.name })
	}
	w.tracef("%s: pushed %s as %d", r.m.name, changesOf(req.Changes), res.Commit.Revision)
	if w.rng != nil && w.chance(5) { // repeated by the network
		if _, err := w.deliver(r.m.name, req); err != nil {
			return syncer.CommitResult{}, fmt.Errorf("a repeated request: %w", err)
		}
	}
	return res, r.reach("push", true)
}

// Redacted is syncer.Remote's.
func (r remote) Redacted(ctx context.Context, texts [][]byte) ([]bool, error) {
	if err := r.reach("redacted", false); err != nil {
		return nil, err
	}
	policy, err := r.m.w.hub.svc.GuardPolicy(ctx, call(r.m.name), project.Team)
	if err != nil {
		return nil, err
	}
	prints := make([]string, len(texts))
	for i, text := range texts {
		prints[i] = memory.RedactionFingerprint(policy.FingerprintKey, text)
	}
	found, err := r.m.w.hub.svc.FindRedacted(ctx, call(r.m.name), project, prints)
	if err != nil {
		return nil, err
	}
	out := make([]bool, len(texts))
	for i, f := range prints {
		out[i] = slices.Contains(found, f)
	}
	return out, r.reach("redacted", true)
}

// Offset is syncer.Remote's.
func (r remote) Offset() time.Duration { return -r.m.skew }

// delayed is a request that is still under way.
type delayed struct {
	from string
	req  syncer.CommitRequest
}

// deliver is what the hub does when a commit arrives.
func (w *world) deliver(from string, req syncer.CommitRequest) (syncer.CommitResult, error) {
	res, err := w.hub.svc.Commit(context.Background(), call(from), service.CommitRequest{
		Project: project, Changes: req.Changes, Message: req.Message, RequestID: req.RequestID, Epoch: req.Epoch,
	})
	if err != nil {
		return syncer.CommitResult{}, err
	}
	return syncer.CommitResult{Commit: res.Commit, Created: res.Created, Head: res.Head}, nil
}

func reason(err error) string {
	if e := (*memory.Error)(nil); errors.As(err, &e) {
		return string(e.Reason)
	}
	return err.Error()
}

func changesOf(changes []memory.Change) string {
	var out []string
	for _, c := range changes {
		s := c.Kind.String() + " " + string(c.Path)
		if c.RenamedFrom != "" {
			s += " from " + string(c.RenamedFrom)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}
