package simtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

// allNames is the pool of paths: few, so that machines meet, with spellings and
// directories that get in each other's way.
var allNames = []memory.Path{
	"project_a.md", "project_b.md", "reference_c.md", "feedback_d.md", "note.md", "Note.md",
	"sub/project_e.md", "sub/deep/f.md", "x.md", "x.md/inner.md", "Sub/g.md", "规则.md",
}

const index = memory.Path("MEMORY.md")

// soloNames never get in each other's way.
var soloNames = []memory.Path{
	"project_a.md", "project_b.md", "reference_c.md", "feedback_d.md", "sub/project_e.md", "sub/deep/f.md", "规则.md", "g.md", "h.md", "sub/i.md",
}

// names returns the paths that the machine's user works with.
func (m *machine) names() []memory.Path {
	if !m.w.solo {
		return allNames
	}
	var own []memory.Path
	for i, p := range soloNames {
		if m.w.machines[i%len(m.w.machines)] == m {
			own = append(own, p)
		}
	}
	return own
}

// act is something a user does.
func (m *machine) act() {
	w := m.w
	if m.disk.Root != 0 && m.disk.Root != syncer.RootOK {
		m.accident() // nothing can be edited; perhaps it comes back
		return
	}
	if h := m.state.Link().Halt; w.solo && h != nil && !h.Accepted {
		m.resume() // the user deleted much, and means it
		return
	}
	if m.vanished {
		m.cycle()
		m.vanished = m.state.Link().Halt == nil
		return
	}
	names := m.names()
	paths := slices.DeleteFunc(m.disk.Paths(), func(p memory.Path) bool {
		return p == index || w.solo && !slices.Contains(names, p)
	})
	n := w.pick(100)
	if w.solo && n >= 74 && n < 90 { // the index is everybody's
		n = 30
	}
	switch {
	case n < 22 || len(paths) == 0:
		p := names[w.pick(len(names))]
		if _, there := m.disk.Read(p); there {
			m.edit(p)
		} else {
			m.save(p, m.newText())
		}
	case n < 58:
		m.edit(paths[w.pick(len(paths))])
	case n < 66:
		m.remove(paths[w.pick(len(paths))])
	case n < 74:
		m.rename(paths[w.pick(len(paths))], names[w.pick(len(names))])
	case n < 90:
		m.editIndex(paths)
	case n < 93:
		m.truncate(paths[w.pick(len(paths))])
	case n < 97:
		m.resolve()
	default:
		m.resume()
	}
}

func (w *world) token() string {
	w.tokens++
	return fmt.Sprintf("tok-%d", w.tokens)
}

func (m *machine) newText() string {
	w := m.w
	var b strings.Builder
	if w.chance(60) {
		fmt.Fprintf(&b, "---\nname: %s\nmetadata:\n  modified: %s\n---\n", w.token(), m.clock().Format("2006-01-02T15:04:05Z07:00"))
	}
	for range 1 + w.pick(6) {
		b.WriteString(m.line())
	}
	return b.String()
}

// line is a line that no other text has, or now and then one that many have.
func (m *machine) line() string {
	w := m.w
	n := w.pick(40)
	if w.solo && (n == 4 || n == 5) {
		n = 6
	}
	switch {
	case n < 4:
		return "the same everywhere\n"
	case n == 4:
		return "about " + w.token() + " " + synctest.Secret + "\n"
	case n == 5:
		return "about " + w.token() + " " + hubSecret + "\n"
	}
	return "about " + w.token() + "\n"
}

// save is a user's save.
func (m *machine) save(p memory.Path, text string) {
	p = m.disk.Spelled(p)
	old, _ := m.disk.Read(p)
	if !m.disk.Save(p, text) {
		return
	}
	m.w.saved[p], m.w.last[p] = true, text
	m.w.excuse(old, text)
	for tok := range tokensIn(text) {
		m.w.born[tok] = true
	}
	m.w.tracef("%s: saves %s %q", m.name, p, text)
}

// edit changes some lines of a file.
func (m *machine) edit(p memory.Path) {
	w := m.w
	text, there := m.disk.Read(p)
	if !there {
		return
	}
	lines := strings.SplitAfter(text, "\n")
	for range 1 + w.pick(2) {
		at := w.pick(len(lines) + 1)
		switch n := w.pick(10); {
		case n < 5:
			lines = slices.Insert(lines, at, m.line())
		case n < 8 && at < len(lines) && !strings.HasPrefix(lines[at], "---"):
			lines[at] = m.line()
		case n < 9 && at < len(lines) && !strings.HasPrefix(lines[at], "---"):
			lines = slices.Delete(lines, at, at+1)
		default:
			lines = append(lines, m.line())
		}
	}
	m.save(p, strings.Join(lines, ""))
}

