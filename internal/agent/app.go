package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/memsvc/memsvc/internal/buildinfo"
	"github.com/memsvc/memsvc/internal/config"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	modelcommand "github.com/memsvc/memsvc/internal/lifecycle/model/command"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// The exit codes of the program.
const (
	ExitOK      = 0
	ExitTrouble = 1 // something went wrong
	ExitUsage   = 2 // the command cannot be understood or cannot work as given
	ExitPerson  = 3 // something is refused, halted or in conflict, and waits for a person
)

// App is what the program gets from outside. Tests give it other streams.
type App struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Now is the clock of this machine; nil is time.Now.
	Now func() time.Time
	// Ready is called once a daemon serves its socket; tests wait for it.
	Ready func()
	// HookTime is how long a hook may take, and ModelTime how long whoever recalls memories
	// waits for the language model before the ranker answers; 0 = what each event and command
	// is given. Tests that are about the answer give more than a busy machine needs.
	HookTime, ModelTime time.Duration
	// Patience is how long a command waits for the daemon or for another command; 0 =
	// defaultTimeout.
	Patience time.Duration
}

// exitCode ends the program with a code after everything was said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs one command and returns the program's exit code. ctx ends with the
// signals that ask the program to stop.
func Main(ctx context.Context, app App) int {
	if app.Now == nil {
		app.Now = time.Now
	}
	if isHook(app.Args) {
		dieByASignal()
	}
	if plainHook(app.Args, os.Getenv) {
		return app.runPlainHook(ctx)
	}
	stdout := app.Stdout
	app.Stdout = screen(stdout)
	defer flush(app.Stdout)
	var g grammar
	var links []Link
	var models ModelSettings
	defaultState, stateErr := DefaultStateDir(os.Getenv)
	opts := options(app.Stdout, app.Stderr, defaultState)
	if len(app.Args) == 0 {
		// A client that leaves out the arguments of a hook runs this; 2 would be its veto.
		opts.Stdout = app.Stderr
		_, _ = config.Parse(&g, opts, []string{"--help"})
		return ExitTrouble
	}
	opts.Sections = map[string]any{"links": &links, "model": &models}
	var warnings []string
	opts.Warn = func(line string) { warnings = append(warnings, line) }
	kctx, err := config.Parse(&g, opts, app.Args)
	if !isHook(app.Args) && (err != nil || config.CommandOf(kctx) != "run") {
		app.warn(warnings) // run tells its log
	}
	if errors.Is(err, config.ErrShown) {
		return ExitOK
	}
	if err == nil && g.StateDir == "" && kctx.Command() != "version" {
		err = stateErr
	}
	if err == nil {
		var abs string
		if abs, err = filepath.Abs(expandHome(g.StateDir)); err == nil {
			cmd := &command{App: app, ctx: ctx, state: stateDir(abs), configured: links, models: models, secrets: strictSecrets(), g: &g, warnings: warnings, stdout: stdout}
			err = kctx.Run(cmd)
		}
	}
	if isHook(app.Args) {
		return ExitOK
	}
	return app.report(err)
}

// options say how the grammar is read.
func options(stdout, stderr io.Writer, stateDir string) config.Options {
	return config.Options{
		Program:     "memsync-agent",
		Description: "Keeps the team/ directories of this machine in step with a hub.",
		EnvPrefix:   "MEMSYNC",
		Stdout:      stdout,
		Stderr:      stderr,
		Version:     "memsync-agent " + buildinfo.Read().String(),
		Vars:        map[string]string{"state_dir": stateDir, "types": typeHelp()},
		// What runs below a model leaves hooks alone; the other is of the project's own checks.
		OtherVariables: []string{modelcommand.HooksOff, "MEMSYNC_E2E_LONG"},
	}
}

// report prints an error as one line and chooses the exit code.
func (app App) report(err error) int {
	var code exitCode
	var use *config.UsageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &use):
		fmt.Fprintf(app.Stderr, "memsync-agent: %s%s\n", oneLine(err), seeHelp(err))
		return ExitUsage
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(app.Stderr, "memsync-agent: interrupted")
		return ExitTrouble
	}
	fmt.Fprintf(app.Stderr, "memsync-agent: %s\n", oneLine(err))
	return ExitTrouble
}

// warn prints what is odd and stops nothing, each in a line.
func (app App) warn(lines []string) {
	for _, line := range lines {
		fmt.Fprintf(app.Stderr, "memsync-agent: warning: %s\n", visible(line))
	}
}

// seeHelp says where it stands what the command line should be, if it was not understood.
func seeHelp(err error) string {
	if help := config.HelpFor("memsync-agent", err); help != "" {
		return "; see '" + help + "'"
	}
	return ""
}

// oneLine makes joined errors one line that may be printed.
func oneLine(err error) string {
	return visible(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// command is what every command's Run gets.
type command struct {
	App
	ctx        context.Context //nolint:containedctx // one command, one context: kong calls Run without one
	state      stateDir
	configured []Link        // of the settings file
	models     ModelSettings // of the settings file
	secrets    model.Secrets // what no language model is shown
	g          *grammar
	warnings   []string  // of the environment
	stdout     io.Writer // as it came, for a program that takes the terminal over
}

func (c *command) logger() (*slog.Logger, error) {
	log, err := telemetry.NewLogger(c.Stderr, telemetry.LogOptions{Format: c.g.LogFormat, Level: c.g.LogLevel})
	if err != nil {
		return nil, &config.UsageError{Err: err}
	}
	return log, nil
}

// terminal reports whether a person watches the error stream.
func (c *command) terminal() bool {
	f, ok := c.Stderr.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

func userAgent() string { return "memsync-agent/" + buildinfo.Read().Version }

// expandHome replaces a leading ~/ as a shell would; settings files have no shell.
func expandHome(p string) string {
	rest, ok := strings.CutPrefix(p, "~/")
	if !ok {
		return p
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return p
	}
	return filepath.Join(home, rest)
}

// absDir makes a directory as a person typed it absolute and clean.
func absDir(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	if strings.ContainsRune(dir, 0) {
		return "", usage("--dir: a NUL in a path")
	}
	abs, err := filepath.Abs(expandHome(dir))
	if err != nil {
		return "", usage("--dir %s: %v", dir, err)
	}
	return abs, nil
}
