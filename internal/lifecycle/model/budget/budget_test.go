package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/budget"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
)

var noon = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

func at(file string, now time.Time) budget.Counter {
	return budget.Counter{File: file, Now: func() time.Time { return now }}
}

func costs(in, out int) scripted.Turn {
	return scripted.Turn{Response: model.Response{Stop: model.StopEnd, Usage: model.Usage{Input: in, Output: out, Cached: in / 2}}}
}

func req() model.Request {
	return model.Request{System: strings.Repeat("s", 400), Messages: []model.Message{model.Say(model.RoleUser, strings.Repeat("x", 400))}}
}

func TestStopsForTheDay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "tokens.json")
	m := &scripted.Model{Turns: []scripted.Turn{costs(100, 20), costs(100, 20), {Err: &model.BusyError{}}, costs(5, 5)}}
	ask := func(now time.Time) error { // each a process of its own, as far as the count goes
		_, err := budget.Model{Model: m, Counter: at(file, now), PerDay: 200}.Complete(t.Context(), req())
		return err
	}
	for i, want := range []error{nil, nil, model.ErrSpent, model.ErrSpent} {
		if err := ask(noon); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("call %d: %v, want %v", i, err, want)
		}
	}
	if !errors.Is(model.ErrSpent, model.ErrBusy) {
		t.Error("tomorrow is another day: ErrSpent must be an ErrBusy")
	}
	if err := ask(noon.Add(-24 * time.Hour)); !errors.Is(err, model.ErrSpent) {
		t.Errorf("a clock that was put back: %v", err)
	}
	if err := ask(noon.Add(24 * time.Hour)); !errors.Is(err, model.ErrBusy) || errors.Is(err, model.ErrSpent) {
		t.Errorf("tomorrow: %v", err)
	}
	if err := ask(noon.Add(24 * time.Hour)); err != nil {
		t.Errorf("tomorrow: %v", err)
	}
	got, err := at(file, noon.Add(25*time.Hour)).Read()
	if err != nil {
		t.Fatal(err)
	}
	want := budget.Count{Day: "2026-03-06",
		Today: budget.Sum{Calls: 2, Failed: 1, Input: 5, Output: 5, Cached: 2},
		Total: budget.Sum{Calls: 4, Failed: 1, Input: 205, Output: 45, Cached: 102, Spent: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
	if got, err := at(file, noon.Add(96*time.Hour)).Read(); err != nil || got.Today != (budget.Sum{}) || got.Total != want.Total {
		t.Errorf("days later: %+v, %v", got, err)
	}
}

// TestTheLastCallIsCountedBeforeItEnds: a process that dies in a call has spent it.
func TestTheLastCallIsCountedBeforeItEnds(t *testing.T) {
	c := at(filepath.Join(t.TempDir(), "t.json"), noon)
	var during budget.Count
	m := &scripted.Model{Turns: []scripted.Turn{{Do: func(model.Request) (resp model.Response, err error) {
		during, err = c.Read()
		return resp, err
	}}, {Hang: true}}}
	b := budget.Model{Model: m, Counter: c, PerDay: 1000}
	if _, err := b.Complete(t.Context(), req()); err != nil || during.Today.Input != 200 || during.Today.Calls != 1 {
		t.Errorf("%+v, %v", during, err)
	}
	b.Timeout = 20 * time.Millisecond
	if _, err := b.Complete(t.Context(), req()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v", err)
	}
	if after, err := c.Read(); err != nil || after.Today.Input != 200 || after.Today.Failed != 1 {
		t.Errorf("after: %+v, %v", after, err) // the first gave its estimate back, the second kept it
	}
}

func TestManyAtOnceLoseNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.json")
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			m := &scripted.Model{Turns: []scripted.Turn{costs(10, 1)}}
			if _, err := (budget.Model{Model: m, Counter: at(file, noon)}).Complete(t.Context(), req()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n, err := at(file, noon).Read()
	if err != nil || n.Today.Calls != 30 || n.Today.Input != 300 || n.Today.Output != 30 {
		t.Errorf("%+v, %v", n, err)
	}
}

func TestDamagedCountStops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.json")
	if err := os.WriteFile(file, []byte(`{"day":`), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &scripted.Model{Turns: []scripted.Turn{costs(1, 1)}}
	_, err := budget.Model{Model: m, Counter: at(file, noon), PerDay: 5}.Complete(t.Context(), req())
	if err == nil || !strings.Contains(err.Error(), "remove it") || len(m.Asked()) != 0 {
		t.Errorf("got %v after %d calls", err, len(m.Asked()))
	}
	if b, err := json.Marshal(budget.Count{}); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
}
