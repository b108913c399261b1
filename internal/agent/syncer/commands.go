package syncer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// ErrNoConflict means that no open conflict has this id or path.
var ErrNoConflict = errors.New("no such conflict")

// RefusedError means that the guard refuses a text that a person chose, so that it
// could never be shared. Nothing was changed.
type RefusedError struct {
	Path       memory.Path
	Violations []memory.Violation
}

// Error names every finding: path, line, what it is, rule; never the text.
func (e *RefusedError) Error() string {
	all := make([]string, 0, len(e.Violations))
	for _, v := range e.Violations {
		all = append(all, v.String())
	}
	return "refused: " + strings.Join(all, "; ")
}

// ConflictTexts are the texts of a conflict.
type ConflictTexts struct {
	Conflict
	Ours   []byte // the local text that lost its place
	Theirs []byte // the hub's text when the conflict arose
	Base   []byte // nil when no ancestor is known
}

// Conflicts returns the open conflicts, by path and time.
func (s *Syncer) Conflicts(ctx context.Context) ([]Conflict, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	return sortedConflicts(s.state.Conflicts), nil
}

// Conflict returns the texts of the conflict with this id, or of the oldest one at
// this path; an ErrNoConflict if there is none.
func (s *Syncer) Conflict(ctx context.Context, idOrPath string) (ConflictTexts, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return ConflictTexts{}, err
	}
	x, err := s.findConflict(idOrPath)
	if err != nil {
		return ConflictTexts{}, err
	}
	out := ConflictTexts{Conflict: x}
	for _, t := range []struct {
		to   *[]byte
		etag memory.ETag
	}{{&out.Ours, x.Local}, {&out.Theirs, x.Hub}, {&out.Base, x.Base}} {
		if t.etag == "" {
			continue
		}
		if *t.to, err = s.textOf(ctx, t.etag); err != nil {
			return ConflictTexts{}, &stepError{step: "read the texts of the conflict at", path: x.Path, err: err}
		}
	}
	return out, nil
}

func (s *Syncer) textOf(ctx context.Context, e memory.ETag) ([]byte, error) {
	if e == memory.ETagOf(nil) {
		return []byte{}, nil
	}
	return s.ports.State.Text(ctx, e)
}

func (s *Syncer) findConflict(idOrPath string) (Conflict, error) {
	if x, ok := s.state.Conflicts[idOrPath]; ok {
		return x, nil
	}
	for _, x := range sortedConflicts(s.state.Conflicts) {
		if string(x.Path) == idOrPath {
			return x, nil
		}
	}
	return Conflict{}, fmt.Errorf("%q: %w", idOrPath, ErrNoConflict)
}

// Resolution says how a conflict ends.
type Resolution uint8

// The resolutions.
const (
	TakeOurs   Resolution = iota + 1 // the local text that lost its place
	TakeTheirs                       // what is in place now
	TakeMerged                       // a text that the person wrote
)

// Resolve ends a conflict. The chosen text is written as an edit of this machine and
// goes to the hub with the next cycle; whatever is replaced or given up is kept in the
// trash. merged counts for TakeMerged only; one that the guard refuses is a
// *RefusedError, and the conflict stays open. A file that changes at this very moment is
// an ErrLocalChanged: nothing was decided, try again.
func (s *Syncer) Resolve(ctx context.Context, idOrPath string, how Resolution, merged []byte) error {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return err
	}
	x, err := s.findConflict(idOrPath)
	if err != nil {
		return err
	}
	ours, err := s.textOf(ctx, x.Local)
	if err != nil {
		return &stepError{step: "read the texts of the conflict at", path: x.Path, err: err}
	}
	// One that is not known to be reported may be on its way to the hub, or have been
	// accepted there just before a crash: every resolved one is looked for there.
	done := Update{
		DropConflicts: []string{x.ID},
		PutResolved:   []Resolved{{ID: x.ID, Path: x.Path, Local: x.Local}},
	}
	var text []byte
	switch how {
	case TakeTheirs:
		u := s.trashed(x.Path, ours, "given up in a conflict")
		u.DropConflicts, u.PutResolved = done.DropConflicts, done.PutResolved
		return s.resolved(ctx, u)
	case TakeOurs:
		text = ours
	case TakeMerged:
		text = merged
		v, err := s.ports.Guard.Check(ctx, x.Path, merged)
		if err != nil {
			return &stepError{step: "check", path: x.Path, err: err}
		}
		if len(v.Violations) > 0 {
			return &RefusedError{Path: x.Path, Violations: v.Violations}
		}
		if err := s.save(ctx, s.trashed(x.Path, ours, "merged by hand in a conflict")); err != nil {
			return err
		}
	default:
		return fmt.Errorf("resolve %s: say ours, theirs or merged", x.Path)
	}
	if err := s.replace(ctx, x.Path, text, "replaced when a conflict was resolved"); err != nil {
		return err
	}
	return s.resolved(ctx, done)
}

