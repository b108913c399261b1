package reconcile

import "github.com/memsvc/memsvc/internal/memory"

// Tree is one side: the etag of every file that is there.
type Tree map[memory.Path]memory.ETag

// Base is what both sides last agreed on at one path. Hub and Local differ only for
// an index with lines that stay on the machine.
type Base struct {
	Text  memory.ETag // the agreed text, the ancestor of merges
	Hub   memory.ETag // the hub's etag then
	Local memory.ETag // the local file's etag then
}

// Agreed returns the Base of a text that is the same on both sides.
func Agreed(e memory.ETag) Base { return Base{Text: e, Hub: e, Local: e} }

// Baseline is the common ancestor of local and remote, path by path.
type Baseline map[memory.Path]Base

// Without returns m less the paths that drop reports, m itself being left alone. It
// is how unknown and ignored paths leave all three trees before planning.
func Without[M ~map[memory.Path]V, V any](m M, drop func(memory.Path) bool) M {
	out := make(M, len(m))
	for p, v := range m {
		if !drop(p) {
			out[p] = v
		}
	}
	return out
}

// Kind is what has to be done at one path.
type Kind uint8

// The kinds of action. Each is its own mirror image or has one.
const (
	// Agree: both sides hold the same text; only the baseline must learn it.
	Agree Kind = iota + 1
	// Forget: both sides lack what the baseline has.
	Forget
	// Push: the local text goes to the hub. Mirror: Pull.
	Push
	// PushDelete: the path goes from the hub. Mirror: PullDelete.
	PushDelete
	// Pull: the hub's text goes to the disk.
	Pull
	// PullDelete: the file goes from the disk.
	PullDelete
	// Merge: both sides changed the path, differently.
	Merge
)

// String returns the kind's name in lower case.
func (k Kind) String() string {
	switch k {
	case Agree:
		return "agree"
	case Forget:
		return "forget"
	case Push:
		return "push"
	case PushDelete:
		return "push-delete"
	case Pull:
		return "pull"
	case PullDelete:
		return "pull-delete"
	case Merge:
		return "merge"
	}
	return "invalid"
}

// Mirror returns the kind that the other side would see.
func (k Kind) Mirror() Kind {
	switch k {
	case Push:
		return Pull
	case Pull:
		return Push
	case PushDelete:
		return PullDelete
	case PullDelete:
		return PushDelete
	case Agree, Forget, Merge:
	}
	return k
}

// Action is what has to be done at one path. The etags are what the decision stands
// on ("" = absent): whoever carries it out must find them unchanged.
type Action struct {
	Path   memory.Path
	Kind   Kind
	Base   Base
	Local  memory.ETag
	Remote memory.ETag
	// EditKept is set when one side deleted what the other edited: the edit stays.
	EditKept bool
	// RenamedFrom, of a Push, names the PushDelete that belongs to it.
	RenamedFrom memory.Path
	// RenamedTo, of a PushDelete, names the Push that it belongs to.
	RenamedTo memory.Path
}
