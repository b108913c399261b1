package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// hub is one connection to one hub with one credential, and the watch stream that
// its links share (SPEC 13.12).
type hub struct {
	c     *client.Client
	feed  *client.Feed
	state stateDir
	log   *slog.Logger
	now   func() time.Time

	mu       sync.Mutex // guards what follows
	links    map[*runner]bool
	policies map[memory.Team]*policyHolder
	up       bool
	changed  time.Time // when up last changed
	lastUp   time.Time // when up last ended; zero = not yet
	err      error     // what ended the last stream

	fetch chan memory.Team // policies to fetch
}

// hubKey tells connections apart.
type hubKey struct {
	addr, tokenFile, ca, cert, key string
	plaintext                      bool
}

func (l Link) hubKey(state stateDir) hubKey {
	return hubKey{addr: l.Hub, tokenFile: state.tokenFileOf(l), ca: l.CAFile, cert: l.CertFile, key: l.KeyFile, plaintext: l.Plaintext}
}

func newHub(c *client.Client, state stateDir, log *slog.Logger, now func() time.Time) *hub {
	h := &hub{
		c: c, state: state, log: log.With("hub", c.Addr()), now: now,
		links: map[*runner]bool{}, policies: map[memory.Team]*policyHolder{},
		fetch: make(chan memory.Team, 64), changed: now(),
	}
	h.feed = c.NewFeed(h.event)
	return h
}

// run follows the hub until ctx ends.
func (h *hub) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = h.feed.Run(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case team := <-h.fetch:
			h.fetchPolicy(ctx, team)
		}
	}
}

// policy returns the holder of a team's guard policy, filled from disk at first.
func (h *hub) policy(team memory.Team) *policyHolder {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.policies[team]
	if p == nil {
		p = &policyHolder{}
		if saved, ok := h.state.loadPolicy(h.c.Addr(), string(team)); ok {
			p.set(saved)
		}
		h.policies[team] = p
	}
	return p
}

// fetchPolicy asks for a team's guard policy. A failure leaves the one we have: the
// hub judges by the present one anyway, and the next connection asks again.
func (h *hub) fetchPolicy(ctx context.Context, team memory.Team) {
	p, err := h.c.Policy(ctx, team)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Warn("guard policy not fetched; the last one known holds", "team", team, "error", err)
		}
		return
	}
	if !h.policy(team).set(p) {
		return
	}
	if err := h.state.storePolicy(h.c.Addr(), p); err != nil {
		h.log.Warn("guard policy not kept on disk", "team", team, "error", err)
	}
	h.log.Info("guard policy changed", "team", team, "version", p.Version)
	for _, r := range h.attached() {
		if r.link.Key().Team == team {
			r.cause()
		}
	}
}

func (h *hub) wantPolicy(team memory.Team) {
	select {
	case h.fetch <- team:
	default: // as many are waiting already; the hub tells the version again
	}
}

func (h *hub) attached() []*runner {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*runner, 0, len(h.links))
	for r := range h.links {
		out = append(out, r)
	}
	return out
}

// attach makes events of r's project reach it. The stream begins with follow.
func (h *hub) attach(r *runner) {
	h.mu.Lock()
	h.links[r] = true
	h.mu.Unlock()
}

// detach ends that; the project leaves the stream with its last link. Nobody attaches in
// between, whose follow would be dropped.
func (h *hub) detach(r *runner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.links, r)
	last := true
	for o := range h.links {
		last = last && o.link.Key() != r.link.Key()
	}
	if last {
		h.feed.Drop(r.link.Key())
	}
}

// follow puts r's project on the stream from a cursor. Several links of one project
// share its place on the stream; it begins where the one furthest behind stands, and
// the others overlook what they have.
func (h *hub) follow(r *runner, after memory.Cursor) {
	for _, o := range h.attached() {
		if o == r || o.link.Key() != r.link.Key() {
			continue
		}
		if at, live := o.remote.delivered(); live && at.Epoch == after.Epoch && at.Revision < after.Revision {
			after = at
		}
	}
	h.feed.Follow(r.link.Key(), after, false)
}

// event hands what the feed tells to the links it concerns. It runs on the feed's
// goroutine and never waits.
func (h *hub) event(ev client.Event) {
	switch ev.Kind {
	case client.EventUp, client.EventDown:
		h.turned(ev)
		return
	case client.EventPolicy:
		h.wantPolicy(ev.Project.Team)
		return
	}
	for _, r := range h.attached() {
		if r.link.Key() == ev.Project && r.remote.event(ev) {
			r.wake(wakeRemote)
		}
	}
}

// turned notes that the stream came up or went down.
func (h *hub) turned(ev client.Event) {
	up := ev.Kind == client.EventUp
	h.mu.Lock()
	first := h.up != up
	if first {
		h.changed = h.now()
		if !up {
			h.lastUp = h.changed
		}
	}
	told := errors.Is(ev.Err, h.err) || ev.Err != nil && h.err != nil && ev.Err.Error() == h.err.Error()
	h.up, h.err = up, ev.Err
	h.mu.Unlock()
	switch {
	case up && !first:
		return // the stream was made anew for another set of projects
	case up:
		h.log.Info("connected")
	case first || !told:
		again := "soon, by itself"
		if !client.IsPassing(ev.Err) {
			again = "when the token's file changes, and every 5 minutes"
		}
		h.log.Warn("not connected", "error", ev.Err, "retry", again)
	}
	teams := map[memory.Team]bool{}
	for _, r := range h.attached() {
		r.remote.event(ev)
		if up {
			r.hubBack()
			if team := r.link.Key().Team; !teams[team] {
				teams[team] = true
				h.wantPolicy(team)
			}
		}
	}
}

// away reports whether there is no stream, since when, and what ended the last one.
func (h *hub) away() (since time.Time, err error, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed, h.err, !h.up
}

// touch returns when the hub was last heard of; zero = never.
func (h *hub) touch() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.up {
		return h.now()
	}
	return h.lastUp
}

// status says how the connection is.
func (h *hub) status() HubStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := HubStatus{Addr: h.c.Addr(), Connected: h.up, Since: h.changed, OffsetMS: h.c.Offset().Milliseconds()}
	if h.err != nil {
		s.Error = h.err.Error()
	}
	return s
}
