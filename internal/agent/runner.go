package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// The pauses of a link that failed. A passing failure is tried again soon and then
// seldomer; one that stays is probed, since somebody may have put it right.
const (
	minRetry = 200 * time.Millisecond
	// minAgain is the first pause after a cycle that met files in motion.
	minAgain = 50 * time.Millisecond
	maxRetry = 30 * time.Second
	// localRetry bounds the pause of a failing link whose directory moves. What moves
	// may be the failing cycle itself, where it makes a directory and cannot fill it.
	localRetry = 2 * time.Second
	reprobe    = 5 * time.Minute
	tokenPoll  = 2 * time.Second
	// headDelay is when a stream that was opened anew is compared with the hub's head.
	headDelay = time.Second
	// ownDelay is how long a link leaves its own commits unread.
	ownDelay = 100 * time.Millisecond
	// awayFor is how long the stream may be down before the link counts as offline.
	awayFor = time.Second
	// finishWithin bounds how long a shutdown waits for the cycle under way.
	finishWithin = 3 * time.Second
)

// wakeReason says why a link looks again; reasons add up.
type wakeReason uint32

const (
	wakeLocal  wakeReason = 1 << iota // the directory may have changed
	wakeRemote                        // the stream delivered something
	wakeKick                          // a command, or the hub is back
	wakeCause                         // what a permanent failure was due to may have changed
)

// runner is the loop of one link.
type runner struct {
	link     Link
	hub      *hub
	remote   *remote
	log      *slog.Logger
	m        *metrics
	now      func() time.Time
	build    func() *syncer.Syncer // a syncer on this link's ports
	watch    *watcher.Watch
	lock     *rootLock
	gate     *uploadGate
	redacted redactions
	report   *reporter
	remember func() error // notes which link the state belongs to
	news     news

	pending atomic.Uint32
	woken   chan struct{}

	mu       sync.Mutex // guards what follows
	s        *syncer.Syncer
	problem  error // of the last cycle
	problemT time.Time
	begun    uint64 // cycles that were begun
	ended    uint64 // the begun-number of the last cycle that ended
	moved    chan struct{}

	// What follows belongs to the goroutine of run.
	accepted bool  // the hub has accepted the link in this run
	commits  int64 // that the metrics know of
	applied  int64
	followed bool // the stream was asked for the project
	followAt time.Time
	followIn time.Duration // pause before asking again
	failures int
	waits    int // cycles in a row that left something for the next
	created  bool
	lastTok  [sha256.Size]byte // see client.CredentialFingerprint
	told     told              // what the log says of refusals, conflicts, brakes and the directory
}

// wake makes the link look again soon; it never blocks.
func (r *runner) wake(why wakeReason) {
	r.pending.Or(uint32(why))
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// cause tells that what a permanent failure was due to may have changed.
func (r *runner) cause() { r.wake(wakeCause) }

// hubBack tells that the hub can be reached again.
func (r *runner) hubBack() { r.wake(wakeKick) }

func (r *runner) syncer() *syncer.Syncer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s
}

// run keeps the link in step until ctx ends; a cycle under way is finished first.
func (r *runner) run(ctx context.Context) {
	r.hub.attach(r)
	defer r.hub.detach(r)
	r.hub.wantPolicy(r.link.Key().Team)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		why := wakeReason(0)
		timed := false
		select {
		case <-ctx.Done():
			return
		case <-r.watch.C():
			why = wakeLocal
		case <-r.woken:
		case <-timer.C:
			timed = true
		}
		why |= wakeReason(r.pending.Swap(0))
		next, ran := r.step(ctx, why, timed)
		if ran || timed || next > 0 {
			resetTimer(timer, next)
		}
	}
}

func resetTimer(t *time.Timer, d time.Duration) {
	t.Stop()
	if d > 0 {
		t.Reset(d)
	}
}

