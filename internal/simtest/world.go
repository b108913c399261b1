package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
)

// world is everything in one run: it moves only when a step says so.
type world struct {
	seed uint64
	now  time.Time
	rng  *rand.Rand // of the present step; nil when the faults have stopped
	log  []string

	hub     *hub
	hubDown bool
	backups []*inmem.Store
	epochs  int
	// snapshots counts the volumes put back without a new epoch.
	snapshots int
	ids       int
	tokens    int
	delayed   []delayed
	machines  []*machine
	nested    int // cycles within cycles

	// solo gives every path to one machine, whose user alone edits it, and leaves out
	// the accidents that force a conflict on anybody. Then there must be none.
	solo bool
	last map[memory.Path]string // what the owner saved last; absent = deleted

	// excused are the tokens that a user took away, or that an accident took which
	// nothing can make good (see check.go).
	excused map[string]bool
	born    map[string]bool // tokens of texts that were saved
	// removed are the paths that a user deleted, renamed away or gave up.
	removed map[memory.Path]bool
	saved   map[memory.Path]bool // by a user, ever
	bad     []string             // laws broken on the way
}

// machine is one computer: a disk, a state and a process that may crash.
type machine struct {
	w     *world
	name  string
	skew  time.Duration
	disk  *synctest.Disk
	state *synctest.State
	guard *synctest.Guard
	s     *syncer.Syncer

	cut     bool // no network
	loss    int  // percent of messages lost in this cycle
	crashAt int  // the port call at which the process dies; 0 = it does not
	calls   int
	running bool
	// vanished: the files are gone and the agent has not seen it yet. Users do not
	// save into that directory meanwhile: so few files could be missing then that it
	// is no accident by any rule.
	vanished bool

	tidying    *tidying // nil = nobody tidies the files here
	generation int      // of the files that are tidied
	inside     int      // cycles that may send
}

func newWorld(seed uint64, solo bool) *world {
	w := &world{
		solo: solo, last: map[memory.Path]string{},
		seed: seed, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		excused: map[string]bool{}, born: map[string]bool{}, removed: map[memory.Path]bool{}, saved: map[memory.Path]bool{},
	}
	w.rng = rand.New(rand.NewPCG(seed, 0))
	w.hub = newHub(w)
	skews := []time.Duration{0, time.Hour, -time.Hour, -25 * 365 * 24 * time.Hour, 3 * time.Second}
	for i := range 3 + w.pick(3) {
		m := &machine{w: w, name: string(rune('a' + i)), skew: skews[i], state: synctest.NewState(), guard: &synctest.Guard{}}
		m.disk = synctest.NewDisk(m.clock)
		m.disk.FoldCase = i == 1 && !solo
		m.disk.Hook, m.state.Hook, m.guard.Hook = m.hook, m.hook, m.hook
		m.disk.Meanwhile = m.meanwhile
		m.start()
		w.machines = append(w.machines, m)
	}
	return w
}

func (m *machine) clock() time.Time { return m.w.now.Add(m.skew) }

// start is a new process.
func (m *machine) start() {
	m.inside = 0 // a lock ends with its process
	m.s = syncer.New(syncer.Ports{
		Local: m.disk.Local(), State: m.state, Remote: remote{m}, Guard: m.guard, Uploads: m, Clock: m.clock,
		NewID: func() string { m.w.ids++; return fmt.Sprintf("id-%d", m.w.ids) },
	}, syncer.Options{})
}

func (w *world) pick(n int) int {
	if w.rng == nil {
		return n - 1
	}
	return w.rng.IntN(n)
}

// chance is true in so many of a hundred cases.
func (w *world) chance(percent int) bool { return w.rng != nil && w.rng.IntN(100) < percent }

func (w *world) tracef(format string, args ...any) {
	w.log = append(w.log, strings.Repeat("  ", w.nested)+fmt.Sprintf(format, args...))
}

func (w *world) breakLaw(format string, args ...any) {
	w.bad = append(w.bad, fmt.Sprintf(format, args...))
	w.tracef("LAW BROKEN: "+format, args...)
}

// crashed is what a dying process panics with.
type crashed struct{ m *machine }

// hook counts the calls of ports and kills the process at the chosen one. In between
// it lets others act: another machine's cycle, between any two calls of this one.
func (m *machine) hook(op string, after bool) error {
	if !m.running {
		return nil
	}
	if m.calls++; m.crashAt > 0 && m.calls >= m.crashAt {
		m.crashAt = 0
		m.w.tracef("%s: dies at %s (after=%v)", m.name, op, after)
		panic(crashed{m})
	}
	if m.w.solo && m.w.chance(4) {
		m.w.machines[0].tidyStep()
	}
	if m.w.nested == 0 && m.w.chance(2) {
		other := m.w.machines[m.w.pick(len(m.w.machines))]
		if !other.running {
			m.w.nested++
			other.cycle()
			m.w.nested--
		}
	}
	return nil
}

// meanwhile is a user who saves at the worst moment.
func (m *machine) meanwhile(p memory.Path) {
	if m.running && !m.vanished && m.w.chance(4) && (!m.w.solo || slices.Contains(m.names(), p)) {
		m.w.tracef("%s: meanwhile", m.name)
		m.edit(p)
	}
}

