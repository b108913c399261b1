package dream

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/sandbox"
	"github.com/memsvc/memsvc/internal/memory"
)

// Dreamer tidies the memories of one project. Dreams of one project never run at the
// same time, in whatever process: the second is skipped.
type Dreamer struct {
	Store *memories.Store // personal and team directories
	Guard memories.Guard  // what it refuses is not written to the team's directory; nil = the store's
	Model model.Model     // nil = rules alone
	// Secrets finds what the model is not shown, while texts are whole; nil finds none.
	Secrets model.Secrets
	// TextOnly says that the model knows no tools: it answers once, with a list of what
	// to do, instead of working.
	TextOnly bool
	Project  string // repository's directory, for citations; "" = none
	// Transcripts are directories of conversations: their sessions are counted, and a
	// model is shown the notes beside them.
	Transcripts []string
	// Session is the conversation that asks for the dream: it is not counted. "" = none.
	Session string
	// Dir is where our own state is kept, for this project alone: the journal, records of
	// past dreams, the last look at the transcripts. It is made, for its owner only.
	Dir string
	Now func() time.Time
	// Hold makes uploads of the project wait until release is called, so that a dream goes
	// up as one commit; nil = there is nothing to hold.
	Hold func(ctx context.Context) (release func(), err error)
	// Merge merges two texts of the memory at path against their common ancestor; ok is
	// false where they do not merge. Undo needs it for what was edited after the dream;
	// nil = such a memory is left as it is.
	Merge func(path memory.Path, base, ours, theirs []byte) (merged []byte, ok bool)
	// Record hears of each call of a tool that the model made; nil = nobody does.
	Record func(sandbox.Call)

	// Due says when it is time; the zero Due is the default.
	Due Due

	step func(name string) error // set by tests: an error stops a change set there
}

// Options say how to run.
type Options struct {
	DryRun bool // say what would be done; write nothing
	Force  bool // pass the gates of time and sessions, never the lock
}

// Gate is what a dream did not pass.
type Gate string

// The gates, in the order in which they are asked.
const (
	GateEmpty    Gate = "no-memories"    // there is nothing to tidy
	GateTime     Gate = "too-soon"       // the last dream is less than Due.Pause ago
	GateLooked   Gate = "looked-already" // the transcripts were looked at less than Due.LookPause ago
	GateSessions Gate = "few-sessions"   // fewer than Due.Sessions others were touched since
	GateLock     Gate = "locked"         // somebody else is dreaming
)

// When a dream is due, unless Due says otherwise (SPEC 9).
const (
	Pause       = 24 * time.Hour   // since the last one
	LookPause   = 10 * time.Minute // since the last look at the transcripts
	MinSessions = 5                // other sessions touched since the last one
	StaleAfter  = time.Hour        // a lock older than this is nobody's
)

// Due says when a dream is due. A field that is zero is the default of its name.
type Due struct {
	Pause     time.Duration // since the last one
	LookPause time.Duration // since the last look at the transcripts
	Sessions  int           // others touched since the last one
}

// WithDefaults returns d with its zero fields filled.
func (d Due) WithDefaults() Due {
	return Due{cmp.Or(d.Pause, Pause), cmp.Or(d.LookPause, LookPause), cmp.Or(d.Sessions, MinSessions)}
}

// Kind says what a change does to a file.
type Kind string

// The kinds of change.
const (
	Create Kind = "create"
	Edit   Kind = "edit"
	Delete Kind = "delete"
)

// Change is what a dream does to one file, a memory or an index. It holds texts: they are
// for the person whose memories they are, never for a log.
type Change struct {
	Ref     memories.Ref
	Kind    Kind
	Reasons []string // in words, without any content
	Old     []byte   // nil for a Create
	New     []byte   // nil for a Delete
	// Into is the memory that says what this one said, of a Delete; zero if there is none.
	Into memories.Ref
	// Superseded are lines that are dropped because a newer text says otherwise.
	Superseded []string
	// OldTime and NewTime are the file's times before and after; a zero NewTime is the time
	// of writing.
	OldTime, NewTime time.Time
	// Needs are the texts that must be there before this file may be deleted.
	Needs []Needed
	// Skipped is why the change was not made after all; "" = it was made.
	Skipped string
}

// Needed is a text that another change relies on.
type Needed struct {
	Ref  memories.Ref
	ETag memory.ETag
}

// Left is something that was not done, and why.
type Left struct {
	Ref string // of a memory; "" = the store as a whole
	Why string // without any content
}

// Report says what a dream, or an undo, did.
type Report struct {
	ID       string // of the dream; "" if nothing was written
	Skipped  Gate   // "" = it ran
	Last     time.Time
	Sessions int // other sessions touched since Last; 0 if not counted
	DryRun   bool
	By       string // "rules" or "model"
	// Fallback is why rules alone were followed though there is a model.
	Fallback string
	Changes  []Change // in order; in a dry run, what would be done
	Left     []Left
	Rounds   int
	Usage    model.Usage
	Took     time.Duration
}

// Record is a dream of the past.
type Record struct {
	ID      string
	Time    time.Time
	By      string
	Changes []Change
	Left    []Left
	Undone  time.Time // zero = it stands
}

// ErrNoDream is what Undo answers when no dream is left to undo.
var ErrNoDream = errors.New("there is no dream to undo")
