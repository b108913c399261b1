package memory

import (
	"slices"
	"strings"
)

// Type is one of the four kinds of memory (SPEC 2.2, a closed set).
type Type string

// The four types.
const (
	TypeUser      Type = "user"
	TypeFeedback  Type = "feedback"
	TypeProject   Type = "project"
	TypeReference Type = "reference"
)

// Scope says who sees a memory.
type Scope string

// The scopes.
const (
	ScopePrivate Scope = "private" // stays on the machine
	ScopeTeam    Scope = "team"    // below team/, shared
)

// Dialogue is an example of a moment worth a memory: what the person says, and what
// the agent saves because of it.
type Dialogue struct {
	Person string
	Saves  string
}

// TypeDefinition is the one definition of a type. Prompts, --help, docs and
// validation all read it.
type TypeDefinition struct {
	Type     Type
	Holds    string // what a memory of this type holds
	SaveWhen string // when to save one
	Use      string // how to use one
	Examples []Dialogue
	// DefaultScope is where a new memory of this type goes when nothing else is said.
	DefaultScope Scope
	ScopeNote    string // when another scope is right
}

// AllTypes returns the four types in the order in which they are always listed.
func AllTypes() []Type {
	return []Type{TypeUser, TypeFeedback, TypeProject, TypeReference}
}

// ParseType returns the type that s spells, exactly and in lower case.
func ParseType(s string) (Type, bool) {
	t := Type(s)
	return t, slices.Contains(AllTypes(), t)
}

// TypeNames returns the four names joined for a message: "user, feedback, project, reference".
func TypeNames() string {
	var names []string
	for _, t := range AllTypes() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

// Definition returns the definition of t; the zero definition for a type outside the
// set. The value is the caller's own.
func (t Type) Definition() TypeDefinition {
	switch t {
	case TypeUser:
		return TypeDefinition{
			Type:     TypeUser,
			Holds:    "Who the person is and how they like to work: role, knowledge, preferences, what they are responsible for.",
			SaveWhen: "The person tells or shows something about themselves that will still matter in another conversation. Leave out judgements of the person.",
			Use:      "Fit explanations and proposals to what the person knows and wants: more background in a field that is new to them, less in their own.",
			Examples: []Dialogue{
				{
					Person: "I've run Postgres for ten years, but this is my first week with React.",
					Saves:  "Long Postgres experience, new to React: explain the frontend by comparison with the backend.",
				},
				{
					Person: "我只看 diff，不用每次都总结一遍。",
					Saves:  "Reads the diff and wants no summary after each change.",
				},
			},
			DefaultScope: ScopePrivate,
			ScopeNote:    "Always private; never below team/.",
		}
	case TypeFeedback:
		return TypeDefinition{
			Type:     TypeFeedback,
			Holds:    "How to work here: corrections, and ways of working that were confirmed, each with the reason.",
			SaveWhen: "The person corrects the approach, or confirms one that was not obvious. Write down the rule first, then why it holds and when to apply it.",
			Use:      "Follow it without being told again. The reason decides the cases that the rule does not name.",
			Examples: []Dialogue{
				{
					Person: "Don't mock the database here; a mocked test passed and the migration broke production.",
					Saves:  "Integration tests run against a real database. Why: a mocked test hid a broken migration. Apply to every test that touches a table.",
				},
				{
					Person: "Yes, one big pull request was right for this refactoring.",
					Saves:  "Confirmed: refactorings of this area go in one pull request, since pieces would only churn.",
				},
			},
			DefaultScope: ScopePrivate,
			ScopeNote:    "Team only if it is a convention of the whole project, such as how tests are written; a personal taste stays private.",
		}
	case TypeProject:
		return TypeDefinition{
			Type:     TypeProject,
			Holds:    "Facts about the work that are not to be found in code or git: decisions and their reasons, deadlines, incidents, who does what.",
			SaveWhen: "You learn who does what, why, or until when. Turn relative dates into absolute ones: \"Thursday\" means nothing next month.",
			Use:      "Understand the wider purpose of a request and warn about what collides with it. Such facts age: check before you build on one.",
			Examples: []Dialogue{
				{
					Person: "We freeze merges after Thursday, mobile cuts its release branch.",
					Saves:  "Merge freeze from 2026-03-05: mobile cuts its release branch. Question merges that are planned after that date.",
				},
				{
					Person: "The old session code goes because legal objects to how it stores tokens.",
					Saves:  "The session rewrite is driven by legal's demands on token storage, not by tidiness: when in doubt, compliance beats convenience.",
				},
			},
			DefaultScope: ScopeTeam,
			ScopeNote:    "Private if it concerns the person's own plans only.",
		}
	case TypeReference:
		return TypeDefinition{
			Type:     TypeReference,
			Holds:    "Where things live outside the repository: trackers, dashboards, documents, channels, and what each is for.",
			SaveWhen: "The person names a place in another system and what is kept there.",
			Use:      "Look there when a question points to that system, instead of guessing.",
			Examples: []Dialogue{
				{
					Person: "Pipeline bugs are in the Linear project INGEST, look there for the background.",
					Saves:  "Pipeline bugs are tracked in the Linear project INGEST.",
				},
				{
					Person: "值班看的是 Grafana 的 api-latency 面板。",
					Saves:  "On-call watches the Grafana dashboard api-latency: look at it after changing a request path.",
				},
			},
			DefaultScope: ScopeTeam,
			ScopeNote:    "Private if only the person can reach the place. Never write down a credential.",
		}
	}
	return TypeDefinition{}
}

// TypeOf returns the type of the memory at path: the frontmatter's type or
// metadata.type, else the prefix of the file name (ruling 13.9). ok is false when
// the type is missing or outside the set; a type in the frontmatter that is outside
// the set does not fall back to the name.
func TypeOf(path Path, fm Frontmatter) (t Type, ok bool) {
	if fm.Type != "" {
		return ParseType(fm.Type)
	}
	prefix, _, found := strings.Cut(path.Base(), "_")
	if !found {
		return "", false
	}
	return ParseType(prefix)
}
