package agent

import (
	"fmt"
	"os"
	"strings"

	"github.com/memsvc/memsvc/internal/clients/install"
)

// installClientCmd is the flags of every client's subcommand.
type installClientCmd struct {
	DryRun    bool   `cmdline:"" help:"Show what would change; write nothing."`
	Uninstall bool   `cmdline:"" help:"Remove what was installed, and nothing else."`
	Scope     string `help:"user: your configuration. project: the files of the project in the working directory, which a team shares; they call the program by name." enum:"user,project" default:"user"`
}

type (
	installClaudeCodeCmd struct{ installClientCmd }
	installCodexCmd      struct{ installClientCmd }
	installGeminiCmd     struct{ installClientCmd }
	installOpenCodeCmd   struct{ installClientCmd }
	installCursorCmd     struct{ installClientCmd }
)

// Run writes hooks and tools into the configuration of Claude Code.
func (x *installClaudeCodeCmd) Run(c *command) error { return x.run(c, "claude-code") }

// Run writes hooks and tools into the configuration of Codex.
func (x *installCodexCmd) Run(c *command) error { return x.run(c, "codex") }

// Run writes hooks and tools into the configuration of Gemini CLI.
func (x *installGeminiCmd) Run(c *command) error { return x.run(c, "gemini") }

// Run writes hooks and tools into the configuration of OpenCode.
func (x *installOpenCodeCmd) Run(c *command) error { return x.run(c, "opencode") }

// Run writes hooks and tools into the configuration of Cursor.
func (x *installCursorCmd) Run(c *command) error { return x.run(c, "cursor") }

func (x *installClientCmd) run(c *command, name string) error {
	env, err := c.installEnv()
	if err != nil {
		return err
	}
	for _, client := range install.Clients() {
		if client.Name == name {
			return x.install(c, client, env)
		}
	}
	return usage("no client is called %s; known are: %s", name, install.Names())
}

func (x *installClientCmd) install(c *command, client *install.Client, env install.Env) error {
	changes, err := client.Plan(env, install.Scope(x.Scope), x.Uninstall)
	if err != nil {
		return err
	}
	if x.DryRun {
		for _, ch := range changes {
			if !ch.Nothing() {
				unified(c.Stdout, ch.File, "now", "then", ch.Before, ch.After, ch.Before != nil, ch.After != nil)
			}
		}
		return nil
	}
	if err := install.Apply(changes); err != nil {
		return err
	}
	for _, ch := range changes {
		did := "written"
		switch {
		case ch.Nothing():
			did = "is as it should be"
		case ch.After == nil:
			did = "removed"
		}
		if ch.Backup && ch.After != nil && !ch.Nothing() {
			did += "; the former text is in " + ch.File + install.BackupSuffix
		}
		fmt.Fprintf(c.Stdout, "%s: %s\n", ch.File, did)
	}
	if client.Note != "" && !x.Uninstall {
		fmt.Fprintln(c.Stdout, client.Note)
	}
	return nil
}

// installEnv is this machine as clients' configurations see it.
func (c *command) installEnv() (install.Env, error) {
	exe, err := os.Executable()
	if err != nil {
		return install.Env{}, fmt.Errorf("find the program itself: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return install.Env{}, fmt.Errorf("find the home directory: %w", err)
	}
	wd, err := os.Getwd()
	if err != nil {
		return install.Env{}, err
	}
	env := install.Env{Home: home, Getenv: os.Getenv, Dir: wd, Command: install.Command{Exe: exe}}
	if d, err := DefaultStateDir(os.Getenv); err != nil || d != string(c.state) {
		env.Command.Args = append(env.Command.Args, "--state-dir", string(c.state))
	}
	if c.g.Config != "" {
		cfg, err := absDir(string(c.g.Config))
		if err != nil {
			return install.Env{}, err
		}
		env.Command.Args = append(env.Command.Args, "--config", cfg)
	}
	return env, nil
}

// unequipped names, each in a line, the clients that are used here and know nothing of us, or
// not of all that we do.
func (c *command) unequipped() (lines []string) {
	env, err := c.installEnv()
	if err != nil {
		return nil
	}
	for _, client := range install.Clients() {
		switch s := client.Look(env); {
		case s.Used && !s.Installed:
			lines = append(lines, fmt.Sprintf("%s is used here without hooks and tools of ours; 'memsync-agent install %s' adds them", client.Title, client.Name))
		case len(s.Lacks) > 0:
			lines = append(lines, fmt.Sprintf("%s has hooks of an earlier version of this program, without %s; 'memsync-agent install %s' adds what lacks", client.Title, strings.Join(s.Lacks, ", "), client.Name))
		}
	}
	return lines
}

// clients warns of those.
func (d *doctor) clients() {
	for _, line := range d.c.unequipped() {
		d.add("agent", "clients", "warning", line)
	}
}
