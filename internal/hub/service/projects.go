package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// ProjectStatus is where a project stands, and the version of its team's policy.
type ProjectStatus struct {
	store.ProjectInfo
	PolicyVersion int64
}

// Project returns where a project stands. When cursor is not the zero Cursor and not
// of the project's history, the error is an ErrEpochChanged with the last revision
// that both share.
func (s *Service) Project(ctx context.Context, c Call, key memory.ProjectKey, cursor memory.Cursor) (ProjectStatus, error) {
	if err := c.Principal.mayProject(key, Reader); err != nil {
		return ProjectStatus{}, s.refused(ctx, c, key.Team, "project.get", key.String(), err)
	}
	var info store.ProjectInfo
	var err error
	if cursor == (memory.Cursor{}) {
		info, err = s.Backend.Project(ctx, key)
	} else {
		info, err = s.Feed.Check(ctx, key, cursor)
		if errors.Is(err, memory.ErrRevisionCompacted) {
			err = nil // where the project stands can be told; following is another matter
		}
	}
	if err != nil {
		return ProjectStatus{}, hide(key, err)
	}
	p, err := s.policy(ctx, key.Team)
	if err != nil {
		return ProjectStatus{}, err
	}
	return ProjectStatus{info, p.Version}, nil
}

// CreateProject makes an empty project. Admins of the team may, and its writers
// where the team allows it.
func (s *Service) CreateProject(ctx context.Context, c Call, key memory.ProjectKey) (ProjectStatus, error) {
	if err := s.mayCreate(ctx, c.Principal, key); err != nil {
		return ProjectStatus{}, s.refused(ctx, c, key.Team, "project.create", key.String(), err)
	}
	if err := s.createProject(ctx, c, key); err != nil {
		return ProjectStatus{}, s.refused(ctx, c, key.Team, "project.create", key.String(), err)
	}
	return s.Project(ctx, c, key, memory.Cursor{})
}

// mayCreate asks whether the principal may create the project by name.
func (s *Service) mayCreate(ctx context.Context, p Principal, key memory.ProjectKey) error {
	if !p.reaches(key) {
		return noProject(key)
	}
	if p.Project != "" {
		return denied(p, Admin, "teams/"+string(key.Team))
	}
	if p.Role >= Admin {
		return nil
	}
	if p.Role == Writer && p.Team != "" {
		t, err := s.teamSettings(ctx, key.Team)
		if err != nil {
			return err
		}
		if t.WritersCreateProjects {
			return nil
		}
	}
	return denied(p, Admin, "teams/"+string(key.Team))
}

func (s *Service) createProject(ctx context.Context, c Call, key memory.ProjectKey) error {
	if err := s.judgeLabels(ctx, "", label{"team_id", string(key.Team)}, label{"project_id", string(key.Project)}); err != nil {
		return err
	}
	return s.Backend.CreateProject(ctx, key, s.Now(), s.event(c, key.Team, "project.create", key.String(), ""))
}

// Projects lists the projects of a team that the caller may see.
func (s *Service) Projects(ctx context.Context, c Call, team memory.Team, page Page) ([]ProjectStatus, string, error) {
	if !c.Principal.reachesTeam(team) {
		return nil, "", s.refused(ctx, c, team, "project.list", "teams/"+string(team), noTeam(team))
	}
	keys, err := s.Backend.Projects(ctx, team)
	if err != nil {
		return nil, "", err
	}
	if err := s.someTeam(ctx, c, team, len(keys)); err != nil {
		return nil, "", err
	}
	keys = slices.DeleteFunc(keys, func(k memory.ProjectKey) bool { return !c.Principal.reaches(k) })
	slices.SortFunc(keys, store.CompareProjects)
	keys, next, err := pageOf(listOf("projects", string(team)), keys, page, memory.ProjectKey.String)
	if err != nil {
		return nil, "", err
	}
	p, err := s.policy(ctx, team)
	if err != nil {
		return nil, "", err
	}
	out := make([]ProjectStatus, 0, len(keys))
	for _, k := range keys {
		info, err := s.Backend.Project(ctx, k)
		if errors.Is(err, memory.ErrNotFound) {
			continue // purged meanwhile
		}
		if err != nil {
			return nil, "", err
		}
		out = append(out, ProjectStatus{info, p.Version})
	}
	return out, next, nil
}

// PurgeProject removes a project with its whole history, for ever.
func (s *Service) PurgeProject(ctx context.Context, c Call, key memory.ProjectKey) error {
	if err := c.Principal.mayProject(key, Admin); err != nil {
		return s.refused(ctx, c, key.Team, "project.purge", key.String(), err)
	}
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return hide(key, err)
	}
	on := s.event(c, key.Team, "project.purge", key.String(), fmt.Sprintf("head %d, %d memories", info.Head.Revision, info.Files))
	if err := s.Backend.PurgeProject(ctx, key, on); err != nil {
		return hide(key, err)
	}
	s.search.forget(key)
	s.Feed.Fail(func(k memory.ProjectKey) bool { return k == key }, noProject(key))
	return nil
}

