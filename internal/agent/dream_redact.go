package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// dreamPlace says whose dreams a dreamDir holds. It lies beside it.
type dreamPlace struct {
	Memory string `json:"memory_dir"` // the personal directory
	Team   string `json:"team_dir"`
}

const dreamPlaceSuffix = ".place.json"

// placeDream notes whose dreams these are, before there is one.
func (s stateDir) placeDream(personal, team string) error {
	p, have := dreamPlace{Memory: personal, Team: team}, dreamPlace{}
	name := s.dreamDir(personal) + dreamPlaceSuffix
	if readJSON(name, &have) == nil && have == p {
		return nil
	}
	return writeJSON(name, p)
}

// dreamPlaces returns those who dreamt with a team directory.
func (s stateDir) dreamPlaces(team string) (out []dreamPlace, err error) {
	entries, err := os.ReadDir(s.path("dream"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		var p dreamPlace
		if strings.HasSuffix(e.Name(), dreamPlaceSuffix) {
			if err := readJSON(s.path("dream", e.Name()), &p); err != nil {
				return nil, err
			}
			if realDir(p.Team) == realDir(team) {
				out = append(out, p)
			}
		}
	}
	return out, err
}

// redactions takes what the hub redacts out of the records of dreams (ruling 13.14). A
// redaction is noted before the cursor passes it, so that a kill in between forgets none.
type redactions struct {
	state stateDir
	link  Link
	now   func() time.Time
	// ask is the syncer's question about redacted texts.
	ask func(ctx context.Context, texts [][]byte) ([]bool, error)
}

func (r redactions) file() string { return r.state.path("dream", "redacted-"+r.link.ID()+".json") }

// note makes durable that texts at paths were redacted, or, without paths, that they may
// have been anywhere.
func (r redactions) note(paths []memory.Path) error {
	places, err := r.state.dreamPlaces(r.link.Dir)
	if err != nil || len(places) == 0 {
		return err
	}
	var noted []memory.Path
	if err := readJSON(r.file(), &noted); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	paths = append(slices.Clone(paths), noted...)
	slices.Sort(paths)
	return writeJSON(r.file(), slices.Compact(paths))
}

// settle does what was noted. While somebody dreams it is an error, and done the next time.
func (r redactions) settle(ctx context.Context) error {
	var paths []memory.Path
	err := readJSON(r.file(), &paths)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	places, err := r.state.dreamPlaces(r.link.Dir)
	if err != nil {
		return err
	}
	for _, p := range places {
		d := r.state.dreamer(p.Memory, p.Team, r.state.guardFor(r.link.Hub, r.link.Team), r.now)
		if !isDir(d.Dir) {
			continue
		}
		redacted := func(texts [][]byte) ([]bool, error) {
			gone, err := r.ask(ctx, texts)
			if errors.Is(err, syncer.ErrCannotTell) {
				return nil, nil
			}
			return gone, err
		}
		if err := r.state.held(ctx, d, func() error { return d.Scrub(ctx, paths, redacted) }); err != nil {
			return fmt.Errorf("redacted texts in the records of dreams in %s: %w", d.Dir, err)
		}
	}
	return os.Remove(r.file())
}
