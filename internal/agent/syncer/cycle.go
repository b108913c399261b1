package syncer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/memory"
)

// Result is what one cycle did.
type Result struct {
	Phase   Phase
	Pulled  int // files written here
	Pushed  int // files sent
	Deleted int // files deleted on either side
	Removed int // of these, files removed here; of a file that a rename moved, its old path
	Commits int // made on the hub
	// Pending counts changes that are left for the next cycle; while the hub cannot be
	// asked, those of this machine that wait for it.
	Pending int
	// Again says that the next cycle should come after this time even if nothing
	// moves; 0 = only when something does.
	Again time.Duration
	// GivenUp are texts that the trash had no room for any more, in order of paths.
	GivenUp []Trashed
	// Replaced says that the hub's history had been replaced, and that this cycle brought
	// the link over to the present one; nil where that was not so.
	Replaced *Replaced
}

// Replaced is what became of a link whose project has another history on the hub: a hub
// that was restored, or into which an archive was imported.
type Replaced struct {
	From, To memory.Cursor // where the link stood, and where it stands now
	// Shared is the last revision that both histories surely have in common.
	Shared memory.Revision
	// Offered are memories that the hub did not know and gets again, and Undone those that
	// had been deleted and are there again, both in order; since the agent was started.
	Offered, Undone []memory.Path
}

// cycle is one run of Cycle.
type cycle struct {
	s      *Syncer
	now    time.Time
	follow bool // believe what the last cycle saw of the disk

	snap   Snapshot
	local  reconcile.Tree // as scanned, and then as written
	base   map[memory.Path]BaseEntry
	remote map[memory.Path]remoteFile
	inline int64 // bytes of contents held in remote
	// touched are the paths whose place in the hub's tree this pull told or retold.
	touched map[memory.Path]memory.Revision
	full    bool          // remote comes from a listing
	cursor  memory.Cursor // what the remote tree stands at
	// passed are the texts that paths went through on the hub since the cursor.
	passed map[memory.Path]map[memory.ETag]memory.Revision
	told   map[memory.Path]map[memory.Revision]memory.ETag // the same, by revision
	// authors are of the last texts that this cycle heard of; names are those that were
	// judged.
	authors map[memory.Path]credit
	names   map[string]string
	marks   []Mark               // the commits since the cursor
	stale   map[memory.Path]bool // follow the hub, but keep a copy
	// redactedAt are the paths at which the pull told of a redaction, and redacted the
	// texts that are known to be redacted: no copy of them is kept.
	redactedAt map[memory.Path]bool
	redacted   map[memory.ETag]bool
	letGo      bool // something redacted left the state in this cycle, or came into it
	// asked are the texts that the hub was or is to be asked about, asking those that
	// wait for it.
	asked       map[memory.ETag]bool
	asking      [][]byte
	askingBytes int
	had         map[memory.ETag]bool // see hubHad
	// unasked are the paths whose texts the hub could not be asked about: they wait.
	// askErr is why.
	unasked map[memory.Path]bool
	askErr  error
	// renamed are the paths that commits since the cursor renamed, new from old; moves
	// are those where a local file follows (see moves.go).
	renamed map[memory.Path]memory.Path
	moves   map[memory.Path]memory.Path
	// trashed are the files whose text is kept already.
	trashed map[memory.Path]memory.ETag

	outs    []out
	held    map[memory.Path]Held
	heldDel map[memory.Path]bool // deletes that wait for a refused rename
	gap     bool                 // deletes wait for a save; what a person accepted of them stays so
	going   map[memory.Path]bool // new files of the commit being built

	met int // pushes that met another edit

	quota []memory.Violation // why the hub takes no new files in this cycle

	dropped  []memory.Path // from the baseline, before the cursor was saved
	advanced bool          // it is

	todo      Update // not yet saved
	todoBytes int
	unsaved   map[memory.ETag][]byte // texts of todo

	result Result
	errs   []error
}

// Cycle brings both sides as far into step as it can and returns what it did. A
// cycle that was stopped anywhere, by a crash too, is made good by the next one. The
// error is the first trouble (see Classify); what did not depend on it was done.
func (s *Syncer) Cycle(ctx context.Context) (Result, error) { return s.cycle(ctx, false) }

// Follow is Cycle for when the hub moved and nothing is known of the disk. If the last
// cycle left everything in step, and a glance shows that the same files are there (see
// Glancer), then what that cycle saw of their texts is believed: a file is looked at
// once more right before it is replaced or removed, so whoever edited one meanwhile is
// noticed then, or by the next Cycle. Files that came or went are not taken on trust,
// since a directory that was emptied must be seen before anything is written into it.
func (s *Syncer) Follow(ctx context.Context) (Result, error) { return s.cycle(ctx, true) }