// step decides whether to run a cycle, and returns when to look again even if
// nothing happens (0 = leave the timer as it is).
func (r *runner) step(ctx context.Context, why wakeReason, timed bool) (next time.Duration, ran bool) {
	stopped := syncer.Classify(r.lastError()) == syncer.Permanent
	switch {
	case why == wakeRemote && !timed && !r.hasNews():
		// A cycle has pulled by a call what the stream tells of only now.
		r.arrived(r.syncer().Status().Cursor)
		return 0, false
	case why == wakeRemote && !stopped && r.remote.onlyOwn(r.syncer().Status().Cursor):
		// Our own commit comes back. To note its revision is no hurry, and the other
		// machine may want this one's processor and disk just now.
		return ownDelay, false
	case stopped && why&(wakeRemote|wakeKick|wakeCause) == 0:
		// A change on disk does not cure a bad token; the credential's file may. What the
		// stream still delivers, as to a reader who tried to write, is pulled.
		tok := r.hub.c.CredentialFingerprint()
		if tok == r.lastTok {
			if !timed || r.now().Sub(r.problemTime()) < reprobe {
				return tokenPoll, false
			}
		}
	case why == wakeLocal && !timed && r.failures > 0:
		wait := min(minRetry<<min(r.failures, 20), localRetry)
		if left := wait - r.now().Sub(r.problemTime()); left > 0 {
			return left, false
		}
	}
	return r.cycle(ctx, why == wakeRemote && !timed && r.lastError() == nil), true
}

// hasNews reports whether the stream knows more than the syncer has applied.
func (r *runner) hasNews() bool {
	at, live := r.remote.delivered()
	have := r.syncer().Status().Cursor
	return !live || at.Epoch != have.Epoch || at.Revision > have.Revision || !r.remote.checkedHead()
}

func (r *runner) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

func (r *runner) problemTime() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problemT
}

// cycle runs one cycle and returns when to run the next one by itself. With news, only
// the hub is known to have moved.
func (r *runner) cycle(ctx context.Context, news bool) time.Duration {
	r.lastTok = r.hub.c.CredentialFingerprint()
	began := r.now()
	r.mu.Lock()
	r.begun++
	number := r.begun
	r.mu.Unlock()
	res, err := r.protected(ctx, news)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return 0
	}
	switch {
	case !errors.Is(err, memory.ErrNotFound):
	case r.syncer().Status().Cursor.Epoch != "":
		err = projectGone(r.link)
	case !r.created:
		r.created = true
		if err = createProject(ctx, r.hub.c, r.link); err == nil {
			r.log.Info("project made on the hub, or there by now")
			res, err = r.protected(ctx, false)
		}
	}
	if was := res.Replaced; was != nil {
		r.tellReplaced(was)
	}
	if len(res.GivenUp) > 0 {
		r.log.Warn(givenUp(res.GivenUp))
	}
	st := r.syncer().Status()
	var wait time.Duration
	if err == nil {
		wait = r.keepFollowing(st)
	}
	r.mu.Lock()
	before := r.problem
	r.problem, r.problemT, r.ended = err, r.now(), number
	close(r.moved)
	r.moved = make(chan struct{})
	r.mu.Unlock()
	r.measure(st, err, r.now().Sub(began))
	r.tell(before, err, st)
	if err != nil {
		r.failures++
		r.waits = 0
		if syncer.Classify(err) == syncer.Permanent {
			return tokenPoll
		}
		if after := syncer.RetryAfter(err); after > 0 {
			return after
		}
		return backoff(minRetry, maxRetry, r.failures)
	}
	r.failures, r.created = 0, false
	if !r.accepted {
		// Only now is it known that the hub and the credential are the link's.
		if err := r.remember(); err != nil {
			r.log.Warn("the link is not noted with its hub", "error", err)
		}
		r.accepted = true
	}
	if err := r.redacted.settle(ctx); err != nil {
		r.log.Warn("it is tried again after the next cycle", "error", err)
	}
	if len(st.Conflicts)+len(st.Resolved) > 0 {
		next, err := r.report.round(ctx, r.syncer(), r.now())
		switch {
		case errors.Is(err, memory.ErrPermissionDenied):
			r.log.Warn("the texts of conflicts stay on this machine alone", "error", err, "retry", "when the credential or the team's policy changes")
		case err != nil:
			r.log.Debug("conflicts are not all known to the hub", "error", err)
		}
		wait = sooner(wait, next)
	}
	if _, live := r.remote.delivered(); live && !r.remote.checkedHead() {
		// The stream was opened anew beside this cycle. That it has come to the hub's
		// head is asked soon, not whenever something moves next.
		wait = sooner(wait, headDelay)
	}
	return sooner(wait, r.unfinished(res, st))
}

