package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// direct takes the archive into a database without a hub in between, tells how far it
// is, and at the end compares all that is there with the archive. Hubs that run on the
// database learn of it as of any import. Cut short, it is called again and goes on.
func (c *importCmd) direct(e *env) (err error) {
	if c.DatabaseURL == "" {
		return usage("import: --direct needs --database-url")
	}
	opts, err := database{DatabaseURL: c.DatabaseURL, LogFormat: "text", LogLevel: "info"}.options(e)
	if err != nil {
		return err
	}
	if err := regularFile(c.File); err != nil {
		return err
	}
	f, err := os.Open(c.File)
	if err != nil {
		return usage("%v", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := postgres.Open(e.ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	res, err := importInto(e.ctx, b, f, opts.Logger, e.far("import"))
	if err != nil {
		if told := archiveError(c.File, err); told != nil {
			return told
		}
		return fmt.Errorf("%w\nwhat was taken in stays; call it again to go on", err)
	}
	if err := e.imported(res.Projects, res.Commits, res.Skipped, res.Tokens); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	same, err := archive.Check(e.ctx, b, f, e.far("check"))
	if err != nil {
		return err
	}
	return e.done("checked: %d commits are as in the archive, SHA-256 %s", same.Commits, same.Digest)
}

// archiveError returns err with the file's name if the import ended before anything was
// taken in, else nil.
func archiveError(file string, err error) error {
	var refused *archive.Refused
	if !errors.As(err, &refused) {
		return nil
	}
	return fmt.Errorf("import %s: %w; nothing was taken in", file, err)
}

// importInto is what a hub does with an archive, without the hub.
func importInto(ctx context.Context, b store.Backend, r io.Reader, log *slog.Logger, far archive.Progress) (service.Imported, error) {
	now := func() time.Time { return time.Now().UTC() }
	feed := changefeed.New(b, changefeed.Options{})
	defer feed.Close()
	registry := prometheus.NewRegistry()
	svc := service.New(service.Config{
		Backend: b, Feed: feed, Guard: guard{secretscan.New(secretscan.Options{}), newGuardMetrics(registry)},
		Observer: newObserver(registry, feed), Logger: log, Now: now, Archive: archiver{b, now, far},
	})
	return svc.Import(ctx, service.Call{Principal: service.Principal{Name: operator, Role: service.Admin}}, r)
}

// tellEvery is how often a long work tells how far it is.
const tellEvery = 2 * time.Second

// far returns what tells how far a work is, a line on stderr now and then.
func (e *env) far(what string) archive.Progress {
	next := time.Now().Add(tellEvery)
	return func(n archive.Count) {
		if now := time.Now(); now.After(next) {
			next = now.Add(tellEvery)
			e.tell(fmt.Sprintf("%s: %d projects whole, %d commits, %d bytes so far", what, n.Projects, n.Commits, n.Bytes))
		}
	}
}