func (s *Syncer) cycle(ctx context.Context, follow bool) (Result, error) {
	s.run.Lock()
	defer s.run.Unlock()
	s.publish(func(st *Status) { st.Phase = PhaseSyncing })
	c := &cycle{
		s: s, now: s.ports.Clock(), follow: follow,
		touched: map[memory.Path]memory.Revision{},
		passed:  map[memory.Path]map[memory.ETag]memory.Revision{},
		told:    map[memory.Path]map[memory.Revision]memory.ETag{},
		stale:   map[memory.Path]bool{},
		trashed: map[memory.Path]memory.ETag{},
		renamed: map[memory.Path]memory.Path{},
		moves:   map[memory.Path]memory.Path{},
		authors: map[memory.Path]credit{},
		names:   map[string]string{},
		held:    map[memory.Path]Held{},
		heldDel: map[memory.Path]bool{},
		going:   map[memory.Path]bool{},
		unsaved: map[memory.ETag][]byte{},

		redactedAt: map[memory.Path]bool{},
		redacted:   map[memory.ETag]bool{},
		unasked:    map[memory.Path]bool{},
	}
	err := c.run(ctx)
	if err == nil {
		err = errors.Join(c.errs...)
	}
	c.report(err)
	return c.result, err
}

func (c *cycle) run(ctx context.Context) error {
	if err := c.s.load(ctx); err != nil {
		return err
	}
	mayPush := true
	if u := c.s.ports.Uploads; u != nil {
		var leave func()
		if leave, mayPush = u.Enter(ctx); mayPush {
			defer leave()
		}
		c.now = c.s.ports.Clock() // it may have ended what somebody left half done first
	}
	if ok, err := c.look(ctx); !ok || err != nil {
		return err
	}
	if err := c.pull(ctx); err != nil {
		if interrupted(ctx, err) {
			return err
		}
		return errors.Join(err, c.weigh(ctx))
	}
	if err := c.judgeRedacted(ctx); err != nil {
		return err
	}
	if err := c.honourIntents(ctx); err != nil {
		return err
	}
	if err := c.resumePulls(ctx); err != nil {
		return err
	}
	c.resumeDeletes()
	actions := c.plan(ctx)
	if err := c.applyAll(ctx, actions); err != nil {
		return err
	}
	if err := c.advance(ctx); err != nil {
		return err
	}
	if !mayPush {
		// What was seen of the disk may be half of what belongs together: it is looked
		// at anew, and judged, when it may be sent.
		c.result.Pending += len(c.outs)
		c.again(heldBackPause)
		c.outs = nil
		return c.finish(ctx, false)
	}
	if err := c.push(ctx); err != nil {
		return errors.Join(err, c.finish(ctx, false))
	}
	return c.finish(ctx, true)
}

// plan compares the three trees and pairs renames.
func (c *cycle) plan(ctx context.Context) []reconcile.Action {
	all := make(reconcile.Tree, len(c.remote))
	for p, f := range c.remote {
		all[p] = f.ETag
	}
	remote := seen(c, all)
	actions := reconcile.Plan(seen(c, c.baseline()), seen(c, c.local), remote)
	actions = c.findMoves(actions)
	actions = append(actions, c.quietIndexes(actions)...)
	c.pairHeld(actions)
	reconcile.PairRenames(actions, func(a reconcile.Action) ([]byte, bool) {
		if a.Kind == reconcile.PushDelete {
			text, err := c.text(ctx, a.Base.Text)
			return text, err == nil
		}
		if c.snap.Files[a.Path].Size > memory.MaxMemoryBytes {
			return nil, false
		}
		text, err := c.s.ports.Local.Read(ctx, a.Path)
		return text, err == nil
	})
	return reconcile.Order(actions)
}

// quietIndexes returns a Push for every index that keeps lines to itself and has
// nothing else to do: what may leave depends on other files, so it is looked at again.
func (c *cycle) quietIndexes(actions []reconcile.Action) []reconcile.Action {
	var out []reconcile.Action
	for p, b := range c.base {
		if !memory.IsIndex(p) || b.Local == b.Hub || c.masked(p) || c.local[p] == "" || c.remote[p].ETag == "" {
			continue
		}
		if slices.ContainsFunc(actions, func(a reconcile.Action) bool { return a.Path == p }) {
			continue
		}
		out = append(out, reconcile.Action{Path: p, Kind: reconcile.Push, Base: planned(b), Local: c.local[p], Remote: c.remote[p].ETag})
	}
	return out
}

// pairHeld links the renames that were refused before: however the file was edited
// since, the delete of its old path still waits for it.
func (c *cycle) pairHeld(actions []reconcile.Action) {
	at := make(map[memory.Path]int, len(actions))
	for i, a := range actions {
		at[a.Path] = i
	}
	for _, h := range c.s.state.Held {
		from, gone := at[h.RenamedFrom]
		to, come := at[h.Path]
		if h.RenamedFrom == "" || !gone || !come || actions[from].Kind != reconcile.PushDelete || actions[to].Kind != reconcile.Push || actions[to].Remote != "" {
			continue
		}
		actions[from].RenamedTo, actions[to].RenamedFrom = h.Path, h.RenamedFrom
	}
}

