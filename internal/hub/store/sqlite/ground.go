package sqlite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
//
// A time stamp alone says nothing: a backup program or a person's touch changes it. When
// it moved, the beginning of the file decides; see mark.
type ground struct {
	db, log, lock string
	file          *os.File    // the database, for reading its mark; see newGround
	was           os.FileInfo // the database after the writer's last change to it
	mark          [sha256.Size]byte
	unmarked      bool        // the file may be copied into again without a new mark; see mark
	wasLog        os.FileInfo // nil while there is none
	wasLock       os.FileInfo
	lost          error // why nothing may be written any more; once set it stays
	tell          func(error)
}

// markBytes is how much of the file's beginning makes its mark: SQLite's header and the
// first pages, where the epochs are.
const markBytes = 64 << 10

// readMark returns the mark of the database's content. The header counts the changes of
// the first page, and the writer changes that page once between any two copyings of the
// log into the file: so a copy of the file that was made before another copying has
// another mark, and one with the same mark has the same bytes. Another hub's file differs
// by its epochs.
func (g *ground) readMark() (mark [sha256.Size]byte, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(g.file, 0, markBytes)); err != nil {
		return mark, err
	}
	h.Sum(mark[:0])
	return mark, nil
}

// newGround looks at the files of dir. tell, if not nil, is told once when they are
// no longer the same. The database is opened once, and closed after SQLite closed it:
// the first close of a file in a process takes the locks that SQLite has on it.
func newGround(dir string, lock *os.File, tell func(error)) (*ground, error) {
	db := filepath.Join(dir, FileName)
	g := &ground{db: db, log: db + "-wal", lock: filepath.Join(dir, lockName), tell: tell, unmarked: true}
	var err error
	if g.file, err = os.Open(db); err != nil {
		return nil, err
	}
	var markErr, lockErr error
	g.was, err = g.file.Stat()
	g.mark, markErr = g.readMark()
	g.wasLock, lockErr = lock.Stat()
	g.wasLog, _ = os.Stat(g.log) // made by the first commit
	if err := errors.Join(err, markErr, lockErr); err != nil {
		return nil, errors.Join(err, g.file.Close()) // SQLite's locks go too, and so does the store
	}
	return g, nil
}

// close lets go of the database; SQLite must have closed it before.
func (g *ground) close() error { return g.file.Close() }

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
	case now.Size() != g.was.Size():
		return g.lose(g.db, "was written to by another program")
	case now.ModTime().Equal(g.was.ModTime()):
		return nil
	}
	if mark, err := g.readMark(); err != nil || mark != g.mark {
		return g.lose(g.db, "was written to by another program")
	}
	g.was = now // touched, nothing else
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
	if now.Size() != g.was.Size() || !now.ModTime().Equal(g.was.ModTime()) {
		if g.mark, err = g.readMark(); err != nil {
			return g.lose(g.db, "cannot be read any more")
		}
		g.unmarked = true
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
