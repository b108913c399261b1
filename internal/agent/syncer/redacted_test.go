package syncer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncer/synctest"
	"github.com/memsvc/memsvc/internal/memory"
)

const leak = "the launch code is walrus\n"

// redact takes a text away on the hub, and later a cursor passes it.
func (w *world) redact(text string) { w.hub.Redact(text) }

// holds fails unless the state keeps texts with these words and none with the leak's.
func (m *machine) holds(words ...string) {
	m.w.t.Helper()
	all := ""
	for _, t := range m.state.Kept() {
		all += string(t)
	}
	for _, n := range m.state.Link().Notes {
		all += n.Text
	}
	if strings.Contains(all, "walrus") {
		m.w.t.Errorf("%s: the state still holds the redacted text: %q", m.name, all)
	}
	for _, w := range words {
		if !strings.Contains(all, w) {
			m.w.t.Errorf("%s: the state has lost %q", m.name, w)
		}
	}
}

// kept prepares a machine that keeps the leak and other texts of the same paths, as
// conflicts and in the trash.
func kept(t *testing.T) (w *world, a, b *machine) {
	w = newWorld(t)
	a, b = w.machine("a"), w.machine("b")
	// Two lives of one path, both in the trash of b: one of them is the leak.
	for _, text := range []string{"first life, precious\n", leak} {
		a.save("t.md", text)
		w.settle(a, b)
		a.Delete("t.md")
		w.settle(a, b)
	}
	// Two texts that lost on b at one path, one of them the leak, and one of another that
	// lost to the leak.
	for _, c := range []struct {
		p          memory.Path
		hub, local string
	}{{"k.md", "hub's\n", "my precious unrelated note\n"}, {"l.md", "hub's\n", leak}, {"h.md", leak, "never on the hub, precious too\n"}} {
		a.save(c.p, c.hub)
		b.save(c.p, c.local)
		a.sync()
		w.settle(a, b)
	}
	if n := len(b.state.Link().Conflicts); n != 3 {
		t.Fatalf("%d conflicts, want 3", n)
	}
	a.save("k.md", leak)
	w.settle(a, b)
	return w, a, b
}

// TestRedactionTakesItsTextAlone: what an agent keeps of a redacted text goes, wherever it
// is from; other texts of the same paths stay, the more so where they exist nowhere else.
func TestRedactionTakesItsTextAlone(t *testing.T) {
	w, a, b := kept(t)
	clear(b.remote.Calls)
	w.redact(leak)
	w.settle(a, b)
	a.holds()
	b.holds("first life, precious", "my precious unrelated note", "never on the hub, precious too")
	want := files{"k.md": synctest.Marker, "l.md": "hub's\n", "h.md": synctest.Marker}
	w.want(want)
	a.want(want)
	b.want(want)
	for _, c := range b.state.Link().Conflicts {
		if c.Path == "l.md" {
			t.Error("the conflict of the redacted text is still open")
		}
		if got := c.HubRedacted(); got != (c.Path == "h.md") {
			t.Errorf("the hub's text of the conflict at %s was redacted: %v", c.Path, got)
		}
	}
	if n := b.remote.Calls["redacted"]; n == 0 || n > 2 {
		t.Errorf("the hub was asked %d times", n)
	}
}

// TestRedactionOutlivesKills stops a machine before and after every step of the cycle that
// learns of a redaction: the next ones end the same.
func TestRedactionOutlivesKills(t *testing.T) {
	killed := errors.New("killed")
	for at := 0; ; at++ {
		w, _, b := kept(t)
		w.redact(leak)
		n := 0
		hook := func(string, bool) error {
			if n++; n == at+1 {
				return killed
			}
			if n > at+1 {
				return killed // a dead process does nothing
			}
			return nil
		}
		b.remote.Hook, b.state.Hook = hook, hook
		if _, err := b.s.Cycle(t.Context()); err == nil {
			if at < 5 {
				t.Fatalf("only %d steps", at)
			}
			return
		}
		b.remote.Hook, b.state.Hook = nil, nil
		b.state.PowerLoss()
		b.restart()
		w.settle(b)
		b.holds("first life, precious", "my precious unrelated note", "never on the hub, precious too")
		if t.Failed() {
			t.Fatalf("killed at step %d", at)
		}
	}
}

