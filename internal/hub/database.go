package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// defaultDataDir is where a hub that was told nothing keeps its store.
const defaultDataDir = "./memsvc-data"

// checkPlace refuses a data directory that can be none, and one whose store would be left
// lying beside the database: whoever names both means one of them.
func (c Config) checkPlace() error {
	if err := checkDataDir(c.DataDir); err != nil || c.DatabaseURL == "" {
		return err
	}
	file := filepath.Join(c.DataDir, sqlite.FileName)
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	return fmt.Errorf("--database-url and --data-dir %s: the directory holds a hub's store (%s), which a hub on a database does not serve; "+
		"leave --database-url out to serve it, take it along with memsvc export and memsvc import --direct, or move it away", c.DataDir, sqlite.FileName)
}

// checkDataDir refuses a name that is a file's, or lies below a file.
func checkDataDir(dir string) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		switch info, err := os.Stat(at); {
		case err == nil && info.IsDir(), at == filepath.Dir(at):
			return nil
		case err == nil:
			return fmt.Errorf("--data-dir %s: %s is a file, not a directory; name another one", dir, at)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
			return nil // whoever opens it will say
		}
	}
}

// openBackend opens the store that the configuration names.
func openBackend(ctx context.Context, cfg Config, log *slog.Logger, now time.Time, lost func(error)) (store.Backend, error) {
	if cfg.DatabaseURL == "" {
		return sqlite.Open(sqlite.Options{Dir: cfg.DataDir, Now: now, Lost: lost})
	}
	return postgres.Open(ctx, postgres.Options{URL: cfg.DatabaseURL, Migrate: cfg.Migrate, Logger: log})
}

// tempDir is where archives wait to be verified: beside the embedded store, which has
// room for them; a hub with a database needs no directory of its own.
func (c Config) tempDir() string {
	if c.DatabaseURL != "" {
		return ""
	}
	return c.DataDir
}

