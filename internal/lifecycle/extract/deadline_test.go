package extract_test

import (
	"context"
	"errors"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
	"github.com/memsvc/memsvc/internal/memory"
)

// late is a guard that is asked when time is up, and says so.
type late struct{ stop context.CancelFunc }

func (l late) Check(ctx context.Context, _ memory.Path, _ []byte) (violations, warnings []memory.Violation, err error) {
	l.stop()
	return nil, nil, ctx.Err()
}

// A hook has half a second. What it could not have judged within it is no refusal: the next
// run takes it.
func TestWhatTimeWasTooShortForIsTakenNextTime(t *testing.T) {
	f := newFixture(t)
	f.talk.person("Always run the linter before you commit.")
	ctx, stop := context.WithCancel(t.Context())
	f.Guard = late{stop}
	r, err := f.Run(ctx, extract.Conversation{Session: "s1", Transcript: f.talk.file}, false)
	if !errors.Is(err, context.Canceled) || len(r.Refused) > 0 {
		t.Errorf("time was up: %v, refused %v", err, r.Refused)
	}
	f.Guard = rules{}
	if r := f.run(); len(r.Added) != 1 {
		t.Errorf("the next run: %+v", r)
	}
}
