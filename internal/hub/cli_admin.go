package hub

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// usage is a mistake in how a command was called.
func usage(format string, args ...any) error { return &ConfigError{Err: fmt.Errorf(format, args...)} }

// done tells in one line what was done.
func (e *env) done(format string, args ...any) error {
	_, err := fmt.Fprintf(e.stdout, format+"\n", args...)
	return err
}

// table prints rows below a head. Cells are texts that anybody may have written: names,
// reasons, subjects of credentials.
func (e *env) table(head string, rows func(row func(cells ...any))) error {
	w := tabwriter.NewWriter(e.stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(func(cells ...any) {
		texts := make([]string, len(cells))
		for i, c := range cells {
			texts[i] = printable(fmt.Sprint(c))
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	})
	return w.Flush()
}

type teamCmd struct {
	Create teamCreateCmd `cmd:"" help:"Make a team."`
	List   teamListCmd   `cmd:"" help:"List teams with their settings."`
	Set    teamSetCmd    `cmd:"" help:"Change a team's settings; what is not named stays."`
}

type teamCreateCmd struct {
	remote `embed:""`
	Team   string `arg:"" help:"Id of the team."`
}

// Run makes the team.
func (c *teamCreateCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		if err := hub.CreateTeam(e.ctx, memory.Team(c.Team)); err != nil {
			return err
		}
		return e.done("created team %s", c.Team)
	})
}

type teamListCmd struct {
	remote `embed:""`
}

// Run lists the teams.
func (c *teamListCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		teams, err := hub.TeamSettings(e.ctx)
		if err != nil {
			return err
		}
		return e.table("TEAM\tWRITERS CREATE PROJECTS\tRETENTION\tMAX FILES\tMAX BYTES", func(row func(...any)) {
			for _, t := range teams {
				row(t.Team, t.WritersCreateProjects,
					orDefault(t.Retention != 0, t.Retention), orDefault(t.MaxProjectFiles != 0, t.MaxProjectFiles), orDefault(t.MaxProjectBytes != 0, t.MaxProjectBytes))
			}
		})
	})
}

func orDefault(set bool, v any) string {
	if !set {
		return "default"
	}
	return fmt.Sprint(v)
}

type teamSetCmd struct {
	remote                `embed:""`
	Team                  string         `arg:"" help:"Id of the team."`
	WritersCreateProjects *bool          `help:"Whether a writer of the whole team may create projects." negatable:""`
	Retention             *time.Duration `help:"How long replaced versions are kept; 0 is the hub's default."`
	MaxFiles              *int64         `help:"Living memories of a project; 0 is the hub's default."`
	MaxBytes              *int64         `help:"Bytes of a project's living memories; 0 is the hub's default."`
}

