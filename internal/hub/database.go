package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
)

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
}

// Run brings the schema up to date.
func (c *migrateCmd) Run(e *env) error {
	opts, err := c.options(e)
	if err != nil {
		return err
	}
	m, err := postgres.Migrate(e.ctx, opts)
	if err != nil {
		return err
	}
	if m.From == m.To {
		return e.done("the schema is up to date: %d", m.To)
	}
	return e.done("migrated the schema from %d to %d", m.From, m.To)
}

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
	svc := service.New(service.Config{Backend: b, Logger: opts.Logger, Now: func() time.Time { return time.Now().UTC() }})
	has, err := svc.HasTokens(e.ctx)
	if err != nil {
		return err
	}
	if has {
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
	if err := svc.Bootstrap(e.ctx, authn.Hash(text)); err != nil {
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