// unfinished returns when to look again at what the cycle could not bring to an end; 0
// when there is nothing. A file that was being written at that very moment, and so
// seemed empty or could not be read, is whole a moment later: the next change on disk
// need not be waited for, which may meet the writer in the middle again.
func (r *runner) unfinished(res syncer.Result, st syncer.Status) time.Duration {
	if res.Again == 0 && res.Phase != syncer.PhasePending && len(st.Unreadable) == 0 {
		r.waits = 0
		return 0
	}
	r.waits++
	again := res.Again
	if w := r.gate.waiting(); w != nil && w.Stuck {
		again = 0 // a person takes longer than a dream
	}
	return sooner(again, backoff(minAgain, maxRetry, r.waits))
}

// sooner returns the shorter of two pauses; 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// settle makes the link look at the directory now and waits until a cycle that began
// afterwards has ended and nothing more will happen by itself, or until ctx ends.
func (r *runner) settle(ctx context.Context) {
	r.mu.Lock()
	after := r.begun
	r.mu.Unlock()
	for asked := false; ; {
		if !asked {
			r.wake(wakeKick)
			asked = true
		}
		r.mu.Lock()
		moved, done, cycles := r.moved, r.ended > after, r.ended-min(after, r.ended)
		r.mu.Unlock()
		if done && r.quiet(cycles) {
			return
		}
		var again <-chan time.Time
		if done {
			// Events of the stream end the wait for it, but not every state has one.
			again = time.After(10 * time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return
		case <-moved:
		case <-again:
		}
	}
}

// patientCycles is how often a file that cannot be read is looked at before it counts
// as one that nobody is just writing.
const patientCycles = 4

// quiet reports whether nothing more will happen before somebody acts, after so many
// cycles.
func (r *runner) quiet(cycles uint64) bool {
	s := r.status()
	if s.InStep || s.Phase == PhaseStopped || s.Phase == Phase(syncer.PhaseHalted) || s.Phase == Phase(syncer.PhaseNoRoot) {
		return true
	}
	return s.stuck() || s.caughtUp && (len(s.Refusals) > 0 || len(s.Conflicts) > 0 || len(s.Unreadable) > 0 && cycles >= patientCycles)
}

// backoff doubles from lo to hi with the number of failures, with jitter.
func backoff(lo, hi time.Duration, n int) time.Duration {
	d := lo << min(n-1, 20)
	if d > hi || d <= 0 {
		d = hi
	}
	return d/2 + rand.N(d/2+1)
}

// protected runs one cycle of the syncer. A panic becomes an error, and the syncer,
// of whose memory nothing is known then, is made anew from what is on disk.
func (r *runner) protected(ctx context.Context, news bool) (res syncer.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("a cycle panicked; the link starts over from its state on disk", "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			err = errors.New("internal error: a cycle panicked; the log has the stack")
			r.mu.Lock()
			r.s = r.build()
			r.mu.Unlock()
			r.commits, r.applied = 0, 0 // it counts from nothing
		}
	}()
	if err := r.lock.hold(); err != nil {
		return res, err
	}
	// A shutdown lets the cycle finish, for a while.
	cctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(finishWithin, cancel)
		context.AfterFunc(cctx, func() { t.Stop() })
	})
	defer stop()
	if news {
		return r.syncer().Follow(cctx)
	}
	return r.syncer().Cycle(cctx)
}

