package wire

import (
	"strconv"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// CommitName returns the resource name
// teams/{team}/projects/{project}/commits/{revision}.
func CommitName(key memory.ProjectKey, r memory.Revision) string {
	return key.String() + "/commits/" + strconv.FormatInt(int64(r), 10)
}

// ParseCommitName reads what CommitName wrote.
func ParseCommitName(name string) (memory.ProjectKey, memory.Revision, error) {
	project, number, ok := strings.Cut(name, "/commits/")
	if !ok {
		return memory.ProjectKey{}, 0, invalid("commit.name", "want teams/{team}/projects/{project}/commits/{revision}")
	}
	key, err := memory.ParseProjectKey(project)
	if err != nil {
		return memory.ProjectKey{}, 0, err
	}
	r, err := strconv.ParseInt(number, 10, 64)
	if err != nil || r < 0 || strconv.FormatInt(r, 10) != number {
		return memory.ProjectKey{}, 0, invalid("commit.name", "the revision is not a decimal number")
	}
	return key, memory.Revision(r), nil
}

// PolicyName returns the resource name teams/{team}/guardPolicy.
func PolicyName(team memory.Team) string { return "teams/" + string(team) + "/guardPolicy" }

// ParsePolicyName reads what PolicyName wrote.
func ParsePolicyName(name string) (memory.Team, error) {
	rest, ok := strings.CutPrefix(name, "teams/")
	team, tail, cut := strings.Cut(rest, "/")
	if !ok || !cut || tail != "guardPolicy" {
		return "", invalid("name", "want teams/{team}/guardPolicy")
	}
	return memory.ParseTeam(team)
}
