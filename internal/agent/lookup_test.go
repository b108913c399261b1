package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/clients/hooks"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// held is a model that answers when it is let, or when nobody waits any more.
type held struct {
	answers chan string
	mu      sync.Mutex // guards what follows
	asked   int
	left    int
}

func (h *held) Complete(ctx context.Context, _ model.Request) (model.Response, error) {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	select {
	case text := <-h.answers:
		return model.Response{Parts: []model.Part{{Text: text}}}, nil
	case <-ctx.Done():
		h.mu.Lock()
		h.left++
		h.mu.Unlock()
		return model.Response{}, ctx.Err()
	}
}

func (h *held) counts() (asked, left int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked, h.left
}

func newHeld(t *testing.T) (*lookups, *held, func(session, turn string) lookupParams) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.md"), []byte("---\nname: A\ndescription: about a\ntype: project\n---\n\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &held{answers: make(chan string)}
	ls := newLookups(func() (model.Model, time.Duration) { return h, time.Hour }, nil, slog.New(slog.DiscardHandler), time.Now)
	t.Cleanup(ls.close)
	return ls, h, func(session, turn string) lookupParams {
		return lookupParams{Session: session, Turn: turn, Personal: dir, Prompt: "what about a"}
	}
}

const choosesA = `{"files":["a.md"]}`

// late asks until there is an answer.
func late(t *testing.T, ls *lookups, session string) (r lookupResult) {
	t.Helper()
	hubtest.Eventually(t, patience, "the choice", func() bool {
		r = ls.late(session)
		return r.State == hooks.LookupDone
	})
	return r
}

func TestLookupIsHandedOutOnce(t *testing.T) {
	ls, h, params := newHeld(t)
	ls.now = stopped() // the next who asks after a while gets it once more
	r, err := ls.begin(t.Context(), params("s", "t1"), time.Nanosecond)
	if err != nil || r.State != hooks.LookupPending || r.Turn != "t1" {
		t.Fatalf("%+v, %v", r, err)
	}
	if r := ls.late("s"); r.State != hooks.LookupPending {
		t.Errorf("before the answer: %+v", r)
	}
	if r := ls.late("another"); r.State != hooks.LookupNone {
		t.Errorf("another session: %+v", r)
	}
	h.answers <- choosesA
	// However many ask at the same time, one gets it.
	hubtest.Eventually(t, patience, "the answer", func() bool {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		select {
		case <-ls.of["s"].done:
			return true
		default:
			return false
		}
	})
	got := make(chan lookupResult, 20)
	var wg sync.WaitGroup
	for range cap(got) {
		wg.Go(func() { got <- ls.late("s") })
	}
	wg.Wait()
	close(got)
	handed := 0
	for r := range got {
		if r.State == hooks.LookupDone {
			handed++
			if r.Turn != "t1" || !slices.Equal(r.Refs, []string{"a.md"}) {
				t.Errorf("got %+v", r)
			}
		}
	}
	if handed != 1 {
		t.Errorf("handed out %d times", handed)
	}
	ls.end("s", "t1") // it has arrived
	if r := ls.late("s"); r.State != hooks.LookupNone {
		t.Errorf("once more: %+v", r)
	}
}

// A choice that did not arrive, since who asked was gone by then, is there for the next who
// asks. What confirms it does nothing to the lookup of a newer prompt.
func TestLookupThatDidNotArriveIsKept(t *testing.T) {
	ls, h, params := newHeld(t)
	now := time.Now()
	ls.now = func() time.Time { return now }
	if _, err := ls.begin(t.Context(), params("s", "t1"), time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	h.answers <- choosesA
	late(t, ls, "s")
	if r := ls.late("s"); r.State != hooks.LookupNone {
		t.Errorf("while the first may be at work on it: %+v", r)
	}
	now = now.Add(lent)
	if r := ls.late("s"); r.State != hooks.LookupDone || !slices.Equal(r.Refs, []string{"a.md"}) {
		t.Errorf("after that: %+v", r)
	}
	if _, err := ls.begin(t.Context(), params("s", "t2"), time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	ls.end("s", "t1")
	if r := ls.late("s"); r.State != hooks.LookupPending || r.Turn != "t2" {
		t.Errorf("the newer one: %+v", r)
	}
}

// A caller that hung up before the answer finds it later.
func TestLookupOutlivesItsCaller(t *testing.T) {
	ls, h, params := newHeld(t)
	ctx, hangUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := ls.begin(ctx, params("s", "t1"), time.Hour)
		done <- err
	}()
	hubtest.Eventually(t, patience, "the question", func() bool { n, _ := h.counts(); return n == 1 })
	hangUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller hears %v", err)
	}
	h.answers <- choosesA
	if r := late(t, ls, "s"); r.Turn != "t1" {
		t.Errorf("got %+v", r)
	}
}

