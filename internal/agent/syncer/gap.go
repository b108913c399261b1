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
			return age < saveGap && age > -time.Minute
		}
	}
	return false
}
