package postgres

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Defaults of Options.
const (
	// DefaultCacheEntries bounds the paths whose state is kept in memory, over all
	// projects: about 250 bytes each, so 50 MB.
	DefaultCacheEntries = 200_000
	// DefaultMaxConns is how many connections a replica has at most. PostgreSQL's own
	// default leaves 97 for everybody, so three replicas leave room.
	DefaultMaxConns = 20
	// DefaultPollEvery is how often a replica looks for the others' commits. Half of
	// it is what the median commit waits on its way to another replica's watchers.
	DefaultPollEvery = 40 * time.Millisecond
	// DefaultSchema holds the tables.
	DefaultSchema = "memsvc"
)

// Bounds of waiting for the database.
const (
	// openPatience is how long Open tries to reach a database that is not there yet.
	openPatience = 30 * time.Second
	// callTimeout bounds one read or one transaction, tries included.
	callTimeout = 15 * time.Second
	// aloneTimeout bounds what may touch a whole history, like a purge.
	aloneTimeout = 10 * time.Minute
)

// Options of a store. Only URL is required.
type Options struct {
	// URL says where the database is, as libpq's connection URIs do. pgx's settings may
	// stand in it: pool_max_conns, and default_query_exec_mode, which has to be "cache_describe"
	// behind a pooler in transaction mode that does not follow prepared statements.
	URL string
	// Epoch is the id of the history if the database is new; "" mints one.
	Epoch memory.Epoch
	// Migrate brings the schema up to date. Without it, Open refuses an older one.
	Migrate bool
	// Schema holds the tables; "" means DefaultSchema. Lower-case letters, digits, _.
	Schema string
	// CacheEntries is about how many paths' state is kept in memory; 0 means
	// DefaultCacheEntries. Projects in use stay whatever it says.
	CacheEntries int
	// PollEvery is how often the other replicas' commits are looked for; 0 means
	// DefaultPollEvery. It costs one small query each time, while anybody watches.
	PollEvery time.Duration
	// NoHints neither sends nor hears the hints that make replicas look before their
	// time; without them they are as right and a little later.
	NoHints bool
	// Logger gets what goes wrong behind the calls; nil discards it.
	Logger *slog.Logger
}

// Store is a store.Backend in a PostgreSQL database that other processes use too.
type Store struct {
	opts    Options
	pool    *pgxpool.Pool
	log     *slog.Logger
	notices store.Notices
	lanes   *lanes
	// writers bounds the connections that writers hold, so that waiting for a busy
	// project's lock leaves some for everybody else.
	writers chan struct{}
	poll    *poller
	hints   *hints
	ground  *ground
	// migration is what Open did to the schema.
	migration Migration

	mu     sync.RWMutex // guards closed, and that calls grows only before it
	closed bool
	calls  sync.WaitGroup // calls under way
	works  sync.WaitGroup // lanes at work
}