// TestFullComparisonLearnsRedactions: a machine that sees no commits, since the hub has a
// new epoch or has forgotten them, or that has lost its state, keeps no redacted text.
func TestFullComparisonLearnsRedactions(t *testing.T) {
	for _, how := range []string{"new epoch", "compacted"} {
		w, _, b := kept(t)
		w.redact(leak)
		if how == "new epoch" {
			w.hub.NewEpoch("epoch-2")
		} else {
			w.hub.Put("z.md", "later\n")
			w.hub.Oldest = memory.Revision(len(w.hub.Commits()))
		}
		w.settle(b)
		b.holds("first life, precious", "my precious unrelated note", "never on the hub, precious too")
		if t.Failed() {
			t.Fatal(how)
		}
	}
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("x.md", leak)
	w.settle(a, b)
	w.redact(leak)
	b.state.Lose()
	b.restart()
	w.settle(a, b)
	b.holds()
	b.want(files{"x.md": synctest.Marker})
	if n := len(b.state.Link().Conflicts); n != 0 {
		t.Errorf("%d conflicts about a redacted text", n)
	}
}

// TestRedactedWhileAway: a memory that was deleted and redacted while a machine was away
// leaves its disk without a copy in the trash.
func TestRedactedWhileAway(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.save("x.md", leak)
	a.save("y.md", "other\n")
	a.save("z.md", "stays\n")
	w.settle(a, b)
	a.Delete("x.md")
	a.Delete("y.md")
	w.settle(a)
	w.redact(leak)
	w.settle(a, b)
	b.want(files{"z.md": "stays\n"})
	b.holds("other")
	if trash := b.state.Link().Trash; len(trash) != 1 {
		t.Errorf("trash %+v, want y.md alone", trash)
	}
}

// TestRedactionOnOlderHub: a hub that cannot be asked has the text go that the commit
// replaced, and nothing else.
func TestRedactionOnOlderHub(t *testing.T) {
	w, a, b := kept(t)
	a.remote.TooOld, b.remote.TooOld = true, true
	w.redact(leak)
	w.settle(a, b)
	b.holds("first life, precious", "my precious unrelated note", "never on the hub, precious too")
}

// TestRedactedIndexLine: the line that lost in an index which then lost a text is no
// longer in the notes; lines of other indexes are.
func TestRedactedIndexLine(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	lines := func(what string) string { return "# Index\n\n- [A](a.md) — " + what + "\n" }
	for _, p := range []memory.Path{"MEMORY.md", "sub/MEMORY.md"} {
		a.save(p, lines("one"))
	}
	a.save("a.md", "a\n")
	a.save("sub/a.md", "a\n")
	w.settle(a, b)
	for _, c := range []struct {
		p    memory.Path
		word string
	}{{"MEMORY.md", "walrus"}, {"sub/MEMORY.md", "fine"}} {
		a.save(c.p, lines(c.word+" at A"))
		b.save(c.p, lines(c.word+" at B"))
		a.sync()
		w.settle(a, b)
	}
	var before []string
	for _, n := range b.state.Link().Notes {
		if n.Kind == syncer.NoteIndexLine {
			before = append(before, n.Text)
		}
	}
	if all := fmt.Sprint(before); !strings.Contains(all, "walrus at B") || !strings.Contains(all, "fine at B") {
		t.Fatalf("the notes tell of %q", before)
	}
	w.redact(lines("walrus at A"))
	w.settle(a, b)
	b.holds("fine at B", syncer.LineRedacted)
	for where, text := range map[string]string{"hub": w.hub.Files()["MEMORY.md"], "a": a.Files()["MEMORY.md"], "b": b.Files()["MEMORY.md"]} {
		if text != synctest.Marker {
			t.Errorf("%s has the index %q", where, text)
		}
	}
	if got := b.s.Status(); got.Phase != syncer.PhaseInSync {
		t.Errorf("phase %s", got.Phase)
	}
	notes, err := b.s.Notes(t.Context())
	if err != nil || slices.ContainsFunc(notes, func(n syncer.Note) bool { return strings.Contains(n.Text, "walrus") }) {
		t.Errorf("the notes still tell: %v, %v", notes, err)
	}
}

// TestRedactedUnderAnEdit: where a text was edited before the redaction came, what is new
// in it stays, the redacted lines do not come back with it, and no copy of them is kept.
func TestRedactedUnderAnEdit(t *testing.T) {
	for _, kill := range []bool{false, true} {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		const index = "- [A](a.md) — walrus\n- [B](b.md) — fine\n"
		a.save("a.md", "a\n")
		a.save("b.md", "b\n")
		a.save("MEMORY.md", index)
		a.save("x.md", leak)
		w.settle(a, b)
		b.save("c.md", "c\n")
		b.save("MEMORY.md", index+"- [C](c.md) — new\n")
		b.save("x.md", "an edit\n")
		w.redact(index)
		w.redact(leak)
		if kill {
			killed := errors.New("killed")
			b.state.Hook = func(op string, after bool) error {
				if op == "apply" && after && b.state.Link().Redacting {
					return killed // the state knows, the disk does not yet
				}
				return nil
			}
			if err := b.syncErr(); !errors.Is(err, killed) {
				t.Fatal(err)
			}
			b.state.Hook = nil
			b.restart()
		}
		w.settle(b, a)
		b.holds("an edit")
		if got := w.hub.Files()["MEMORY.md"]; strings.Contains(got, "walrus") || !strings.Contains(got, "— new") {
			t.Errorf("killed %v: the hub's index is %q", kill, got)
		}
		if x := b.state.Link().Conflicts; len(x) != 1 {
			t.Errorf("killed %v: conflicts %v, want that of the edit", kill, x)
		}
		if b.state.Link().Redacting {
			t.Errorf("killed %v: in step, and still at it", kill)
		}
	}
}

