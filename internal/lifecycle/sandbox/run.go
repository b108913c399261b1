package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/memory"
)

// run is a Box at work. One goroutine uses it.
type run struct {
	Box
	res     *Result
	tools   []tool
	left    int      // bytes that tools may still answer
	project *os.Root // nil = none
	seen    map[memories.Ref]memory.ETag
	first   map[memories.Ref]int // bytes of a text before this run changed it
	shrunk  map[memories.Ref]bool
	deletes int // that are still allowed; -1 = not counted yet
}

// open prepares a run; close ends it.
func (b Box) open(res *Result) (*run, error) {
	r := &run{Box: b, res: res, left: b.MaxBytes, deletes: -1,
		seen: map[memories.Ref]memory.ETag{}, first: map[memories.Ref]int{}, shrunk: map[memories.Ref]bool{}}
	if b.Project != "" {
		root, err := os.OpenRoot(b.Project)
		if err != nil {
			return nil, fmt.Errorf("the project: %w", err)
		}
		r.project = root
	}
	r.tools = r.list()
	return r, nil
}

func (r *run) close() {
	if r.project != nil {
		_ = r.project.Close() // only read
	}
}

func (r *run) offered() []model.Tool {
	out := make([]model.Tool, 0, len(r.tools))
	for _, t := range r.tools {
		out = append(out, t.Tool)
	}
	return out
}

// What a model is told instead of an answer.
var (
	errNoTool  = errors.New("there is no such tool; use those that are listed")
	errCut     = errors.New("your answer was cut off before its end; nothing was done, write less at a time")
	errCalls   = fmt.Errorf("more than %d calls in one answer; the rest was not done", maxCalls)
	errUsedUp  = errors.New("the tools have answered as much as they may; finish with what you know")
	errInput   = errors.New("the input is not the JSON object that the tool's schema asks for")
	errTooLong = fmt.Errorf("the input has more than %d bytes", maxInput)
)

// answer runs one call and records it. cut says that the model's answer was cut off, so
// that its input may be half of what was meant.
func (r *run) answer(ctx context.Context, c model.ToolCall, nth int, cut bool) model.Part {
	began := time.Now()
	rec := Call{Round: r.res.Rounds, Tool: "unknown"}
	text, err := "", errNoTool
	for _, t := range r.tools {
		if t.Name != c.Name {
			continue
		}
		rec.Tool = t.Name
		switch {
		case cut:
			err = errCut
		case nth >= maxCalls:
			err = errCalls
		case r.left <= 0:
			err = errUsedUp
		case len(c.Input) > maxInput:
			err = errTooLong
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			text, rec.Target, err = t.do(ctx, c.Input)
		}
	}
	result := &model.ToolResult{ID: c.ID, Text: bounded(text, min(maxAnswer, max(r.left, 0)))}
	if err != nil {
		rec.Error = bounded(strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "?"), 300)
		result.Text, result.Error = rec.Error, true
	}
	rec.Bytes, rec.Took = len(result.Text), time.Since(began)
	r.left -= rec.Bytes
	r.res.Calls = append(r.res.Calls, rec)
	return model.Part{Result: result}
}

// decode reads a tool's input. What is wrong with it is not repeated: it is the model's.
func decode(input []byte, into any) error {
	if json.Unmarshal(input, into) != nil {
		return errInput
	}
	return nil
}

const cutNote = "\n[cut here; ask for less at a time]"

// bounded cuts a text to n bytes, at a line's end if there is one near.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	keep := max(n-len(cutNote), 0)
	head := strings.ToValidUTF8(s[:keep], "")
	if i := strings.LastIndexByte(head, '\n'); i > keep/2 {
		head = head[:i]
	}
	return head + cutNote
}
