package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hub/store/sqlite"
)

type checkCmd struct {
	DatabaseURL string `name:"database-url" secret:"" help:"The PostgreSQL database, while hubs run or not." placeholder:"URL"`
	DataDir     string `help:"Data directory of a hub that does not run." placeholder:"DIR"`
}

// Run looks for damage in every project, tells each fault in a line on stdout, and fails
// if there is one.
func (c *checkCmd) Run(e *env) (err error) {
	b, err := c.open(e.ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	faults := 0
	var unwritten error
	tell := func(fault string) {
		faults++
		_, werr := fmt.Fprintln(e.stdout, printable(fault))
		unwritten = errors.Join(unwritten, werr)
	}
	seen, err := archive.Sound(e.ctx, b, e.far("check"), tell)
	if p, ok := b.(*postgres.Store); ok && err == nil {
		var lost int64
		if lost, err = p.Orphans(e.ctx); lost > 0 {
			tell(fmt.Sprintf("table projects: it lacks the rows of %s whose commits are there", count(lost, "project", "projects")))
		}
	}
	if err = errors.Join(err, unwritten); err != nil {
		return err
	}
	what := fmt.Sprintf("checked %s, %s, %d bytes of texts", count(int64(seen.Projects), "project", "projects"), count(seen.Commits, "commit", "commits"), seen.Bytes)
	if faults > 0 {
		return fmt.Errorf("%s: found faults; keep a copy as it is, then put a backup back, or purge the project and let an agent make it again", what)
	}
	return e.done("%s: no fault", what)
}

// open opens what is to be checked; it makes nothing that is not there.
func (c *checkCmd) open(ctx context.Context, e *env) (store.Backend, error) {
	switch {
	case (c.DatabaseURL == "") == (c.DataDir == ""):
		return nil, usage("check: name a database with --database-url, or a data directory with --data-dir, one of the two")
	case c.DatabaseURL != "":
		opts, err := database{DatabaseURL: c.DatabaseURL, LogFormat: "text", LogLevel: "warn"}.options(e)
		if err != nil {
			return nil, err
		}
		return postgres.Open(ctx, opts)
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, sqlite.FileName)); err != nil {
		return nil, &ConfigError{fmt.Errorf("--data-dir %s: it holds no store (%s)", c.DataDir, sqlite.FileName)}
	}
	return sqlite.Open(sqlite.Options{Dir: c.DataDir, Now: time.Now().UTC()})
}
