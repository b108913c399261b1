package memory

import (
	"slices"
	"strings"
)

// CollisionIndex knows the living paths of one project and finds the ones that
// cannot exist side by side on every disk. Two paths collide when, at some depth,
// their folded prefixes are equal but differently spelled (A/x.md with a/y.md), or
// when one is a file where the other needs a directory (a.md with a.md/x.md).
//
// All methods cost a few map look-ups, whatever the number of paths; naming the
// other path of a collision may cost a walk through one directory. The zero value
// is empty and ready. It is not safe for concurrent use.
type CollisionIndex struct {
	root folder
	n    int
}

// folder maps the folded name of each child to its spellings: one, unless paths
// were added that collide.
type folder struct {
	children map[string][]*entry
}

// entry is one spelling of one name in a folder: a file, a folder, or (in a
// collision) both.
type entry struct {
	name string
	file bool
	sub  *folder // nil when no path goes through this name
}

// NewCollisionIndex returns an index that holds paths.
func NewCollisionIndex(paths []Path) *CollisionIndex {
	x := &CollisionIndex{}
	for _, p := range paths {
		x.Add(p)
	}
	return x
}

// Len returns how many paths the index holds.
func (x *CollisionIndex) Len() int { return x.n }

// Add puts p in; a path that is there already changes nothing. Add does not judge:
// ask Check first where a collision must be refused.
func (x *CollisionIndex) Add(p Path) {
	f, rest := &x.root, string(p)
	for {
		name, tail, more := strings.Cut(rest, "/")
		e := f.child(name)
		if !more {
			if !e.file {
				e.file = true
				x.n++
			}
			return
		}
		if e.sub == nil {
			e.sub = &folder{}
		}
		f, rest = e.sub, tail
	}
}

// child returns the entry spelled name, making it if need be.
func (f *folder) child(name string) *entry {
	key := foldText(name)
	for _, e := range f.children[key] {
		if e.name == name {
			return e
		}
	}
	if f.children == nil {
		f.children = make(map[string][]*entry)
	}
	e := &entry{name: name}
	f.children[key] = append(f.children[key], e)
	return e
}

// Remove takes p out; a path that is not there changes nothing.
func (x *CollisionIndex) Remove(p Path) {
	if x.root.remove(string(p)) {
		x.n--
	}
}

// remove takes the path out of f and prunes what it leaves empty.
func (f *folder) remove(path string) (removed bool) {
	name, tail, more := strings.Cut(path, "/")
	key := foldText(name)
	spellings := f.children[key]
	for i, e := range spellings {
		if e.name != name {
			continue
		}
		switch {
		case !more:
			removed, e.file = e.file, false
		case e.sub != nil:
			removed = e.sub.remove(tail)
			if len(e.sub.children) == 0 {
				e.sub = nil
			}
		}
		if !e.file && e.sub == nil {
			spellings = slices.Delete(spellings, i, i+1)
			if len(spellings) == 0 {
				delete(f.children, key)
			} else {
				f.children[key] = spellings
			}
		}
		return removed
	}
	return false
}

// Check reports whether p collides with a path of the index other than itself, and
// with which. Among several it names the first in path order at the shallowest
// depth, so that the answer does not depend on the order of additions.
func (x *CollisionIndex) Check(p Path) (other Path, collides bool) {
	f, rest, above := &x.root, string(p), ""
	for {
		name, tail, more := strings.Cut(rest, "/")
		var same *entry
		best := ""
		for _, e := range f.children[foldText(name)] {
			if e.name == name {
				same = e
				continue
			}
			if q := e.first(above); best == "" || q < best {
				best = q
			}
		}
		if best == "" && same != nil {
			if more && same.file {
				best = above + name
			} else if !more && same.sub != nil {
				best = same.sub.first(above + name + "/")
			}
		}
		if best != "" {
			return Path(best), true
		}
		if !more || same == nil || same.sub == nil {
			return "", false
		}
		f, rest, above = same.sub, tail, above+name+"/"
	}
}

// first returns the first path, in path order, at or below e.
func (e *entry) first(above string) string {
	if e.file {
		return above + e.name
	}
	return e.sub.first(above + e.name + "/")
}

func (f *folder) first(above string) string {
	best := ""
	for _, spellings := range f.children {
		for _, e := range spellings {
			if q := e.first(above); best == "" || q < best {
				best = q
			}
		}
	}
	return best
}

// CheckAfter judges a commit on the state that it would leave: removed goes out,
// added comes in, and each added path that collides then is returned with the path
// it collides with. The index is left as it was.
func (x *CollisionIndex) CheckAfter(removed, added []Path) [][2]Path {
	var out, in []Path
	for _, p := range removed {
		if x.has(p) {
			x.Remove(p)
			out = append(out, p)
		}
	}
	var found [][2]Path
	for _, p := range added {
		if !x.has(p) {
			x.Add(p)
			in = append(in, p)
		}
	}
	for _, p := range added {
		if other, collides := x.Check(p); collides {
			found = append(found, [2]Path{p, other})
		}
	}
	for _, p := range in {
		x.Remove(p)
	}
	for _, p := range out {
		x.Add(p)
	}
	return found
}

// has reports whether p is in the index.
func (x *CollisionIndex) has(p Path) bool {
	f, rest := &x.root, string(p)
	for {
		name, tail, more := strings.Cut(rest, "/")
		var same *entry
		for _, e := range f.children[foldText(name)] {
			if e.name == name {
				same = e
			}
		}
		if same == nil {
			return false
		}
		if !more {
			return same.file
		}
		if same.sub == nil {
			return false
		}
		f, rest = same.sub, tail
	}
}

// Collisions returns the collisions within paths: each path that collides with one
// before it in path order, paired with that one (earlier, later), in path order.
// Paths given twice do not collide with themselves.
func Collisions(paths []Path) [][2]Path {
	sorted := slices.Clone(paths)
	slices.Sort(sorted)
	var x CollisionIndex
	var found [][2]Path
	for _, p := range slices.Compact(sorted) {
		if other, collides := x.Check(p); collides {
			found = append(found, [2]Path{other, p})
		}
		x.Add(p)
	}
	return found
}
