package service

import (
	"fmt"

	"github.com/memsvc/memsvc/internal/memory"
)

// Role is what a principal may do; a higher role may do all that a lower one may.
type Role uint8

// The roles (SPEC 4.5). The zero value may do nothing.
const (
	NoRole Role = iota
	Reader      // read and watch
	Writer      // commit too
	Admin       // administer too
)

// String returns reader, writer or admin, as a token keeps it.
func (r Role) String() string {
	switch r {
	case Reader:
		return "reader"
	case Writer:
		return "writer"
	case Admin:
		return "admin"
	}
	return "none"
}

// ParseRole reads what String wrote.
func ParseRole(s string) (Role, error) {
	for _, r := range []Role{Reader, Writer, Admin} {
		if s == r.String() {
			return r, nil
		}
	}
	return NoRole, invalid("role %.20q: use reader, writer or admin", s)
}

// Principal is who a credential stands for, and what it reaches.
type Principal struct {
	Name    string         // token:laptop; the author of its commits
	TokenID string         // "" for other credentials
	Team    memory.Team    // "" reaches the whole hub
	Project memory.Project // "" reaches the whole team
	Role    Role
}

// reaches reports whether the project lies inside what the principal may see.
func (p Principal) reaches(key memory.ProjectKey) bool {
	return p.reachesTeam(key.Team) && (p.Project == "" || p.Project == key.Project)
}

// reachesTeam reports whether the principal may know that the team exists.
func (p Principal) reachesTeam(team memory.Team) bool {
	return p.Role >= Reader && (p.Team == "" || p.Team == team)
}

// mayProject asks whether the principal may act as role in the project. Outside its
// reach the answer is the one for a project that does not exist.
func (p Principal) mayProject(key memory.ProjectKey, role Role) error {
	if !p.reaches(key) {
		return noProject(key)
	}
	if p.Role < role {
		return denied(p, role, key.String())
	}
	return nil
}

// mayTeam asks whether the principal may act as role in the whole team. A token of
// one project may not, but may know of its own team.
func (p Principal) mayTeam(team memory.Team, role Role) error {
	if !p.reachesTeam(team) {
		return noTeam(team)
	}
	if p.Role < role || (p.Project != "" && role > Reader) {
		return denied(p, role, "teams/"+string(team))
	}
	return nil
}

// scope names what the principal reaches.
func (p Principal) scope() string { return tokenScope(p.Team, p.Project) }

// mayHub asks whether the principal is an admin of the whole hub.
func (p Principal) mayHub() error {
	if p.Team != "" || p.Role < Admin {
		return denied(p, Admin, "the hub")
	}
	return nil
}

// denied says what the principal lacks: the role, or a scope wide enough for it.
func denied(p Principal, role Role, subject string) error {
	lacks := fmt.Sprintf("this needs the role %s, the token has %s", role, p.Role)
	if p.Role >= role {
		lacks = fmt.Sprintf("this needs the role %s of all of it, the token has it of %s only", role, p.scope())
	}
	return &memory.Error{
		Reason:  memory.ReasonPermissionDenied,
		Message: subject + ": " + lacks + "; ask an admin for another token",
	}
}

// noProject is the one answer for a project that does not exist and for one that
// the caller may not see.
func noProject(key memory.ProjectKey) error {
	return &memory.Error{
		Reason:  memory.ReasonNotFound,
		Message: key.String() + ": not found, or not yours to see; check the name and the token",
	}
}

func noTeam(team memory.Team) error {
	return &memory.Error{
		Reason:  memory.ReasonNotFound,
		Message: "teams/" + string(team) + ": not found, or not yours to see; check the name and the token",
	}
}

func invalid(format string, args ...any) error {
	return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: fmt.Sprintf(format, args...)}
}
