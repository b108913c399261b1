package syncer

import (
	"context"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// State keeps what this machine must remember about one link. It is crash-safe: at
// any instant, a kill or a loss of power leaves the state before or after an Apply,
// never between. One process uses it at a time.
type State interface {
	// Load returns the whole state without texts. A link whose state was never
	// saved, or was lost, is LinkState{} with Fresh true; a damaged state is an
	// error unless the adapter can tell that it holds nothing, which is Fresh too.
	Load(ctx context.Context) (LinkState, error)

	// Apply makes one update, atomically and durably; with u.Relaxed it need not
	// survive a loss of power, but a kill, and it is never reordered with another
	// Apply. Texts that nothing refers to any more may be forgotten after it.
	Apply(ctx context.Context, u Update) error

	// Text returns the bytes of a text that the state refers to (Baseline.Text,
	// Conflict.Local/Hub/Base, Trashed.ETag, Intent.Base) or ErrNoText. The bytes
	// are checked against the etag; a damaged text is ErrNoText.
	Text(ctx context.Context, etag memory.ETag) ([]byte, error)

	// Forget removes from the disk every byte of what the state refers to no more, texts
	// and lines of notes, now rather than whenever it is rewritten.
	Forget(ctx context.Context) error

	// Aside calls look with the texts that can be found in damaged state that was put
	// aside, and reports whether there is any. DropAside removes it.
	Aside(ctx context.Context, look func(text []byte) error) (put bool, err error)
	DropAside(ctx context.Context) error
}

// LinkState is what State keeps. Maps are never nil after Load.
type LinkState struct {
	Fresh     bool // nothing was ever saved, or it was lost
	LinkID    string
	Cursor    memory.Cursor
	Baseline  map[memory.Path]BaseEntry
	Conflicts map[string]Conflict // by Conflict.ID
	Resolved  map[string]Resolved // by Resolved.ID
	Held      map[memory.Path]Held
	Intents   map[memory.Path]Intent
	Ahead     map[memory.Path]Ahead
	Halt      *Halt
	Trash     map[string]Trashed // by Trashed.ID
	// Notes are the newest events a person should be able to find, oldest first, at
	// most MaxNotes.
	Notes []Note
	// Marks are points of the hub's history that the cursor went through, oldest first,
	// the newest densest; see Mark.
	Marks []Mark
	// Recovery is set while a new epoch or a lost cursor is being worked off.
	Recovery *Recovery
	// Redacting says that texts may still be kept that were redacted on the hub.
	Redacting bool
}

// MaxNotes bounds LinkState.Notes; State drops the oldest beyond it.
const MaxNotes = 1000

// BaseEntry is what hub and machine last agreed on at one path.
type BaseEntry struct {
	// Text is the agreed text, the ancestor of merges; its bytes are kept. Refused
	// text never becomes one.
	Text memory.ETag
	// Hub is the hub's etag; it equals Text unless the hub's text could not be read.
	Hub memory.ETag
	// HubRevision is the revision at which the hub got it.
	HubRevision memory.Revision
	// Local is the etag of the file on disk when both agreed. It differs from Hub
	// for an index with lines that stay on this machine.
	Local memory.ETag
	// Author is who put the hub's text there, at most maxAuthorBytes in one line; "" where
	// that is not known. It decides nothing.
	Author string
}

// Ahead is what the hub holds at one path at the cursor, where that is not what the
// baseline says and has not been put in place here: the path was unreadable, ignored,
// being edited, or blocked. The hub's tree at the cursor is the baseline's Hub etags
// with these laid over.
type Ahead struct {
	Path     memory.Path
	ETag     memory.ETag // "" = deleted there
	Revision memory.Revision
	Author   string `json:",omitempty"` // as BaseEntry's
}

// Conflict is two edits that could not be merged. The hub's text is in place on
// disk; the local one is kept here.
type Conflict struct {
	ID    string // stable: the same conflict found again has the same id
	Path  memory.Path
	Local memory.ETag // the text that lost its place; its bytes are kept
	Hub   memory.ETag // the hub's text at that time ("" = it was deleted); its bytes are kept
	Base  memory.ETag // the common ancestor ("" = none); its bytes are kept
	// HubRevision is the revision of the hub's text.
	HubRevision memory.Revision
	// LocalModTime is the mtime of the local file.
	LocalModTime time.Time
	Time         time.Time // when it was found
	Reported     bool      // the hub was told, or its guard would refuse the text
	Kept         bool      // the hub keeps the text; when it has it no more, it was resolved elsewhere
	// Refusal is why the hub does not keep the text: a rule of the guard, or the reason of
	// the hub's error; "" where nothing refused it, or an older agent did not note what.
	Refusal string
	// PolicyVersion is the guard policy's under which a rule refused it.
	PolicyVersion int64
}

// HubRedacted reports whether an admin redacted the hub's text: the local one may hold
// what was to go.
func (c *Conflict) HubRedacted() bool { return c.Hub == memory.ETagOf([]byte(memory.RedactionMarker)) }

// Resolved is a conflict that was resolved here and is still to be taken off the hub.
type Resolved struct {
	ID    string // the conflict's
	Path  memory.Path
	Local memory.ETag // the text that the hub keeps
}

// Held is a text that stays on this machine, or on the hub, and why.
type Held struct {
	// Path is no path with HeldByAgent, but what the hub sent, quoted; see unfitPath.
	Path memory.Path
	ETag memory.ETag // of the local text that was refused; "" when a delete is held
	// By is who refused: HeldByGuard, HeldByHub, HeldByName, HeldByDisk, HeldByAgent.
	By         string
	Violations []memory.Violation
	// PolicyVersion and Revision say under what guard policy and at which head it
	// was refused, so that it is offered again when they change.
	PolicyVersion int64
	Revision      memory.Revision
	RenamedFrom   memory.Path // its delete is held too
	Since         time.Time
}

// Who holds a text back.
const (
	HeldByGuard = "guard" // this machine's guard
	HeldByHub   = "hub"   // the hub refused it
	HeldByName  = "name"  // its name cannot be shared
	HeldByDisk  = "disk"  // the hub's text cannot be put in place here
	HeldByAgent = "agent" // this program does not take the path that the hub names
)

// Intent is written before a step whose end may go unseen. When the side is later
// found to hold Wanted, then Base is the agreed text, whatever the baseline says.
type Intent struct {
	Path   memory.Path
	ToHub  bool        // else: to the disk
	Wanted memory.ETag // what is about to be put there; "" = a delete
	Base   memory.ETag // the agreed text then; its bytes are kept ("" = they are not: ask the hub)
	// Earlier are texts of requests before this one that may still arrive, oldest
	// first; their bytes are not kept.
	Earlier []memory.ETag
}

// Halt says why a link stands still, and what a person decided.
type Halt struct {
	Reason  string
	Missing []memory.Path // the deletes that were not made
	Of      int           // size of the baseline then
	Time    time.Time
	// Accepted means that the deletes of Missing may go out (resume --accept-deletes).
	Accepted bool
}

// Trashed is a text that was taken from the disk although a person might want it.
type Trashed struct {
	ID     string
	Path   memory.Path
	ETag   memory.ETag // its bytes are kept
	Reason string
	Time   time.Time
}

// Note is one event a person should be able to find later.
type Note struct {
	Time   time.Time
	Kind   string // see the Note… constants
	Path   memory.Path
	Text   string // for NoteIndexLine the line that lost, or LineRedacted; the guard has not judged it
	ETag   memory.ETag
	Origin string // author of the hub's side, where known
}

// LineRedacted stands in a Note for a line of an index that lost a redacted text: such a
// line is like the ones that were redacted, and never was on the hub to be compared.
const LineRedacted = "(a text of this index was redacted, and the line with it)"

// The kinds of Note.
const (
	NoteIndexLine    = "index-line-lost"    // both changed an index entry; the hub's line stayed
	NoteDeleteUndone = "delete-undone"      // a restored hub holds what had been deleted
	NoteReoffered    = "re-offered"         // a restored hub had lost this text
	NoteShrunk       = "shrunk"             // an edit took more than 70 % of a file
	NotePermission   = "permissions"        // a pulled text grants permissions
	NoteStale        = "stale-replaced"     // after a lost state an old text gave way to the hub's
	NoteEditKept     = "edit-kept"          // a delete met an edit; the edit stayed
	NoteResolved     = "resolved-elsewhere" // a conflict was resolved on another machine
	NoteRecovered    = "state-rebuilt"      // the link was compared in full
	NoteRedacted     = "redacted"           // a conflict's or trashed text was redacted on the hub
)

// sameEvent reports whether both tell the same, whenever they were taken.
func (n Note) sameEvent(o Note) bool {
	n.Time, o.Time = time.Time{}, time.Time{}
	return n == o
}

// Asks reports whether a note wants a person's look: something is other than somebody
// meant it, or may be, and nobody decided so.
func (n Note) Asks() bool {
	switch n.Kind {
	case NoteIndexLine:
		return n.Text != LineRedacted
	case NoteDeleteUndone, NoteShrunk, NotePermission:
		return true
	}
	return false
}

// Asking returns the notes that want a person's look, oldest first. What was said several
// times of a memory is there once, as last said, and not once the memory is gone.
func (s *LinkState) Asking() []Note {
	var out []Note
	said := map[Note]bool{}
	for _, n := range slices.Backward(s.Notes) {
		key := Note{Kind: n.Kind, Path: n.Path, Text: n.Text}
		if _, living := s.Baseline[n.Path]; !living || !n.Asks() || said[key] {
			continue
		}
		said[key] = true
		out = append(out, n)
	}
	slices.Reverse(out)
	return out
}

// Recovery remembers, across restarts, how a full comparison has to judge.
type Recovery struct {
	// Rewind is the last revision that the hub's present history surely shares with
	// ours, and with those that earlier attempts met.
	Rewind memory.Revision
	// From is the cursor we had.
	From memory.Cursor
	// Epoch is the new one.
	Epoch memory.Epoch
}

// Update is one atomic step of the state. Zero fields change nothing.
type Update struct {
	// Relaxed: see State.Apply.
	Relaxed bool
	LinkID  string
	Cursor  *memory.Cursor

	// Texts are bytes that become available under their etag by this update.
	Texts [][]byte

	PutBaseline   map[memory.Path]BaseEntry
	DropBaseline  []memory.Path
	PutConflicts  []Conflict
	DropConflicts []string
	PutResolved   []Resolved
	DropResolved  []string
	PutHeld       []Held
	DropHeld      []memory.Path
	PutIntents    []Intent
	DropIntents   []memory.Path
	PutAhead      []Ahead
	DropAhead     []memory.Path
	SetHalt       *Halt
	ClearHalt     bool
	PutTrash      []Trashed
	DropTrash     []string
	AddNotes      []Note
	DropLines     []memory.Path // notes of these indexes keep no line
	SetRecovery   *Recovery
	ClearRecovery bool
	SetRedacting  *bool
	// KeepMarks forgets the marks after it: they are of a history that is no more.
	KeepMarks *memory.Revision
	// PutMarks are commits between the old cursor and the new one, ascending. The
	// cursor makes its own mark.
	PutMarks []Mark
}
