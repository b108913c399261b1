package reconcile

import (
	"fmt"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// The thresholds of SPEC 3.6: a halt needs more than brakeFiles deletes and more
// than one part in brakeShare of the baseline.
const (
	brakeFiles = 5
	brakeShare = 4
)

// Missing returns the paths of the baseline that are not on disk any more, in order,
// less those whose text lives on at a new path: a moved directory is no mass delete.
func Missing(base Baseline, local Tree) []memory.Path {
	arrived := map[memory.ETag]int{}
	for p, e := range local {
		if _, known := base[p]; !known {
			arrived[e]++
		}
	}
	var gone []memory.Path
	for p := range base {
		if _, here := local[p]; !here {
			gone = append(gone, p)
		}
	}
	slices.Sort(gone)
	return slices.DeleteFunc(gone, func(p memory.Path) bool {
		e := base[p].Local
		if arrived[e] == 0 {
			return false
		}
		arrived[e]--
		return true
	})
}

// Brake reports whether so much is missing from the disk that it looks like an
// accident (SPEC 3.6, ruling 13.17), with the reason in words. The deletes in
// accepted, which a person confirmed or the hub asked for, are not what is asked about.
func Brake(base Baseline, local Tree, accepted []memory.Path) (halt bool, reason string) {
	missing := Missing(base, local)
	ok := make(map[memory.Path]bool, len(accepted))
	for _, p := range accepted {
		ok[p] = true
	}
	n := 0
	for _, p := range missing {
		if !ok[p] {
			n++
		}
	}
	switch {
	case n > 0 && len(missing) == len(base) && len(base) >= 2:
		// However many of them are explained: a directory with nothing left in it is
		// the likeliest accident, and one that is not explained is enough to ask.
		return true, fmt.Sprintf("all %d files of the team directory are gone", len(base))
	case n > brakeFiles && n*brakeShare > len(base):
		return true, fmt.Sprintf("%d of %d files of the team directory are gone", n, len(base))
	}
	return false, ""
}
