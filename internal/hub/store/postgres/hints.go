package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// hintEvery is the least pause between two hints of one replica: under load it says
	// "look" fifty times a second and not once a commit.
	hintEvery = 20 * time.Millisecond
	// heardPollEvery is how often a replica that hears hints looks without one.
	heardPollEvery = 250 * time.Millisecond
	// hintTimeout bounds each step of sending and of hearing.
	hintTimeout = 2 * time.Second
	// proofTimeout is how long the proof that hints arrive may be on its way. Whoever is
	// taken for deaf does not listen again, so a server that is slow must not be.
	proofTimeout = 10 * time.Second
	// listenCheck is how often a silent connection is asked whether it still lives.
	listenCheck = 15 * time.Second
)

// hints tell the other replicas by NOTIFY that something was committed, so that they look
// at once. They are sent after the commit and outside its transaction, in which NOTIFY
// would make all commits of the server queue; they may come late, twice or never, and
// tell nothing but "look". The poller alone suffices.
type hints struct {
	s       *Store
	id      string        // of this replica, so that it does not heed itself
	say     chan struct{} // a hint is to be sent
	heard   chan struct{} // another replica sent one
	hearing atomic.Bool   // hints are known to arrive
	failed  atomic.Int64  // hints that could not be sent

	once   sync.Once       // starts speak
	ctx    context.Context //nolint:containedctx // of speak; stop ends it
	cancel context.CancelFunc
	works  sync.WaitGroup
}

func newHints(s *Store) *hints {
	h := &hints{s: s, id: uuid.NewString(), say: make(chan struct{}, 1), heard: make(chan struct{}, 1)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// channel is the name under which the replicas of one schema talk.
func (h *hints) channel() string { return h.s.opts.Schema + "_commits" }

// tell asks for a hint; it never blocks. It is for calls under way, which stop outlives.
func (h *hints) tell() {
	if h.s.opts.NoHints {
		return
	}
	h.once.Do(func() { h.works.Go(func() { h.speak(h.ctx) }) })
	poke(h.say)
}

// HintsFailed returns how many hints to the other replicas could not be sent since Open.
func (s *Store) HintsFailed() int64 { return s.hints.failed.Load() }

// stop ends the sending.
func (h *hints) stop() {
	h.cancel()
	h.works.Wait()
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// speak sends hints until ctx ends. What cannot be sent is dropped: the others poll.
func (h *hints) speak(ctx context.Context) {
	pause := backoff{least: hintEvery, most: hintTimeout}
	troubled := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.say:
		}
		switch err := h.send(ctx, h.id); {
		case err == nil && troubled:
			h.s.log.Info("hints to other replicas go out again")
			fallthrough
		case err == nil:
			pause.last, troubled = 0, false
		case ctx.Err() == nil:
			h.failed.Add(1)
			if !troubled {
				h.s.log.Warn("hints to other replicas cannot be sent; they notice commits a little later", "error", cause(err).Error())
			}
			troubled = true
		}
		if !pause.wait(ctx) {
			return
		}
	}
}

// send needs no answer of the disk: a hint that a crash takes along is missed by nobody.
func (h *hints) send(ctx context.Context, payload string) error {
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	return h.s.once(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", h.channel(), payload)
		return err
	})
}

// errDeaf is a connection that takes LISTEN and delivers nothing: a pooler's that gives
// a session for a transaction only.
var errDeaf = errors.New("the connection delivers no notifications")

// listen hears hints until ctx ends, or until it is plain that none will ever come.
func (h *hints) listen(ctx context.Context) {
	pause := backoff{least: 100 * time.Millisecond, most: 30 * time.Second}
	for {
		began := time.Now()
		err := h.hear(ctx)
		h.hearing.Store(false)
		if errors.Is(err, errDeaf) {
			h.s.log.Info("the database's address gives no session that LISTEN works in, as behind a pooler in transaction mode; polling alone", "every", h.s.opts.PollEvery.String())
			return
		}
		if time.Since(began) > listenCheck {
			pause.last = 0
		}
		if !pause.wait(ctx) {
			return
		}
	}
}

// hear listens on a connection of its own until that breaks.
func (h *hints) hear(ctx context.Context) error {
	cfg := h.s.pool.Config().ConnConfig
	refresh(h.s.opts.URL, cfg)
	cfg.RuntimeParams["application_name"] += "-listen"
	cfg.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if n.Payload != h.id {
			poke(h.heard)
		}
	}
	proof := uuid.NewString()
	proven := false
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	if err := within(ctx, hintTimeout, func(ctx context.Context) error {
		return c.PgConn().Exec(ctx, "LISTEN "+pgx.Identifier{h.channel()}.Sanitize()).Close()
	}); err != nil {
		return err
	}
	if err := h.send(ctx, proof); err != nil {
		return err
	}
	for {
		patience := listenCheck
		if !proven {
			patience = proofTimeout
		}
		err := within(ctx, patience, c.PgConn().WaitForNotification)
		switch {
		case err == nil && !proven:
			// Ours or another's: they arrive. What was committed before is looked for.
			proven = true
			h.hearing.Store(true)
			poke(h.heard)
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case !pgconn.Timeout(err):
			return err
		case !proven:
			return errDeaf
		default:
			if err := within(ctx, hintTimeout, c.Ping); err != nil {
				return err
			}
		}
	}
}

func within(ctx context.Context, d time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}
