package jsonhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// Stream is an answer that may also come in pieces, as server-sent events. One that comes
// whole is decoded as JSON all the same, since some servers do not stream.
type Stream interface {
	// Begin forgets the pieces of a try before.
	Begin()
	// Event takes the data of one event, and reports whether it was the last. Errors are
	// ErrMalformed, and what Failed makes of a provider's own.
	Event(data []byte) (last bool, err error)
	// Whole reports whether a stream that ended without a last event has said all.
	Whole() bool
}

// streams reports whether the answer comes in pieces.
func streams(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream" && resp.StatusCode == http.StatusOK
}

// follow reads a stream to its end. One that breaks off is asked for again.
func (c Caller) follow(ctx context.Context, body io.Reader, answer Stream) (*model.BusyError, error) {
	answer.Begin()
	lines := bufio.NewScanner(io.LimitReader(body, maxAnswer))
	lines.Buffer(make([]byte, 0, 4096), maxAnswer)
	var data []byte
	event := func() (last bool, err error) {
		if len(data) == 0 {
			return false, nil
		}
		defer func() { data = data[:0] }()
		return answer.Event(data)
	}
	for lines.Scan() {
		line := lines.Bytes()
		if len(line) > 0 {
			// Names of events stand in their data too; comments keep the connection alive.
			if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				if len(data) > 0 {
					data = append(data, '\n')
				}
				data = append(data, bytes.TrimPrefix(text, []byte(" "))...)
			}
			continue
		}
		last, err := event()
		if busy := (*model.BusyError)(nil); errors.As(err, &busy) {
			return busy, fmt.Errorf("%s: %w", c.Provider, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Provider, err)
		}
		if last {
			return nil, nil
		}
	}
	if lines.Err() == nil {
		if last, err := event(); err == nil && (last || answer.Whole()) {
			return nil, nil
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: %w", c.Provider, model.ErrMalformed)
	}
	return c.unreachable(ctx)
}

// Failed is the error that a provider reports in the middle of a stream, where no status
// can tell it any more. text is the event's data, which is not repeated.
func Failed(text []byte) error {
	kind := kindOf(text)
	switch kind {
	case "overloaded_error", "api_error", "rate_limit_error", "timeout_error", "server_error", "":
		return &model.BusyError{}
	}
	return fmt.Errorf("%s: %w", kind, model.ErrDenied)
}
