package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Archiver moves whole histories between hubs.
type Archiver interface {
	// Export writes an archive of the hub (team ""), of a team, or of one project.
	// tokens says whether the hashes of tokens go with it.
	Export(ctx context.Context, team memory.Team, project memory.Project, tokens bool, w io.Writer) error
	// Import takes an archive in and mints an epoch; what is there already is
	// compared and skipped. commits counts all of the archive.
	// judge decides about the texts beside the memories.
	Import(ctx context.Context, r io.ReadSeeker, judge ArchiveJudge) (projects, commits int64, err error)
}

// Imported counts what an import did.
type Imported struct {
	Projects int64 // touched
	Commits  int64 // added
	Skipped  int64 // there already
	Tokens   int64 // added
}

// Export writes an archive of the hub (scope ""), of teams/{team}, or of one
// project. It needs an admin of the scope.
func (s *Service) Export(ctx context.Context, c Call, scope string, w io.Writer) error {
	subject := cut(cmp.Or(scope, tokenScope("", "")), 300)
	key, err := s.exportScope(ctx, c, scope)
	if err != nil {
		return s.refused(ctx, c, key.Team, "export", subject, err)
	}
	if err := s.audit(ctx, c, key.Team, "export", subject, ""); err != nil {
		return err
	}
	return s.Archive.Export(ctx, key.Team, key.Project, scope == "", w)
}

// exportScope reads a scope and asks whether the caller may export it.
func (s *Service) exportScope(ctx context.Context, c Call, scope string) (memory.ProjectKey, error) {
	if scope == "" {
		return memory.ProjectKey{}, c.Principal.mayHub()
	}
	if strings.Contains(scope, "/projects/") {
		key, err := memory.ParseProjectKey(scope)
		if err != nil {
			return key, err
		}
		if err := c.Principal.mayProject(key, Admin); err != nil {
			return key, err
		}
		_, err = s.Backend.Project(ctx, key)
		return key, hide(key, err)
	}
	name, ok := strings.CutPrefix(scope, "teams/")
	if !ok {
		return memory.ProjectKey{}, invalid("scope: want nothing, teams/{team} or teams/{team}/projects/{project}")
	}
	team, err := memory.ParseTeam(name)
	if err != nil {
		return memory.ProjectKey{}, err
	}
	if err := c.Principal.mayTeam(team, Admin); err != nil {
		return memory.ProjectKey{Team: team}, err
	}
	return memory.ProjectKey{Team: team}, s.someTeam(ctx, c, team, 0)
}

// Import takes an archive in. It needs an admin of the hub. The archive is received
// whole and verified before anything is written. The hub's epoch changes, so watchers
// are told to compare everything.
func (s *Service) Import(ctx context.Context, c Call, r io.Reader) (_ Imported, err error) {
	if err := c.Principal.mayHub(); err != nil {
		return Imported{}, s.refused(ctx, c, c.Principal.Team, "import", "the hub", err)
	}
	f, err := os.CreateTemp(s.TempDir, ".import-")
	if err != nil {
		return Imported{}, s.noRoom("import", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := io.Copy(f, r); err != nil {
		return Imported{}, s.noRoom("import", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Imported{}, err
	}
	if err := s.audit(ctx, c, "", "import", "the hub", "begun"); err != nil {
		return Imported{}, err
	}
	before, err := s.revisions(ctx)
	if err != nil {
		return Imported{}, err
	}
	tokens, err := s.Backend.Tokens(ctx, "")
	if err != nil {
		return Imported{}, err
	}
	epoch, err := s.Backend.Epoch(ctx)
	if err != nil {
		return Imported{}, err
	}
	s.noticeEpoch(epoch, false)
	var res Imported
	var total int64
	res.Projects, total, err = s.Archive.Import(ctx, f, archiveJudge{s})
	if now, eerr := s.Backend.Epoch(context.WithoutCancel(ctx)); eerr != nil || now != epoch {
		// Something was written, even if not all.
		s.noticeEpoch(now, true)
		// Contents came in as they were elsewhere; the rules of this hub judge them.
		err = errors.Join(err, s.rejudge(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return res, err
	}
	after, err := s.revisions(ctx)
	if err != nil {
		return res, err
	}
	added, err := s.Backend.Tokens(ctx, "")
	if err != nil {
		return res, err
	}
	res.Tokens = int64(max(len(added)-len(tokens), 0))
	res.Commits = after - before
	res.Skipped = max(total-res.Commits, 0)
	s.outcome(ctx, c, "", "import", "the hub", fmt.Sprintf("%d projects, %d commits, %d skipped, %d tokens", res.Projects, res.Commits, res.Skipped, res.Tokens))
	return res, nil
}

// revisions returns the sum of all projects' heads.
func (s *Service) revisions(ctx context.Context) (int64, error) {
	keys, err := s.Backend.Projects(ctx, "")
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, key := range keys {
		info, err := s.Backend.Project(ctx, key)
		if errors.Is(err, memory.ErrNotFound) {
			continue
		}
		if err != nil {
			return 0, err
		}
		sum += int64(info.Head.Revision)
	}
	return sum, nil
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
		return s.noRoom("backup", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, "copy")
	if err := b.Backup(ctx, name); err != nil {
		return s.noRoom("backup", err)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(w, f)
	return err
}

// noRoom turns a failure for want of room in the hub's own directory, where copies are
// made before they are sent and archives received before they are read, into an answer
// that says so. Others it leaves alone.
func (s *Service) noRoom(op string, err error) error {
	for _, full := range []error{store.ErrNoRoom, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			s.Logger.Error("no room in the data directory", "for", op, "error", err.Error())
			return &memory.Error{Reason: memory.ReasonUnavailable, Message: op + ": no room in the hub's data directory; nothing was changed, make room there and try again"}
		}
	}
	return err
}