// Run changes the settings.
func (c *teamSetCmd) Run(e *env) error {
	if c.WritersCreateProjects == nil && c.Retention == nil && c.MaxFiles == nil && c.MaxBytes == nil {
		return usage("team set: nothing to set; name a setting, like --retention 720h")
	}
	if err := c.check(); err != nil {
		return &ConfigError{Err: err}
	}
	return c.with(e, func(hub *client.Client) error {
		teams, err := hub.TeamSettings(e.ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(teams, func(t client.TeamSettings) bool { return string(t.Team) == c.Team })
		if i < 0 {
			return fmt.Errorf("team %s: not found, or not yours to see; see team list", c.Team)
		}
		t := teams[i]
		set(&t.WritersCreateProjects, c.WritersCreateProjects)
		set(&t.Retention, c.Retention)
		set(&t.MaxProjectFiles, c.MaxFiles)
		set(&t.MaxProjectBytes, c.MaxBytes)
		if _, err = hub.UpdateTeam(e.ctx, t); err != nil {
			return err
		}
		return e.done("changed team %s: %s", c.Team, c.what())
	})
}

// what says what was set.
func (c *teamSetCmd) what() string {
	var parts []string
	add := func(name string, v any, zero bool) {
		if zero {
			v = "the hub's default"
		}
		parts = append(parts, fmt.Sprintf("%s %v", name, v))
	}
	if v := c.WritersCreateProjects; v != nil {
		add("writers create projects:", *v, false)
	}
	if v := c.Retention; v != nil {
		add("retention", *v, *v == 0)
	}
	if v := c.MaxFiles; v != nil {
		add("max files", *v, *v == 0)
	}
	if v := c.MaxBytes; v != nil {
		add("max bytes", *v, *v == 0)
	}
	return strings.Join(parts, ", ")
}

// check refuses numbers that cannot be, before anybody is asked.
func (c *teamSetCmd) check() error {
	var errs []error
	if d := c.Retention; d != nil && *d != 0 {
		errs = append(errs, within("--retention", *d, minRetention, maxRetention))
	}
	if n := c.MaxFiles; n != nil {
		errs = append(errs, within("--max-files", *n, 0, mostFiles))
	}
	if n := c.MaxBytes; n != nil {
		errs = append(errs, within("--max-bytes", *n, 0, mostBytes))
	}
	return errors.Join(errs...)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

type projectCmd struct {
	Create projectCreateCmd `cmd:"" help:"Make a project."`
	List   projectListCmd   `cmd:"" help:"List a team's projects."`
	Purge  projectPurgeCmd  `cmd:"" help:"Remove a project with its whole history, for ever."`
}

// projectArgs name a project.
type projectArgs struct {
	Team    string `help:"Team of the project." required:"" placeholder:"TEAM"`
	Project string `help:"The project." required:"" placeholder:"PROJECT"`
}

func (a projectArgs) key() (memory.ProjectKey, error) {
	return memory.ParseProjectKey("teams/" + a.Team + "/projects/" + a.Project)
}

type projectCreateCmd struct {
	remote      `embed:""`
	projectArgs `embed:""`
}

// Run makes the project.
func (c *projectCreateCmd) Run(e *env) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	return c.with(e, func(hub *client.Client) error {
		newTeam, _ := e.unknown(hub, memory.ProjectKey{Team: key.Team})
		if _, err := hub.CreateProject(e.ctx, key); err != nil {
			return err
		}
		if newTeam {
			e.tell("team " + c.Team + " is new: it was made with the project")
		}
		return e.done("created project %s of team %s", c.Project, c.Team)
	})
}

type projectListCmd struct {
	remote `embed:""`
	Team   string `help:"The team." required:"" placeholder:"TEAM"`
}

// Run lists the projects.
func (c *projectListCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		projects, err := hub.Projects(e.ctx, memory.Team(c.Team))
		if err != nil {
			return err
		}
		return e.table("PROJECT\tREVISION\tMEMORIES\tBYTES", func(row func(...any)) {
			for _, p := range projects {
				row(p.Key.Project, p.Head.Revision, p.Files, p.Bytes)
			}
		})
	})
}

type projectPurgeCmd struct {
	remote      `embed:""`
	projectArgs `embed:""`
	Yes         bool `cmdline:"" help:"Really: nothing brings it back but a backup."`
}

// Run purges the project.
func (c *projectPurgeCmd) Run(e *env) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if !c.Yes {
		return usage("project purge: this removes %s with its whole history for ever; say --yes", key)
	}
	return c.with(e, func(hub *client.Client) error {
		if err := hub.PurgeProject(e.ctx, key); err != nil {
			return err
		}
		return e.done("purged project %s of team %s with its whole history", c.Project, c.Team)
	})
}

type policyCmd struct {
	Show policyShowCmd `cmd:"" help:"Show a team's guard policy."`
	Set  policySetCmd  `cmd:"" help:"Change a team's guard policy; what is not named stays."`
}

type policyShowCmd struct {
	remote `embed:""`
	Team   string `help:"The team." required:"" placeholder:"TEAM"`
}

// Run shows the policy, without its key.
func (c *policyShowCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		p, err := hub.Policy(e.ctx, memory.Team(c.Team))
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "version: %d\nallow inline: %t\nown rules: %d bytes\n", p.Version, p.AllowInline, len(p.RulesTOML))
		for _, r := range p.AllowedRules {
			fmt.Fprintln(e.stdout, "allowed rule:", printable(r))
		}
		for _, f := range p.AllowedFingerprints {
			fmt.Fprintln(e.stdout, "allowed fingerprint:", printable(f))
		}
		return nil
	})
}

