package workspace

import (
	"io/fs"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// folder is what is remembered of one directory between scans, by name on disk.
type folder struct {
	files   map[string]*file
	folders map[string]*folder
	gen     uint64 // scan that last saw it
}

// file is what is remembered of one file: its stat, and what its bytes hashed to.
type file struct {
	stat   stat
	etag   memory.ETag
	hashed int64 // when, in Unix nanoseconds, by the machine's clock, before the stat was taken

	path      memory.Path // its key; "" when broken is set
	broken    *memory.Violation
	ignored   bool
	ignoredBy *Ignore // the rules that ignored came from
	accepted  bool    // it was in the last snapshot
	gen       uint64
}

// local is the file as a snapshot tells of it.
func (f *file) local() syncer.LocalFile {
	return syncer.LocalFile{ETag: f.etag, Size: f.stat.size, ModTime: time.Unix(0, f.stat.mtime)}
}

// trusted reports whether the remembered hash still holds for a file whose stat is
// now s. Like git's index it distrusts a file that was hashed so shortly after its
// last change that a later change may have left the same times behind.
func (f *file) trusted(s stat, racy time.Duration) bool {
	if f.etag == "" || f.stat != s {
		return false
	}
	changed := s.ctime
	if changed == 0 {
		changed = s.mtime
	}
	return changed+int64(racy) < f.hashed
}

func (d *folder) file(name string) *file {
	f := d.files[name]
	if f == nil {
		if d.files == nil {
			d.files = make(map[string]*file)
		}
		f = &file{}
		d.files[name] = f
	}
	return f
}

func (d *folder) folder(name string) *folder {
	sub := d.folders[name]
	if sub == nil {
		if d.folders == nil {
			d.folders = make(map[string]*folder)
		}
		sub = &folder{}
		d.folders[name] = sub
	}
	return sub
}

// sweep forgets what the scan gen did not see.
func (d *folder) sweep(gen uint64) {
	for name, f := range d.files {
		if f.gen != gen {
			delete(d.files, name)
		}
	}
	for name, sub := range d.folders {
		if sub.gen != gen {
			delete(d.folders, name)
		}
	}
}

// remember notes what a file held that was just hashed.
func (f *file) remember(etag memory.ETag, fi fs.FileInfo, hashed time.Time) {
	f.etag, f.stat, f.hashed = etag, statOf(fi), hashed.UnixNano()
}
