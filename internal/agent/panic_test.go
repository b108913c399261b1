package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/hubtest"
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
	r.m, r.commits, r.applied = newMetrics(prometheus.NewRegistry()), 3, 4 // of the syncer that panics
	defer r.lock.release()
	_, err := r.protected(t.Context(), false)
	if err == nil || syncer.Classify(err) != syncer.Transient {
		t.Errorf("a panic gives %v, want an error that is tried again", err)
	}
	r.measure(r.syncer().Status(), err, time.Second) // counters that went back would panic
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

// TestEngineSurvivesAPanic: work that panics ends alone, its log line holds no content, and
// uploads that it held back are let go by who comes next.
func TestEngineSurvivesAPanic(t *testing.T) {
	w := newGateWorld(t)
	var log hubtest.Buffer
	armed := true
	e := newEngine(w.state, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func() time.Time {
		if armed {
			panic(inside)
		}
		return time.Now()
	})
	defer e.close()
	talk := filepath.Join(w.personal, "t.jsonl")
	if err := os.WriteFile(talk, []byte(`{"type":"user","uuid":"u","sessionId":"s","timestamp":"2026-03-05T10:00:00Z","message":{"content":"always `+inside+`"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	turn := func() {
		t.Helper()
		if err := e.take(extractParams{Personal: w.personal, Team: w.link.Dir, Transcript: talk}); err != nil {
			t.Fatal(err)
		}
		e.wg.Wait()
	}
	turn()
	if got := log.String(); !strings.Contains(got, "panicked") || strings.Contains(got, inside) {
		t.Errorf("log:\n%s", got)
	}
	armed = false
	turn()
	if got := log.String(); !strings.Contains(got, "msg=extract") {
		t.Errorf("after the panic:\n%s", got)
	}

	d := w.state.dreamer(w.personal, w.link.Dir, w.state.guardFor("", ""), time.Now)
	func() {
		defer func() { _ = recover() }()
		_ = w.state.held(t.Context(), d, func() error {
			if _, err := d.Hold(t.Context()); err != nil {
				t.Error(err)
			}
			w.enters(t, false)
			panic(inside)
		})
	}()
	w.enters(t, true)
}
