package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/memsvc/memsvc/internal/buildinfo"
)

type installCmd struct {
	Service    installServiceCmd    `cmd:"" help:"Write a systemd (Linux) or launchd (macOS) unit for this user."`
	ClaudeCode installClaudeCodeCmd `cmd:"" name:"claude-code" help:"Write hooks and tools into the configuration of Claude Code."`
	Codex      installCodexCmd      `cmd:"" name:"codex" help:"Write hooks and tools into the configuration of Codex."`
	Gemini     installGeminiCmd     `cmd:"" name:"gemini" help:"Write hooks and tools into the configuration of Gemini CLI."`
	OpenCode   installOpenCodeCmd   `cmd:"" name:"opencode" help:"Write hooks and tools into the configuration of OpenCode."`
	Cursor     installCursorCmd     `cmd:"" name:"cursor" help:"Write hooks and tools into the configuration of Cursor."`
}

type installServiceCmd struct {
	DryRun bool   `cmdline:"" help:"Print the unit and where it would go; write nothing."`
	Kind   string `help:"systemd or launchd; else what this system has." enum:"systemd,launchd," default:""`
}

// Run writes the unit that starts the agent with this user's session.
func (x *installServiceCmd) Run(c *command) error {
	kind := x.Kind
	if kind == "" {
		switch runtime.GOOS {
		case "linux":
			kind = "systemd"
		case "darwin":
			kind = "launchd"
		default:
			return usage("no service manager is known for %s; give --kind, or start 'memsync-agent run' by other means", runtime.GOOS)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return fmt.Errorf("find the home directory: %w", err)
	}
	args := []string{exe, "--state-dir", string(c.state)}
	if c.g.Config != "" {
		cfg, err := absDir(string(c.g.Config))
		if err != nil {
			return err
		}
		args = append(args, "--config", cfg)
	}
	args = append(args, "run")
	var file, text, next string
	switch kind {
	case "systemd":
		file = filepath.Join(home, ".config", "systemd", "user", "memsync-agent.service")
		text, next = systemdUnit(args), "systemctl --user daemon-reload && systemctl --user enable --now memsync-agent"
	default:
		file = filepath.Join(home, "Library", "LaunchAgents", "dev.memsvc.memsync-agent.plist")
		text, next = launchdUnit(args, c.state.path("agent.log")), "launchctl load -w "+file
	}
	if x.DryRun {
		fmt.Fprintf(c.Stdout, "# %s\n%s", file, text)
		return nil
	}
	if have, err := os.ReadFile(file); err == nil && string(have) == text {
		fmt.Fprintf(c.Stdout, "%s is as it should be\n", file)
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // units are read by the service manager
		return err
	}
	fmt.Fprintf(c.Stdout, "%s written; start it with: %s\n", file, next)
	return nil
}

// stopSeconds is how long a service may take to stop: the default of run's --drain, and
// what ends after that.
const stopSeconds = 75

func systemdUnit(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		// systemd expands % and $ in ExecStart.
		a = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(a)
		if strings.ContainsAny(a, " \t") {
			a = `"` + a + `"`
		}
		quoted[i] = a
	}
	return `[Unit]
Description=Keeps the team memories of this machine in step
Documentation=https://github.com/memsvc/memsvc

[Service]
ExecStart=` + strings.Join(quoted, " ") + `
Restart=on-failure
RestartSec=5
TimeoutStopSec=` + strconv.Itoa(stopSeconds) + `
NoNewPrivileges=true

[Install]
WantedBy=default.target
`
}

func launchdUnit(args []string, log string) string {
	esc := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>dev.memsvc.memsync-agent</string>
	<key>ProgramArguments</key>
	<array>
`)
	for _, a := range args {
		fmt.Fprintf(&b, "\t\t<string>%s</string>\n", esc.Replace(a))
	}
	fmt.Fprintf(&b, `	</array>
	<key>RunAtLoad</key>
	<true/>
	<key>KeepAlive</key>
	<dict>
		<key>SuccessfulExit</key>
		<false/>
	</dict>
	<key>ExitTimeOut</key>
	<integer>%d</integer>
	<key>StandardErrorPath</key>
	<string>%s</string>
</dict>
</plist>
`, stopSeconds, esc.Replace(log))
	return b.String()
}

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON; see docs/cli.md."`
}

// Run prints which build this is.
func (x *versionCmd) Run(c *command) error {
	info := buildinfo.Read()
	if x.JSON {
		return printJSON(c.Stdout, info)
	}
	fmt.Fprintf(c.Stdout, "memsync-agent %s\n", info)
	return nil
}