// cycle runs one cycle, with the faults of this step.
func (m *machine) cycle() (r syncer.Result) {
	w := m.w
	m.calls, m.crashAt, m.loss = 0, 0, 0
	if w.chance(15) {
		m.crashAt = 1 + w.pick(60)
	}
	if w.chance(25) {
		m.loss = 10
	}
	m.running = true
	noted := m.noted()
	defer func() {
		m.running = false
		m.excuseLines(noted)
		if x := recover(); x != nil {
			if c, ours := x.(crashed); !ours || c.m != m {
				panic(x)
			}
			// An intent may go with the power, and then a lost answer is a conflict;
			// that is the price of not waiting for the disk before each push.
			if !w.solo && w.chance(50) {
				m.state.PowerLoss()
			}
			m.start()
		}
	}()
	run, how := m.s.Cycle, "cycle"
	if w.chance(40) { // as when the hub's news is all that is known
		run, how = m.s.Follow, "follow"
	}
	r, err := run(context.Background())
	w.tracef("%s: "+how+" %s pulled %d pushed %d deleted %d pending %d: %v", m.name, r.Phase, r.Pulled, r.Pushed, r.Deleted, r.Pending, err)
	var e *memory.Error
	if err != nil && !errors.Is(err, errNetwork) && (!errors.As(err, &e) || e.Reason != memory.ReasonEpochChanged) {
		w.breakLaw("%s: a cycle failed for no reason: %v", m.name, err)
	}
	return r
}

// step is one thing that happens. It has chance of its own, so that a run without it
// is otherwise the same run; that is what makes shrinking work.
func (w *world) step(i int) {
	w.rng = rand.New(rand.NewPCG(w.seed, uint64(i)+1))
	w.now = w.now.Add(time.Duration(w.pick(20_000)) * time.Millisecond)
	m := w.machines[w.pick(len(w.machines))]
	switch n := w.pick(100); {
	case n < 45:
		m.act()
	case n < 85:
		m.cycle()
	case w.solo && n < 93:
		w.machines[0].tidyStep()
	default:
		w.fault(m)
	}
}

// fault changes something around the machines.
func (w *world) fault(m *machine) {
	n := w.pick(15)
	if w.solo && !slices.Contains([]int{0, 1, 2, 7, 8}, n) {
		return
	}
	switch n {
	case 0:
		m.cut = !m.cut
		w.tracef("%s: cut off: %v", m.name, m.cut)
	case 1:
		w.hubDown = !w.hubDown
		w.tracef("hub down: %v", w.hubDown)
	case 2:
		w.tracef("hub restarts")
		w.hub.start()
	case 3, 4:
		w.backups = append(w.backups, w.hub.backend.Clone())
		w.tracef("backup %d", len(w.backups)-1)
	case 5:
		if len(w.backups) > 0 && w.chance(40) {
			i := w.pick(len(w.backups))
			w.epochs++
			w.tracef("hub restored from backup %d, epoch %d", i, w.epochs+1)
			w.rewind(w.backups[i], memory.Epoch(fmt.Sprintf("epoch-%d", w.epochs+1)))
		}
	case 6:
		if len(w.backups) > 0 && w.chance(20) {
			i := w.pick(len(w.backups))
			w.tracef("hub's volume put back to snapshot %d", i)
			w.snapshots++
			w.rewind(w.backups[i], "")
		}
	case 7, 8:
		if len(w.delayed) > 0 {
			i := w.pick(len(w.delayed))
			d := w.delayed[i]
			w.delayed = slices.Delete(w.delayed, i, i+1)
			_, err := w.deliver(d.from, d.req)
			w.tracef("late request of %s (%s): %v", d.from, changesOf(d.req.Changes), err)
		}
	case 9:
		if w.chance(40) {
			m.loseState()
		}
	case 10:
		m.toggleUnreadable()
	case 11:
		m.toggleIgnored()
	case 12:
		// A cursor that stands right before the oldest commit kept cannot be compared
		// with a history whose commit of that number is forgotten. That takes a
		// snapshot put back silently and then all of the retention.
		if w.snapshots == 0 && w.chance(30) {
			cut := w.now.Add(-time.Duration(w.pick(600)) * time.Second)
			w.losing(func() {
				r, err := w.hub.backend.Compact(context.Background(), project, cut)
				w.tracef("compacted: %+v, %v", r, err)
			})
		}
	case 13:
		m.accident()
	case 14:
		w.redact()
	}
}

var tokenPattern = regexp.MustCompile(`tok-\d+`)

func tokensIn(texts ...string) map[string]bool {
	out := map[string]bool{}
	for _, t := range texts {
		for _, tok := range tokenPattern.FindAllString(t, -1) {
			out[tok] = true
		}
	}
	return out
}

// excuse notes that a user replaced old by text, and so took away what is no longer in it.
func (w *world) excuse(old, text string) {
	left := tokensIn(text)
	for tok := range tokensIn(old) {
		if !left[tok] {
			w.excused[tok] = true
		}
	}
}

// living returns what is on the hub now.
func (w *world) living() string {
	var b strings.Builder
	for _, m := range w.hub.files() {
		b.Write(m.Content)
	}
	return b.String()
}

// settled returns what is on the hub now and stays until somebody edits it. Where the
// hub was put back, a machine that went on from there offers its own text over the old one.
func (w *world) settled() string {
	var b strings.Builder
	for p, kept := range w.hub.files() {
		if !slices.ContainsFunc(w.machines, func(m *machine) bool {
			text, here := m.disk.Read(p)
			_, err := w.hub.svc.Project(context.Background(), call(m.name), project, m.state.Link().Cursor)
			return here && text != string(kept.Content) && err != nil
		}) {
			b.Write(kept.Content)
		}
	}
	return b.String()
}

// rewind puts an older store in place. What machines have of what it lacks is owed.
func (w *world) rewind(backup *inmem.Store, epoch memory.Epoch) {
	w.losing(func() { w.hub.restore(backup, epoch) })
}
