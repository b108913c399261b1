package syncstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

const (
	linksDir    = "links"
	journalName = "journal"
	newName     = "journal.new"
)

// rewriteFrom is the length below which a journal is never rewritten: reading so much
// costs about a millisecond.
const rewriteFrom = 256 << 10

// linkIDPattern is what can be a directory's name on every system.
var linkIDPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}$`)

// Errors of Open and State.
var (
	// ErrInUse means that another process has the link's state open for writing.
	ErrInUse = errors.New("the state of this link is used by another process")
	// ErrReadOnly means that the state was opened with OpenReadOnly.
	ErrReadOnly = errors.New("the state is open for reading only")
	// ErrClosed means that the state was closed.
	ErrClosed = errors.New("the state is closed")
)

// Options tune a State; a zero field takes its default.
type Options struct {
	// Now is the machine's clock; time.Now.
	Now func() time.Time
}

// Report says what opening found.
type Report struct {
	// Fresh: there was no state.
	Fresh bool
	// CutBytes is the length of a torn tail: updates that nobody was promised.
	CutBytes int64
	// Damage says why the state that was there cannot be trusted; "" = it can.
	Damage string
	// Salvaged is how many conflicts and trashed texts were found in damaged state.
	Salvaged int
	// Aside is where the damaged files were put; "" when they are where they were.
	Aside string
}

// State is the state of one link. Its methods are safe for concurrent use.
type State struct {
	opts     Options
	disk     disk
	dir      string
	report   Report
	readOnly bool
	unlock   func() error

	mu        sync.Mutex // guards what follows
	closed    bool
	file      diskFile // nil as long as nothing was saved
	state     syncer.LinkState
	texts     map[memory.ETag]span
	size      int64 // of all whole records
	base      int64 // of the snapshot, at the last attempt to rewrite
	durable   int64 // known to be on the disk
	distrust  bool  // an fsync failed: what the disk holds of the file is unknown
	dirUnsure bool  // the name of the file may not be durable
}

var _ syncer.State = (*State)(nil)

// Links returns the ids of the links that have a directory in stateDir, sorted; none
// when stateDir does not exist.
func Links(stateDir string) ([]string, error) {
	entries, err := osDisk{}.ReadDir(filepath.Join(stateDir, linksDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && linkIDPattern.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// Open opens the state of a link for reading and writing, making its directory if
// need be. Damaged state is put aside and reported, and the link is Fresh; an error
// means that the disk failed, that the id is none, or ErrInUse. One link's trouble is
// no other's.
func Open(stateDir, linkID string, opts Options) (*State, error) {
	return open(osDisk{}, stateDir, linkID, opts)
}

// OpenReadOnly opens the state of a link for reading. It writes nothing at all and
// may be used while a daemon writes; it then shows some whole earlier state. Damaged
// state is reported and left where it is.
func OpenReadOnly(stateDir, linkID string, opts Options) (*State, error) {
	s, err := prepare(osDisk{}, stateDir, linkID, opts)
	if err != nil {
		return nil, err
	}
	s.readOnly = true
	if err := s.read(); err != nil {
		return nil, fmt.Errorf("open state of link %s: %w", linkID, err)
	}
	return s, nil
}

func prepare(d disk, stateDir, linkID string, opts Options) (*State, error) {
	if !linkIDPattern.MatchString(linkID) {
		return nil, fmt.Errorf("open state: %q is no link id", linkID)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &State{opts: opts, disk: d, dir: filepath.Join(stateDir, linksDir, linkID), unlock: func() error { return nil }}, nil
}

func open(d disk, stateDir, linkID string, opts Options) (*State, error) {
	s, err := prepare(d, stateDir, linkID, opts)
	if err != nil {
		return nil, err
	}
	if err := s.openToWrite(stateDir); err != nil {
		_ = s.closeFiles()
		return nil, fmt.Errorf("open state of link %s: %w", linkID, err)
	}
	return s, nil
}

func (s *State) openToWrite(stateDir string) error {
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return err
	}
	// The directories' names must last as long as what is put into them.
	for _, dir := range []string{stateDir, filepath.Dir(s.dir)} {
		if err := s.disk.SyncDir(dir); err != nil {
			return err
		}
	}
	unlock, err := lockDir(s.dir)
	if err != nil {
		return err
	}
	s.unlock = unlock
	if err := s.disk.Remove(filepath.Join(s.dir, newName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	if s.report.Damage != "" {
		if err := s.putAside(); err != nil {
			return err
		}
		if err := s.rewrite(); err != nil {
			return err
		}
	}
	if s.report.CutBytes > 0 {
		if err := s.file.Truncate(s.size); err != nil {
			return err
		}
	}
	if s.file != nil {
		// After a kill the file may hold records that are in no disk's memory yet;
		// and the rename that named it may have had no time to last.
		if err := s.file.Sync(); err != nil {
			return err
		}
		if err := s.disk.SyncDir(s.dir); err != nil {
			return err
		}
		s.durable = s.size
	}
	s.state.Fresh = s.report.Fresh || s.report.Damage != "" || s.state.Fresh
	// What was dropped before the last process ended must not outlive this start. If
	// it cannot be done, the state is as good as before.
	_ = s.forget()
	return nil
}

// read loads the journal, if there is one.
func (s *State) read() error {
	s.state, s.texts = syncer.NewLinkState(), map[memory.ETag]span{}
	f, err := s.disk.Open(filepath.Join(s.dir, journalName), !s.readOnly)
	if errors.Is(err, fs.ErrNotExist) {
		s.report.Fresh = true
		return nil
	}
	if err != nil {
		return err
	}
	j, err := replay(f)
	var bad *damage
	if errors.As(err, &bad) {
		s.report.Damage = bad.Error()
		if renameNeedsClosed {
			return f.Close() // it must be put aside, so nothing can be taken from it
		}
		j = salvage(f)
		s.file, s.state, s.texts = f, j.state, j.texts
		s.report.Salvaged = len(j.state.Conflicts) + len(j.state.Trash)
		return nil
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	s.file, s.state, s.texts = f, j.state, j.texts
	s.size, s.base = j.size, j.base
	s.report.CutBytes, s.report.Fresh = j.cut, j.state.Fresh
	return nil
}

// Report says what opening found.
func (s *State) Report() Report { return s.report }

// Dir returns the link's directory.
func (s *State) Dir() string { return s.dir }

// Close ends the use of the state. What Apply acknowledged is durable already.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.closeFiles()
}

func (s *State) closeFiles() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
		s.file = nil
	}
	return errors.Join(err, s.unlock())
}

// Load returns the whole state without texts.
func (s *State) Load(context.Context) (syncer.LinkState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return syncer.LinkState{}, ErrClosed
	}
	out := s.state
	out.Baseline = maps.Clone(s.state.Baseline)
	out.Conflicts = maps.Clone(s.state.Conflicts)
	out.Held = maps.Clone(s.state.Held)
	out.Intents = maps.Clone(s.state.Intents)
	out.Ahead = maps.Clone(s.state.Ahead)
	out.Trash = maps.Clone(s.state.Trash)
	out.Notes = slices.Clone(s.state.Notes)
	if out.Halt != nil {
		h := *out.Halt
		out.Halt = &h
	}
	if out.Recovery != nil {
		r := *out.Recovery
		out.Recovery = &r
	}
	return out, nil
}

// Text returns the bytes of a text, checked against its etag, or syncer.ErrNoText.
func (s *State) Text(_ context.Context, etag memory.ETag) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	at, ok := s.texts[etag]
	if !ok && etag == memory.ETagOf(nil) {
		return []byte{}, nil // there is nothing to keep of it
	}
	if !ok {
		return nil, fmt.Errorf("text %.12s: %w", etag, syncer.ErrNoText)
	}
	b, err := readText(s.file, etag, at)
	if errors.Is(err, errBroken) {
		return nil, fmt.Errorf("text %.12s is damaged: %w", etag, syncer.ErrNoText)
	}
	return b, err
}

func readText(f diskFile, etag memory.ETag, at span) ([]byte, error) {
	b := make([]byte, at.size)
	if _, err := f.ReadAt(b, at.at); err != nil {
		return nil, readError(err)
	}
	if memory.ETagOf(b) != etag {
		return nil, errBroken
	}
	return b, nil
}