type policySetCmd struct {
	remote      `embed:""`
	Team        string   `help:"The team." required:"" placeholder:"TEAM"`
	Allow       []string `help:"Let findings with these fingerprints through." placeholder:"FINGERPRINT"`
	Disallow    []string `help:"No longer let these fingerprints through." placeholder:"FINGERPRINT"`
	AllowRule   []string `help:"Let findings of these rules through." placeholder:"RULE"`
	ForbidRule  []string `help:"No longer let these rules through." placeholder:"RULE"`
	AllowInline *bool    `help:"Whether gitleaks:allow on a line counts." negatable:""`
	RulesFile   string   `help:"gitleaks TOML that extends or replaces the rules; an empty file takes own rules away." placeholder:"FILE"`
}

// Run changes the policy.
func (c *policySetCmd) Run(e *env) error {
	if c.AllowInline == nil && c.RulesFile == "" && len(c.Allow)+len(c.Disallow)+len(c.AllowRule)+len(c.ForbidRule) == 0 {
		return usage("policy set: nothing to set; name a change, like --allow FINGERPRINT")
	}
	var rules []byte
	if c.RulesFile != "" {
		var err error
		if rules, err = os.ReadFile(c.RulesFile); err != nil {
			return &ConfigError{Err: fmt.Errorf("--rules-file: %w", err)}
		}
	}
	return c.with(e, func(hub *client.Client) error {
		p, err := hub.Policy(e.ctx, memory.Team(c.Team))
		if err != nil {
			return err
		}
		if err := errors.Join(missing("--disallow", p.AllowedFingerprints, c.Disallow), missing("--forbid-rule", p.AllowedRules, c.ForbidRule)); err != nil {
			return &ConfigError{Err: err}
		}
		before := p
		p.AllowedFingerprints = changeSet(p.AllowedFingerprints, c.Allow, c.Disallow)
		p.AllowedRules = changeSet(p.AllowedRules, c.AllowRule, c.ForbidRule)
		set(&p.AllowInline, c.AllowInline)
		if c.RulesFile != "" {
			p.RulesTOML = rules
		}
		if slices.Equal(p.AllowedFingerprints, before.AllowedFingerprints) && slices.Equal(p.AllowedRules, before.AllowedRules) &&
			p.AllowInline == before.AllowInline && bytes.Equal(p.RulesTOML, before.RulesTOML) {
			return e.done("version: %d, unchanged", p.Version)
		}
		next, err := hub.UpdatePolicy(e.ctx, p)
		if errors.Is(err, memory.ErrETagMismatch) {
			return errors.New("policy set: somebody changed the policy at the same time; look at it and try again")
		}
		if err != nil {
			return err
		}
		return e.done("version: %d; %s", next.Version, strings.Join(policyChanges(before, p), ", "))
	})
}

// policyChanges says what is another in after.
func policyChanges(before, after client.GuardPolicy) []string {
	var out []string
	compare := func(what string, was, is []string) {
		for _, one := range is {
			if !slices.Contains(was, one) {
				out = append(out, what+" "+one+" now allowed")
			}
		}
		for _, one := range was {
			if !slices.Contains(is, one) {
				out = append(out, what+" "+one+" no longer allowed")
			}
		}
	}
	compare("rule", before.AllowedRules, after.AllowedRules)
	compare("fingerprint", before.AllowedFingerprints, after.AllowedFingerprints)
	switch {
	case after.AllowInline && !before.AllowInline:
		out = append(out, "gitleaks:allow on a line now counts")
	case !after.AllowInline && before.AllowInline:
		out = append(out, "gitleaks:allow on a line no longer counts")
	}
	switch was, is := len(before.RulesTOML), len(after.RulesTOML); {
	case bytes.Equal(before.RulesTOML, after.RulesTOML):
	case is == 0:
		out = append(out, "own rules taken away")
	case was == 0:
		out = append(out, fmt.Sprintf("own rules added, %d bytes", is))
	default:
		out = append(out, fmt.Sprintf("own rules replaced, %d bytes", is))
	}
	return out
}

// missing refuses to take away what is not there.
func missing(flag string, have, remove []string) error {
	var errs []error
	for _, one := range remove {
		if !slices.Contains(have, one) {
			errs = append(errs, fmt.Errorf("%s %q: the policy does not allow it; policy show lists what it does", flag, one))
		}
	}
	return errors.Join(errs...)
}

// changeSet adds and removes, and returns the rest in order without doubles.
func changeSet(have, add, remove []string) []string {
	all := slices.Concat(have, add)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" || slices.Contains(remove, s) })
}

type auditCmd struct {
	remote `embed:""`
	Team   string `help:"Only this team's." placeholder:"TEAM"`
	Limit  int    `help:"At most so many." default:"100"`
}