// Team is a team with its settings.
type Team struct {
	ID       memory.Team
	Settings TeamSettings
}

// CreateTeam makes a team. Only admins of the hub may.
func (s *Service) CreateTeam(ctx context.Context, c Call, team memory.Team) (Team, error) {
	if err := c.Principal.mayHub(); err != nil {
		return Team{}, s.refused(ctx, c, c.Principal.Team, "team.create", "teams/"+string(team), err)
	}
	known, err := s.teams(ctx)
	if err != nil {
		return Team{}, err
	}
	if slices.Contains(known, team) {
		return Team{}, &memory.Error{Reason: memory.ReasonAlreadyExists, Message: "teams/" + string(team) + " already exists"}
	}
	if err := s.createTeam(ctx, c, team); err != nil {
		return Team{}, s.refused(ctx, c, "", "team.create", "teams/"+string(team), err)
	}
	t, err := s.teamSettings(ctx, team)
	return Team{team, t}, err
}

func (s *Service) createTeam(ctx context.Context, c Call, team memory.Team) error {
	if err := s.judgeLabels(ctx, "", label{"team_id", string(team)}); err != nil {
		return err
	}
	_, _, err := update(ctx, s.settings, "", settingTeams, []memory.Team(nil), func(names *[]memory.Team) error {
		if slices.Contains(*names, team) {
			return errUnchanged
		}
		*names = append(slices.Clone(*names), team)
		slices.Sort(*names)
		return nil
	}, s.event(c, team, "team.create", "teams/"+string(team), ""))
	return err
}

// teams returns every team, by name: those with a project and those made without.
func (s *Service) teams(ctx context.Context) ([]memory.Team, error) {
	made, _, err := load(ctx, s.settings, "", settingTeams, []memory.Team(nil))
	if err != nil {
		return nil, err
	}
	used, err := s.Backend.Teams(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(made, used)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// someTeam refuses an empty answer about a team that does not exist: a misspelt name
// would look like a team without anything. Whoever belongs to the team knows it.
func (s *Service) someTeam(ctx context.Context, c Call, team memory.Team, found int) error {
	if found > 0 || team == "" || team == c.Principal.Team {
		return nil
	}
	known, err := s.teams(ctx)
	if err == nil && !slices.Contains(known, team) {
		err = noTeam(team)
	}
	return err
}

// Teams lists the teams that the caller may see.
func (s *Service) Teams(ctx context.Context, c Call, page Page) ([]Team, string, error) {
	names, err := s.teams(ctx)
	if err != nil {
		return nil, "", err
	}
	names = slices.DeleteFunc(names, func(t memory.Team) bool { return !c.Principal.reachesTeam(t) })
	names, next, err := pageOf(listOf("teams", ""), names, page, func(t memory.Team) string { return string(t) })
	if err != nil {
		return nil, "", err
	}
	out := make([]Team, 0, len(names))
	for _, name := range names {
		t, err := s.teamSettings(ctx, name)
		if err != nil {
			return nil, "", err
		}
		out = append(out, Team{name, t})
	}
	return out, next, nil
}

// UpdateTeam replaces a team's settings.
func (s *Service) UpdateTeam(ctx context.Context, c Call, t Team) (Team, error) {
	subject := "teams/" + string(t.ID)
	if err := c.Principal.mayTeam(t.ID, Admin); err != nil {
		return Team{}, s.refused(ctx, c, t.ID, "team.update", subject, err)
	}
	names, err := s.teams(ctx)
	if err != nil {
		return Team{}, err
	}
	if !slices.Contains(names, t.ID) {
		return Team{}, noTeam(t.ID)
	}
	if err := t.Settings.check(subject); err != nil {
		return Team{}, err
	}
	detail := fmt.Sprintf("writers_create_projects=%t retention=%s max_project_files=%d max_project_bytes=%d",
		t.Settings.WritersCreateProjects, t.Settings.Retention, t.Settings.MaxProjectFiles, t.Settings.MaxProjectBytes)
	now, _, err := update(ctx, s.settings, string(t.ID), settingTeam, TeamSettings{WritersCreateProjects: true}, func(old *TeamSettings) error {
		t.Settings.Redactions = old.Redactions // the hub's own
		*old = t.Settings
		return nil
	}, s.event(c, t.ID, "team.update", subject, detail))
	if err != nil {
		return Team{}, err
	}
	return Team{t.ID, now}, nil
}
