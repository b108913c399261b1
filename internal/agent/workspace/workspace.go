package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// Options say how a Workspace looks at files; a zero field takes its default.
type Options struct {
	// Project is whose directory it is; a marker of another one makes it unsuitable. The
	// zero value makes no difference between projects.
	Project memory.ProjectKey
	// Now is the machine's clock; time.Now.
	Now func() time.Time
	// Settle is how old an empty file must be to be believed: editors truncate
	// before they write; 500 ms. A scan waits at most this long.
	Settle time.Duration
	// Racy is how much older than its hashing a file's change must be for its stat
	// to be trusted next time. It covers disks that keep times in steps of 2 s; 2 s.
	Racy time.Duration
	// StaleTemp is the age from which a temporary file of ours counts as left
	// behind by a crash; 10 min.
	StaleTemp time.Duration
	// RulesGrace is how long a changed .memsyncignore must stay as it is before what it
	// hid until then is shared; 10 s.
	RulesGrace time.Duration
}

// Workspace is one team/ directory. It is used by one goroutine at a time and holds
// no file open between calls.
type Workspace struct {
	opts Options
	dir  string // absolute; may be a link

	rootInfo fs.FileInfo // the directory we know; nil before the first look
	marker   string      // the link id that lay in it

	tree       *folder
	names      map[memory.Path]string // names on disk that differ from their key
	gen        uint64                 // number of the last scan
	ignore     *Ignore                // the rules and those kept
	rules      *Ignore                // the rules of the file
	ignoreText []byte                 // what rules was parsed from
	rulesKnown bool                   // false before the first look
	keptRules  []*Ignore              // earlier rules that hold on for the grace
	rulesSince time.Time              // when the file became what it is
	clashes    clashes
	leftover   []string // temporary files seen by the last scan
	torn       []string // those that may hold an edit; see Mend

	hasher hash.Hash
	buf    []byte
}

var (
	_ syncer.Local  = (*Workspace)(nil)
	_ syncer.Mender = (*Workspace)(nil)
)

// New returns the workspace at dir. It touches nothing; dir need not exist.
func New(dir string, opts Options) (*Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace %s: %w", dir, err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Settle <= 0 {
		opts.Settle = 500 * time.Millisecond
	}
	if opts.Racy <= 0 {
		opts.Racy = 2 * time.Second
	}
	if opts.StaleTemp <= 0 {
		opts.StaleTemp = 10 * time.Minute
	}
	if opts.RulesGrace <= 0 {
		opts.RulesGrace = 10 * time.Second
	}
	return &Workspace{
		opts: opts, dir: abs,
		tree: &folder{}, names: map[memory.Path]string{}, ignore: &Ignore{}, rules: &Ignore{},
		clashes: clashes{seed: maphash.MakeSeed()},
		hasher:  sha256.New(), buf: make([]byte, 32<<10),
	}, nil
}

// Dir returns the absolute path of the root, as it was given.
func (w *Workspace) Dir() string { return w.dir }

// entered is the root, opened for one call.
type entered struct {
	root   *os.Root // nil unless cond is RootOK
	cond   syncer.RootCondition
	detail string
	marker marker
	// Set with cond RootUnknown when nothing more is known than this error.
	err error
}

// enter opens the root and judges it. With RootOK the caller closes root.
func (w *Workspace) enter() entered {
	fi, err := os.Stat(w.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return entered{cond: syncer.RootMissing, detail: fmt.Sprintf("%s is not there", w.dir)}
	case err != nil:
		return entered{cond: syncer.RootUnknown, detail: err.Error(), err: err}
	case !fi.IsDir():
		return entered{cond: syncer.RootMissing, detail: fmt.Sprintf("%s is not a directory", w.dir)}
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return entered{cond: syncer.RootUnknown, detail: err.Error(), err: err}
	}
	bad := func(cond syncer.RootCondition, m marker, detail string) entered {
		_ = root.Close()
		return entered{cond: cond, marker: m, detail: detail}
	}
	// What was opened counts, not what was there a moment before.
	fi, err = root.Stat(".")
	if err != nil {
		return bad(syncer.RootUnknown, marker{}, err.Error())
	}
	m, err := readMarker(root)
	if err != nil {
		return bad(syncer.RootUnknown, marker{}, err.Error())
	}
	if m.foreign(w.opts.Project) {
		return bad(syncer.RootReplaced, m, ofAnother(w.dir, m.project))
	}
	if w.rootInfo != nil && !os.SameFile(fi, w.rootInfo) {
		if w.marker != "" && m.id != w.marker {
			return bad(syncer.RootReplaced, m, fmt.Sprintf("%s is another directory than before, without this link's marker (%s)", w.dir, describe(fi)))
		}
		w.forget()
	}
	w.rootInfo = fi
	if m.id != "" {
		w.marker = m.id
	}
	return entered{root: root, cond: syncer.RootOK, marker: m}
}

// enterToWrite opens the root for a change. Unless it is the root that was scanned,
// with its marker, the error is syncer.ErrLocalChanged.
func (w *Workspace) enterToWrite(op string, path memory.Path) (*os.Root, error) {
	if _, err := memory.ParsePath(string(path)); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	known := w.marker
	e := w.enter()
	if e.cond != syncer.RootOK {
		return nil, fmt.Errorf("%s %s: %s: %w", op, path, e.detail, syncer.ErrLocalChanged)
	}
	if e.marker.id != known {
		_ = e.root.Close()
		return nil, fmt.Errorf("%s %s: the marker in %s is gone or another one: %w", op, path, w.dir, syncer.ErrLocalChanged)
	}
	return e.root, nil
}

// forget drops what is remembered of the files below another root.
func (w *Workspace) forget() {
	w.tree, w.names, w.leftover, w.torn = &folder{}, map[memory.Path]string{}, nil, nil
}