// database are the flags of commands that work on the database itself, while hubs run
// or not.
type database struct {
	DatabaseURL string `name:"database-url" secret:"" help:"The PostgreSQL database, postgres://USER@HOST/DATABASE." required:"" placeholder:"URL"`
	LogFormat   string `help:"text or json." default:"text" enum:"text,json"`
	LogLevel    string `help:"debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
}

// options makes the options of a store.
func (d database) options(e *env) (postgres.Options, error) {
	log, err := telemetry.NewLogger(e.stderr, telemetry.LogOptions{Format: d.LogFormat, Level: d.LogLevel})
	if err != nil {
		return postgres.Options{}, &ConfigError{Err: err}
	}
	if err := checkDatabaseURL(d.DatabaseURL); err != nil {
		return postgres.Options{}, &ConfigError{Err: err}
	}
	return postgres.Options{URL: d.DatabaseURL, Logger: log}, nil
}

func checkDatabaseURL(url string) error {
	if err := postgres.CheckURL(url); err != nil {
		return fmt.Errorf("--database-url: %w", err)
	}
	return nil
}

type migrateCmd struct {
	database `embed:""`
	Restored bool `cmdline:"" help:"The database was put back from a backup: mint a new epoch, so that agents compare everything and delete nothing."`
}

// Run brings the schema up to date.
func (c *migrateCmd) Run(e *env) error {
	opts, err := c.options(e)
	if err != nil {
		return err
	}
	if c.Restored {
		if err := c.isRestored(e, opts); err != nil {
			return err
		}
	}
	m, err := postgres.Migrate(e.ctx, opts)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("migrated the schema from %d to %d", m.From, m.To)
	if m.From == m.To {
		text = fmt.Sprintf("the schema is up to date: %d", m.To)
	}
	if err := e.done("%s", text); err != nil || !c.Restored {
		return err
	}
	return c.newEpoch(e, opts)
}

// errNothingRestored is about a database that never was a hub's, or not yet.
var errNothingRestored = &ConfigError{errors.New("migrate --restored: the database holds no hub's data, so no backup was put back into it; " +
	"see that --database-url names the right one and put the backup back first, or leave --restored out for a new hub; no epoch was minted")}

// isRestored looks whether there is anything that a backup brought back.
func (c *migrateCmd) isRestored(e *env, opts postgres.Options) (err error) {
	version, err := postgres.SchemaVersion(e.ctx, opts)
	if err == nil && version == 0 {
		err = errNothingRestored
	}
	return err
}

// newEpoch tells agents that the history may have been rewound.
func (c *migrateCmd) newEpoch(e *env, opts postgres.Options) (err error) {
	b, err := postgres.Open(e.ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	tokens, err := b.Tokens(e.ctx, "")
	if err != nil {
		return err
	}
	projects, err := b.Projects(e.ctx, "")
	if err != nil {
		return err
	}
	if len(tokens)+len(projects) == 0 {
		return errNothingRestored
	}
	epoch := memory.Epoch(uuid.NewString())
	now := time.Now().UTC()
	if err := b.NewEpoch(e.ctx, epoch, now, restored("memsvc migrate --restored", epoch, now)); err != nil {
		return err
	}
	return e.done("the database has the new epoch %s; agents will compare everything and delete nothing", epoch)
}

// restored is the event of a store that was put back from a backup.
func restored(by string, epoch memory.Epoch, now time.Time) store.AuditEvent {
	return store.AuditEvent{Time: now, Principal: operator, Action: "restore-backup", Subject: "the hub", Detail: by + ", new epoch " + string(epoch)}
}

// operator is on record as whoever works on the store itself, without a credential.
const operator = "operator"

type tokenBootstrapCmd struct {
	database `embed:""`
	Out      string `cmdline:"" help:"Write the token to this new file (0600) instead. A file that holds a token already is used, so that the step may be repeated." placeholder:"FILE"`
}

// Run makes the first token of a hub on a database, an admin's of the whole hub. The
// file comes first: a run that dies in between finds it again and goes on with it.
func (c *tokenBootstrapCmd) Run(e *env) (err error) {
	opts, err := c.options(e)
	if err != nil {
		return err
	}
	text, kept, err := firstToken(c.Out)
	if err != nil {
		return err
	}
	b, err := postgres.Open(e.ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	tokens, err := b.Tokens(e.ctx, "")
	if err != nil {
		return err
	}
	if len(tokens) > 0 {
		if _, err := b.TokenByHash(e.ctx, authn.Hash(text)); kept && err == nil {
			return e.done("kept %s, which holds a token of the hub", c.Out)
		}
		return errors.New("token bootstrap: the hub has tokens already; make further ones with one of them: memsvc token create")
	}
	if c.Out != "" && !kept {
		if err := writeSecretFile(c.Out, text+"\n"); err != nil {
			return fmt.Errorf("--out %s: %w", c.Out, err)
		}
	}
	if err := putFirstToken(e.ctx, b, authn.Hash(text)); err != nil {
		if errors.Is(err, memory.ErrAlreadyExists) {
			return errors.New("token bootstrap: another bootstrap was first; make further tokens with its token: memsvc token create")
		}
		return err
	}
	if c.Out != "" {
		return e.done("wrote a token to %s", c.Out)
	}
	fmt.Fprintln(e.stdout, text)
	return nil
}

// putFirstToken puts an admin's token of the whole hub on record, as a hub of its own
// does at its first start. The id is taken once, so that of several one is the first.
func putFirstToken(ctx context.Context, b store.Backend, hash string) error {
	now := time.Now().UTC()
	return b.PutToken(ctx, store.Token{ID: "admin", Name: "admin", Hash: hash, Role: service.Admin.String(), CreateTime: now},
		store.AuditEvent{Time: now, Principal: "hub", Action: "token.create", Subject: "tokens/admin", Detail: "bootstrap"})
}

// firstToken returns the token that the file holds, or a new one.
func firstToken(file string) (text string, kept bool, err error) {
	if file != "" {
		if kept, err = holdsToken(file); err != nil {
			return "", false, err
		}
	}
	if kept {
		text, err = readSecretFile(file)
		return text, true, err
	}
	text, _, _, err = authn.Mint()
	return text, false, err
}
