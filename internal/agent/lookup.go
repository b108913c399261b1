package agent

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/clients/hooks"
	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
)

// lookupParams hand a prompt over to the daemon, whose model chooses memories for it
// while the conversation goes on. The caller found the directories, since its environment
// decides them, not the daemon's.
type lookupParams struct {
	Session  string   `json:"session"`
	Turn     string   `json:"turn"`
	Personal string   `json:"personal"`
	Team     string   `json:"team"`
	Prompt   string   `json:"prompt"`
	Tools    []string `json:"tools"`
	Surfaced []string `json:"surfaced"`
}

func (p lookupParams) check() error {
	if p.Session == "" || !filepath.IsAbs(p.Personal) || p.Team != "" && !filepath.IsAbs(p.Team) {
		return errors.New("lookup: a session and absolute directories are wanted")
	}
	return nil
}

// lookupSession names a session whose lookup is asked for.
type lookupSession struct {
	Session string `json:"session"`
	// Turn, if any, is the only one whose lookup is meant.
	Turn string `json:"turn,omitempty"`
}

// lookupResult says how a lookup stands.
type lookupResult struct {
	State hooks.LookupState `json:"state"`
	Turn  string            `json:"turn"`
	Refs  []string          `json:"refs"`
}

// lent is how long a choice that was handed out is kept for the case that whoever asked was
// gone before it had it: a hook waits for a fraction of a second only. It confirms at once.
const lent = 2 * time.Second

// maxLookups bounds the sessions with a lookup; beyond it the oldest one is given up.
const maxLookups = 64

// lookups choose memories for prompts, one for each session: a hook ends with its event,
// this does not.
type lookups struct {
	// chooser returns who chooses at the moment, nil = nobody, and how long it may take.
	chooser func() (model.Model, time.Duration)
	secrets model.Secrets // what the model is not shown
	log     *slog.Logger
	now     func() time.Time

	ctx    context.Context //nolint:containedctx // of the work in the background; it ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	of     map[string]*lookup
	closed bool
}

// lookup is the one of a session. done is closed when refs and ok hold.
type lookup struct {
	turn   string
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	refs   []string
	ok     bool // the model has chosen; else it failed

	handed time.Time // when it was handed out last; guarded by the mutex of lookups
}

func newLookups(chooser func() (model.Model, time.Duration), secrets model.Secrets, log *slog.Logger, now func() time.Time) *lookups {
	ctx, cancel := context.WithCancel(context.Background())
	return &lookups{chooser: chooser, secrets: secrets, log: log, now: now, ctx: ctx, cancel: cancel, of: map[string]*lookup{}}
}

// begin starts the lookup of a prompt, in the place of an older one, and waits for it as
// long as a prompt may. What is not ready then stays for late; so does what is ready when
// the caller is gone.
func (ls *lookups) begin(ctx context.Context, p lookupParams, wait time.Duration) (lookupResult, error) {
	m, timeout := ls.chooser()
	if m == nil {
		ls.end(p.Session, "") // of an older prompt, that settings of before let a model answer
		return lookupResult{}, nil
	}
	if err := p.check(); err != nil {
		return lookupResult{}, err
	}
	l, err := ls.start(p, m, timeout)
	if err != nil {
		return lookupResult{}, err
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-l.done:
		r := ls.take(p.Session, l)
		if r.State == hooks.LookupNone { // it was worked on: the hook need not ask a model once more
			r = lookupResult{State: hooks.LookupFailed, Turn: p.Turn}
		}
		return r, nil
	case <-t.C:
		return lookupResult{State: hooks.LookupPending, Turn: p.Turn}, nil
	case <-ctx.Done():
		return lookupResult{}, ctx.Err()
	}
}

func (ls *lookups) start(p lookupParams, m model.Model, timeout time.Duration) (*lookup, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return nil, errors.New("lookup: the daemon is stopping")
	}
	ls.drop(p.Session)
	for len(ls.of) >= maxLookups {
		oldest := ""
		for session, l := range ls.of {
			if oldest == "" || l.began.Before(ls.of[oldest].began) {
				oldest = session
			}
		}
		ls.drop(oldest)
	}
	ctx, cancel := context.WithTimeout(ls.ctx, timeout)
	l := &lookup{turn: p.Turn, began: ls.now(), cancel: cancel, done: make(chan struct{})}
	ls.of[p.Session] = l
	ls.wg.Go(func() {
		defer cancel()
		defer close(l.done)
		l.refs, l.ok = ls.choose(ctx, p, m, timeout)
	})
	return l, nil
}

