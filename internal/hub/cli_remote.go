package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/memory"
)

// remote is how a command reaches a running hub.
type remote struct {
	Hub       string        `help:"Address of the hub's gRPC API." default:"127.0.0.1:7420"`
	TokenFile string        `help:"File that holds an admin token; required, unless a client certificate says who calls." placeholder:"FILE"`
	Plaintext bool          `help:"Speak without TLS; a loopback address is spoken to so by itself."`
	CAFile    string        `name:"ca-file" aliases:"ca" help:"Authorities to trust instead of the system's (PEM)." placeholder:"FILE"`
	CertFile  string        `aliases:"cert" help:"Client certificate (PEM), where the hub wants one; without --token-file it says who calls." placeholder:"FILE"`
	KeyFile   string        `aliases:"key" help:"Key of the client certificate (PEM)." placeholder:"FILE"`
	Timeout   time.Duration `help:"How long one call may take." default:"15s"`
}

func (r remote) open(e *env) (*client.Client, error) {
	if err := within("--timeout", r.Timeout, minWait, maxWait); err != nil {
		return nil, &ConfigError{Err: err}
	}
	if r.TokenFile == "" && r.CertFile == "" { // not in the tags, since import can do without a hub
		return nil, usage("missing flags: --token-file=FILE, or --cert-file=FILE and --key-file=FILE where a client certificate says who calls")
	}
	if r.TokenFile != "" { // a wrong file is told as such, even when the hub is away too
		switch text, err := readSecretFile(r.TokenFile); {
		case err != nil:
			return nil, usage("--token-file: %v", err)
		case text == "":
			return nil, usage("--token-file %s: no such file, or empty", r.TokenFile)
		}
	}
	for _, name := range []string{r.TokenFile, r.KeyFile} {
		if text := openToOthers(name); text != "" {
			e.tell("warning: " + text)
		}
	}
	return client.New(client.Options{
		Addr: r.Hub, TokenFile: r.TokenFile, Plaintext: r.Plaintext, CAFile: r.CAFile, CertFile: r.CertFile, KeyFile: r.KeyFile,
		UserAgent: userAgent(), CallTimeout: r.Timeout,
		Author: memory.Author{Machine: hostName(), Client: userAgent()},
	})
}

// userAgent is how the program names itself to hubs, and in the commits that it makes.
func userAgent() string { return "memsvc/" + buildinfo.Read().Version }

// with runs do with a client of the hub.
func (r remote) with(e *env, do func(*client.Client) error) (err error) {
	c, err := r.open(e)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}()
	return do(c)
}

type tokenCmd struct {
	Create    tokenCreateCmd    `cmd:"" help:"Make a token and print it, this once. A new team or project is created with it."`
	Bootstrap tokenBootstrapCmd `cmd:"" help:"Make the first token of a hub on a PostgreSQL database, once."`
	List      tokenListCmd      `cmd:"" help:"List tokens, without their secrets."`
	Revoke    tokenRevokeCmd    `cmd:"" help:"Revoke a token at once."`
}

type tokenCreateCmd struct {
	remote  `embed:""`
	Team    string        `help:"Team of the token." placeholder:"TEAM" xor:"scope"`
	Whole   bool          `name:"whole-hub" cmdline:"" help:"A token of every team, for the people who run the hub." xor:"scope"`
	Project string        `help:"Project of the token; without it, the whole team." placeholder:"PROJECT"`
	Role    string        `help:"reader, writer or admin." required:"" enum:"reader,writer,admin"`
	Name    string        `help:"What it is for; commits carry it." required:"" placeholder:"NAME"`
	TTL     time.Duration `name:"ttl" help:"How long it holds; without it, until revoked."`
	Out     string        `cmdline:"" help:"Write the token to this new file (0600) instead; a file that is there already holds one, and none is made." placeholder:"FILE"`
}

