package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// run is a Box at work.
type run struct {
	Box
	res  *Result
	left int // bytes that tools may still answer
}

// open prepares a run; close ends it.
func (b Box) open(_ context.Context, res *Result) (*run, error) {
	return &run{Box: b, res: res, left: b.MaxBytes}, nil
}

func (r *run) close() {}

// tool is one that a model may call. do answers with a text and says what it was about.
type tool struct {
	model.Tool
	do func(ctx context.Context, input []byte) (answer, target string, err error)
}

// tools returns what this run offers.
func (r *run) tools() []tool { return nil }

func (r *run) offered() []model.Tool {
	var out []model.Tool
	for _, t := range r.tools() {
		out = append(out, t.Tool)
	}
	return out
}

// errNoTool answers a call of what is not offered.
var errNoTool = errors.New("there is no such tool; use those that are listed")

// answer runs one call and records it. cut says that the model's answer was cut off, so
// that its input may be half of what was meant.
func (r *run) answer(ctx context.Context, c model.ToolCall, nth int, cut bool) model.Part {
	began := time.Now()
	rec := Call{Round: r.res.Rounds, Tool: "unknown"}
	text, err := "", errNoTool
	for _, t := range r.tools() {
		if t.Name != c.Name {
			continue
		}
		rec.Tool = t.Name
		switch {
		case cut:
			err = errors.New("your answer was cut off before its end; nothing was done, write less at a time")
		case nth >= maxCalls:
			err = fmt.Errorf("more than %d calls in one answer; the rest was not done", maxCalls)
		case r.left <= 0:
			err = errors.New("the tools have answered as much as they may; finish with what you know")
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			text, rec.Target, err = t.do(ctx, c.Input)
		}
	}
	result := &model.ToolResult{ID: c.ID, Text: text}
	if err != nil {
		rec.Error = err.Error()
		result.Text, result.Error = rec.Error, true
	}
	rec.Bytes, rec.Took = len(result.Text), time.Since(began)
	r.left -= rec.Bytes
	r.res.Calls = append(r.res.Calls, rec)
	return model.Part{Result: result}
}