// working counts what a machine does about redactions in cycles of one edit each.
func (m *machine) working(cycles int) (asked, forgotten int) {
	m.w.t.Helper()
	m.state.Hook = func(op string, after bool) error {
		if op == "forget" && !after {
			forgotten++
		}
		return nil
	}
	clear(m.remote.Calls)
	for i := range cycles {
		m.save("note.md", fmt.Sprintf("edit %d\n", i))
		m.sync()
	}
	m.state.Hook = nil
	return m.remote.Calls["redacted"], forgotten
}

// TestRedactionEndsBesideIgnored: a path that the hub has and this machine ignores keeps
// no redaction waiting that is not about it, nor a comparison in full without any.
func TestRedactionEndsBesideIgnored(t *testing.T) {
	for _, redact := range []bool{true, false} {
		w, a, b := kept(t)
		b.Ignored = func(p memory.Path) bool { return p == "draft.md" }
		a.save("draft.md", "of a\n")
		w.settle(a, b)
		if redact {
			w.redact(leak)
		} else {
			w.hub.NewEpoch("epoch-2")
		}
		w.settle(a, b)
		if st := b.state.Link(); st.Redacting || len(st.Ahead) != 1 {
			t.Errorf("redacted %v: still at it %v, ahead %v", redact, st.Redacting, st.Ahead)
		}
		if asked, forgotten := b.working(5); asked+forgotten > 0 {
			t.Errorf("redacted %v: then 5 edits asked %d times and had the disk rewritten %d times", redact, asked, forgotten)
		}
	}
}

// TestRedactionThatWaits: where the marker cannot come to its place, what is known is not
// asked again and the disk not rewritten, until it comes; then the text goes.
func TestRedactionThatWaits(t *testing.T) {
	for _, old := range []bool{false, true} {
		for _, restart := range []bool{false, true} {
			w := newWorld(t)
			a, b := w.machine("a"), w.machine("b")
			b.remote.TooOld = old
			a.save("x.md", leak)
			w.settle(a, b)
			b.Ignored = func(p memory.Path) bool { return p == "x.md" }
			w.redact(leak)
			w.settle(a, b)
			if !b.state.Link().Redacting {
				t.Fatalf("too old %v: nothing waits", old)
			}
			if restart {
				b.restart()
				b.sync()
			}
			if asked, forgotten := b.working(5); asked+forgotten > 0 {
				t.Errorf("too old %v: waiting, 5 edits asked %d times and had the disk rewritten %d times", old, asked, forgotten)
			}
			b.Ignored = nil
			if _, forgotten := b.working(2); forgotten == 0 {
				t.Errorf("too old %v: nothing was taken from the disk", old)
			}
			w.settle(b)
			b.holds()
			if b.state.Link().Redacting {
				t.Errorf("too old %v: in step, and still at it", old)
			}
		}
	}
}

// TestConflictsAreAskedTogether: however many texts lose their place at once, in a pull or
// because others were faster, the hub is asked once whether they were redacted.
func TestConflictsAreAskedTogether(t *testing.T) {
	for _, when := range []string{"pull", "push"} {
		w := newWorld(t)
		a, b := w.machine("a"), w.machine("b")
		at := func(i int) memory.Path { return memory.Path(fmt.Sprintf("p%d.md", i)) }
		const n = 50
		for i := range n {
			a.save(at(i), "base\n")
		}
		w.settle(a, b)
		for i := range n {
			a.save(at(i), fmt.Sprintf("hub %d\n", i))
			b.save(at(i), fmt.Sprintf("mine %d\n", i))
		}
		if when == "pull" {
			a.sync()
		}
		b.remote.Hook = func(op string, after bool) error {
			if op == "push" && !after {
				b.remote.Hook = nil
				a.sync()
			}
			return nil
		}
		clear(b.remote.Calls)
		b.sync()
		if got := len(b.state.Link().Conflicts); got != n {
			t.Errorf("%s: %d conflicts, want %d", when, got, n)
		}
		if got := b.remote.Calls["redacted"]; got != 1 {
			t.Errorf("%s: asked %d times, want once", when, got)
		}
	}
}

