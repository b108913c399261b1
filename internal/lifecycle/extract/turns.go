package extract

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// Said is what one side said in one message.
type Said struct {
	UUID   string
	Time   time.Time
	Person bool // else the assistant
	Text   string
}

// Turns are the messages of the main conversation after a cursor.
type Turns struct {
	Said []Said
	// Last is the uuid of the last message read, the next cursor; "" if there was none.
	Last string
	// Wrote says that the client itself wrote into the memory directory.
	Wrote bool
	// Lost says that the cursor was not found, so that everything counts.
	Lost bool
}

// at returns when the last of what was said was said, which is what its relative dates
// are relative to; zero if nobody knows.
func (t *Turns) at() time.Time {
	var at time.Time
	for _, s := range t.Said {
		if s.Time.After(at) {
			at = s.Time
		}
	}
	return at
}

// maxMessages and maxText bound what one extraction looks at: the last messages, and
// bytes of each.
const (
	maxMessages = 200
	maxText     = 40_000
)

// ReadTurns reads a transcript after the message whose uuid is cursor; "" is from the
// beginning. A cursor that is not there was compacted away: everything counts. dirs are
// the directories whose files are memories.
func ReadTurns(ctx context.Context, file, cursor string, dirs ...string) (Turns, error) {
	t, found, err := read(ctx, file, cursor, dirs)
	if err == nil && cursor != "" && !found {
		t, _, err = read(ctx, file, "", dirs)
		t.Lost = true
	}
	return t, err
}

func read(ctx context.Context, file, cursor string, dirs []string) (t Turns, found bool, err error) {
	f, _, err := transcript.Open(file)
	if err != nil {
		return Turns{}, false, fmt.Errorf("extract: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	after := cursor == ""
	w := newWrites(dirs)
	for l, err := range transcript.Until(ctx, transcript.Forward(io.Reader(f), 0)) {
		if err != nil {
			return Turns{}, false, err
		}
		if !after && !strings.Contains(string(l.Text), cursor) {
			continue
		}
		line, ok := transcript.Parse(l.Text)
		if !ok || line.Sidechain {
			continue
		}
		if !after {
			after, found = line.UUID == cursor, line.UUID == cursor
			continue
		}
		if line.UUID != "" && (line.Kind == transcript.User || line.Kind == transcript.Assistant) {
			t.Last = line.UUID
		}
		t.take(ctx, &line, w)
	}
	if err := ctx.Err(); err != nil {
		return Turns{}, false, err // the last line may not have been looked at whole
	}
	if over := len(t.Said) - maxMessages; over > 0 {
		t.Said = t.Said[over:]
	}
	t.Wrote = w.any()
	return t, found, nil
}

func (t *Turns) take(ctx context.Context, line *transcript.Line, w *writes) {
	for _, b := range line.Blocks {
		w.see(ctx, b, line.CWD)
		switch {
		case b.Kind != transcript.Text:
		case line.Kind == transcript.Assistant:
			t.add(Said{UUID: line.UUID, Time: line.Time, Text: b.Text})
		case line.Kind == transcript.User && !line.Meta:
			if text := Typed(b.Text); text != "" {
				t.add(Said{UUID: line.UUID, Time: line.Time, Person: true, Text: text})
			}
		}
	}
}

func (t *Turns) add(s Said) {
	s.Text = model.Head(s.Text, maxText)
	t.Said = append(t.Said, s)
}
