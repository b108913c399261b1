// Package inmem keeps a hub's store in memory: the reference that says what the
// promises of package store mean, and the fake that tests of other packages use.
// Nothing of it survives the process.
package inmem

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Options of a store. The zero value works.
type Options struct {
	// Epoch is the id of the history to begin; "" means "epoch-1".
	Epoch memory.Epoch
}

// Store is a store.Backend in memory.
type Store struct {
	notices store.Notices

	mu       sync.RWMutex // guards all below and what it reaches
	closed   bool
	epochs   []memory.Epoch // all that this history had; the last is the present one
	teams    map[memory.Team]bool
	projects map[memory.ProjectKey]*project
	settings map[settingKey]setting
	tokens   map[string]store.Token
	audit    []store.AuditEvent
	auditID  int64 // the last one
	redacted map[memory.Team]map[string]bool
}

// project is one project's state and history. Commits are never changed once they
// are in commits: what rewrites one puts a copy in its place. So clones share them.
type project struct {
	created  time.Time
	head     memory.Cursor // but for the epoch, which is the store's
	oldest   memory.Revision
	files    int64
	bytes    int64
	commits  map[memory.Revision]*memory.Commit
	versions map[memory.Path][]memory.Revision // kept versions of a path, ascending
	entries  map[memory.Path]store.Entry
	paths    memory.CollisionIndex // of the living entries
	requests map[requestKey]request
	spans    []store.Span // epochs before the present one
}

type requestKey struct{ principal, id string }

type request struct {
	digest [32]byte
	at     time.Time
	result store.CommitResult
}

var (
	_ store.Backend = (*Store)(nil)
	_ store.Totaler = (*Store)(nil)
)

// New returns an empty store.
func New(opts Options) *Store {
	if opts.Epoch == "" {
		opts.Epoch = "epoch-1"
	}
	return &Store{
		epochs:   []memory.Epoch{opts.Epoch},
		teams:    make(map[memory.Team]bool),
		projects: make(map[memory.ProjectKey]*project),
		settings: make(map[settingKey]setting),
		tokens:   make(map[string]store.Token),
		redacted: make(map[memory.Team]map[string]bool),
	}
}

// Clone returns a store of its own that holds what s holds now: a backup. Readers
// of s are not told of it. To stand for a restored hub it needs a NewEpoch.
func (s *Store) Clone() *Store {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := &Store{
		epochs:   slices.Clone(s.epochs),
		teams:    maps.Clone(s.teams),
		projects: make(map[memory.ProjectKey]*project, len(s.projects)),
		settings: maps.Clone(s.settings),
		tokens:   maps.Clone(s.tokens),
		audit:    slices.Clone(s.audit),
		auditID:  s.auditID,
		redacted: make(map[memory.Team]map[string]bool, len(s.redacted)),
	}
	for k, p := range s.projects {
		c.projects[k] = p.clone()
	}
	for t, f := range s.redacted {
		c.redacted[t] = maps.Clone(f)
	}
	return c
}

func (p *project) clone() *project {
	c := *p
	c.commits = maps.Clone(p.commits)
	c.versions = make(map[memory.Path][]memory.Revision, len(p.versions))
	for path, revs := range p.versions {
		c.versions[path] = slices.Clone(revs)
	}
	c.entries = maps.Clone(p.entries)
	c.requests = maps.Clone(p.requests)
	c.spans = slices.Clone(p.spans)
	c.paths = memory.CollisionIndex{}
	for path, e := range p.entries {
		if e.Living() {
			c.paths.Add(path)
		}
	}
	return &c
}

// Close ends the store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Notify returns a channel that fires after commits; see store.Store.
func (s *Store) Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func()) {
	return s.notices.Notify(keys)
}

// Epoch returns the id of this history.
func (s *Store) Epoch(ctx context.Context) (memory.Epoch, error) {
	defer s.mu.RUnlock()
	if err := s.rlock(ctx); err != nil {
		return "", err
	}
	return s.epoch(), nil
}

func (s *Store) epoch() memory.Epoch { return s.epochs[len(s.epochs)-1] }

// rlock takes the lock for reading and reports what stands against going on. The
// caller unlocks in any case.
func (s *Store) rlock(ctx context.Context) error {
	s.mu.RLock()
	return s.usable(ctx)
}

// lock is rlock for writing.
func (s *Store) lock(ctx context.Context) error {
	s.mu.Lock()
	return s.usable(ctx)
}

func (s *Store) usable(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// readProject is rlock with the project looked up.
func (s *Store) readProject(ctx context.Context, key memory.ProjectKey) (*project, error) {
	if err := s.rlock(ctx); err != nil {
		return nil, err
	}
	return s.find(key)
}

// writeProject is lock with the project looked up.
func (s *Store) writeProject(ctx context.Context, key memory.ProjectKey) (*project, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	return s.find(key)
}

func (s *Store) find(key memory.ProjectKey) (*project, error) {
	if p := s.projects[key]; p != nil {
		return p, nil
	}
	return nil, store.NoProject(key)
}

// cursor returns the project's head under the present epoch.
func (s *Store) cursor(p *project) memory.Cursor {
	c := p.head
	c.Epoch = s.epoch()
	return c
}
