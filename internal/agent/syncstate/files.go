package syncstate

import (
	"io"
	"io/fs"
	"os"

	"github.com/memsvc/memsvc/internal/wholefile"
)

// disk is every operation of this package on files, so that tests can fail each.
type disk interface {
	MkdirAll(dir string) error
	// Open opens path for reading and, if write is set, for writing.
	Open(path string, write bool) (diskFile, error)
	// Create makes path (0600), which must not exist.
	Create(path string) (diskFile, error)
	Rename(from, to string) error
	Remove(path string) error
	ReadDir(dir string) ([]fs.DirEntry, error)
	SyncDir(dir string) error
}

type diskFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
}

// osDisk is the machine's disk.
type osDisk struct{}

func (osDisk) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (osDisk) Open(path string, write bool) (diskFile, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) Create(path string) (diskFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osDisk) Rename(from, to string) error              { return os.Rename(from, to) }
func (osDisk) Remove(path string) error                  { return os.Remove(path) }
func (osDisk) ReadDir(dir string) ([]fs.DirEntry, error) { return os.ReadDir(dir) }

func (osDisk) SyncDir(dir string) error { return wholefile.SyncDir(dir) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}
