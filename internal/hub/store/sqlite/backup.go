package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Backup writes a consistent copy of the whole store to the file dst, with mode
// 0600, while the store goes on. It is durable when Backup returns; a backup that
// fails or is cancelled leaves no file.
func (s *Store) Backup(ctx context.Context, dst string) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	f, err := os.OpenFile(dst, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		if errors.Is(err, os.ErrExist) {
			return store.Exists("backup " + dst)
		}
		return fmt.Errorf("backup to %s: %w", dst, err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			err = errors.Join(fmt.Errorf("backup to %s: %w", dst, err), os.Remove(dst))
		}
	}()
	abs, err := filepath.Abs(dst)
	if err != nil {
		return err
	}
	// A connection of its own: a long backup must not take a reader's place.
	c, err := open(filepath.Join(s.dir, FileName), nil, "temp_store(MEMORY)")
	if err != nil {
		return err
	}
	err = c.scriptContext(ctx, "VACUUM INTO ?", (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String())
	if err := errors.Join(err, c.close()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return withNoRoom(err)
	}
	return errors.Join(f.Sync(), syncDir(filepath.Dir(abs)))
}

// withNoRoom makes err an ErrNoRoom too, if SQLite could not write for want of room.
// What the system says of a file that may not grow comes as a failed write.
func withNoRoom(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_FULL || e.Code() == sqlite3.SQLITE_IOERR_WRITE) {
		return errors.Join(store.ErrNoRoom, err)
	}
	return err
}

// RestoreOptions say how a backup becomes a hub's store again.
type RestoreOptions struct {
	// Now is the time of the new epoch.
	Now time.Time
	// Epoch is the new epoch's id; "" mints a UUID.
	Epoch memory.Epoch
	// Replace lets the backup take the place of a database that is there already.
	// That one is kept beside it; see Restored.Replaced.
	Replace bool
	// On is put on record in the store that was restored.
	On []store.AuditEvent
}

// Restored says what RestoreBackup did.
type Restored struct {
	Epoch    memory.Epoch
	Replaced string // where the database that was there before is kept; "" if none was
}

// RestoreBackup makes the backup in the file src the store of the data directory
// dir, under a new epoch: what clients know beyond the backup's heads is
// recognised by it, and offered again instead of deleted. The backup is checked
// first, and put in place in one step. A directory in use, a file that is no whole
// backup, and a database already there, unless it may be replaced, are refused with
// nothing changed.
func RestoreBackup(ctx context.Context, src, dir string, opts RestoreOptions) (_ Restored, err error) {
	if opts.Epoch == "" {
		opts.Epoch = NewEpochID()
	}
	res := Restored{Epoch: opts.Epoch}
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore %s to %s: %w", src, dir, err)
		}
	}()
	if err := checkBackup(ctx, src); err != nil {
		return res, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return res, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, filelock.Release(lock)) }()
	live := filepath.Join(dir, FileName)
	switch _, err := os.Lstat(live); {
	case err == nil && !opts.Replace:
		return res, store.Exists("a database in " + dir)
	case err == nil:
		res.Replaced = fmt.Sprintf("%s.replaced-%s", live, opts.Now.UTC().Format("20060102T150405.000000000Z"))
	case !errors.Is(err, os.ErrNotExist):
		return res, err
	}
	if err := rewind(ctx, src, dir, opts); err != nil {
		return res, err
	}
	if res.Replaced != "" {
		if err := setAside(live, res.Replaced); err != nil {
			return res, err
		}
	}
	if err := os.Rename(filepath.Join(dir, stagingDir, FileName), live); err != nil {
		return res, err
	}
	return res, errors.Join(syncDir(dir), os.RemoveAll(filepath.Join(dir, stagingDir)))
}

// stagingDir is where a backup becomes a store before it takes its place.
const stagingDir = "restoring"

// checkBackup refuses a file that is not a whole database of ours.
func checkBackup(ctx context.Context, src string) error {
	if _, err := os.Stat(src); err != nil {
		return err
	}
	c, err := open(src, url.Values{"mode": {"ro"}, "immutable": {"1"}})
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	app, err := c.pragma("application_id")
	if err != nil || app != applicationID {
		return store.Invalid("the file is not a backup of memsvc; name another one")
	}
	version, err := c.pragma("user_version")
	if err != nil {
		return err
	}
	if newest := int64(len(migrations())); version < 1 || version > newest {
		return store.Invalid("the backup has schema %d, this program knows up to %d; run the newer memsvc that wrote it", version, newest)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.checkIntegrity()
}

func (c *conn) checkIntegrity() error {
	v, err := c.pragmaValue("integrity_check(1)")
	if err != nil {
		return store.Invalid("the database is damaged (%v); use another backup", err)
	}
	if text(v) != "ok" {
		return store.Invalid("the database is damaged; use another backup")
	}
	return nil
}

// rewind copies the backup to the staging directory and mints the epoch there, so
// that a crash on the way leaves nothing that looks like a store.
func rewind(ctx context.Context, src, dir string, opts RestoreOptions) error {
	stage := filepath.Join(dir, stagingDir)
	if err := os.RemoveAll(stage); err != nil {
		return err
	}
	if err := os.Mkdir(stage, 0o700); err != nil {
		return err
	}
	if err := copyFile(src, filepath.Join(stage, FileName)); err != nil {
		return err
	}
	s, err := Open(Options{Dir: stage, CacheEntries: 1, Readers: 1})
	if err != nil {
		return err
	}
	err = s.NewEpoch(ctx, opts.Epoch, opts.Now, opts.On...)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	// Closed, the store is one file; the log is gone.
	f, err := os.OpenFile(filepath.Join(stage, FileName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// setAside gives the live database a second name and takes its log away, so that
// the log cannot be taken for its successor's. If a crash comes between these
// steps and the successor's arrival, the live database is still in place.
func setAside(live, replaced string) error {
	// Opening and closing moves the log into the file. Where the file is too
	// damaged for that, the log is kept beside it.
	if c, err := open(live, nil); err == nil {
		_, _ = c.pragma("wal_checkpoint(TRUNCATE)")
		_ = c.close()
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(live+suffix, replaced+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Link(live, replaced); err != nil {
		return err
	}
	return syncDir(filepath.Dir(live))
}

func copyFile(src, dst string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Sync(), out.Close())
}

// CheckIntegrity reads the whole database and reports damage. It takes a while,
// and a reader's place meanwhile.
func (s *Store) CheckIntegrity(ctx context.Context) error {
	return s.call(ctx, "check the database", func(c *conn) error { return c.checkIntegrity() })
}
