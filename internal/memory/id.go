package memory

import (
	"fmt"
	"regexp"
	"strings"
)

// Team names a tenant: people and agents who share; the border of authority.
type Team string

// Project names one repository's shared memory inside a team.
type Project string

// idPattern is SPEC 13.3: what a team or project id looks like.
var idPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._~-]{0,127}$`)

// ParseTeam returns s as a Team, or an ErrInvalidArgument that says what an id looks like.
func ParseTeam(s string) (Team, error) {
	if !idPattern.MatchString(s) {
		return "", invalidID("team", s)
	}
	return Team(s), nil
}

// ParseProject returns s as a Project, or an ErrInvalidArgument that says what an id looks like.
func ParseProject(s string) (Project, error) {
	if !idPattern.MatchString(s) {
		return "", invalidID("project", s)
	}
	return Project(s), nil
}

func invalidID(kind, s string) error {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return &Error{
		Reason:  ReasonInvalidArgument,
		Message: fmt.Sprintf("%s id %q: use 1 to 128 of a-z, 0-9, '.', '_', '~', '-', starting with a letter or digit", kind, s),
	}
}

// ProjectKey names a project across teams.
type ProjectKey struct {
	Team    Team
	Project Project
}

// String returns the resource name, teams/{team}/projects/{project}.
func (k ProjectKey) String() string {
	return "teams/" + string(k.Team) + "/projects/" + string(k.Project)
}

// MemoryName returns the resource name of one memory of the project.
func (k ProjectKey) MemoryName(p Path) string { return k.String() + "/memories/" + string(p) }

// ParseProjectKey reads a resource name of the form teams/{team}/projects/{project}.
func ParseProjectKey(name string) (ProjectKey, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 || parts[0] != "teams" || parts[2] != "projects" {
		return ProjectKey{}, &Error{Reason: ReasonInvalidArgument, Message: "project name: want teams/{team}/projects/{project}"}
	}
	team, err := ParseTeam(parts[1])
	if err != nil {
		return ProjectKey{}, err
	}
	project, err := ParseProject(parts[3])
	if err != nil {
		return ProjectKey{}, err
	}
	return ProjectKey{Team: team, Project: project}, nil
}

// ParseMemoryName reads a resource name teams/{team}/projects/{project}/memories/{path}.
func ParseMemoryName(name string) (ProjectKey, Path, error) {
	head, tail, ok := strings.Cut(name, "/memories/")
	if !ok {
		return ProjectKey{}, "", &Error{Reason: ReasonInvalidArgument, Message: "memory name: want teams/{team}/projects/{project}/memories/{path}"}
	}
	key, err := ParseProjectKey(head)
	if err != nil {
		return ProjectKey{}, "", err
	}
	path, err := ParsePath(tail)
	return key, path, err
}
