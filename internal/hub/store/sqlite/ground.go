package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
)

// lookEvery is how often an idle writer looks whether its files are still its own.
const lookEvery = time.Second

// ground knows the files of an open store as they were left, and notices when somebody
// else put others there: a snapshot restored into the data directory of a running hub,
// a directory emptied under it. SQLite would go on with the file that it has open,
// which nobody will ever read again, or mix its log into a file that is another one.
// Only the writer uses it.
type ground struct {
	db, log, lock string
	was           os.FileInfo // the database after the writer's last change to it
	wasLog        os.FileInfo // nil while there is none
	wasLock       os.FileInfo
	lost          error // why nothing may be written any more; once set it stays
	tell          func(error)
}

// newGround looks at the files of dir. tell, if not nil, is told once when they are
// no longer the same.
func newGround(dir string, lock *os.File, tell func(error)) (*ground, error) {
	db := filepath.Join(dir, FileName)
	g := &ground{db: db, log: db + "-wal", lock: filepath.Join(dir, lockName), tell: tell}
	var err, lockErr error
	g.was, err = os.Stat(g.db)
	g.wasLock, lockErr = lock.Stat()
	g.wasLog, _ = os.Stat(g.log) // made by the first commit
	return g, errors.Join(err, lockErr)
}

// before returns an error if somebody else wrote to the database or replaced it since
// the writer's last change.
func (g *ground) before() error {
	if g.lost != nil {
		return g.lost
	}
	now, err := os.Stat(g.db)
	switch {
	case err != nil:
		return g.lose(g.db, "is gone")
	case !os.SameFile(now, g.was):
		return g.lose(g.db, "is another file now")
	case now.Size() != g.was.Size() || !now.ModTime().Equal(g.was.ModTime()):
		return g.lose(g.db, "was written to by another program")
	}
	return nil
}

// after takes note of what the writer itself did, and returns an error if that went
// to a file which is not in its place any more: then it must not be acknowledged.
func (g *ground) after() error {
	if g.lost != nil {
		return g.lost
	}
	now, err := os.Stat(g.db)
	if err != nil {
		return g.lose(g.db, "is gone")
	}
	if !os.SameFile(now, g.was) {
		return g.lose(g.db, "is another file now")
	}
	g.was = now
	if lock, err := os.Stat(g.lock); err != nil || !os.SameFile(lock, g.wasLock) {
		return g.lose(g.lock, "is gone, or another file now")
	}
	return nil
}

// look is before, for the files beside the database too.
func (g *ground) look() error {
	if err := g.before(); err != nil {
		return err
	}
	if lock, err := os.Stat(g.lock); err != nil || !os.SameFile(lock, g.wasLock) {
		return g.lose(g.lock, "is gone, or another file now")
	}
	log, err := os.Stat(g.log)
	switch {
	case g.wasLog == nil && err == nil:
		g.wasLog = log
	case g.wasLog != nil && (err != nil || !os.SameFile(log, g.wasLog)):
		return g.lose(g.log, "is gone, or another file now")
	}
	return nil
}

func (g *ground) lose(file, what string) error {
	g.lost = &lostError{fmt.Errorf("%s %s, while this hub was running on it: stop the hub before you touch its data directory, and restore with memsvc restore-backup; nothing more is written or acknowledged", file, what)}
	if g.tell != nil {
		g.tell(g.lost)
	}
	return g.lost
}

// lostError is the loss of the store's files; callers see that the hub is unavailable.
type lostError struct{ error }

// Unwrap makes it an ErrUnavailable for callers, who learn nothing of files.
func (e *lostError) Unwrap() error {
	return store.Unavailable("store", errors.New("its data files were replaced under the running hub"))
}
