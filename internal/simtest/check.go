package simtest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// everything returns all texts that a person can get at without going back in
// history: living on the hub, on a disk, in a state (baseline, conflicts, trash), in a
// log of what gave way.
func (w *world) everything() []string {
	out := []string{w.living()}
	for _, m := range w.machines {
		for _, t := range m.disk.Files() {
			out = append(out, t)
		}
		link := m.state.Link()
		for _, n := range link.Notes {
			out = append(out, n.Text)
		}
		link.Intents = nil // what only these hold is not kept for anybody
		for e := range link.Texts() {
			if t, err := m.state.Text(context.Background(), e); err == nil {
				out = append(out, string(t))
			}
		}
	}
	return out
}

// losing runs an accident that takes stored copies away, and excuses what only they
// held: nothing can make that good.
func (w *world) losing(accident func()) {
	before := tokensIn(w.everything()...)
	accident()
	after := tokensIn(w.everything()...)
	for tok := range before {
		if !after[tok] {
			w.excused[tok] = true
		}
	}
}

// calm ends all faults and lets the machines work until nothing moves any more.
func (w *world) calm() {
	w.tracef("the faults stop")
	w.rng, w.hubDown, w.delayed = nil, false, nil
	if m := w.machines[0]; m.tidying != nil {
		m.endTidying()
	}
	for _, m := range w.machines {
		m.cut, m.disk.Unreadable, m.disk.Ignored = false, nil, nil
		m.disk.Root = syncer.RootOK
	}
	idle := 0
	for round := 0; idle < 2; round++ {
		if round == 40 {
			w.breakLaw("the machines do not come to rest")
			return
		}
		moved := false
		for _, m := range w.machines {
			w.now = w.now.Add(5e9)
			r := m.cycle()
			moved = moved || r.Pulled+r.Pushed+r.Deleted > 0 || r.Phase == syncer.PhaseFailing
			if r.Phase == syncer.PhaseHalted {
				moved = true
				mode := syncer.Restore
				if w.solo { // there are no accidents; the user meant it
					mode = syncer.AcceptDeletes
				}
				if err := m.s.Resume(context.Background(), mode); err != nil {
					w.breakLaw("%s: resume: %v", m.name, err)
				}
			}
		}
		if idle++; moved {
			idle = 0
		}
	}
}

// check holds the end of a run against the laws.
func (w *world) check() {
	w.checkEqual()
	w.checkTexts()
	w.checkDeletes()
	w.checkSecrets()
	w.checkRedacted()
	if w.solo {
		w.checkSolo()
		w.checkTidied()
	}
}

// checkSolo: who alone works on a file has no conflicts, and his last word stands.
func (w *world) checkSolo() {
	hub := w.hub.files()
	for _, m := range w.machines {
		for _, x := range m.state.Link().Conflicts {
			w.breakLaw("%s: a conflict at %s, which one machine alone edits", m.name, x.Path)
		}
	}
	for _, p := range soloNames {
		want, there := w.last[p]
		got, is := hub[p]
		if there != is || want != string(got.Content) {
			w.breakLaw("%s is %q (%v) on the hub, last saved was %q (%v)", p, got.Content, is, want, there)
		}
	}
}

// checkEqual: every machine equals the hub, but for what it holds back and says so.
func (w *world) checkEqual() {
	hub := w.hub.files()
	for _, m := range w.machines {
		link := m.state.Link()
		held := map[memory.Path]bool{}
		for p, h := range link.Held {
			held[p] = true
			if h.RenamedFrom != "" {
				held[h.RenamedFrom] = true
			}
		}
		disk := m.disk.Files()
		paths := m.disk.Paths()
		for p := range hub {
			paths = append(paths, p)
		}
		slices.Sort(paths)
		for _, p := range slices.Compact(paths) {
			text, here := disk[p]
			mem, there := hub[p]
			b, agreed := link.Baseline[p]
			switch {
			case held[p]:
			case p == index && here && !there && !agreed:
				// Only lines that stay on this machine.
			case here != there:
				w.breakLaw("%s: %s is here %v, on the hub %v", m.name, p, here, there)
			case b.Hub != mem.ETag || b.Local != memory.ETagOf([]byte(text)):
				w.breakLaw("%s: %s was not agreed on (%+v)", m.name, p, b)
			case b.Hub != b.Local && p != index:
				w.breakLaw("%s: %s differs from the hub's", m.name, p)
			case p == index:
				w.checkIndex(m, link, text, string(mem.Content))
			}
		}
		if len(link.Intents) > 0 && !onlyToHub(link) || link.Recovery != nil || link.Halt != nil {
			w.breakLaw("%s: left over: %+v %+v %+v", m.name, link.Intents, link.Recovery, link.Halt)
		}
		for p := range link.Ahead {
			if !held[p] {
				w.breakLaw("%s: the hub is still ahead at %s", m.name, p)
			}
		}
	}
}

