package hooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
)

// How long a session's beginning (ruling 13.21) and a prompt wait for the daemon to say how
// the sharing is.
const (
	beginWait  = 300 * time.Millisecond
	besideWait = 200 * time.Millisecond
)

// Bounds of what is said of the sharing: inject.Chars of it and of a closed team directory,
// lines at a prompt, and things that a session is known to have heard of.
const (
	maxWaiting    = 2000
	maxClosed     = 1000
	maxNewWaiting = 5
	maxMarks      = 200
)

// sharing is how a shared directory is, as a conversation hears of it; nil where nobody
// shares one, or nobody says.
type sharing struct {
	Sync
	items []string // a line for each thing that waits for a person
	ours  int      // how many of the first are in our words alone; the others name files as whoever made them calls them
}

func (h *handler) sharing(ctx context.Context, p Project, begins bool) *sharing {
	if p.Sync == nil {
		return nil
	}
	wait := besideWait
	if begins {
		wait = beginWait
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s, err := p.Sync(limited, begins)
	if err != nil || s == nil {
		return nil
	}
	out := &sharing{Sync: *s}
	if !s.Moves && s.Todo != "" {
		out.items = append(out.items, fmt.Sprintf("nothing is shared at the moment (%s): %s", s.Phase, short(s.Todo, 300)))
		out.ours = 1
	}
	for _, r := range s.Refused {
		out.items = append(out.items, "stays on this machine: "+middle(r, 300))
	}
	for _, c := range s.Conflicts {
		out.items = append(out.items, "in conflict, both texts are kept: "+middle(c, 300))
	}
	return out
}

// atBeginning is what a session hears when it begins: unless all is in step, the phase, since
// when the hub was not heard of, and all that waits for a person.
func (s *sharing) atBeginning(now time.Time) string {
	if s == nil || s.InStep {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Sharing with %s: %s", s.Name, s.Phase)
	if !s.Moves && !s.Touch.IsZero() {
		fmt.Fprintf(&b, "; the hub was last heard of %s", ago(now.Sub(s.Touch)))
	}
	b.WriteString(".\n")
	switch {
	case s.Moves && s.Todo != "":
		b.WriteString(short(s.Todo, 300) + "\n")
	case !s.Moves && s.Todo == "":
		b.WriteString("Nothing goes out or comes in meanwhile; it goes on by itself.\n")
	}
	return waiting(b.String(), maxMarks, s.items[:s.ours], s.items[s.ours:])
}

// waiting says what waits for a person: what is in our own words as these, and the rest as the
// data that it is, most lines of it.
func waiting(head string, most int, ours, theirs []string) string {
	for _, i := range ours {
		head += "- " + i + "\n"
	}
	head = inject.CutChars(inject.Neutral(head), maxWaiting/2)
	if len(theirs) == 0 {
		return head
	}
	var lines []string
	for _, i := range theirs[:min(len(theirs), most)] {
		lines = append(lines, "- "+i+"\n")
	}
	return join(head, listed("files that wait for a person", lines, false, len(theirs)-len(lines), maxWaiting-inject.Chars(head), func(n int) string {
		return fmt.Sprintf("- and %d more; `memsync-agent status` shows them\n", n)
	}))
}

// since is what waits for a person that a session has not heard of; heard are the marks of
// what it has.
func (s *sharing) since(heard []string) string {
	if s == nil {
		return ""
	}
	var ours, theirs []string
	for i, m := range s.marks() {
		switch {
		case slices.Contains(heard, m):
		case i < s.ours:
			ours = append(ours, s.items[i])
		default:
			theirs = append(theirs, s.items[i])
		}
	}
	if len(ours)+len(theirs) == 0 {
		return ""
	}
	head := fmt.Sprintf("Sharing with %s, what waits since the last prompt:\n", s.Name)
	if s.Moves && s.Todo != "" {
		head += short(s.Todo, 300) + "\n"
	}
	return waiting(head, maxNewWaiting, ours, theirs)
}

// known are the marks of all that a session has heard of now; while nobody says how the
// sharing is, those of before.
func (s *sharing) known(p Project, before []string) (out []string) {
	switch {
	case s != nil:
		out = s.marks()
	case p.Sync != nil:
		out = slices.Clone(before)
	}
	if m := mark(p.Closed); p.Closed != "" && !slices.Contains(out, m) {
		out = append(out, m)
	}
	return out
}

// marks names each thing that waits.
func (s *sharing) marks() []string {
	var out []string
	for _, i := range s.items[:min(len(s.items), maxMarks)] {
		out = append(out, mark(s.Name+"\x00"+i))
	}
	return out
}

// mark names a text and holds no word of it.
func mark(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// ago says how long something is past.
func ago(d time.Duration) string {
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, unit)
	}
	switch {
	case d < time.Minute:
		return "less than a minute ago"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour")
	}
	return count(int(d/(24*time.Hour)), "day")
}
