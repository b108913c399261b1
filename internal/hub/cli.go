package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// Exit codes of the program.
const (
	exitOK      = 0
	exitTrouble = 1
	exitUsage   = 2
	exitPerson  = 3 // some files of an import were refused, and wait for a person
)

// grammar is the program's commands and flags. Every flag has its MEMSVC_ variable.
type grammar struct {
	Config config.File `help:"Settings file in YAML, named like flags." placeholder:"FILE"`
	// ShowVersion is a command of its own, like help.
	ShowVersion config.VersionFlag `name:"version" cmdline:"" help:"Print the version."`

	Serve         serveCmd         `cmd:"" help:"Run the hub."`
	Migrate       migrateCmd       `cmd:"" help:"Bring the schema of a PostgreSQL database up to date."`
	Token         tokenCmd         `cmd:"" help:"Make, list and revoke tokens."`
	Invite        inviteCmd        `cmd:"" help:"Make a code with which another machine joins a project in one step."`
	Team          teamCmd          `cmd:"" help:"Make, list and set up teams."`
	Project       projectCmd       `cmd:"" help:"Make, list and purge projects."`
	Policy        policyCmd        `cmd:"" help:"Show and change what a team allows past the secret guard."`
	Audit         auditCmd         `cmd:"" help:"List the newest events of the audit log."`
	Redact        redactCmd        `cmd:"" help:"Remove a leaked text from every stored version of a memory."`
	Agents        agentsCmd        `cmd:"" help:"List the agents that the hub has seen."`
	Backup        backupCmd        `cmd:"" help:"Copy the running hub's store to a file."`
	RestoreBackup restoreBackupCmd `cmd:"" help:"Make a backup the store of a data directory, under a new epoch."`
	Export        exportCmd        `cmd:"" help:"Write an archive with full history, or a project as Markdown files."`
	Import        importCmd        `cmd:"" help:"Take an archive into the hub, or Markdown files into a project."`
	Check         checkCmd         `cmd:"" help:"Look for damage in a database or a data directory: what was changed or removed by hand."`
	Healthcheck   healthcheckCmd   `cmd:"" help:"Ask a running hub whether it is ready; exit 0 if so."`
	Version       versionCmd       `cmd:"" help:"Print the version."`
}

// env is what commands get from the program.
type env struct {
	command string          // as far as it was understood: "memsvc token create"
	ctx     context.Context //nolint:containedctx // kong binds values, and this one is the program's
	stdout  io.Writer
	stderr  io.Writer

	warnings []string // of the environment
}

// Main runs the program with args, without its name, and returns the exit code: 0
// done, 1 trouble, 2 usage, 3 files refused. Every failure is one line on stderr.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var g grammar
	e := &env{command: "memsvc", ctx: ctx, stdout: stdout, stderr: stderr}
	opts := options(stdout, stderr)
	opts.Bind = []any{e}
	opts.Warn = func(line string) { e.warnings = append(e.warnings, line) }
	kctx, err := config.Parse(&g, opts, args)
	if err != nil || config.CommandOf(kctx) != "serve" { // serve tells its log
		for _, line := range e.warnings {
			e.tell("warning: " + line)
		}
	}
	if err == nil {
		e.command = strings.TrimSpace("memsvc " + config.CommandOf(kctx))
		err = kctx.Run(e)
	}
	return e.exit(err)
}

// options say how the grammar is read.
func options(stdout, stderr io.Writer) config.Options {
	return config.Options{
		Program: "memsvc", Description: "The hub of shared memories for teams of coding agents.",
		EnvPrefix: "MEMSVC", Stdout: stdout, Stderr: stderr,
		Version: versionText(), Vars: map[string]string{"data_dir": defaultDataDir},
		// Of docker-compose.yml and of the project's own checks.
		OtherVariables: []string{"MEMSVC_VERSION", "MEMSVC_KILL_ROUNDS", "MEMSVC_PROMETHEUS", "MEMSVC_CLIENTS"},
	}
}

// exit tells err, if any, and returns its code.
func (e *env) exit(err error) int {
	var usage *config.UsageError
	var cfg *ConfigError
	switch {
	case err == nil, errors.Is(err, config.ErrShown):
		return exitOK
	case errors.Is(err, errRefused):
		return exitPerson
	case errors.As(err, &usage):
		e.tell(usage.Err.Error() + "; see " + cmp.Or(config.HelpFor("memsvc", err), e.command+" --help"))
		return exitUsage
	case errors.As(err, &cfg):
		e.tell(err.Error() + "; see " + e.command + " --help")
		return exitUsage
	case errors.Is(err, memory.ErrInvalidArgument):
		e.tell(err.Error())
		return exitUsage
	case errors.Is(err, context.Canceled) && e.ctx.Err() != nil:
		e.tell("interrupted")
		return exitTrouble
	}
	e.tell(err.Error())
	return exitTrouble
}

// tell writes one line a mistake; joined errors are several. What others wrote may stand
// in it.
func (e *env) tell(text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintln(e.stderr, "memsvc: "+printable(line))
	}
}

type serveCmd struct {
	Config `embed:""`
}

// Run serves until the program is told to end.
func (c *serveCmd) Run(e *env) error {
	log, err := telemetry.NewLogger(e.stderr, telemetry.LogOptions{Format: c.LogFormat, Level: c.LogLevel})
	if err != nil {
		return &ConfigError{Err: err}
	}
	for _, line := range e.warnings {
		log.Warn(line)
	}
	return Run(e.ctx, c.Config, Deps{Logger: log})
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e *env) error {
	return e.done("%s", versionText())
}

func versionText() string { return "memsvc " + buildinfo.Read().String() }

// timeFormat is how the program writes times.
const timeFormat = time.RFC3339