func onlyToHub(link syncer.LinkState) bool {
	for _, i := range link.Intents {
		if !i.ToHub {
			return false
		}
	}
	return true
}

// checkIndex: the lines of the hub's index are here, and what else is here points at
// what stays here.
func (w *world) checkIndex(m *machine, link syncer.LinkState, local, hub string) {
	has := map[string]bool{}
	for line := range strings.Lines(hub) {
		has[strings.TrimSpace(line)] = true
	}
	for _, line := range memory.ParseIndex([]byte(local)).Lines {
		raw := strings.TrimSpace(string(line.Raw))
		if has[raw] || raw == "" {
			continue
		}
		if line.Entry == nil {
			w.breakLaw("%s: prose %q of the index is not on the hub", m.name, raw)
			continue
		}
		if _, held := link.Held[memory.Path(line.Entry.Key())]; !held {
			w.breakLaw("%s: index line %q is not on the hub", m.name, raw)
		}
	}
}

// checkTexts: every text that a user saved and nobody took away is somewhere, and not
// only in the hub's history: an edit that a delete or another edit swallowed counts as
// lost.
func (w *world) checkTexts() {
	left := tokensIn(w.everything()...)
	for _, tok := range slices.Sorted(maps.Keys(w.born)) {
		if !left[tok] && !w.excused[tok] {
			w.breakLaw("%s is lost", tok)
		}
	}
}

// checkDeletes: what no user took away is on the hub, or held back where it was saved.
func (w *world) checkDeletes() {
	hub := w.hub.files()
	folded := map[string]bool{}
	for p := range hub {
		folded[p.FoldKey()] = true // an edit wins over a new spelling of the name
	}
	for p := range w.removed {
		folded[p.FoldKey()] = true
	}
	for p := range w.saved {
		if folded[p.FoldKey()] || w.removed[p] || p == index {
			continue
		}
		held := slices.ContainsFunc(w.machines, func(m *machine) bool {
			_, here := m.disk.Read(p)
			link := m.state.Link()
			_, says := link.Held[p]
			return here && says || slices.ContainsFunc(slices.Collect(maps.Values(link.Trash)), func(t syncer.Trashed) bool {
				// A user put a directory where the vanished file had been.
				return t.Path == p && t.Reason == "missing, and its place is taken"
			})
		})
		if !held {
			w.breakLaw("%s was deleted, and nobody did it", p)
		}
	}
}

// checkSecrets: what the guard refuses never reached the hub.
func (w *world) checkSecrets() {
	history := w.hub.history()
	for _, word := range []string{"planted-secret", hubSecret} {
		if strings.Contains(history, word) {
			w.breakLaw("%q reached the hub", word)
		}
	}
}

// checkOutgoing: nothing that this machine's guard refuses leaves it, nor an ignored
// file, nor an index line about one.
func (m *machine) checkOutgoing(changes []memory.Change) {
	ignored := func(p memory.Path) bool { return m.disk.Ignored != nil && m.disk.Ignored(p) }
	for _, ch := range changes {
		if strings.Contains(string(ch.Content), synctest.Secret) {
			m.w.breakLaw("%s: sends the planted secret in %s", m.name, ch.Path)
		}
		if ignored(ch.Path) {
			m.w.breakLaw("%s: sends %s, which is ignored", m.name, ch.Path)
		}
		if ch.Path != index {
			continue
		}
		known := map[string]bool{}
		base, _ := m.state.Text(context.Background(), m.state.Link().Baseline[index].Text)
		for line := range strings.Lines(string(base) + "\n" + string(m.w.hub.files()[index].Content)) {
			known[strings.TrimSpace(line)] = true
		}
		for _, line := range memory.ParseIndex(ch.Content).Lines {
			if e := line.Entry; e != nil && ignored(memory.Path(e.Key())) && !known[strings.TrimSpace(string(line.Raw))] {
				m.w.breakLaw("%s: sends %q, which is about an ignored file", m.name, line.Raw)
			}
		}
	}
}