// gone notes that a user took a path away here.
func (m *machine) gone(p memory.Path) {
	text, _ := m.disk.Read(p)
	m.w.excuse(text, "")
	m.w.removed[p] = true
}

func (m *machine) remove(p memory.Path) {
	m.gone(p)
	m.disk.Delete(p)
	delete(m.w.last, p)
	m.w.tracef("%s: deletes %s", m.name, p)
}

func (m *machine) rename(from, to memory.Path) {
	text, _ := m.disk.Read(from)
	old, _ := m.disk.Read(to)
	if !m.disk.Rename(from, to) {
		return
	}
	m.w.removed[from] = true
	m.w.excuse(old, text)
	m.w.saved[to], m.w.last[to] = true, text
	delete(m.w.last, from)
	m.w.tracef("%s: renames %s to %s", m.name, from, to)
}

// truncate empties a file, as an editor does right before it writes.
func (m *machine) truncate(p memory.Path) {
	old, _ := m.disk.Read(p)
	m.disk.Save(p, "")
	m.w.last[p] = ""
	m.w.tracef("%s: empties %s", m.name, p)
	m.cycle()
	if now, there := m.disk.Read(p); there && now == "" {
		m.save(p, old+m.line())
		return
	}
	m.w.excuse(old, "") // a pull came in between; the editor lost its race with the user's own hands
}

func (m *machine) editIndex(paths []memory.Path) {
	w := m.w
	text, _ := m.disk.Read(index)
	lines := strings.SplitAfter(text, "\n")
	switch n := w.pick(10); {
	case n < 6 && len(paths) > 0:
		p := paths[w.pick(len(paths))]
		if strings.Contains(text, "("+string(p)+")") {
			return
		}
		at := len(lines) - 1 - w.pick(min(2, len(lines)))
		lines = slices.Insert(lines, max(at, 0), fmt.Sprintf("- [T](%s) — %s\n", p, w.token()))
	case n < 8 && len(lines) > 1:
		at := w.pick(len(lines) - 1)
		if i := strings.Index(lines[at], "tok-"); i >= 0 {
			lines[at] = lines[at][:i] + w.token() + "\n"
		}
	case n < 9 && len(lines) > 1:
		at := w.pick(len(lines) - 1)
		lines = slices.Delete(lines, at, at+1)
	default:
		lines = slices.Insert(lines, 0, "prose "+w.token()+"\n")
	}
	m.save(index, strings.Join(lines, ""))
}

// resolve ends one of the machine's conflicts, somehow.
func (m *machine) resolve() {
	w := m.w
	open, err := m.s.Conflicts(context.Background())
	if err != nil || len(open) == 0 {
		return
	}
	x := open[w.pick(len(open))]
	how := syncer.Resolution(1 + w.pick(3))
	now, _ := m.disk.Read(x.Path)
	texts, err := m.s.Conflict(context.Background(), x.ID)
	if err != nil {
		w.breakLaw("%s: conflict %s cannot be shown: %v", m.name, x.Path, err)
		return
	}
	err = m.s.Resolve(context.Background(), x.ID, how, append(texts.Ours, texts.Theirs...))
	w.tracef("%s: resolves %s as %d: %v", m.name, x.Path, how, err)
	var refused *syncer.RefusedError
	switch {
	case err == nil:
		w.saved[x.Path] = true
		// The person saw all texts and chose.
		chosen, _ := m.disk.Read(x.Path)
		w.excuse(now+string(texts.Ours), chosen)
	case errors.As(err, &refused):
		// The merged text holds a planted secret. Nothing may have been decided.
		after, _ := m.disk.Read(x.Path)
		if _, err := m.s.Conflict(context.Background(), x.ID); err != nil || after != now || how != syncer.TakeMerged {
			w.breakLaw("%s: resolve %s was refused, and did something: %v", m.name, x.Path, err)
		}
	case !errors.Is(err, syncer.ErrLocalBlocked):
		w.breakLaw("%s: resolve %s: %v", m.name, x.Path, err)
	}
}

