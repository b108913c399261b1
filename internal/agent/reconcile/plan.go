package reconcile

import (
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// Plan compares the three trees and returns the actions that bring both sides to
// agreement, in path order; none where nothing is to be done. It is total and
// deterministic. A delete propagates, an edit beats a delete, what one side changed
// goes to the other, and what both changed is a Merge.
func Plan(base Baseline, local, remote Tree) []Action {
	paths := make([]memory.Path, 0, len(local))
	for p := range base {
		paths = append(paths, p)
	}
	for p := range local {
		if _, known := base[p]; !known {
			paths = append(paths, p)
		}
	}
	for p := range remote {
		_, known := base[p]
		_, here := local[p]
		if !known && !here {
			paths = append(paths, p)
		}
	}
	var plan []Action
	for _, p := range paths {
		if a, ok := Decide(p, base[p], local[p], remote[p]); ok {
			plan = append(plan, a)
		}
	}
	slices.SortFunc(plan, func(a, b Action) int { return strings.Compare(string(a.Path), string(b.Path)) })
	return plan
}

// Decide is Plan for one path. The zero Base means that nothing was agreed; "" is an
// absent file. ok is false when there is nothing to do.
func Decide(path memory.Path, base Base, local, remote memory.ETag) (a Action, ok bool) {
	a = Action{Path: path, Base: base, Local: local, Remote: remote}
	localChanged, remoteChanged := local != base.Local, remote != base.Hub
	switch {
	case !localChanged && !remoteChanged:
		return Action{}, false
	case local == "" && remote == "":
		a.Kind = Forget
	case local == remote:
		a.Kind = Agree
	case !remoteChanged && local == "":
		a.Kind = PushDelete
	case !localChanged && remote == "":
		a.Kind = PullDelete
	case !localChanged:
		a.Kind = Pull
	case !remoteChanged:
		a.Kind = Push
	case local == "":
		// Deleted here, edited there. Somebody still works with it.
		a.Kind, a.EditKept = Pull, true
	case remote == "":
		a.Kind, a.EditKept = Push, true
	default:
		a.Kind = Merge
	}
	return a, true
}

// Order sorts actions for applying them to a disk: deletes that stand in the way of
// a new path (another spelling of it, a file where a directory must be), then files,
// then indexes, then the other deletes. So an index never names a file that is not
// there, and a.md can become a.md/x.md. Within a group it is path order.
func Order(actions []Action) []Action {
	var puts memory.CollisionIndex
	for _, a := range actions {
		if a.Kind == Pull || a.Kind == Merge || a.Kind == Push {
			puts.Add(a.Path)
		}
	}
	rank := func(a Action) int {
		switch {
		case a.Kind == PullDelete || a.Kind == PushDelete:
			if _, blocks := puts.Check(a.Path); blocks {
				return 0
			}
			return 3
		case memory.IsIndex(a.Path):
			return 2
		}
		return 1
	}
	ranks := make(map[memory.Path]int, len(actions))
	for _, a := range actions {
		ranks[a.Path] = rank(a)
	}
	out := slices.Clone(actions)
	slices.SortStableFunc(out, func(a, b Action) int {
		if d := ranks[a.Path] - ranks[b.Path]; d != 0 {
			return d
		}
		return strings.Compare(string(a.Path), string(b.Path))
	})
	return out
}
