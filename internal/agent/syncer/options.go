package syncer

import (
	"context"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Ports are what a Syncer works with; all but Uploads are needed.
type Ports struct {
	Local   Local
	State   State
	Remote  Remote
	Guard   Guard
	Uploads Uploads // nil = files may always be sent
	Clock   Clock
	// NewID returns a fresh unique text, for link ids and request ids.
	NewID func() string
}

// Options tune a Syncer. The zero value is right.
type Options struct {
	// Message is the message of its commits; "" = "sync".
	Message string
	// TrashFor is how long trashed texts are kept; 0 = 30 days.
	TrashFor time.Duration
	// TrashBytes bounds the texts in the trash together; 0 = 64 MiB. See Sizer.
	TrashBytes int64
}

// Syncer keeps one workspace and one project in step. Its methods may be called from
// several goroutines; cycles and commands wait for each other, Status does not.
type Syncer struct {
	ports Ports
	opts  Options

	run    sync.Mutex // guards what follows; held for a whole cycle or command
	state  LinkState
	loaded bool
	seen   *Snapshot // the disk as the last cycle left it; nil = to be scanned
	// offered and undone are the paths of the replacement being worked off; see Replaced.
	offered, undone map[memory.Path]bool
	judged          *judgement // nil = the hub is to be asked about all that is kept

	view   sync.Mutex // guards status
	status Status
}

// The bounds of a cycle's memory and patience.
const (
	// batchBytes and batchFiles bound what is read and written between two steps of
	// the state.
	batchBytes = memory.MaxCommitBytes
	batchFiles = memory.MaxCommitChanges
	// inlineBytes bounds the contents kept from a pull; the rest is fetched again.
	inlineBytes = 4 * memory.MaxCommitBytes
	// maxPushAttempts bounds how often one commit is made smaller or merged anew
	// before the rest is left to the next cycle.
	maxPushAttempts = 64
	// maxTogether is how often in a cycle what is not concerned by another edit waits for
	// what is.
	maxTogether = 3
	// emptyGrace is how long a file that was just emptied is taken for one being
	// written.
	emptyGrace = 2 * time.Second
	// saveGap is how long a file that has just gone is taken for one being saved:
	// some editors remove or rename the old file before they write the new one. It
	// is shorter than the watcher's quiet time, so that a plain delete never waits.
	saveGap = 250 * time.Millisecond
	// heldBackPause is when to ask again whether files may be sent.
	heldBackPause = time.Second
	// defaultTrashFor is Options.TrashFor.
	defaultTrashFor = 30 * 24 * time.Hour
	// defaultTrashBytes is Options.TrashBytes.
	defaultTrashBytes = 64 << 20
)

// New returns a Syncer. It touches nothing before its first cycle.
func New(ports Ports, opts Options) *Syncer {
	if opts.Message == "" {
		opts.Message = "sync"
	}
	if opts.TrashFor == 0 {
		opts.TrashFor = defaultTrashFor
	}
	if opts.TrashBytes == 0 {
		opts.TrashBytes = defaultTrashBytes
	}
	return &Syncer{ports: ports, opts: opts, status: Status{Phase: PhaseStarting}}
}

// load fills s.state from the State unless it is known. Callers hold s.run.
func (s *Syncer) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	st, err := s.ports.State.Load(ctx)
	if err != nil {
		return &stepError{step: "load the sync state", err: err}
	}
	st.fill()
	s.state, s.loaded = st, true
	return nil
}

// save makes an update durable and only then visible in s.state. After an error
// nobody knows what is on disk, so the state is loaded anew.
func (s *Syncer) save(ctx context.Context, u Update) error {
	if err := s.ports.State.Apply(ctx, u); err != nil {
		s.loaded = false
		return &stepError{step: "save the sync state", err: err}
	}
	s.state.Apply(u)
	return nil
}
