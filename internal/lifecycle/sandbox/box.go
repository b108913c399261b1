package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/memory"
)

// The bounds of a run that its Box does not set.
const (
	DefaultMaxRounds = 5               // SPEC 7
	DefaultMaxBytes  = 512 << 10       // of all answers of tools together
	DefaultTimeout   = 5 * time.Minute // of a run
)

// The bounds of every run.
const (
	maxAnswer   = 48 << 10  // bytes of one tool's answer
	maxCalls    = 24        // in one round
	maxInput    = 300 << 10 // bytes of a tool's input: a memory and some more
	maxWrites   = 24        // memories written in a run
	maxDeletes  = 5         // memories deleted in a run, or a fifth of all if that is more (SPEC 9)
	answerToken = 8192      // tokens of a model's answer
)

// Box is what a run may touch. The zero value of each bound is its default.
type Box struct {
	Project    string          // directory that may be read; "" = none
	Transcript string          // file that may be read; "" = none
	Store      *memories.Store // the memories, which may be read and written
	// Secrets finds what the model is not shown, while texts are whole; nil finds none.
	Secrets     model.Secrets
	MaxRounds   int           // answers of the model
	MaxBytes    int           // of what all tools answer
	Timeout     time.Duration // of the run
	ReadOnly    bool          // no writing at all
	AllowDelete bool          // memories may be deleted, and most of a text too
	NoTeam      bool          // the team's memories may be read but not changed
	NoNew       bool          // memories may be changed, but none added
	// At is the day as of which relative dates of what is written are made absolute; zero
	// leaves them.
	At time.Time
	// Record hears of each call of a tool once it is done; nil = nobody does.
	Record func(Call)
}

// Result is what a run did. It is valid, as far as the run got, when Run fails too.
type Result struct {
	Text    string // the model's last words
	Rounds  int
	Usage   model.Usage
	Written []memories.Ref // new and changed memories, each once, in order
	Deleted []memories.Ref
	// Told is what the last write had to be told of the index: caps that are passed.
	Told  []memory.Violation
	Calls []Call // every call of a tool, in order
	// Cut says that the model wanted to go on when its rounds were used up.
	Cut bool
}

// Call is the record of one call of a tool, without any content.
type Call struct {
	Round  int    // from 1
	Tool   string // one of ours, or "unknown"
	Target string // the memory or file, if the input named one that is there
	Bytes  int    // of the answer
	Error  string // why it was refused or failed; "" = done
	// Refused says that the text may be no memory: the guard's word, or that of a model
	// that declines.
	Refused bool
	Took    time.Duration
}

// Run lets m work with the tools until it asks for none, its rounds are used up, or ctx
// or the timeout ends. The tools of its last round are still run. An answer that was cut
// off runs no tool. Errors are the model's and the context's; what a tool refuses is
// told to the model and recorded.
func (b Box) Run(ctx context.Context, m model.Model, system string, first []model.Message) (Result, error) {
	if b.MaxRounds <= 0 {
		b.MaxRounds = DefaultMaxRounds
	}
	if b.MaxBytes <= 0 {
		b.MaxBytes = DefaultMaxBytes
	}
	if b.Timeout <= 0 {
		b.Timeout = DefaultTimeout
	}
	var res Result
	if m == nil || b.Store == nil {
		return res, errors.New("sandbox: a model and a store of memories are needed")
	}
	ctx, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	r, err := b.open(&res)
	if err != nil {
		return res, fmt.Errorf("sandbox: %w", err)
	}
	defer r.close()
	req := model.Request{System: system, Messages: append([]model.Message(nil), first...), Tools: r.offered(), MaxTokens: answerToken}
	for res.Rounds < b.MaxRounds {
		resp, err := m.Complete(ctx, req)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return res, fmt.Errorf("sandbox: round %d: %w", res.Rounds+1, err)
		}
		res.Rounds++
		res.Usage = res.Usage.Add(resp.Usage)
		if t := resp.Text(); t != "" {
			res.Text = t
		}
		calls := resp.Calls()
		if len(calls) == 0 {
			return res, nil
		}
		answers := make([]model.Part, 0, len(calls))
		for i, c := range calls {
			answers = append(answers, r.answer(ctx, c, i, resp.Stop == model.StopLength))
		}
		if err := ctx.Err(); err != nil {
			return res, fmt.Errorf("sandbox: round %d: %w", res.Rounds, err)
		}
		req.Messages = append(req.Messages,
			model.Message{Role: model.RoleAssistant, Parts: resp.Parts},
			model.Message{Role: model.RoleUser, Parts: answers})
	}
	res.Cut = true
	return res, nil
}
