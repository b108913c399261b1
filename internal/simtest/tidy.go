package simtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// tidied are the files that the first machine of a solo run tidies, always all of them
// together: each text names its generation, and in every other one the last file is gone.
var tidied = []memory.Path{"tidy/one.md", "tidy/two.md", "tidy/three.md"}

// tidying is a change set that is being applied to a disk, file by file.
type tidying struct {
	todo []memory.Path
	dead bool // the process died; its change set is ended before anything is sent
}

// tidyStep begins a change set, goes on with it, or ends it. Uploads wait meanwhile.
func (m *machine) tidyStep() {
	w := m.w
	switch t := m.tidying; {
	case t == nil && m.inside > 0:
		// Files are being sent: a change set waits.
	case t == nil:
		m.generation++
		m.tidying = &tidying{todo: slices.Clone(tidied)}
		w.tracef("%s: begins to tidy, generation %d", m.name, m.generation)
	case t.dead:
	case len(t.todo) == 0:
		m.endTidying()
	case w.chance(10):
		t.dead = true
		w.tracef("%s: dies while it tidies", m.name)
	default:
		m.tidyNext()
	}
}

func (m *machine) tidyNext() {
	p := m.tidying.todo[0]
	m.tidying.todo = m.tidying.todo[1:]
	if p == tidied[len(tidied)-1] && m.generation%2 == 0 {
		m.disk.Delete(p)
	} else {
		m.disk.Save(p, fmt.Sprintf("%s, generation %d\n", p, m.generation))
	}
	m.w.tracef("%s: tidies %s", m.name, p)
}

// endTidying does what is left of a change set, and lets files be sent again once the
// last delete does not look like a save any more.
func (m *machine) endTidying() {
	for len(m.tidying.todo) > 0 {
		m.tidyNext()
	}
	m.w.now = m.w.now.Add(300 * time.Millisecond)
	m.tidying = nil
	m.w.tracef("%s: has tidied", m.name)
}

// Enter is syncer.Uploads's.
func (m *machine) Enter(context.Context) (leave func(), ok bool) {
	if t := m.tidying; t != nil {
		if !t.dead {
			return nil, false
		}
		m.endTidying()
	}
	m.inside++
	return func() { m.inside-- }, true
}

// checkTidied: no revision of the hub holds one half of a change set.
func (w *world) checkTidied() {
	commits, err := w.hub.backend.History(context.Background(), project, 0, 0, 1<<40)
	if err != nil {
		w.breakLaw("history: %v", err)
		return
	}
	slices.SortFunc(commits, func(a, b memory.Commit) int { return int(a.Revision - b.Revision) })
	now := map[memory.Path]string{}
	for _, c := range commits {
		for _, ch := range c.Changes {
			if !slices.Contains(tidied, ch.Path) {
				continue
			}
			delete(now, ch.Path)
			if ch.Kind != memory.Delete {
				now[ch.Path] = string(ch.Content)
			}
		}
		if !whole(now) {
			w.breakLaw("revision %d holds a mixture: %q", c.Revision, now)
		}
	}
}

// whole reports whether files are what some generation looks like.
func whole(files map[memory.Path]string) bool {
	if len(files) == 0 {
		return true // nothing was tidied yet
	}
	generation := 0
	if _, err := fmt.Sscanf(files[tidied[0]], string(tidied[0])+", generation %d\n", &generation); err != nil {
		return false
	}
	want := map[memory.Path]string{}
	for i, p := range tidied {
		if i < len(tidied)-1 || generation%2 != 0 {
			want[p] = fmt.Sprintf("%s, generation %d\n", p, generation)
		}
	}
	return maps.Equal(files, want)
}
