package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
)

// maxInput bounds an event: a client writes whole files into it.
const maxInput = 16 << 20

// Input is an event, as far as it matters here. Unknown fields are passed over.
type Input struct {
	Event          string          `json:"hook_event_name"`
	SessionID      string          `json:"session_id"`
	TranscriptPath string          `json:"transcript_path"`
	CWD            string          `json:"cwd"`
	Roots          []string        `json:"workspace_roots"` // of Cursor, which may leave cwd away
	AgentID        string          `json:"agent_id"`        // of a sub-agent
	Prompt         string          `json:"prompt"`
	Source         string          `json:"source"` // of SessionStart: startup, resume, clear, compact
	ToolName       string          `json:"tool_name"`
	ToolInput      json.RawMessage `json:"tool_input"`
}

// Answer is what a hook says; the zero Answer says nothing.
type Answer struct {
	Context string // goes into the model's context
	Deny    string // why a tool may not run
}

// Project is what a hook needs of the project that the client works on.
type Project struct {
	Personal, Team string // directories
	Store          *memories.Store
	Guard          memories.Guard
	Selector       recall.Selector
	// Off says that the person wants no memories in conversations here: none are given and
	// none are made. What the team changed, what waits for a person and the guard go on.
	Off bool
	// NoRecall says that none are given to a prompt.
	NoRecall bool
	// ClosedTeam is a team directory that this project's clients would write into and that
	// is another project's; "" = none. Closed says so in one line.
	ClosedTeam, Closed string
	// Sync says how the sharing of Team is; nil where nobody shares it. With head the
	// daemon first looks whether the hub has more, as long as a beginning session may wait.
	Sync func(ctx context.Context, head bool) (*Sync, error)
	// Changes returns what others changed in Team since a time, each memory once, the
	// newest last.
	Changes func(ctx context.Context, since time.Time) ([]Change, error)
	// Notes returns the notes of a conversation, "" if it has none.
	Notes func(transcript string) string
	// Finished hands over a turn, for memories and notes to be made of it.
	Finished func(ctx context.Context, t Turn) error
	// SyncNow asks the daemon to look at once, and does not wait for it.
	SyncNow func(ctx context.Context)
}

// Turn is a turn of a conversation that ended, or whose context is about to be lost.
type Turn struct {
	Session    string
	Transcript string // file
	// Compacting says that a compaction begins: what the conversation needs of its notes to
	// go on is written now.
	Compacting bool
}

// Sync is how a shared directory is.
type Sync struct {
	Name   string // team/project
	Phase  string
	InStep bool // everything is as on the hub, and nothing waits for a person
	Moves  bool // what is written here reaches the others
	// Touch is when the hub was last heard of, while it cannot be reached; zero where that is
	// not known.
	Touch     time.Time
	Refused   []string // each "path:line: what to do"
	Conflicts []string // each "path (id)"
	Todo      string
}

// Change is a memory that somebody else changed.
type Change struct {
	Path        string
	Time        time.Time // when it arrived here
	Author      string
	Deleted     bool
	Description string
	// Grants says that its text grants permissions or tells agents to act without asking.
	Grants bool
}

// Shared is a directory that this machine shares with a team, for whichever project.
type Shared struct {
	Dir string // absolute
	// Guard opens the guard under that team's policy; it costs more than to know of the
	// directory.
	Guard func() memories.Guard
	// SyncNow asks the daemon to look at once, and does not wait for it.
	SyncNow func(ctx context.Context)
}

// Engine finds projects.
type Engine interface {
	// Project finds the memories for a working directory. seen is a file that the client
	// uses, or "".
	Project(ctx context.Context, cwd, seen string) (Project, error)
	// Saw notes that a client wrote a file, a memory of its own for all that is known here.
	// Where it keeps them is so known from then on.
	Saw(ctx context.Context, cwd, file string) error
	// Shared returns every directory that this machine shares.
	Shared(ctx context.Context) ([]Shared, error)
	// Lookups returns where choices of memories go on when a hook has ended.
	Lookups() Lookups
	// Record returns what sessions were given.
	Record() inject.Record
}

// errUnknownEvent is an event that nothing is done for.
var errUnknownEvent = errors.New("nothing is done for this event")

// Run answers one event, with one write to out at most. The error says why there is no
// answer, or what is missing in it; the caller keeps it from the client. event overrides the
// input's own name, "" leaves it. What the answer tells counts as told once it is written.
func Run(ctx context.Context, engine Engine, event string, in io.Reader, out io.Writer, now time.Time) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("hook: panic: %v", p)
		}
	}()
	text, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return fmt.Errorf("hook: read the event: %w", err)
	}
	if len(text) > maxInput {
		return fmt.Errorf("hook: the event has more than %d bytes", maxInput)
	}
	var ev Input
	if err := json.Unmarshal(text, &ev); err != nil {
		return errors.New("hook: the event is no JSON object of the documented form")
	}
	if event != "" {
		ev.Event = event
	}
	if ev.CWD == "" && len(ev.Roots) > 0 {
		ev.CWD = ev.Roots[0]
	}
	h := handler{engine: engine, in: ev, now: now}
	known, ok := find(ev.Event)
	if !ok {
		return errUnknownEvent
	}
	answer, err := known.do(&h, ctx)
	if err != nil {
		err = fmt.Errorf("hook %s: %w", known.Name, err)
	}
	if writeErr := known.write(out, answer); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	for _, f := range h.told {
		f()
	}
	return err
}

type handler struct {
	engine Engine
	in     Input
	now    time.Time
	told   []func() // to be done once the answer is written: what was not read is not known
}
