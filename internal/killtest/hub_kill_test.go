//go:build linux

package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// ack is one change of a commit that the hub acknowledged.
type ack struct {
	revision memory.Revision
	path     memory.Path
	etag     memory.ETag // "" for a delete
}

// writer commits without pause and remembers what was acknowledged and what was sent.
type writer struct {
	name string
	c    *client.Client
	rnd  *rand.Rand

	acks []ack
	sent map[memory.ETag]memory.Path // every text that ever went out; each is unique
}

// run commits until ctx ends. A commit whose answer did not come is sent again under
// its request id until there is one, also after ctx.
func (w *writer) run(ctx context.Context) error {
	w.sent = map[memory.ETag]memory.Path{}
	have := map[memory.Path]memory.ETag{}
	for n := 1; ctx.Err() == nil; n++ {
		req := client.CommitRequest{Project: key(), RequestID: client.NewRequestID(), Message: "load"}
		next := map[memory.Path]memory.ETag{}
		for range 1 + w.rnd.IntN(3) {
			p := memory.Path(fmt.Sprintf("project_%s_%d.md", w.name, w.rnd.IntN(12)))
			if _, twice := next[p]; twice {
				continue
			}
			ch := memory.Change{Path: p, Kind: memory.Put, Precondition: memory.IfAbsent()}
			old, exists := have[p]
			if exists {
				ch.Precondition = memory.IfMatch(old)
			}
			if exists && w.rnd.IntN(6) == 0 {
				ch.Kind = memory.Delete
				next[p] = ""
			} else {
				ch.Content = []byte(newText(w.rnd, w.name, n*10+len(next)))
				next[p] = memory.ETagOf(ch.Content)
				w.sent[next[p]] = p
			}
			req.Changes = append(req.Changes, ch)
		}
		res, err := w.commit(req)
		if err != nil {
			return fmt.Errorf("%s, commit %d: %w", w.name, n, err)
		}
		for p, e := range next {
			w.acks = append(w.acks, ack{res.Commit.Revision, p, e})
			if have[p] = e; e == "" {
				delete(have, p)
			}
		}
	}
	return nil
}

func (w *writer) commit(req client.CommitRequest) (client.CommitResult, error) {
	// The test's end must not cut off the question whether a commit was taken.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		res, err := w.c.Commit(ctx, req)
		if err == nil || ctx.Err() != nil || !client.IsPassing(err) {
			return res, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// load is several writers at work.
type load struct {
	t       *testing.T
	writers []*writer
	stop    context.CancelFunc
	wg      sync.WaitGroup
	errs    []error
}

func startLoad(t *testing.T, h *hub, writers int, rnd *rand.Rand) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, stop: cancel, errs: make([]error, writers)}
	for i := range writers {
		w := &writer{name: fmt.Sprintf("w%d", i), c: h.client(), rnd: rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))}
		l.writers = append(l.writers, w)
		l.wg.Go(func() { l.errs[i] = w.run(ctx) })
	}
	t.Cleanup(func() { cancel(); l.wg.Wait() })
	return l
}

// end stops the writers, each after an answer to its last commit.
func (l *load) end() {
	l.t.Helper()
	l.stop()
	l.wg.Wait()
	if err := errors.Join(l.errs...); err != nil {
		l.t.Fatal(err)
	}
}

// check compares the history with what was acknowledged: nothing is missing, nothing
// is there twice, nothing was made up.
func (l *load) check(history []memory.Commit) {
	l.t.Helper()
	type place struct {
		revision memory.Revision
		path     memory.Path
		etag     memory.ETag
	}
	places := map[place]bool{}
	times := map[memory.ETag]int{}
	for _, c := range history {
		for _, ch := range c.Changes {
			places[place{c.Revision, ch.Path, ch.ETag}] = true
			if ch.ETag != "" {
				times[ch.ETag]++
			}
		}
	}
	acks := 0
	for _, w := range l.writers {
		acks += len(w.acks)
		for _, a := range w.acks {
			if !places[place(a)] {
				l.t.Errorf("acknowledged, and not in the history: revision %d, %s, etag %.12s", a.revision, a.path, a.etag)
			}
		}
		for e, p := range w.sent {
			if n := times[e]; n != 1 {
				l.t.Errorf("a text of %s was sent under one request id and is in %d revisions", p, n)
			}
		}
	}
	if acks == 0 {
		l.t.Error("nothing was acknowledged; the test saw nothing")
	}
	l.t.Logf("%d changes acknowledged, in %d revisions", acks, len(history))
}

// TestHubKilledUnderLoad kills the hub again and again while many write. Every commit
// that was acknowledged is in the history at its revision, a retry under a request id
// makes no second one, and agents find the hub again by themselves.
func TestHubKilledUnderLoad(t *testing.T) {
	t.Parallel()
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	a.start()
	b.start()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	l := startLoad(t, h, 8, rnd)
	for range 4 * rounds() {
		pause(t, time.Duration(30+rnd.IntN(400))*time.Millisecond)
		if rnd.IntN(4) > 0 {
			h.kill()
		} else if code := h.process().stop(t); code != 0 { // an end as asked for loses nothing either
			t.Errorf("the hub ended with code %d", code)
		}
		h.start()
	}
	l.end()
	l.check(h.history())
	waitInStep(t, h, a, b)
}

// pause lets the programs work for a while: the moment of a kill is to be any.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
	case <-time.After(d):
	}
}