// finish saves what the cycle learned about refusals, and tidies.
func (c *cycle) finish(ctx context.Context, complete bool) error {
	s := c.s
	for _, r := range c.snap.Refused {
		p := r.Path
		if p == "" {
			p = memory.Path(r.Name)
		}
		c.hold(Held{Path: p, By: HeldByName, Violations: []memory.Violation{r.Violation}})
	}
	for p, h := range c.held {
		if old, known := s.state.Held[p]; !known || !sameHeld(old, h) {
			c.todo.PutHeld = append(c.todo.PutHeld, h)
		}
	}
	if complete {
		for p := range s.state.Held {
			if _, still := c.held[p]; !still {
				c.todo.DropHeld = append(c.todo.DropHeld, p)
			}
		}
		if s.state.Halt != nil && s.state.Halt.Accepted && !c.gap {
			c.todo.ClearHalt = true
		}
		c.trimTrash()
	}
	slices.SortFunc(c.todo.PutHeld, func(a, b Held) int { return strings.Compare(string(a.Path), string(b.Path)) })
	slices.Sort(c.todo.DropHeld)
	if err := c.save(ctx); err != nil {
		return err
	}
	return c.forgetRedacted(ctx, complete)
}

func sameHeld(a, b Held) bool {
	return a.ETag == b.ETag && a.By == b.By && a.PolicyVersion == b.PolicyVersion && a.Revision == b.Revision &&
		a.RenamedFrom == b.RenamedFrom && slices.Equal(a.Violations, b.Violations)
}

// hold notes that a text stays on this machine.
func (c *cycle) hold(h Held) {
	h.Since = c.now
	if old, known := c.s.state.Held[h.Path]; known && old.By == h.By {
		h.Since = old.Since
	}
	c.held[h.Path] = h
	if h.RenamedFrom != "" {
		c.heldDel[h.RenamedFrom] = true
	}
}

// later leaves a path to the next cycle.
func (c *cycle) later(after time.Duration) {
	c.result.Pending++
	c.again(after)
}

// again asks for another cycle after this time at the latest.
func (c *cycle) again(after time.Duration) {
	if c.result.Again == 0 || after < c.result.Again {
		c.result.Again = after
	}
}

// remember keeps what is known of the disk for Follow, after a cycle that left nothing
// open: then baseline, disk and hub are equal, so that the next plan is about what the
// hub tells and about nothing else.
func (c *cycle) remember() {
	if c.result.Phase != PhaseInSync || len(c.snap.Refused)+len(c.snap.Unreadable)+len(c.held) > 0 {
		return
	}
	snap := c.snap
	for p, f := range snap.Files {
		if e := c.local[p]; e == "" {
			delete(snap.Files, p)
		} else if e != f.ETag {
			snap.Files[p] = LocalFile{ETag: e}
		}
	}
	if len(snap.Files) != len(c.local) {
		for p, e := range c.local {
			if _, known := snap.Files[p]; !known {
				snap.Files[p] = LocalFile{ETag: e}
			}
		}
	}
	c.s.seen = &snap
}

// unreadable returns what could not be looked at, less what is refused under its own
// name: that is told once, with its rule.
func (c *cycle) unreadable() []memory.Path {
	var out []memory.Path
	for _, p := range c.snap.Unreadable {
		if !slices.ContainsFunc(c.snap.Refused, func(r Refusal) bool { return r.Path == p || r.Path == "" && r.Name == string(p) }) {
			out = append(out, p)
		}
	}
	return out
}

// report publishes what became of the cycle.
func (c *cycle) report(err error) {
	r := &c.result
	switch {
	case err != nil && Classify(err) == Permanent:
		r.Phase = PhaseStopped
	case err != nil:
		r.Phase = PhaseFailing
	case r.Phase != "":
	case r.Pending > 0:
		r.Phase = PhasePending
	default:
		r.Phase = PhaseInSync
	}
	c.remember()
	c.s.publish(func(st *Status) {
		st.Phase, st.Pending, st.RootDetail = r.Phase, r.Pending, c.snap.Detail
		st.Unreadable = c.unreadable()
		st.Commits += int64(r.Commits)
		st.Applied += int64(r.Pulled + r.Removed)
		if err != nil {
			return
		}
		if c.base != nil { // else nothing was looked at
			st.Warnings = slices.DeleteFunc(st.Warnings, func(v memory.Violation) bool {
				_, shared := c.base[memory.Path(v.Path)]
				return !shared
			})
		}
		if r.Phase == PhaseInSync || r.Phase == PhasePending {
			st.LastSync = c.now
		}
	})
}
