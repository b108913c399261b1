package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// bomb is a workspace whose scan panics while armed.
type bomb struct {
	syncer.Local
	armed bool
}

const inside = "the text of a memory"

func (b *bomb) Scan(context.Context) (syncer.Snapshot, error) {
	if b.armed {
		panic(inside)
	}
	return syncer.Snapshot{}, errors.New("scanned")
}

// noState is a state that was never saved.
type noState struct{ syncer.State }

func (noState) Load(context.Context) (syncer.LinkState, error) { return syncer.NewLinkState(), nil }

// TestPanicIsOneLinksTrouble lets a cycle panic: it becomes an error of this link, the
// log holds the stack and not the value, and the next cycle runs on a new syncer.
func TestPanicIsOneLinksTrouble(t *testing.T) {
	var log bytes.Buffer
	b := &bomb{armed: true}
	built := 0
	build := func() *syncer.Syncer {
		built++
		return syncer.New(syncer.Ports{Local: b, State: noState{}, Clock: time.Now}, syncer.Options{})
	}
	r := &runner{log: slog.New(slog.NewTextHandler(&log, nil)), build: build, s: build(), lock: newRootLock(t.TempDir()), now: time.Now}
	defer r.lock.release()
	_, err := r.protected(t.Context(), false)
	if err == nil || syncer.Classify(err) != syncer.Transient {
		t.Errorf("a panic gives %v, want an error that is tried again", err)
	}
	if built != 2 {
		t.Errorf("%d syncers were built, want a new one after the panic", built)
	}
	if s := log.String() + err.Error(); !strings.Contains(s, "panic_test.go") || strings.Contains(s, inside) {
		t.Errorf("the log must hold the stack and nothing of the value:\n%s", s)
	}
	b.armed = false
	if _, err := r.protected(t.Context(), false); err == nil || !strings.Contains(err.Error(), "scanned") {
		t.Errorf("the cycle after the panic: %v", err)
	}
}
