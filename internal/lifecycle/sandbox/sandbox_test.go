package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
	"github.com/memsvc/memsvc/internal/lifecycle/sandbox"
)

// call is a turn that calls tools: name, input, name, input …
func call(pairs ...string) scripted.Turn {
	resp := model.Response{Stop: model.StopTools, Usage: model.Usage{Input: 10, Output: 2}}
	for i := 0; i < len(pairs); i += 2 {
		resp.Parts = append(resp.Parts, model.Part{Call: &model.ToolCall{ID: "c" + pairs[i], Name: pairs[i], Input: json.RawMessage(pairs[i+1])}})
	}
	return scripted.Turn{Response: resp}
}

func newStore(t *testing.T) *memories.Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "memory")
	return memories.New(dir, filepath.Join(dir, "team"), nil)
}

func say() []model.Message { return []model.Message{model.Say(model.RoleUser, "go")} }

func TestRoundsAreBounded(t *testing.T) {
	m := &scripted.Model{}
	for range 9 {
		m.Turns = append(m.Turns, call("shell", `{"command":"rm -rf /"}`))
	}
	res, err := sandbox.Box{Store: newStore(t)}.Run(t.Context(), m, "system", say())
	if err != nil {
		t.Fatal(err)
	}
	if res.Rounds != sandbox.DefaultMaxRounds || !res.Cut || len(res.Calls) != res.Rounds {
		t.Errorf("rounds %d, cut %v, calls %d", res.Rounds, res.Cut, len(res.Calls))
	}
	if c := res.Calls[0]; c.Tool != "unknown" || c.Error == "" || c.Target != "" {
		t.Errorf("record %+v", c)
	}
	if res.Usage != (model.Usage{Input: 50, Output: 10}) {
		t.Errorf("usage %+v", res.Usage)
	}
}

func TestTheModelsTroubleEndsTheRun(t *testing.T) {
	m := &scripted.Model{Turns: []scripted.Turn{call("shell", `{}`), {Err: &model.BusyError{}}}}
	res, err := sandbox.Box{Store: newStore(t)}.Run(t.Context(), m, "", say())
	if !errors.Is(err, model.ErrBusy) || res.Rounds != 1 || len(res.Calls) != 1 {
		t.Errorf("got %v with %+v", err, res)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hang := &scripted.Model{Turns: []scripted.Turn{{Hang: true}}}
	if _, err := (sandbox.Box{Store: newStore(t)}).Run(ctx, hang, "", say()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
