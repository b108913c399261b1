package reconcile

import (
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// Facts is what a full listing of the hub says of one path.
type Facts struct {
	ETag     memory.ETag     // "" for a tombstone
	Revision memory.Revision // at which it became so
	Last     memory.ETag     // of a tombstone: the text that was deleted
	Earlier  []memory.ETag   // what the path held before, as far as kept
}

// Knew reports whether the hub's history of the path holds the text e.
func (f Facts) Knew(e memory.ETag) bool {
	return e != "" && (f.ETag == e || f.Last == e || slices.Contains(f.Earlier, e))
}

// TreeOf returns the living files of a listing.
func TreeOf(remote map[memory.Path]Facts) Tree {
	t := make(Tree, len(remote))
	for p, f := range remote {
		if f.ETag != "" {
			t[p] = f.ETag
		}
	}
	return t
}

// Rebase turns a baseline that was agreed with another history of the hub into one
// for the present history, which shares everything up to revision rewind with it
// (ruling 13.4). at gives the revision of each baseline entry. Planning from the
// result deletes no local file: what the hub misses is offered again.
func Rebase(base Baseline, at map[memory.Path]memory.Revision, remote map[memory.Path]Facts, rewind memory.Revision) Baseline {
	out := make(Baseline, len(base))
	for p, b := range base {
		f := remote[p]
		switch {
		case f.ETag == "":
			// Missing, whether the backup never knew it or somebody deleted it since:
			// without an agreed text the local one is new, and is offered.
		case f.ETag == b.Hub:
			out[p] = b
		case at[p] > rewind && f.Revision <= rewind:
			// The hub fell back behind what we agreed on. Its older text is our
			// ancestor, so that ours follows it, also where ours is a delete.
			out[p] = Agreed(f.ETag)
		case f.Knew(b.Hub):
			// The present history holds the agreed text, and went on from there.
			out[p] = b
		}
		// Else both went on from different texts: no common ancestor is known. A
		// revision alone proves nothing here: after a snapshot was put back, the
		// same number may stand for another commit.
	}
	return out
}

// Adopt builds a baseline for a machine that lost its own (ruling 13.5). Files equal
// to the hub's are agreed. Files equal to an older version of the hub's, or to a
// text that was deleted there, are stale: they follow the hub, and their paths are
// returned so that a copy can be kept. All others have no baseline.
func Adopt(local Tree, remote map[memory.Path]Facts) (base Baseline, stale []memory.Path) {
	base = Baseline{}
	for p, e := range local {
		f, known := remote[p]
		switch {
		case !known:
		case f.ETag == e:
			base[p] = Agreed(e)
		case f.Knew(e):
			base[p] = Agreed(e)
			stale = append(stale, p)
		}
	}
	slices.Sort(stale)
	return base, stale
}

// UndoneDeletes returns, in order, the paths that a restored hub holds although this
// machine had seen them deleted: they were there at a revision both histories share,
// the machine had read beyond it, and has them neither in its baseline nor on disk.
func UndoneDeletes(base Baseline, local Tree, remote map[memory.Path]Facts, rewind, seen memory.Revision) []memory.Path {
	var out []memory.Path
	for p, f := range remote {
		_, agreed := base[p]
		_, here := local[p]
		if f.ETag != "" && !agreed && !here && f.Revision <= min(rewind, seen) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}
