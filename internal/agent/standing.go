package agent

import (
	"context"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// standingParams ask how a link is.
type standingParams struct {
	Link string `json:"link"`
	// Head has the daemon ask the hub how far it is, and bring the link there first, for
	// headWait at most.
	Head bool `json:"head"`
}

// standing is how a link is, as conversations hear of it.
type standing struct {
	Status LinkStatus `json:"status"`
	// Touch is when the hub was last heard of: about now while the stream stands, zero if
	// it was not since the daemon began.
	Touch time.Time `json:"touch"`
}

// headWait bounds how long a link is given to come to the hub's head, so that the answer
// is there within the 300 ms that the beginning of a session waits (ruling 13.21).
const headWait = 200 * time.Millisecond

// maxCatchUp bounds the cycles that one such wait asks for.
const maxCatchUp = 5

func (p standingParams) do(ctx context.Context, r *runner) standing {
	if p.Head {
		limited, cancel := context.WithTimeout(ctx, headWait)
		r.catchUp(limited)
		cancel()
	}
	s := standing{Status: r.status(), Touch: r.hub.touch()}
	if t := s.Status.LastSuccess; t != nil && t.After(s.Touch) {
		s.Touch = *t
	}
	return s
}

// catchUp waits until what is on the hub now is applied here, or until ctx ends. Where that
// will not be soon it does not wait: a hub that is away, or a link that failed.
func (r *runner) catchUp(ctx context.Context) {
	if _, _, down := r.hub.away(); down {
		return
	}
	head, err := r.remote.ask(ctx, r.syncer().Status().Cursor)
	if err != nil {
		return
	}
	for range maxCatchUp {
		r.mu.Lock()
		moved := r.moved
		r.mu.Unlock()
		st := r.syncer().Status()
		if st.Cursor.Epoch != head.Epoch || st.Cursor.Revision >= head.Revision || st.Phase == syncer.PhaseHalted || r.lastError() != nil {
			return
		}
		r.wake(wakeKick)
		select {
		case <-ctx.Done():
			return
		case <-moved:
		}
	}
}