// A newer prompt and the turn's end end a lookup, and what it asked the model.
func TestLookupEnds(t *testing.T) {
	ls, h, params := newHeld(t)
	begin := func(turn string) *lookup {
		t.Helper()
		if _, err := ls.begin(t.Context(), params("s", turn), time.Nanosecond); err != nil {
			t.Fatal(err)
		}
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return ls.of["s"]
	}
	first := begin("t1")
	begin("t2")
	<-first.done // so that the answer is not its model's
	if r := ls.late("s"); r.State != hooks.LookupPending || r.Turn != "t2" {
		t.Errorf("got %+v", r)
	}
	h.answers <- choosesA
	if r := late(t, ls, "s"); r.Turn != "t2" {
		t.Errorf("got %+v", r)
	}
	third := begin("t3")
	ls.end("s", "")
	ls.end("s", "")
	<-third.done
	if r := ls.late("s"); r.State != hooks.LookupNone {
		t.Errorf("after the turn: %+v", r)
	}
	// What the model says that helps nobody is nothing, too.
	begin("t4")
	h.answers <- "no list at all"
	hubtest.Eventually(t, patience, "the nonsense", func() bool { return ls.late("s").State == hooks.LookupNone })
}

// Sessions that nobody comes back to do not pile up, and nothing is left at the end.
// TestLookupThatFails: a prompt hears that its model did not choose, which is not that there
// is none: the hook asks no model of its own then.
func TestLookupThatFails(t *testing.T) {
	ls, h, params := newHeld(t)
	close(h.answers) // each answer is empty
	r, err := ls.begin(t.Context(), params("s", "t"), time.Hour)
	if asked, _ := h.counts(); asked != 1 || err != nil || r.State != hooks.LookupFailed || r.Turn != "t" || len(r.Refs) > 0 {
		t.Errorf("asked %d times: %+v, %v", asked, r, err)
	}
	if r := ls.late("s"); r.State != hooks.LookupNone {
		t.Errorf("later: %+v", r)
	}
}

func TestLookupsAreBounded(t *testing.T) {
	ls, h, params := newHeld(t)
	const many = maxLookups + 20
	for i := range many {
		if _, err := ls.begin(t.Context(), params(fmt.Sprint(i), "t"), time.Nanosecond); err != nil {
			t.Fatal(err)
		}
	}
	if len(ls.of) != maxLookups {
		t.Errorf("%d lookups are held", len(ls.of))
	}
	if ls.late("0").State != hooks.LookupNone || ls.late(fmt.Sprint(many-1)).State != hooks.LookupPending {
		t.Error("others than the oldest were given up")
	}
	ls.close()
	if asked, left := h.counts(); asked != left {
		t.Errorf("the model was asked %d times and left %d times", asked, left)
	}
	if _, err := ls.begin(t.Context(), params("s", "t"), time.Nanosecond); err == nil {
		t.Error("a daemon that stops takes one more")
	}
	for _, bad := range []lookupParams{{}, {Session: "s", Personal: "relative"}, {Session: "s", Personal: "/x", Team: "relative"}} {
		if _, err := ls.begin(t.Context(), bad, 0); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	none := newLookups(func() (model.Model, time.Duration) { return nil, 0 }, nil, slog.New(slog.DiscardHandler), time.Now)
	if r, err := none.begin(t.Context(), params("s", "t"), time.Hour); err != nil || r.State != hooks.LookupNone {
		t.Errorf("without a model: %+v, %v", r, err)
	}
	none.close()
}
