package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
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
	partly  map[memories.Ref]bool // of those seen, the ones with lines that are left out
	first   map[memories.Ref]int  // bytes of a text before this run changed it
	shrunk  map[memories.Ref]bool
	deletes int // that are still allowed; -1 = not counted yet
}

// open prepares a run; close ends it.
func (b Box) open(res *Result) (*run, error) {
	r := &run{Box: b, res: res, left: b.MaxBytes, deletes: -1,
		seen: map[memories.Ref]memory.ETag{}, partly: map[memories.Ref]bool{}, first: map[memories.Ref]int{}, shrunk: map[memories.Ref]bool{}}
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

// said is a reason in words of ours alone, which may be recorded as they are.
type said string

// Error returns the words.
func (s said) Error() string { return string(s) }

// What a model is told instead of an answer.
var (
	errNoTool  = said("there is no such tool; use those that are listed")
	errCut     = said("your answer was cut off before its end; nothing was done, write less at a time")
	errCalls   = said(fmt.Sprintf("more than %d calls in one answer; the rest was not done", maxCalls))
	errUsedUp  = said("the tools have answered as much as they may; finish with what you know")
	errInput   = said("the input is not the JSON object that the tool's schema asks for")
	errTooLong = said(fmt.Sprintf("the input has more than %d bytes", maxInput))
)

// answer runs one call and records it. cut says that the model's answer was cut off, so
// that its input may be half of what was meant.
func (r *run) answer(ctx context.Context, c model.ToolCall, nth int, cut bool) model.Part {
	began := time.Now()
	rec := Call{Round: r.res.Rounds, Tool: "unknown"}
	text, err := "", error(errNoTool)
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
		rec.Error = recorded(err)
		var guard *memories.RefusedError
		rec.Refused = errors.As(err, &guard) || errors.Is(err, errRefusal)
		result.Text, result.Error = bounded(strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "?"), 300), true
	}
	rec.Target = r.recordable(ctx, rec.Target, err == nil)
	rec.Bytes, rec.Took = len(result.Text), time.Since(began)
	r.left -= rec.Bytes
	r.res.Calls = append(r.res.Calls, rec)
	if r.Record != nil {
		r.Record(rec)
	}
	return model.Part{Result: result}
}

// recorded is what the record says of an error: our words, or the kind of error. The
// model hears more, but an error of others may repeat what the model put into its input.
func recorded(err error) string {
	var ours said
	var refused *memories.RefusedError
	switch {
	case errors.As(err, &refused):
		rules := make([]string, 0, len(refused.Violations))
		for _, v := range refused.Violations {
			rules = append(rules, v.Rule)
		}
		slices.Sort(rules)
		return "the guard refuses it: " + strings.Join(slices.Compact(rules), ", ")
	case errors.As(err, &ours):
		return ours.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "its time was over"
	}
	return "it cannot be done"
}

// recordable returns the name of a target as far as it may stand in a record: a memory
// that is there or was deleted by this run, a file that was read, else the place alone. A
// name that a model thought of may hold what the guard refuses in a text.
func (r *run) recordable(ctx context.Context, target string, done bool) string {
	in, rel, below := strings.Cut(target, "/")
	switch {
	case target == inMemory, target == inProject, target == transcript:
		return target
	case in == inProject && below:
		if _, err := memory.ParsePath(rel + memory.Extension); done && err == nil {
			return target
		}
		return inProject
	case in == inMemory && below:
		if r.known(ctx, rel) {
			return target
		}
		return inMemory
	case r.known(ctx, target):
		return target
	}
	return ""
}

// known reports whether a name is that of a memory which is there, or was until this run
// deleted it.
func (r *run) known(ctx context.Context, name string) bool {
	ref, err := memories.ParseRef(name)
	if err != nil {
		return false
	}
	if slices.Contains(r.res.Deleted, ref) {
		return true
	}
	_, err = r.Store.Get(ctx, ref)
	return err == nil
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
