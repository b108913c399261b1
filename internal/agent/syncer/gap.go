package syncer

import (
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// justGone reports whether an absent file may be one that is being saved: the
// nearest directory above it that is still there lost or got a name a moment ago.
func (c *cycle) justGone(p memory.Path) bool {
	if c.local[p] != "" {
		return false
	}
	for dir := p; dir != ""; {
		dir = memory.Path(dir.Dir())
		if at, listed := c.snap.Dirs[dir]; listed {
			// The time of the cycle is from before the scan, so the change may seem to lie
			// ahead. Farther ahead is a clock that was set back: that says nothing.
			age := c.now.Sub(at)
			return age < saveGap && age > -time.Minute && !c.supplanted(p)
		}
	}
	return false
}

// supplanted reports whether something else has taken the place of an absent file: a
// directory of its name, or another spelling. Then it was not being saved, and its
// delete must go out before what came instead.
func (c *cycle) supplanted(p memory.Path) bool {
	if _, made := c.snap.Dirs[p]; made {
		return true
	}
	there := &memory.CollisionIndex{}
	for q, etag := range c.local {
		if etag != "" {
			there.Add(q)
		}
	}
	_, clash := there.Check(p)
	return clash
}
