package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Phase is what a link is doing or why it stands still: one of the syncer's phases,
// or one of these.
type Phase string

// The phases that the agent adds to the syncer's.
const (
	// PhaseInSync: everything is as on the hub, and nothing waits: InStep.
	PhaseInSync Phase = Phase(syncer.PhaseInSync)
	// PhaseAttention: everything that can move has moved; the rest waits for a person.
	PhaseAttention  Phase = "attention"
	PhaseOffline    Phase = "offline"     // the hub cannot be reached; tried again by itself
	PhaseFailing    Phase = "failing"     // the last cycle failed; tried again by itself
	PhaseStopped    Phase = "stopped"     // it failed for good; tried again when the cause changes
	PhaseNotRunning Phase = "not-running" // no daemon serves the state directory
)

// Status is the answer of `status`; its JSON is documented in docs/cli.md.
type Status struct {
	Version  string       `json:"version"`
	Running  bool         `json:"running"`
	PID      int          `json:"pid,omitempty"`
	StateDir string       `json:"state_dir"`
	InStep   bool         `json:"in_step"`
	Hubs     []HubStatus  `json:"hubs"`
	Links    []LinkStatus `json:"links"`
	// Model is the language model and what was used of it; absent without one.
	Model *ModelStatus `json:"model,omitempty"`
	// Here says that the memory directory of the working directory is another project's.
	Here string `json:"here,omitempty"`
	// Dreams are the last ones of each project.
	Dreams []DreamStatus `json:"dreams,omitempty"`
}

// HubStatus is how the connection to a hub is.
type HubStatus struct {
	Addr      string    `json:"addr"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`
	Error     string    `json:"error,omitempty"`
	// OffsetMS is the hub's time minus this machine's, in milliseconds.
	OffsetMS int64 `json:"offset_ms"`
}

// LinkStatus is how one link is.
type LinkStatus struct {
	Link
	ID    string `json:"id"`
	Phase Phase  `json:"phase"`
	// Todo says in one sentence what a person can do about the phase; "" = nothing.
	Todo   string `json:"todo,omitempty"`
	InStep bool   `json:"in_step"`

	Epoch    string `json:"epoch"`
	Revision int64  `json:"revision"` // applied here
	// HubRevision is the last one known on the hub; 0 while it is not known.
	HubRevision int64 `json:"hub_revision"`
	Files       int   `json:"files"` // that hub and machine agree on
	// Pending is how many changes the last cycle could not make on the other side: local
	// ones above all, also while the hub is away.
	Pending int `json:"pending"`

	Refusals  []Refusal       `json:"refusals"`
	Conflicts []ConflictEntry `json:"conflicts"`
	Halt      *HaltEntry      `json:"halt,omitempty"`
	Warnings  []Finding       `json:"warnings"`
	// Happened is what came about here in the last 7 days and wants a person's look.
	Happened []Happened `json:"happened"`
	// Unreadable are paths that could not be looked at; "" is the whole directory.
	Unreadable []string `json:"unreadable"`
	// RootDetail says what is wrong with the directory itself.
	RootDetail string `json:"root_detail,omitempty"`

	Watching WatchingEntry `json:"watching"`
	// UploadsWait says since when nothing is sent because of a dream.
	UploadsWait *UploadsWait `json:"uploads_wait,omitempty"`

	LastSuccess *time.Time `json:"last_success,omitempty"`
	LastError   *ErrorInfo `json:"last_error,omitempty"`

	caughtUp bool // everything that can move has moved
}