// resume decides about a halt.
func (m *machine) resume() {
	w := m.w
	h := m.state.Link().Halt
	if h == nil || h.Accepted {
		return
	}
	mode := syncer.Restore
	if w.solo || w.chance(30) {
		mode = syncer.AcceptDeletes
		for _, p := range h.Missing {
			m.givesUp(p)
		}
	}
	err := m.s.Resume(context.Background(), mode)
	w.tracef("%s: resumes as %d: %v", m.name, mode, err)
	if err != nil {
		w.breakLaw("%s: resume: %v", m.name, err)
	}
}

// givesUp notes that a user lets a path go that is not on disk any more. What other
// machines made of it is theirs, so only the text this machine had is excused.
func (m *machine) givesUp(p memory.Path) {
	m.w.removed[p] = true
	if b, known := m.state.Link().Baseline[p]; known {
		if text, err := m.state.Text(context.Background(), b.Text); err == nil {
			m.w.excuse(string(text), "")
		}
	}
}

// loseState deletes the state directory. What only it kept is gone with it.
func (m *machine) loseState() {
	for p := range m.state.Link().Baseline {
		if _, here := m.disk.Read(p); !here {
			m.w.removed[p] = true // the state was the last that knew of it here
		}
	}
	// A conflict's text lives nowhere else, unless the hub still has it: another disk
	// that holds it is only behind.
	living, link := tokensIn(m.w.settled()), m.state.Link()
	link.Baseline, link.Intents = nil, nil
	for e := range link.Texts() {
		if text, err := m.state.Text(context.Background(), e); err == nil {
			for tok := range tokensIn(string(text)) {
				if !living[tok] {
					m.w.excused[tok] = true
				}
			}
		}
	}
	m.w.losing(func() {
		m.state.Lose()
		m.vanished = false // without a state it is an empty directory
		m.start()
	})
	m.w.tracef("%s: loses its state", m.name)
}

// toggleUnreadable makes a directory or file unreadable, or all readable again.
func (m *machine) toggleUnreadable() {
	if m.vanished {
		return // masked files are not counted as missing, so few could be left to count
	}
	if len(m.disk.Unreadable) > 0 {
		m.disk.Unreadable = nil
	} else {
		m.disk.Unreadable = []memory.Path{[]memory.Path{"sub", "project_a.md", "x.md", index}[m.w.pick(4)]}
	}
	m.w.tracef("%s: unreadable %q", m.name, m.disk.Unreadable)
}

// toggleIgnored changes .memsyncignore.
func (m *machine) toggleIgnored() {
	if m.vanished {
		return
	}
	if m.disk.Ignored != nil {
		m.disk.Ignored = nil
		m.w.tracef("%s: ignores nothing", m.name)
		return
	}
	p := allNames[m.w.pick(len(allNames))]
	m.disk.Ignored = func(q memory.Path) bool { return q == p }
	m.w.tracef("%s: ignores %s", m.name, p)
}

// accident takes the disk away, or gives it back.
func (m *machine) accident() {
	w := m.w
	switch {
	case m.disk.Root != 0 && m.disk.Root != syncer.RootOK:
		m.disk.Root = syncer.RootOK
		w.tracef("%s: root is back", m.name)
	case w.chance(30):
		m.disk.Root = syncer.RootReplaced
		w.tracef("%s: root is replaced", m.name)
	case w.chance(40) && len(m.state.Link().Baseline) >= 2 && len(m.disk.Unreadable) == 0 && m.disk.Ignored == nil:
		// All files vanish. What was not synced yet nobody can bring back.
		base := m.state.Link().Baseline
		agreed := map[string]bool{} // what the state brings back
		for _, b := range base {
			if text, err := m.state.Text(context.Background(), b.Text); err == nil {
				maps.Copy(agreed, tokensIn(string(text)))
			}
		}
		for _, p := range m.disk.Paths() {
			b, synced := base[p]
			if !synced {
				w.removed[p] = true
			}
			text, _ := m.disk.Read(p)
			for tok := range tokensIn(text) {
				if b.Local != memory.ETagOf([]byte(text)) && !agreed[tok] {
					w.excused[tok] = true
				}
			}
		}
		w.losing(func() {
			for _, p := range m.disk.Paths() {
				m.disk.Delete(p)
			}
			if w.chance(50) {
				m.disk.Marker = ""
			}
		})
		m.vanished = true
		w.tracef("%s: all files vanish", m.name)
	}
}