// createProject makes a link's project on the hub, which a team's writer may do where
// the team allows it (ruling 13.3). One that exists by now is fine.
func createProject(ctx context.Context, c *client.Client, l Link) error {
	_, err := c.CreateProject(ctx, l.Key())
	switch {
	case errors.Is(err, memory.ErrAlreadyExists):
		return nil
	case errors.Is(err, memory.ErrPermissionDenied), errors.Is(err, memory.ErrNotFound):
		return &memory.Error{Reason: memory.ReasonNotFound, Message: fmt.Sprintf(
			"the hub knows no project %s that this token may see, and the token may not create it; ask an admin of the team, or check --team and --project", l.Name())}
	}
	return err
}

// projectGone says that a project which was there is no more. It is not made again by
// itself: whoever purged it meant it.
func projectGone(l Link) error {
	return &memory.Error{Reason: memory.ReasonNotFound, Message: fmt.Sprintf(
		"the hub does not know project %s any more: it was purged, the hub was restored from before it was made, or the token may not see it; 'memsync-agent resume --create' makes it anew and offers it the files that are here; until then they stay as they are", l.Name())}
}

// keepFollowing puts the project on the stream, after the first good cycle and after
// the hub took it off.
func (r *runner) keepFollowing(st syncer.Status) time.Duration {
	if st.Cursor.Epoch == "" {
		return 0
	}
	if r.followed && !r.remote.wasStopped() {
		if _, live := r.remote.delivered(); live {
			r.followIn = 0
		}
		return 0
	}
	// A hub that refuses what it just allowed must not be asked in a loop.
	if wait := r.followIn - r.now().Sub(r.followAt); r.followed && wait > 0 {
		return wait
	}
	r.followIn = min(max(2*r.followIn, time.Second), maxRetry)
	r.followed, r.followAt = true, r.now()
	r.remote.restart()
	r.hub.follow(r, st.Cursor)
	return 0
}

// measure brings the metrics up to date.
func (r *runner) measure(st syncer.Status, err error, took time.Duration) {
	name := r.link.Name()
	r.m.cycles.WithLabelValues(name).Observe(took.Seconds())
	r.m.pushes.WithLabelValues(name).Add(float64(st.Commits - r.commits))
	r.m.pulls.WithLabelValues(name).Add(float64(st.Applied - r.applied))
	r.commits, r.applied = st.Commits, st.Applied
	r.m.conflicts.WithLabelValues(name).Set(float64(len(st.Conflicts)))
	r.m.pending.WithLabelValues(name).Set(float64(st.Pending))
	halted := 0.0
	if st.Phase == syncer.PhaseHalted {
		halted = 1
	}
	r.m.halts.WithLabelValues(name).Set(halted)
	r.m.refused(name, st.Refused)
	if err != nil {
		reason := "LOCAL"
		var e *memory.Error
		if errors.As(err, &e) {
			reason = string(e.Reason)
		}
		r.m.errors.WithLabelValues(name, reason).Inc()
		return
	}
	r.m.lastSuccess.WithLabelValues(name).Set(float64(r.now().UnixMilli()) / 1000)
	r.arrived(st.Cursor)
}

// arrived measures and tells the commits of others that the cursor has passed.
func (r *runner) arrived(cursor memory.Cursor) {
	now := r.now()
	for _, a := range r.remote.appliedUpTo(cursor) {
		r.m.applied(a, now, r.hub.c.Offset())
		if a.span != nil {
			a.span.Set("memsvc.project", r.link.Key().String())
			a.span.SetInt("memsvc.revision", int64(a.revision))
			a.span.End("")
		}
		r.news.add(a, now)
	}
}

// tell logs what changed since the last cycle; the same trouble is told once.
func (r *runner) tell(before, err error, st syncer.Status) {
	r.told.changes(r.log, st)
	r.gate.tell(r.log)
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		r.log.Warn("cycle failed", "error", err, "class", syncer.Classify(err).String())
	case err == nil && before != nil:
		r.log.Info("recovered", "revision", st.Cursor.Revision)
	case err == nil:
		r.log.Debug("cycle", "phase", st.Phase, "revision", st.Cursor.Revision, "files", st.Files, "pending", st.Pending)
	}
}