// Run lists the log, newest first.
func (c *auditCmd) Run(e *env) error {
	if err := within("--limit", c.Limit, 1, mostEvents); err != nil {
		return &ConfigError{Err: err}
	}
	return c.with(e, func(hub *client.Client) error {
		events, err := hub.Audit(e.ctx, memory.Team(c.Team), c.Limit)
		if err != nil {
			return err
		}
		return e.table("TIME\tCOUNT\tLAST\tTEAM\tPRINCIPAL\tACTION\tSUBJECT\tREQUEST\tDETAIL", func(row func(...any)) {
			for _, ev := range events {
				row(timeText(ev.Time), ev.Count, timeText(ev.LastTime), cmp.Or(string(ev.Team), "-"), ev.Principal, ev.Action, ev.Subject, cmp.Or(ev.RequestID, "-"), ev.Detail)
			}
		})
	})
}

type redactCmd struct {
	remote      `embed:""`
	projectArgs `embed:""`
	Path        string   `arg:"" help:"Path of the memory below team/."`
	ETag        []string `name:"etag" help:"Only the texts with these etags." placeholder:"ETAG"`
	Reason      string   `required:"" cmdline:"" help:"Why, for the audit log." placeholder:"TEXT"`
}

// Run redacts the memory.
func (c *redactCmd) Run(e *env) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	path, err := memory.ParsePath(c.Path)
	if err != nil {
		return &ConfigError{Err: err}
	}
	etags := make([]memory.ETag, 0, len(c.ETag))
	for _, t := range c.ETag {
		etag, err := wire.ETagFromProto("--etag", t)
		if err != nil || etag == "" {
			return &ConfigError{Err: fmt.Errorf("--etag %q: want 64 digits of lower-case hex, as memsync-agent log --json prints them", t)}
		}
		etags = append(etags, etag)
	}
	return c.with(e, func(hub *client.Client) error {
		res, err := hub.Redact(e.ctx, key, path, etags, c.Reason)
		if err != nil {
			return err
		}
		if res.Revision == 0 && len(res.Memories) == 0 {
			tellRemaining(e.stdout, res.Remaining)
			return fmt.Errorf("%s: nothing redacted: no stored version holds such a text any more; what is listed was left by redactions before", printable(key.MemoryName(path)))
		}
		tellRedacted(e.stdout, res)
		return nil
	})
}

// tellRedacted says what went, and what somebody should look at.
func tellRedacted(w io.Writer, res client.Redacted) {
	what := "redacted"
	if res.Revision > 0 {
		what = fmt.Sprintf("redacted as revision %d", res.Revision)
	}
	fmt.Fprintf(w, "%s; backups made before still hold the text\n", what)
	for _, m := range res.Memories {
		var parts []string
		if m.Versions > 0 {
			parts = append(parts, count(m.Versions, "stored version", "stored versions"))
		}
		if m.Conflicts > 0 {
			parts = append(parts, count(m.Conflicts, "open conflict", "open conflicts"))
		}
		fmt.Fprintf(w, "  %s: %s\n", printable(m.Path), strings.Join(parts, ", "))
	}
	tellRemaining(w, res.Remaining)
}

func tellRemaining(w io.Writer, remaining []client.RemainingText) {
	if len(remaining) > 0 {
		fmt.Fprintln(w, "still served; look at these, and redact what holds the leak:")
	}
	for _, r := range remaining {
		where := fmt.Sprintf("revision %d", r.Revision)
		if r.Revision == 0 {
			where = "open conflict"
		}
		fmt.Fprintf(w, "  %s (%s): %s\n", printable(r.Path), where, printable(r.Reason))
	}
}

type agentsCmd struct {
	remote `embed:""`
	Team   string `help:"Only this team's." placeholder:"TEAM"`
}

// Run lists the agents, last seen first.
func (c *agentsCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		agents, err := hub.Agents(e.ctx, memory.Team(c.Team))
		if err != nil {
			return err
		}
		return e.table("AGENT\tMACHINE\tVERSION\tPRINCIPAL\tCONNECTED\tLAST SEEN\tPROJECTS", func(row func(...any)) {
			for _, a := range agents {
				row(a.ID, a.Machine, a.Version, a.Principal, a.Connected, timeText(a.LastSeen), strings.Join(a.Projects, " "))
			}
		})
	})
}