// TestFailingQuestionHoldsItsPathsAlone: while the hub does not answer which texts were
// redacted, what would lose its place stays there, and all else goes on.
func TestFailingQuestionHoldsItsPathsAlone(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	for _, p := range []memory.Path{"p.md", "q.md", "gone.md", "old.md"} {
		a.save(p, "base of "+string(p)+"\n")
	}
	w.settle(a, b)
	a.save("p.md", "hub\n")
	a.save("q.md", "hub too\n")
	a.Delete("gone.md")
	b.save("p.md", "mine\n")
	b.save("q.md", "mine too\n")
	a.sync()
	b.remote.Hook = func(op string, after bool) error {
		if op == "redacted" && !after {
			return &memory.Error{Reason: memory.ReasonInternal, Message: "boom"}
		}
		return nil
	}
	for i := range 3 {
		text := fmt.Sprint(i, "\n")
		a.save("z.md", text)
		a.sync()
		b.save("y.md", text)
		clear(b.remote.Calls)
		if err := b.syncErr(); !errors.Is(err, memory.ErrInternal) {
			t.Fatal(err)
		}
		b.want(files{"p.md": "mine\n", "q.md": "mine too\n", "gone.md": "base of gone.md\n", "old.md": "base of old.md\n", "y.md": text, "z.md": text})
		w.want(files{"p.md": "hub\n", "q.md": "hub too\n", "old.md": "base of old.md\n", "y.md": text, "z.md": text})
		if n := b.remote.Calls["redacted"]; n != 1 {
			t.Errorf("asked %d times in one cycle", n)
		}
		if n := len(b.state.Link().Conflicts); n != 0 {
			t.Errorf("%d conflicts already", n)
		}
	}
	b.remote.Hook = nil
	w.settle(b, a)
	b.want(files{"p.md": "hub\n", "q.md": "hub too\n", "old.md": "base of old.md\n", "y.md": "2\n", "z.md": "2\n"})
	if n := len(b.state.Link().Conflicts); n != 2 {
		t.Errorf("%d conflicts, want 2", n)
	}
	b.holds("mine", "mine too", "base of gone.md")
}

// asks is a Remote that notes the texts which the hub is asked about.
type asks struct {
	*synctest.Remote
	texts []string
}

func (r *asks) Redacted(ctx context.Context, texts [][]byte) ([]bool, error) {
	for _, t := range texts {
		r.texts = append(r.texts, string(t))
	}
	return r.Remote.Redacted(ctx, texts)
}

// TestRefusedTextIsNotAskedAbout: a text that the guard keeps on this machine does not
// leave it as a fingerprint either, when it loses its place and when something else is
// redacted; one that the hub had is asked about, whatever the guard says of it now.
func TestRefusedTextIsNotAskedAbout(t *testing.T) {
	const had = "the hub had this " + synctest.Secret + "\n"
	w := newWorld(t)
	a, b := w.machine("a"), w.machine("b")
	a.guard.Allow = true
	r := &asks{Remote: b.remote}
	b.s = syncer.New(syncer.Ports{Local: b.Disk.Local(), State: b.state, Remote: r, Guard: b.guard, Uploads: b.gate, Clock: w.clock,
		NewID: func() string { w.ids++; return fmt.Sprintf("id-%d", w.ids) }}, b.opts)
	for p, text := range map[memory.Path]string{"p.md": "base\n", "i.md": "base of i\n", "x.md": leak, "s.md": had} {
		a.save(p, text)
	}
	w.settle(a, b)
	private := "---\ntype: user\n---\nmine, and a " + synctest.Secret + "\n"
	b.save("p.md", private)
	b.save("i.md", "mine too, "+synctest.Secret+"\n")
	w.settle(b)
	a.save("p.md", "hub\n")
	a.Delete("s.md")
	w.settle(a, b)
	w.redact(leak)
	w.settle(a, b)
	if n := len(b.state.Link().Conflicts); n != 1 {
		t.Fatalf("%d conflicts, want 1", n)
	}
	b.holds("mine, and a")
	for _, text := range r.texts {
		if strings.Contains(text, "mine") {
			t.Errorf("asked about %q", text)
		}
	}
	if !slices.Contains(r.texts, had) {
		t.Errorf("not asked about what the hub had: %q", r.texts)
	}
	w.redact(had)
	w.settle(a, b)
	if slices.ContainsFunc(slices.Collect(maps.Values(b.state.Link().Trash)), func(t syncer.Trashed) bool { return t.Path == "s.md" }) {
		t.Error("a redacted text is still in the trash")
	}
	// At a path of which something was redacted it may be the very text, edited here or not.
	w.redact("hub\n")
	w.settle(a, b)
	if !slices.Contains(r.texts, private) {
		t.Error("not asked about a text of a path of which one was redacted")
	}
}
