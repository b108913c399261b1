package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// FileName is the database's name in the data directory. SQLite keeps two more
// files beside it while it is open.
const FileName = "hub.db"

// Defaults of Options.
const (
	// DefaultCacheEntries bounds the paths whose state is kept in memory, over all
	// projects: about 250 bytes each, so 50 MB.
	DefaultCacheEntries = 200_000
	// DefaultReaders is how many readers work at a time.
	DefaultReaders = 4
)

// Options of a store. Only Dir is required.
type Options struct {
	// Dir is the data directory; it is made if need be, with mode 0700.
	Dir string
	// Epoch is the id of the history if the database is new; "" mints a UUID.
	Epoch memory.Epoch
	// Now is the time of that first epoch; zero means the Unix epoch. It is kept for
	// people who look into the file, and decides nothing.
	Now time.Time
	// CacheEntries is about how many paths' state is kept in memory; 0 means
	// DefaultCacheEntries. Projects in use stay whatever it says.
	CacheEntries int
	// Readers is how many reads may go on at a time; 0 means DefaultReaders.
	Readers int
	// Lost, if set, is told once, by the store's own goroutine, that its files were
	// replaced, removed or written to by somebody else. The store refuses every write
	// from then on; it must be closed and opened anew on what is there.
	Lost func(error)
}

// Store is a store.Backend and store.Backuper in one SQLite file.
type Store struct {
	dir     string
	lock    *os.File
	notices store.Notices
	cache   *cache
	readers chan *conn
	w       *writer
	trail   trail

	epochMu sync.RWMutex // guards epochs
	epochs  []memory.Epoch

	mu     sync.RWMutex // guards closed, and that calls grows only before it
	closed bool
	calls  sync.WaitGroup // calls under way
}

var (
	_ store.Backend  = (*Store)(nil)
	_ store.Backuper = (*Store)(nil)
	_ store.Totaler  = (*Store)(nil)
)

// Open opens the store in a directory, making it if there is none. A directory
// that another process uses, a file of another program and a schema newer than
// this program are ErrInvalidArguments that say so.
func Open(opts Options) (*Store, error) {
	s, err := openStore(opts)
	if err != nil {
		return nil, fmt.Errorf("open store in %s: %w", opts.Dir, err)
	}
	return s, nil
}

func openStore(opts Options) (_ *Store, err error) {
	if opts.CacheEntries <= 0 {
		opts.CacheEntries = DefaultCacheEntries
	}
	if opts.Readers <= 0 {
		opts.Readers = DefaultReaders
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: opts.Dir, lock: lock, readers: make(chan *conn, opts.Readers), trail: trail{limit: maxLate}}
	defer func() {
		if err != nil {
			_ = s.closeFiles() // what went wrong first is what to tell
		}
	}()
	file := filepath.Join(opts.Dir, FileName)
	if err := touch(file); err != nil {
		return nil, err
	}
	// What a commit waits for is its data, not the file's time stamps. Where the
	// system cannot tell them apart, SQLite syncs both, which is as safe.
	_, _ = sqlite.Fdatasync(true)
	wc, err := open(file, nil, "journal_mode(WAL)", "synchronous(FULL)", "secure_delete(ON)",
		"cache_size(-16384)", "temp_store(MEMORY)", fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages))
	if err != nil {
		return nil, err
	}
	s.w = newWriter(s, wc)
	if err := migrate(wc); err != nil {
		return nil, err
	}
	if err := s.loadEpochs(wc, opts); err != nil {
		return nil, err
	}
	if err := s.w.load(); err != nil {
		return nil, err
	}
	for range opts.Readers {
		rc, err := open(file, nil, "query_only(ON)", "cache_size(-4096)", "temp_store(MEMORY)")
		if err != nil {
			return nil, err
		}
		s.readers <- rc
	}
	s.cache = newCache(opts.CacheEntries)
	if s.w.ground, err = newGround(opts.Dir, lock, opts.Lost); err != nil {
		return nil, err
	}
	s.w.start()
	return s, nil
}

// touch makes file with mode 0600, which SQLite gives to the files beside it too,
// and makes its name durable.
func touch(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// loadEpochs reads the epochs, and begins the first one in a new database.
func (s *Store) loadEpochs(c *conn, opts Options) error {
	read := func() error {
		return c.query(stEpochs, func(v []driver.Value) error {
			s.epochs = append(s.epochs, memory.Epoch(text(v[0])))
			return nil
		})
	}
	if err := read(); err != nil || len(s.epochs) > 0 {
		return err
	}
	if opts.Epoch == "" {
		opts.Epoch = NewEpochID()
	}
	if err := c.exec(stPutEpoch, string(opts.Epoch), opts.Now.Unix()); err != nil {
		return err
	}
	return read()
}

// NewEpochID mints a random epoch: a version 4 UUID.
func NewEpochID() memory.Epoch {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return memory.Epoch(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}

// Close ends the store; it waits for calls under way.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	s.w.stop()
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	if s.w != nil && s.w.ground != nil && s.w.ground.before() != nil {
		// Closing would copy the log into a file that is not the log's. The process's
		// end closes them without.
		return errors.Join(s.w.ground.lost, filelock.Release(s.lock))
	}
	var errs []error
	for len(s.readers) > 0 {
		errs = append(errs, (<-s.readers).close())
	}
	if s.w != nil { // last, so that closing it checkpoints the log
		errs = append(errs, s.w.c.close())
		if s.w.ground != nil {
			errs = append(errs, s.w.ground.close())
		}
	}
	return errors.Join(append(errs, filelock.Release(s.lock))...)
}

// enter begins a call; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

func (s *Store) leave() { s.calls.Done() }

// read runs f with a reader's connection, within a call.
func (s *Store) read(ctx context.Context, op string, f func(c *conn) error) error {
	select {
	case c := <-s.readers:
		defer func() { s.readers <- c }()
		return public(op, f(c))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// public turns a failure of the database into an ErrUnavailable, damage into an
// ErrInternal, and leaves answers as they are.
func public(op string, err error) error {
	var db *dbError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &db):
		return store.Unavailable(op, err)
	case errors.Is(err, errCorrupt):
		return &memory.Error{Reason: memory.ReasonInternal, Message: op + ": " + err.Error()}
	}
	return err
}

// Epoch returns the id of this history.
func (s *Store) Epoch(ctx context.Context) (memory.Epoch, error) {
	if err := s.enter(ctx); err != nil {
		return "", err
	}
	defer s.leave()
	return s.epoch(), nil
}

func (s *Store) epoch() memory.Epoch {
	s.epochMu.RLock()
	defer s.epochMu.RUnlock()
	return s.epochs[len(s.epochs)-1]
}

// Notify returns a channel that fires after commits; see store.Store.
func (s *Store) Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func()) {
	return s.notices.Notify(keys)
}
