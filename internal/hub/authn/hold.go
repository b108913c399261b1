package authn

import (
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// hold watches one credential for all streams that are open under it: one goroutine
// a credential, not one a stream, since thousands of streams may share it. Its
// fields are guarded by Authenticator.mu.
type hold struct {
	streams map[int]context.CancelCauseFunc
	next    int
	over    bool          // the credential holds no more
	cancel  func()        // ends the watching
	done    chan struct{} // closed when the watching has ended
}

// endLocked tells every stream that the credential holds no more.
func (h *hold) endLocked() {
	h.over = true
	for _, cancel := range h.streams {
		cancel(unauthenticated())
	}
}

// holdKey tells credentials apart: each JWT has its own expiry.
func (id Identity) holdKey() string {
	if id.Kind == Token {
		return id.ID
	}
	return id.Hash
}

// Hold returns a context that ends, with an ErrUnauthenticated as its cause, when
// the identity's credential stops holding: at once on a revocation here, within
// seconds on one elsewhere, and at its expiry. stop gives it back and must be called.
func (a *Authenticator) Hold(ctx context.Context, id Identity) (held context.Context, stop func()) {
	held, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	key := id.holdKey()
	h, ok := a.holds[key]
	if !ok || h.over {
		watching, stopWatching := context.WithCancel(context.Background())
		h = &hold{streams: map[int]context.CancelCauseFunc{}, cancel: stopWatching, done: make(chan struct{})}
		a.holds[key] = h
		go a.watch(watching, h, id)
	}
	n := h.next
	h.next++
	h.streams[n] = cancel
	a.mu.Unlock()
	// A revocation between the authentication and here reached an older hold, or none.
	if err := a.recheck(ctx, id); errors.Is(err, memory.ErrUnauthenticated) {
		cancel(unauthenticated())
	}
	return held, func() {
		cancel(nil)
		a.mu.Lock()
		delete(h.streams, n)
		last := len(h.streams) == 0
		if last && a.holds[key] == h {
			delete(a.holds, key)
		}
		a.mu.Unlock()
		if last {
			h.cancel()
			<-h.done
		}
	}
}

// watch looks at the credential again and again until it holds no more or ctx ends.
func (a *Authenticator) watch(ctx context.Context, h *hold, id Identity) {
	defer close(h.done)
	tick := time.NewTicker(a.opts.RecheckEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// The directory's trouble ends no stream.
		if err := a.recheck(ctx, id); errors.Is(err, memory.ErrUnauthenticated) {
			a.mu.Lock()
			h.endLocked()
			a.mu.Unlock()
			return
		}
	}
}