// Run makes the token.
func (c *tokenCreateCmd) Run(e *env) error {
	if err := errors.Join(checkName(c.Name), checkTTL(c.TTL)); err != nil {
		return err
	}
	if c.Team == "" && !c.Whole {
		return usage("give --team TEAM, or --whole-hub for a token of every team")
	}
	if c.Out != "" {
		if has, err := holdsToken(c.Out); err != nil || has {
			if err == nil {
				err = e.done("kept %s, which holds a token", c.Out)
			}
			return err
		}
	}
	return c.with(e, func(hub *client.Client) error {
		scope := memory.ProjectKey{Team: memory.Team(c.Team), Project: memory.Project(c.Project)}
		newTeam, newProject := e.unknown(hub, scope)
		_, secret, err := hub.CreateToken(e.ctx, client.NewToken{
			Name: c.Name, Team: memory.Team(c.Team), Project: memory.Project(c.Project), Role: c.Role, TTL: c.TTL,
		})
		if err != nil {
			return err
		}
		e.tellNew(scope, newTeam, newProject)
		if c.Out == "" {
			fmt.Fprintln(e.stdout, secret)
			return nil
		}
		if err := writeSecretFile(c.Out, secret+"\n"); err != nil {
			return fmt.Errorf("token create: the token was made and could not be kept; revoke it (token list): --out %s: %w", c.Out, err)
		}
		return e.done("wrote a token to %s", c.Out)
	})
}

// unknown reports whether the hub does not know the team or the project of scope yet,
// either of which may be "". It is asked in order to tell; what cannot be found out is
// left to the call that follows.
func (e *env) unknown(hub *client.Client, scope memory.ProjectKey) (team, project bool) {
	if scope.Team == "" {
		return false, false
	}
	if scope.Project != "" {
		_, err := hub.Project(e.ctx, scope, memory.Cursor{})
		if project = errors.Is(err, memory.ErrNotFound); !project {
			return false, false
		}
	}
	teams, err := hub.Teams(e.ctx)
	return err == nil && !slices.Contains(teams, scope.Team), project
}

// tellNew says which names were new and were made: a slip makes a new one too.
func (e *env) tellNew(scope memory.ProjectKey, team, project bool) {
	switch {
	case team && project:
		e.tell(fmt.Sprintf("team %s and its project %s are new: they were made now", scope.Team, scope.Project))
	case team:
		e.tell(fmt.Sprintf("team %s is new: it was made now", scope.Team))
	case project:
		e.tell(fmt.Sprintf("project %s of team %s is new: it was made now", scope.Project, scope.Team))
	}
}

// holdsToken reports whether a file holds a token. A file that holds anything else
// is an error: it is never overwritten. So is a place where no file can be made.
func holdsToken(name string) (bool, error) {
	text, err := readSecretFile(name)
	if err != nil {
		return false, usage("--out: %v", err)
	}
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(name)
		if _, err := os.Stat(dir); err != nil {
			return false, usage("--out %s: there is no directory %s; make it first", name, dir)
		}
		return false, nil
	}
	if !authn.WellFormed(text) {
		return false, usage("--out %s: exists and holds no token; move it away", name)
	}
	return true, nil
}

type tokenListCmd struct {
	remote `embed:""`
	Team   string `help:"Only this team's." placeholder:"TEAM"`
}

// Run lists the tokens.
func (c *tokenListCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		tokens, err := hub.Tokens(e.ctx, memory.Team(c.Team))
		if err != nil {
			return err
		}
		return e.table("ID\tNAME\tROLE\tSCOPE\tCREATED\tEXPIRES\tREVOKED", func(row func(...any)) {
			for _, t := range tokens {
				row(t.ID, t.Name, t.Role, scopeText(t.Team, t.Project), timeText(t.CreateTime), timeText(t.ExpireTime), timeText(t.RevokeTime))
			}
		})
	})
}

func scopeText(team memory.Team, project memory.Project) string {
	switch {
	case team == "":
		return "hub"
	case project == "":
		return string(team)
	}
	return string(team) + "/" + string(project)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(timeFormat)
}

type tokenRevokeCmd struct {
	remote `embed:""`
	ID     string `arg:"" help:"Id of the token, as list shows it."`
}

// Run revokes the token.
func (c *tokenRevokeCmd) Run(e *env) error {
	return c.with(e, func(hub *client.Client) error {
		if err := hub.RevokeToken(e.ctx, c.ID); err != nil {
			return err
		}
		return e.done("revoked token %s", c.ID)
	})
}

type healthcheckCmd struct {
	OpsAddr string        `name:"ops-addr" help:"Address of the hub's ops port." default:"127.0.0.1:7422"`
	Timeout time.Duration `help:"How long to wait for the answer." default:"3s"`
}