// choose asks the model.
func (ls *lookups) choose(ctx context.Context, p lookupParams, m model.Model, timeout time.Duration) (refs []string, ok bool) {
	began := ls.now()
	scanned, err := recall.Scan(ctx, p.Personal, p.Team)
	if err != nil {
		ls.log.Warn("lookup", "error", err)
		return nil, false
	}
	c, err := recall.Selector{Model: m, Secrets: ls.secrets, Timeout: timeout}.Select(ctx, scanned, recall.Request{
		Prompt: p.Prompt, Tools: p.Tools, Surfaced: p.Surfaced, Limit: inject.MaxTurnMemories, Now: began,
	})
	if err != nil || c.By != "model" {
		ls.log.Debug("lookup: the model did not choose", "reason", c.Fallback, "error", err)
		return nil, false
	}
	for _, m := range c.Chosen {
		refs = append(refs, m.Ref)
	}
	ls.log.Debug("lookup", "chosen", len(refs), "took", ls.now().Sub(began))
	return refs, true
}

// late returns what was chosen, to one at a time, until it is confirmed by end.
func (ls *lookups) late(session string) lookupResult {
	ls.mu.Lock()
	l := ls.of[session]
	ls.mu.Unlock()
	if l == nil {
		return lookupResult{}
	}
	select {
	case <-l.done:
		return ls.take(session, l)
	default:
		return lookupResult{State: hooks.LookupPending, Turn: l.turn}
	}
}

// take hands a lookup out that is done, to the first who asks, and to the next only if that
// one does not confirm it. One that another took the place of, or that was ended, is nobody's.
func (ls *lookups) take(session string, l *lookup) lookupResult {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.of[session] != l {
		return lookupResult{}
	}
	if !l.ok {
		delete(ls.of, session)
		return lookupResult{}
	}
	now := ls.now()
	if !l.handed.IsZero() && now.Sub(l.handed) < lent {
		return lookupResult{}
	}
	l.handed = now
	return lookupResult{State: hooks.LookupDone, Turn: l.turn, Refs: l.refs}
}

// end gives a session's lookup up, if it is of the turn or that is "".
func (ls *lookups) end(session, turn string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.of[session]; l != nil && (turn == "" || turn == l.turn) {
		ls.drop(session)
	}
}

// drop gives a lookup up; mu is held.
func (ls *lookups) drop(session string) {
	if l := ls.of[session]; l != nil {
		l.cancel()
		delete(ls.of, session)
	}
}

// close gives all lookups up and waits for what they do.
func (ls *lookups) close() {
	ls.mu.Lock()
	ls.closed = true
	ls.mu.Unlock()
	ls.cancel()
	ls.wg.Wait()
}

// lookupCalls ask the daemon of a state directory, which is what hooks do.
type lookupCalls struct{ state stateDir }

// Begin hands a prompt over. Where no daemon runs, nobody works on it.
func (l lookupCalls) Begin(ctx context.Context, p hooks.Lookup) (hooks.Chosen, error) {
	limited, cancel := context.WithTimeout(ctx, hookModelTimeout+lookupSlack)
	defer cancel()
	var r lookupResult
	err := control.Call(limited, string(l.state), methodLookup, lookupParams(p), &r)
	if errors.Is(err, control.ErrNoDaemon) {
		return hooks.Chosen{}, nil
	}
	l.confirm(ctx, p.Session, r)
	return hooks.Chosen(r), err
}

// confirm tells the daemon that a choice has arrived, so that nobody else gets it. If that
// does not get through, the conversation's record keeps it from being given twice.
func (l lookupCalls) confirm(ctx context.Context, session string, r lookupResult) {
	if r.State != hooks.LookupDone {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupSlack)
	defer cancel()
	_ = control.Call(limited, string(l.state), methodLookupEnd, lookupSession{Session: session, Turn: r.Turn}, nil)
}

// lookupSlack is what the way to the daemon and back may take beside its wait.
const lookupSlack = 300 * time.Millisecond

// Late asks for what was chosen since.
func (l lookupCalls) Late(ctx context.Context, session string) (hooks.Chosen, error) {
	var r lookupResult
	err := control.Call(ctx, string(l.state), methodLookupLate, lookupSession{Session: session}, &r)
	if errors.Is(err, control.ErrNoDaemon) {
		return hooks.Chosen{}, nil
	}
	l.confirm(ctx, session, r)
	return hooks.Chosen(r), err
}

// End gives the session's lookup up.
func (l lookupCalls) End(ctx context.Context, session string) error {
	err := control.Call(ctx, string(l.state), methodLookupEnd, lookupSession{Session: session}, nil)
	if errors.Is(err, control.ErrNoDaemon) {
		return nil
	}
	return err
}