// Finding is one broken rule in one place.
type Finding struct {
	Path        string `json:"path"`
	Line        int    `json:"line,omitempty"`
	Rule        string `json:"rule"`
	Message     string `json:"message"`
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Refusal is a file that stays on this machine, and why.
type Refusal struct {
	Path     string    `json:"path"`
	By       string    `json:"by"` // guard, hub, name or disk
	Since    time.Time `json:"since"`
	Findings []Finding `json:"findings"`
	// RenamedFrom is the path that the hub goes on serving it at: its delete waits for the
	// file, so that the memory is not gone meanwhile. "" = it was not renamed.
	RenamedFrom string `json:"renamed_from,omitempty"`
}

// ConflictEntry is an open conflict, without its texts.
type ConflictEntry struct {
	ID          string    `json:"id"`
	Path        string    `json:"path"`
	HubRevision int64     `json:"hub_revision"`
	Deleted     bool      `json:"deleted_on_hub"`
	Redacted    bool      `json:"redacted_on_hub,omitempty"` // an admin removed the hub's text
	Since       time.Time `json:"since"`
	// OnlyHere says why the hub does not keep the text of this machine: a rule of the
	// guard, the reason of the hub's refusal, or onlyHereYet; "" = it keeps it.
	OnlyHere string `json:"only_here,omitempty"`
}

// onlyHereYet: the hub was not told of the conflict yet.
const onlyHereYet = "not-reported"

// hub says for a person what the hub has.
func (c ConflictEntry) hub() string {
	switch {
	case c.Deleted:
		return "deleted on the hub"
	case c.Redacted:
		return fmt.Sprintf("an admin redacted the hub's text (revision %d)", c.HubRevision)
	}
	return fmt.Sprintf("the hub has revision %d", c.HubRevision)
}

// alone says for a person that the text is on this machine alone, and why; "" if not.
func (c ConflictEntry) alone() string {
	const only = ", its text is on this machine only"
	switch c.OnlyHere {
	case "":
		return ""
	case onlyHereYet:
		return only + " so far"
	case string(memory.ReasonPermissionDenied):
		return only + ": the credential may not write"
	}
	return only + ": " + c.OnlyHere
}

// HaltEntry says why a link stands still.
type HaltEntry struct {
	Reason  string    `json:"reason"`
	Missing []string  `json:"missing"`
	Of      int       `json:"of"`
	Since   time.Time `json:"since"`
}

// WatchingEntry says how changes on disk are noticed.
type WatchingEntry struct {
	How    string `json:"how"` // starting, events, polling, missing, or "" without a daemon
	Reason string `json:"reason,omitempty"`
}

// ErrorInfo is an error and when it happened.
type ErrorInfo struct {
	Message string    `json:"message"`
	Reason  string    `json:"reason,omitempty"` // as on the wire, where the hub answered
	Time    time.Time `json:"time"`
}

// linkStatus puts a syncer's status into the outward shape.
func linkStatus(l Link, st syncer.Status, now time.Time) LinkStatus {
	s := newLinkStatus(l)
	s.Phase = Phase(st.Phase)
	s.Epoch, s.Revision, s.Files, s.Pending = string(st.Cursor.Epoch), int64(st.Cursor.Revision), st.Files, st.Pending
	for _, h := range st.Refused {
		s.Refusals = append(s.Refusals, refusalOf(h))
	}
	for _, c := range st.Conflicts {
		s.Conflicts = append(s.Conflicts, conflictEntry(c))
	}
	for _, v := range st.Warnings {
		s.Warnings = append(s.Warnings, findingOf(v))
	}
	for _, p := range st.Unreadable {
		s.Unreadable = append(s.Unreadable, string(p))
	}
	s.Happened = happened(st.Asking, now.Add(-happenedFor))
	s.Halt, s.RootDetail = haltEntry(st.Halt), st.RootDetail
	if !st.LastSync.IsZero() {
		t := st.LastSync.UTC()
		s.LastSuccess = &t
	}
	return s
}

// storedStatus tells what a link's durable state says, without a daemon.
func storedStatus(l Link, st syncer.LinkState, now time.Time) LinkStatus {
	s := newLinkStatus(l)
	s.Phase = PhaseNotRunning
	s.Epoch, s.Revision, s.Files = string(st.Cursor.Epoch), int64(st.Cursor.Revision), len(st.Baseline)
	for _, p := range slices.Sorted(maps.Keys(st.Held)) {
		s.Refusals = append(s.Refusals, refusalOf(st.Held[p]))
	}
	for _, id := range slices.Sorted(maps.Keys(st.Conflicts)) {
		s.Conflicts = append(s.Conflicts, conflictEntry(st.Conflicts[id]))
	}
	s.Halt = haltEntry(st.Halt)
	s.Happened = happened(st.Asking(), now.Add(-happenedFor))
	s.Todo = todo(s)
	return s
}

func newLinkStatus(l Link) LinkStatus {
	return LinkStatus{
		Link: l, ID: l.ID(), Refusals: []Refusal{}, Conflicts: []ConflictEntry{}, Warnings: []Finding{}, Happened: []Happened{}, Unreadable: []string{},
	}
}

func refusalOf(h syncer.Held) Refusal {
	r := Refusal{Path: string(h.Path), By: h.By, Since: h.Since.UTC(), Findings: []Finding{}, RenamedFrom: string(h.RenamedFrom)}
	for _, v := range h.Violations {
		r.Findings = append(r.Findings, findingOf(v))
	}
	return r
}

func findingOf(v memory.Violation) Finding {
	return Finding{Path: v.Path, Line: v.Line, Rule: v.Rule, Message: v.Message, Fingerprint: v.Fingerprint}
}

func conflictEntry(c syncer.Conflict) ConflictEntry {
	e := ConflictEntry{ID: c.ID, Path: string(c.Path), HubRevision: int64(c.HubRevision), Deleted: c.Hub == "", Redacted: c.HubRedacted(), Since: c.Time.UTC()}
	switch {
	case c.Kept:
	case c.Refusal != "":
		e.OnlyHere = c.Refusal
	case c.Reported:
		e.OnlyHere = syncer.HeldByGuard // an older agent noted no more
	default:
		e.OnlyHere = onlyHereYet
	}
	return e
}

func haltEntry(h *syncer.Halt) *HaltEntry {
	if h == nil || h.Accepted {
		return nil
	}
	e := &HaltEntry{Reason: h.Reason, Of: h.Of, Since: h.Time.UTC(), Missing: []string{}}
	for _, p := range h.Missing {
		e.Missing = append(e.Missing, string(p))
	}
	return e
}

// outward is the phase that is shown: in-sync and InStep are one.
func (s LinkStatus) outward() Phase {
	switch {
	case s.Phase != PhaseInSync || s.InStep:
		return s.Phase
	case !s.settled():
		return PhaseAttention
	}
	return Phase(syncer.PhaseSyncing)
}

// settled reports whether nothing waits for a person.
func (s LinkStatus) settled() bool {
	return !s.stuck() && len(s.Refusals) == 0 && len(s.Conflicts) == 0 && s.Halt == nil && s.Pending == 0 && len(s.Unreadable) == 0
}

// stuck reports whether uploads wait for a person.
func (s LinkStatus) stuck() bool { return s.UploadsWait != nil && s.UploadsWait.Stuck }

// gone reports whether the hub does not know the project any more.
func (s LinkStatus) gone() bool {
	return s.Phase == PhaseStopped && s.Epoch != "" && s.LastError != nil && s.LastError.Reason == string(memory.ReasonNotFound)
}

// todoStart is what there is to do about a link that nobody serves.
const todoStart = "start it with 'memsync-agent run'"

// What there is to do about conflicts: at a command line, through our tools, and for a
// model that may have either.
const (
	todoConflicts        = "see 'memsync-agent conflicts list', then 'conflicts resolve ID --ours, --theirs or --merged FILE'"
	todoConflictsByTools = "conflict_read shows both texts of a conflict, conflict_resolve ends it"
	todoConflictsEither  = "the memsvc tools conflict_read and conflict_resolve show and end a conflict; without them 'memsync-agent conflicts show ID' and 'conflicts resolve ID --ours, --theirs or --merged FILE'"
)

// todo says what a person can do about a link, in one sentence.
func todo(s LinkStatus) string {
	switch {
	case s.Halt != nil:
		return "look at the directory; if the files were deleted on purpose run 'memsync-agent resume --accept-deletes', else 'memsync-agent resume --restore' brings them back"
	case s.Phase == Phase(syncer.PhaseNoRoot):
		return "put right what is said of the directory (mount it, or undo what moved it); nothing is deleted on the hub meanwhile"
	case s.gone():
		return "ask what happened; if the project should be there run 'memsync-agent resume --create', which offers it the files that are here, else 'memsync-agent unlink'; nothing is deleted here"
	case s.Phase == PhaseStopped && s.LastError != nil:
		return "put right what the error says; the agent notices a new token by itself, and tries again every 5 minutes"
	case s.stuck():
		return "do what is said of the uploads; until then everything stays here"
	case len(s.Conflicts) > 0:
		return todoConflicts
	case len(s.Unreadable) > 0:
		return "make what cannot be read readable for the user that the agent runs as; it is left alone meanwhile"
	case len(s.Refusals) > 0 && !slices.ContainsFunc(s.Refusals, func(r Refusal) bool { return r.By != syncer.HeldByAgent }):
		return "update this agent, or have the files that are named renamed by somebody whose agent can hold them; everything else is in step"
	case len(s.Refusals) > 0:
		return "correct the files at the places named; they are sent as soon as they are clean"
	case s.Phase == PhaseNotRunning:
		return todoStart
	}
	return ""
}
