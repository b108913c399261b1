// Package jsonhttp asks a model's provider over HTTP, one JSON object each way or the answer
// in pieces, and turns what goes wrong into the errors of package model. No error holds a key, an address or
// a part of what was said.
package jsonhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

const (
	maxAnswer  = 8 << 20          // bytes
	tries      = 3                // of one question
	firstPause = time.Second / 2  // between two of them, unless the provider says
	maxPause   = 20 * time.Second // that is waited for; a longer one is the caller's business
	maxAfter   = time.Hour        // that a provider's word is believed
)

// Caller asks one provider. The zero Caller of a Provider works.
type Caller struct {
	Provider string // for errors
	Client   *http.Client
	// Pause waits between two tries; nil is a real wait.
	Pause func(ctx context.Context, d time.Duration) error
}

// NewClient returns a client that follows no redirect, since that would carry a key to
// another host, and that gives up a connection which does not come about.
func NewClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,
			MaxIdleConnsPerHost: 4,
			ForceAttemptHTTP2:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Post sends question and reads answer, which may be a Stream, trying again what another try may cure as long
// as ctx leaves time for it.
func (c Caller) Post(ctx context.Context, url string, header http.Header, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("%s: the request cannot be written as JSON", c.Provider) // the reason may quote it
	}
	for try := 1; ; try++ {
		busy, err := c.once(ctx, url, header, body, answer)
		if busy == nil || try == tries {
			return err
		}
		wait := busy.RetryAfter
		if wait == 0 {
			wait = firstPause << (try - 1)
			wait += rand.N(wait / 2) // many that failed together do not come back together
		}
		end, limited := ctx.Deadline()
		if wait > maxPause || limited && time.Until(end) <= wait {
			return err
		}
		pause := c.Pause
		if pause == nil {
			pause = sleep
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// once tries once. busy is set where another try may help.
func (c Caller) once(ctx context.Context, url string, header http.Header, body []byte, answer any) (busy *model.BusyError, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: the endpoint is no URL: %w", c.Provider, model.ErrDenied)
	}
	req.Header = header.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.Client.Do(req)
	if err != nil {
		return c.unreachable(ctx)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if pieces, ok := answer.(Stream); ok && streams(resp) {
		return c.follow(ctx, resp.Body, pieces)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.unreachable(ctx)
	case resp.StatusCode != http.StatusOK:
		return c.failed(resp, text)
	case len(text) > maxAnswer, json.Unmarshal(text, answer) != nil:
		return nil, fmt.Errorf("%s: %w", c.Provider, model.ErrMalformed)
	}
	return nil, nil
}

// unreachable is trouble on the way; the reason would hold the address.
func (c Caller) unreachable(ctx context.Context) (*model.BusyError, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	busy := &model.BusyError{}
	return busy, fmt.Errorf("%s: it cannot be reached: %w", c.Provider, busy)
}

func (c Caller) failed(resp *http.Response, text []byte) (*model.BusyError, error) {
	what := fmt.Sprintf("%s: status %d", c.Provider, resp.StatusCode)
	if kind := kindOf(text); kind != "" {
		what += " (" + kind + ")"
	}
	switch code := resp.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		busy := &model.BusyError{RetryAfter: retryAfter(resp.Header, time.Now())}
		return busy, fmt.Errorf("%s: %w", what, busy)
	}
	return nil, fmt.Errorf("%s: %w", what, model.ErrDenied)
}

// kindOf returns the error's kind, which both protocols have, if it reads like one of
// theirs; the message beside it may repeat the key or the question.
func kindOf(text []byte) string {
	var e struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal(text, &e) != nil || len(e.Error.Type) > 40 {
		return ""
	}
	for _, r := range e.Error.Type {
		if (r < 'a' || r > 'z') && r != '_' {
			return ""
		}
	}
	return e.Error.Type
}

// retryAfter reads when to come back: milliseconds, seconds or a date; 0 = not said.
func retryAfter(h http.Header, now time.Time) time.Duration {
	var d time.Duration
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		d = time.Duration(min(ms, 1e9) * float64(time.Millisecond))
	} else if s, err := strconv.ParseFloat(h.Get("Retry-After"), 64); err == nil {
		d = time.Duration(min(s, 1e6) * float64(time.Second))
	} else if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		d = at.Sub(now)
	}
	return max(0, min(d, maxAfter))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