var (
	_ store.Backend = (*Store)(nil)
	_ store.Totaler = (*Store)(nil)
)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open opens the store. It waits up to half a minute for a database that cannot be
// reached yet. A schema that is older than this program, if it may not migrate it, or
// newer, is an ErrInvalidArgument that says so.
func Open(ctx context.Context, opts Options) (*Store, error) {
	pool, err := connect(ctx, &opts)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: opts, pool: pool, log: opts.Logger, lanes: newLanes(opts.CacheEntries),
		writers: make(chan struct{}, max(1, int(pool.Config().MaxConns)*3/4)),
	}
	s.ground = newGround(s)
	s.hints = newHints(s)
	s.poll = newPoller(s, s.hints)
	if err := s.begin(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// connect checks the options and makes the pool.
func connect(ctx context.Context, opts *Options) (*pgxpool.Pool, error) {
	if opts.Schema == "" {
		opts.Schema = DefaultSchema
	}
	if !schemaName.MatchString(opts.Schema) {
		return nil, store.Invalid("database schema %q: use lower-case letters, digits and _", opts.Schema)
	}
	if opts.CacheEntries <= 0 {
		opts.CacheEntries = DefaultCacheEntries
	}
	if opts.PollEvery <= 0 {
		opts.PollEvery = DefaultPollEvery
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	cfg, err := parse(opts.URL)
	if err != nil {
		return nil, err
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// CheckURL reports what is wrong with a database URL, without its password.
func CheckURL(url string) error {
	_, err := parse(url)
	return err
}

func parse(url string) (*pgxpool.Config, error) {
	if err := checkURL(url); err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, urlError(url, err)
	}
	if !strings.Contains(url, "pool_max_conns=") {
		cfg.MaxConns = DefaultMaxConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "memsvc"
	}
	// Nobody listens on these; behind a pooler they may be sent what another one asked for.
	cfg.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		refresh(url, c)
		return nil
	}
	cfg.MaxConnLifetimeJitter = cfg.MaxConnLifetime / 5
	cfg.PingTimeout = 2 * time.Second
	return cfg, nil
}

// begin looks at the schema and begins the first history in a new database.
func (s *Store) begin(ctx context.Context) error { return s.waiting(ctx, s.prepareSchema) }

// waiting runs do again while the database cannot be reached, for a while.
func (s *Store) waiting(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	pause := backoff{least: 50 * time.Millisecond, most: time.Second}
	told := ""
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		if text := cause(err).Error(); passing(err) && text != told {
			s.log.Info("waiting for the database", "error", text)
			told = text
		}
		if !passing(err) || lostStatement(err) || !pause.wait(ctx) {
			return s.openError(err)
		}
	}
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
	s.works.Wait()
	s.poll.stop()
	s.hints.stop()
	s.pool.Close()
	return nil
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

// sql puts the schema's name into a statement.
func (s *Store) sql(q string) string {
	if s.opts.Schema == DefaultSchema {
		return q
	}
	return strings.ReplaceAll(q, "memsvc.", s.opts.Schema+".")
}

// Epoch returns the id of this history. It asks the database each time, since another
// replica may have minted one.
func (s *Store) Epoch(ctx context.Context) (epoch memory.Epoch, err error) {
	err = s.call(ctx, "read the epoch", func(ctx context.Context, c *pgxpool.Conn) error {
		return s.row1(ctx, c, []any{(*string)(&epoch)}, sqlEpoch)
	})
	return epoch, err
}

const sqlEpoch = `SELECT epoch FROM memsvc.epochs ORDER BY n DESC LIMIT 1`

// changed tells the watchers of a project here and the other replicas that it has a commit.
func (s *Store) changed(key memory.ProjectKey) {
	s.notices.Wake(key)
	s.hints.tell()
}

// Notify returns a channel that fires after commits; see store.Store.
func (s *Store) Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func()) {
	c, drop := s.notices.Notify(keys)
	release := s.poll.acquire()
	var once sync.Once
	return c, func() { once.Do(func() { drop(); release() }) }
}

// call runs f with a connection as a whole call. f must do the same again when the
// connection breaks: it is for reads and for single statements that may be repeated.
func (s *Store) call(ctx context.Context, op string, f func(ctx context.Context, c *pgxpool.Conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.read(ctx, op, f)
}

// read is call within a call.
func (s *Store) read(ctx context.Context, op string, f func(ctx context.Context, c *pgxpool.Conn) error) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pause := backoff{least: 10 * time.Millisecond, most: 500 * time.Millisecond}
	for try := 1; ; try++ {
		err := s.once(within, f)
		// Connections of the pool that died while idle are found one by one.
		if err == nil || try == maxTries || !passing(err) || !pause.wait(within) {
			return s.public(ctx, op, err)
		}
	}
}

// maxTries bounds the tries of a read, and of a transaction that surely did nothing.
const maxTries = 8

// once runs f with a connection. What may come from another schema than the one that was
// seen whole is told so: see ground.
func (s *Store) once(ctx context.Context, f func(ctx context.Context, c *pgxpool.Conn) error) error {
	err := s.borrow(ctx, f)
	switch {
	case telling(err):
		return s.ground.again(ctx, err)
	case sqlState(err) == codeReadOnly:
		// Connections to a server that became a standby, or was one when they were made.
		s.pool.Reset()
	}
	return err
}

func (s *Store) borrow(ctx context.Context, f func(ctx context.Context, c *pgxpool.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	return f(ctx, c)
}

// snapshot queues reads that see one state of the database, and sends them in one go.
func (s *Store) snapshot(ctx context.Context, c *pgxpool.Conn, queue func(b *pgx.Batch)) error {
	var b pgx.Batch
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	s.ground.queueMark(&b)
	queue(&b)
	b.Queue("COMMIT")
	err := c.SendBatch(ctx, &b).Close()
	if err != nil && !c.Conn().IsClosed() {
		rollback(ctx, c)
	}
	return err
}

// rollback leaves no transaction open; a connection on which that fails is closed.
func rollback(ctx context.Context, c *pgxpool.Conn) {
	if c.Conn().IsClosed() || c.Conn().PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := c.Exec(ctx, "ROLLBACK"); err != nil {
		_ = c.Conn().Close(ctx) // the pool makes a new one
	}
}

// backoff waits longer each time: from least on, doubling, up to most.
type backoff struct{ least, most, last time.Duration }

// wait reports whether ctx still holds after the pause.
func (b *backoff) wait(ctx context.Context) bool {
	b.last = min(max(2*b.last, b.least), b.most)
	timer := time.NewTimer(b.last)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
