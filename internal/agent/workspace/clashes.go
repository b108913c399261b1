package workspace

import (
	"hash/maphash"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// clashes remembers the collisions of the last scan, which are looked for again only
// when the set of keys changed.
type clashes struct {
	seed  maphash.Seed
	shape uint64
	count int
	found [][2]memory.Path
}

func hashKey(seed maphash.Seed, p memory.Path) uint64 { return maphash.String(seed, string(p)) }

// refuseTwins takes out keys that two names on disk share.
func (s *scan) refuseTwins() {
	for p := range s.twins {
		s.shape -= hashKey(s.w.clashes.seed, p)
		if f := s.owners[p]; f != nil {
			f.accepted = false
			delete(s.owners, p)
		}
		delete(s.w.names, p)
		s.refuse(string(p), p, RuleTwin, "two files have this name in two Unicode spellings (NFC and NFD); keep one of them")
	}
}

// refuseCollisions takes out keys that cannot exist side by side on every disk. Of
// such a pair the one that the last snapshot held stays, if only one was.
func (s *scan) refuseCollisions() {
	c := &s.w.clashes
	if c.shape != s.shape || c.count != len(s.owners) {
		keys := make([]memory.Path, 0, len(s.owners))
		for p := range s.owners {
			keys = append(keys, p)
		}
		c.shape, c.count, c.found = s.shape, len(keys), memory.Collisions(keys)
	}
	refused := map[memory.Path]memory.Path{}
	for _, pair := range c.found {
		a, b := s.owners[pair[0]], s.owners[pair[1]]
		if !a.accepted || b.accepted {
			refused[pair[0]] = pair[1]
		}
		if !b.accepted || a.accepted {
			refused[pair[1]] = pair[0]
		}
	}
	names := make([]memory.Path, 0, len(refused))
	for p := range refused {
		names = append(names, p)
	}
	slices.Sort(names)
	for _, p := range names {
		s.refuse(string(p), p, RuleCollision, "some disks cannot tell it from "+plain(string(refused[p]))+"; rename one of them")
		s.snap.Refused[len(s.snap.Refused)-1].File = s.owners[p].local()
	}
	for _, p := range names {
		s.owners[p].accepted = false
		delete(s.owners, p)
	}
}