// replace writes text as an edit of this machine. What it replaces is in the trash first.
func (s *Syncer) replace(ctx context.Context, p memory.Path, text []byte, why string) error {
	s.seen = nil
	current, err := s.ports.Local.Read(ctx, p)
	expect := memory.ETag("")
	switch {
	case err == nil:
		if expect = memory.ETagOf(current); expect == memory.ETagOf(text) {
			return nil
		}
		if s.heldRedacted(p, expect) {
			break // brought back here, and no copy is kept of it
		}
		if err := s.save(ctx, s.trashed(p, current, why)); err != nil {
			return err
		}
	case !errors.Is(err, ErrLocalAbsent):
		return &stepError{step: "read", path: p, err: err}
	}
	if err := s.ports.Local.Write(ctx, p, text, time.Time{}, expect); err != nil {
		return &stepError{step: "write", path: p, err: err}
	}
	return nil
}

// trashed is the update that keeps a text in the trash.
func (s *Syncer) trashed(p memory.Path, text []byte, why string) Update {
	e := memory.ETagOf(text)
	return Update{Texts: [][]byte{text}, PutTrash: []Trashed{{
		ID: textID(string(p), string(e)), Path: p, ETag: e, Reason: why, Time: s.ports.Clock(),
	}}}
}

func (s *Syncer) resolved(ctx context.Context, u Update) error {
	if err := s.save(ctx, u); err != nil {
		return err
	}
	s.publish(func(*Status) {})
	return nil
}

// Report is what became of an attempt to have the hub keep the text of a conflict.
type Report struct {
	Kept bool
	// Refusal and PolicyVersion: see Conflict. A refused credential leaves the conflict to
	// be reported, any other refusal holds for this text and policy.
	Refusal       string
	PolicyVersion int64
}

// MarkReported notes what became of reporting a conflict.
func (s *Syncer) MarkReported(ctx context.Context, id string, r Report) error {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return err
	}
	x, ok := s.state.Conflicts[id]
	was := x
	x.Reported, x.Kept = r.Refusal != string(memory.ReasonPermissionDenied), r.Kept
	x.Refusal, x.PolicyVersion = r.Refusal, r.PolicyVersion
	if !ok || x == was {
		return nil
	}
	return s.resolved(ctx, Update{PutConflicts: []Conflict{x}})
}

// EndConflicts notes what became of conflicts on the hub: those of done, which were
// resolved here, are off it, and those of gone were resolved elsewhere. The texts of these
// are kept in the trash.
func (s *Syncer) EndConflicts(ctx context.Context, done, gone []string) error {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return err
	}
	u := Update{DropResolved: done}
	for _, id := range gone {
		x, open := s.state.Conflicts[id]
		if !open {
			continue
		}
		u.DropConflicts = append(u.DropConflicts, id)
		u.AddNotes = append(u.AddNotes, Note{Time: s.ports.Clock(), Kind: NoteResolved, Path: x.Path, ETag: x.Local})
		u.PutTrash = append(u.PutTrash, Trashed{
			ID: textID(string(x.Path), string(x.Local)), Path: x.Path, ETag: x.Local, Reason: "the conflict was resolved on another machine", Time: s.ports.Clock(),
		})
	}
	if u.empty() {
		return nil
	}
	return s.resolved(ctx, u)
}

// Trash returns the texts that were taken from the disk, the newest first.
func (s *Syncer) Trash(ctx context.Context) ([]Trashed, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	var out []Trashed
	for _, t := range s.state.Trash {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Trashed) int {
		if d := b.Time.Compare(a.Time); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// ErrNotInTrash means that the trash holds nothing under this id.
var ErrNotInTrash = errors.New("not in the trash")

// TrashText returns a trashed text and what it was; an ErrNotInTrash if there is none.
func (s *Syncer) TrashText(ctx context.Context, id string) (Trashed, []byte, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return Trashed{}, nil, err
	}
	return s.trashText(ctx, id)
}

func (s *Syncer) trashText(ctx context.Context, id string) (Trashed, []byte, error) {
	t, ok := s.state.Trash[id]
	if !ok {
		return Trashed{}, nil, fmt.Errorf("%q: %w", id, ErrNotInTrash)
	}
	text, err := s.textOf(ctx, t.ETag)
	if err != nil {
		return Trashed{}, nil, &stepError{step: "read from the trash", path: t.Path, err: err}
	}
	return t, text, nil
}

// RestoreTrash writes a trashed text back to its path as an edit of this machine, which
// the next cycle sends like any other. A file that stands there goes to the trash in its
// turn. A file that changes at this very moment is an ErrLocalChanged: try again.
func (s *Syncer) RestoreTrash(ctx context.Context, id string) (Trashed, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return Trashed{}, err
	}
	t, text, err := s.trashText(ctx, id)
	if err != nil {
		return Trashed{}, err
	}
	return t, s.replace(ctx, t.Path, text, "replaced by a text from the trash")
}

// Notes returns the newest events of the link, oldest first.
func (s *Syncer) Notes(ctx context.Context) ([]Note, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(s.state.Notes), nil
}

// Cursor returns the last point of the project's history that this link has applied.
func (s *Syncer) Cursor(ctx context.Context) (memory.Cursor, error) {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return memory.Cursor{}, err
	}
	return s.state.Cursor, nil
}

// Refresh brings Status up to date with the saved state without a cycle, for programs
// that only show it.
func (s *Syncer) Refresh(ctx context.Context) error {
	s.run.Lock()
	defer s.run.Unlock()
	if err := s.load(ctx); err != nil {
		return err
	}
	s.publish(func(*Status) {})
	return nil
}