// tellReplaced logs that the link was brought over to another history of the hub: as a
// warning if something that was here had gone there.
func (r *runner) tellReplaced(was *syncer.Replaced) {
	level := slog.LevelInfo
	if was.Shared < was.From.Revision || len(was.Offered)+len(was.Undone) > 0 {
		level = slog.LevelWarn
	}
	r.log.Log(context.Background(), level, "the hub's history was replaced; everything was compared, nothing deleted",
		"old_revision", was.From.Revision, "old_epoch", was.From.Epoch, "new_revision", was.To.Revision, "new_epoch", was.To.Epoch,
		"shared_revision", was.Shared, "offered_again", len(was.Offered), "deletes_undone", len(was.Undone), "offered", some(was.Offered), "undone", some(was.Undone))
}

// givenUp says what the trash had no room for any more.
func givenUp(gone []syncer.Trashed) string {
	var paths []memory.Path
	alone := 0
	for _, t := range gone {
		if !t.Shared() {
			alone++
		}
		if !slices.Contains(paths, t.Path) {
			paths = append(paths, t.Path)
		}
	}
	text := fmt.Sprintf("the trash is full (--trash-mib); given up for good: %s", count(len(gone), "text"))
	if alone > 0 {
		text += fmt.Sprintf(", %d of which the hub never had", alone)
	}
	return text + ", of " + some(paths)
}

// maxToldPaths bounds the paths in one line of the log.
const maxToldPaths = 20

// some lists paths for a line of the log, the first ones alone where there are many.
func some(paths []memory.Path) string {
	var b strings.Builder
	for i, p := range paths {
		if i == maxToldPaths {
			fmt.Fprintf(&b, " and %d more", len(paths)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(p))
	}
	return b.String()
}

// status says how the link is.
func (r *runner) status() LinkStatus {
	st := r.syncer().Status()
	s := linkStatus(r.link, st, r.now())
	mode := r.watch.Mode()
	s.Watching = WatchingEntry{How: string(mode.How), Reason: mode.Reason}
	if head := r.remote.knownHead(); head.Epoch == st.Cursor.Epoch {
		s.HubRevision = int64(max(head.Revision, st.Cursor.Revision))
	}
	r.mu.Lock()
	problem, at := r.problem, r.problemT
	r.mu.Unlock()
	if problem != nil {
		s.Phase, s.LastError = phaseOf(problem), errorInfo(problem, at)
	}
	_, live := r.remote.delivered()
	if problem == nil && (s.Phase == PhaseInSync || s.Phase == Phase(syncer.PhasePending)) {
		since, err, down := r.hub.away()
		switch {
		case down && err != nil && syncer.Classify(err) == syncer.Permanent:
			// The stream was refused for good: no edit need find that out first.
			s.Phase, s.LastError = PhaseStopped, errorInfo(err, since)
		case down && r.now().Sub(since) > awayFor:
			s.Phase = PhaseOffline
			if err != nil {
				s.LastError = errorInfo(err, since)
			}
		}
	}
	s.caughtUp = problem == nil && st.Phase == syncer.PhaseInSync && live && !r.hasNews() &&
		r.pending.Load()&uint32(wakeRemote|wakeKick|wakeCause) == 0
	s.UploadsWait = r.gate.waiting()
	s.InStep = s.caughtUp && s.settled()
	s.Phase = s.outward()
	s.Todo = todo(s)
	return s
}

func phaseOf(err error) Phase {
	switch {
	case syncer.Classify(err) == syncer.Permanent:
		return PhaseStopped
	case errors.Is(err, memory.ErrUnavailable) || client.IsPassing(err) && isHubError(err):
		return PhaseOffline
	}
	return PhaseFailing
}

func isHubError(err error) bool {
	var e *memory.Error
	return errors.As(err, &e)
}
