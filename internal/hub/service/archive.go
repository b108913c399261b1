package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Archiver moves whole histories between hubs.
type Archiver interface {
	// Export writes an archive of the projects and of the teams' settings.
	Export(ctx context.Context, teams []memory.Team, projects []memory.ProjectKey, w io.Writer) error
	// Import takes an archive in; what is there already is verified and skipped. It
	// mints an epoch when it adds anything.
	Import(ctx context.Context, r io.Reader) (Imported, error)
}

// Imported counts what an import did.
type Imported struct {
	Projects int64 // touched
	Commits  int64 // added
	Skipped  int64 // there already
}

func errNoArchive() error {
	return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: "this hub was built without archives"}
}

// Export writes an archive of the hub (scope ""), of teams/{team}, or of one
// project. It needs an admin of the scope.
func (s *Service) Export(ctx context.Context, c Call, scope string, w io.Writer) error {
	teams, keys, auditTeam, err := s.exportScope(ctx, c, scope)
	if err != nil {
		return s.refused(ctx, c, auditTeam, "export", cut(scope, 300), err)
	}
	if err := s.audit(ctx, c, auditTeam, "export", scope, fmt.Sprintf("%d projects", len(keys))); err != nil {
		return err
	}
	if s.Archive == nil {
		return errNoArchive()
	}
	return s.Archive.Export(ctx, teams, keys, w)
}

func (s *Service) exportScope(ctx context.Context, c Call, scope string) (teams []memory.Team, keys []memory.ProjectKey, auditTeam memory.Team, err error) {
	if scope == "" {
		if err := c.Principal.mayHub(); err != nil {
			return nil, nil, c.Principal.Team, err
		}
		if teams, err = s.teams(ctx); err != nil {
			return nil, nil, "", err
		}
		keys, err = s.Backend.Projects(ctx, "")
		return teams, keys, "", err
	}
	if strings.Contains(scope, "/projects/") {
		key, err := memory.ParseProjectKey(scope)
		if err != nil {
			return nil, nil, c.Principal.Team, err
		}
		if err := c.Principal.mayProject(key, Admin); err != nil {
			return nil, nil, key.Team, err
		}
		if _, err := s.Backend.Project(ctx, key); err != nil {
			return nil, nil, key.Team, hide(key, err)
		}
		return nil, []memory.ProjectKey{key}, key.Team, nil
	}
	name, ok := strings.CutPrefix(scope, "teams/")
	if !ok {
		return nil, nil, c.Principal.Team, invalid("scope: want nothing, teams/{team} or teams/{team}/projects/{project}")
	}
	team, err := memory.ParseTeam(name)
	if err != nil {
		return nil, nil, c.Principal.Team, err
	}
	if err := c.Principal.mayTeam(team, Admin); err != nil {
		return nil, nil, team, err
	}
	keys, err = s.Backend.Projects(ctx, team)
	return []memory.Team{team}, keys, team, err
}

// Import takes an archive in. It needs an admin of the hub. The hub's epoch changes,
// so watchers are told to compare everything.
func (s *Service) Import(ctx context.Context, c Call, r io.Reader) (Imported, error) {
	if err := c.Principal.mayHub(); err != nil {
		return Imported{}, s.refused(ctx, c, c.Principal.Team, "import", "the hub", err)
	}
	if err := s.audit(ctx, c, "", "import", "the hub", "begun"); err != nil {
		return Imported{}, err
	}
	if s.Archive == nil {
		return Imported{}, errNoArchive()
	}
	res, err := s.Archive.Import(ctx, r)
	if res.Commits > 0 || err != nil {
		s.settings.clear()
		s.Feed.Fail(func(memory.ProjectKey) bool { return true }, &memory.Error{
			Reason: memory.ReasonEpochChanged, Message: "histories were imported into the hub; compare everything",
		})
	}
	if err != nil {
		return res, err
	}
	return res, s.audit(ctx, c, "", "import", "the hub", fmt.Sprintf("%d projects, %d commits, %d skipped", res.Projects, res.Commits, res.Skipped))
}

// Backup writes a consistent copy of the whole store to w while it runs. It needs
// an admin of the hub.
func (s *Service) Backup(ctx context.Context, c Call, w io.Writer) (err error) {
	if err := c.Principal.mayHub(); err != nil {
		return s.refused(ctx, c, c.Principal.Team, "backup", "the hub", err)
	}
	b, ok := s.Backend.(store.Backuper)
	if !ok {
		return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: "backup: this hub's store is backed up with its database's own tools"}
	}
	if err := s.audit(ctx, c, "", "backup", "the hub", ""); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.TempDir, ".backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "copy")
	if err := b.Backup(ctx, name); err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(w, f)
	return err
}
