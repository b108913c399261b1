// Package budget counts what models cost and stops asking them when a day's tokens are
// used up. The count is one file that all processes of a person share, so neither a
// restart nor a second process gets a day's tokens twice.
package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/wholefile"
)

// Counter is the file of the count. It is made at first use.
type Counter struct {
	File string
	Now  func() time.Time
}

// Count is what was used: today, by UTC, and since the file was made.
type Count struct {
	Day   string `json:"day"` // 2006-01-02
	Today Sum    `json:"today"`
	Total Sum    `json:"total"`
}

// Sum is a number of calls and their tokens.
type Sum struct {
	Calls  int `json:"calls"`
	Failed int `json:"failed"` // of Calls
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Cached int `json:"cached_tokens"` // of Input
	// Spent are calls that were not made, since the day's tokens were used up.
	Spent int `json:"refused_calls"`
}

// Tokens is what counts against a day's tokens.
func (s Sum) Tokens() int { return s.Input + s.Output }

func (s *Sum) add(t Sum) {
	s.Calls += t.Calls
	s.Failed += t.Failed
	s.Input += t.Input
	s.Output += t.Output
	s.Cached += t.Cached
	s.Spent += t.Spent
}

// Read returns the count as it is; without a file it is zero.
func (c Counter) Read() (Count, error) {
	n, err := c.load()
	c.turn(&n)
	return n, err
}

func (c Counter) load() (n Count, err error) {
	b, err := os.ReadFile(c.File)
	if errors.Is(err, fs.ErrNotExist) {
		return Count{}, nil
	}
	if err != nil {
		return Count{}, fmt.Errorf("count of tokens: %w", err)
	}
	if json.Unmarshal(b, &n) != nil || n.Today.Tokens() < 0 {
		return Count{}, fmt.Errorf("count of tokens: %s is damaged; remove it to count anew", c.File)
	}
	return n, nil
}

// turn begins a new day. A clock that goes back begins none: that would be a day's
// tokens twice.
func (c Counter) turn(n *Count) {
	if day := c.Now().UTC().Format(time.DateOnly); day > n.Day {
		n.Day, n.Today = day, Sum{}
	}
}

// change changes the count durably, alone among all processes.
func (c Counter) change(ctx context.Context, do func(*Count)) error {
	if err := os.MkdirAll(filepath.Dir(c.File), 0o700); err != nil {
		return fmt.Errorf("count of tokens: %w", err)
	}
	lock, err := os.OpenFile(c.File+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("count of tokens: %w", err)
	}
	defer func() { _ = filelock.Release(lock) }() // nothing is written to it
	if err := filelock.Lock(ctx, lock); err != nil && !errors.Is(err, filelock.ErrUnsupported) {
		return fmt.Errorf("count of tokens: %w", err)
	}
	n, err := c.load()
	if err != nil {
		return err
	}
	c.turn(&n)
	do(&n)
	return c.store(n)
}

func (c Counter) store(n Count) error {
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := wholefile.Replace(c.File, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("count of tokens: %w", err)
	}
	return nil
}

// Model asks another one within a day's tokens.
type Model struct {
	Model   model.Model
	Counter Counter
	PerDay  int           // tokens; 0 = no bound
	Timeout time.Duration // of a call; 0 = the caller's
}

// settleTime bounds how long a count may wait for other processes after the call, whose
// context may have ended. An answer that was paid for is lost past it, so it is long enough
// for a disk that is busy with many of them.
const settleTime = 30 * time.Second

// Complete asks if there are tokens left today, else answers model.ErrSpent. What the
// call may cost is counted before it, and corrected after it: a process that dies
// meanwhile has spent it. The call that crosses the bound is the last one.
func (m Model) Complete(ctx context.Context, req model.Request) (model.Response, error) {
	if m.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, m.Timeout)
		defer cancel()
	}
	reserved := Sum{Calls: 1, Input: estimate(req)}
	spent, day := false, ""
	err := m.Counter.change(ctx, func(n *Count) {
		if spent = m.PerDay > 0 && n.Today.Tokens() >= m.PerDay; spent {
			n.Today.Spent++
			n.Total.Spent++
			return
		}
		day = n.Day
		n.Today.add(reserved)
		n.Total.add(reserved)
	})
	switch {
	case err != nil:
		return model.Response{}, err
	case spent:
		return model.Response{}, model.ErrSpent
	}
	resp, err := m.Model.Complete(ctx, req)
	real := Sum{Input: resp.Usage.Input - reserved.Input, Output: resp.Usage.Output, Cached: resp.Usage.Cached}
	if err != nil {
		real.Failed = 1
		if ctx.Err() != nil && resp.Usage == (model.Usage{}) {
			real.Input = 0 // it was sent, and the provider may bill it
		}
	}
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	counted := m.Counter.change(settle, func(n *Count) {
		n.Total.add(real)
		if n.Day == day { // else yesterday's estimate stays yesterday's
			n.Today.add(real)
		}
	})
	if err == nil && counted != nil {
		return model.Response{}, counted // an answer that cannot be counted could be asked for without end
	}
	return resp, err
}

// estimate is how many tokens a request has, about.
func estimate(req model.Request) int {
	n := len(req.System)
	for _, t := range req.Tools {
		n += len(t.Description) + len(t.Schema)
	}
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Input)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
		}
	}
	return n / 4
}
