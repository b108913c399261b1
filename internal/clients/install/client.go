package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/clients/hooks"
)

// server is what our tool server is called in every client's configuration.
const server = "memsvc"

// Client is a coding client whose configuration is known.
type Client struct {
	Name  string // as `memsync-agent install` calls it
	Title string
	Note  string // what a person has to do besides; "" = nothing
	// home returns the directory that is there once the client has been used.
	home  func(Env) string
	files func(Env, Scope) []file
}

// file is a configuration file, and how our part in it is written and removed.
type file struct {
	path string
	// edit returns the text with our part, or without it. was is what the file held before
	// our part came into it, nil where nobody knows: what was there then is left behind.
	edit func(before []byte, remove bool, was []byte) ([]byte, error)
	// empty reports whether a text holds nothing that a person wrote; nil: never.
	empty func([]byte) bool
}

// Clients returns the clients, a new list at every call. Another one is another entry
// here, and its events in package hooks.
func Clients() []*Client {
	return []*Client{
		{
			Name: hooks.ClaudeCode, Title: "Claude Code",
			home: func(e Env) string { return e.dir("CLAUDE_CONFIG_DIR", ".claude") },
			files: func(e Env, s Scope) []file {
				settings, servers := filepath.Join(e.dir("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"), filepath.Join(e.dir("CLAUDE_CONFIG_DIR"), ".claude.json")
				if s == Project {
					settings, servers = filepath.Join(e.Dir, ".claude", "settings.json"), filepath.Join(e.Dir, ".mcp.json")
				}
				return []file{
					hookFile(settings, e, hooks.ClaudeCode, grouped, func(ev hooks.Event) any {
						// Not command and args: a version that does not know args runs the bare program.
						return shellHook{"command", e.Command.shell("hook", ev.Name), seconds(ev.Timeout)}
					}),
					serverFile(servers, e, []string{"mcpServers", server}, stdioServer{"stdio", e.Command.Exe, e.Command.with("mcp")}),
				}
			},
		},
		{
			Name: hooks.Codex, Title: "Codex",
			Note: "Codex runs a hook once you have trusted it: look at /hooks there.",
			home: func(e Env) string { return e.dir("CODEX_HOME", ".codex") },
			files: func(e Env, s Scope) []file {
				dir := e.dir("CODEX_HOME", ".codex")
				if s == Project {
					dir = filepath.Join(e.Dir, ".codex")
				}
				return []file{
					hookFile(filepath.Join(dir, "hooks.json"), e, hooks.Codex, grouped, func(ev hooks.Event) any {
						return shellHook{"command", e.Command.shell("hook", ev.Name), seconds(ev.Timeout)}
					}),
					tomlFile(filepath.Join(dir, "config.toml"), e),
				}
			},
		},
		{
			Name: hooks.Gemini, Title: "Gemini CLI",
			home: func(e Env) string { return filepath.Join(e.dir("GEMINI_CLI_HOME"), ".gemini") },
			files: func(e Env, s Scope) []file {
				settings := filepath.Join(e.dir("GEMINI_CLI_HOME"), ".gemini", "settings.json")
				if s == Project {
					settings = filepath.Join(e.Dir, ".gemini", "settings.json")
				}
				return []file{both(
					hookFile(settings, e, hooks.Gemini, grouped, func(ev hooks.Event) any {
						return shellHook{"command", e.Command.shell("hook", ev.Name), int(ev.Timeout.Milliseconds())}
					}),
					serverFile(settings, e, []string{"mcpServers", server}, plainServer{e.Command.Exe, e.Command.with("mcp")}),
				)}
			},
		},
		{
			Name: hooks.OpenCode, Title: "OpenCode",
			home: func(e Env) string { return filepath.Join(e.dir("XDG_CONFIG_HOME", ".config"), "opencode") },
			files: func(e Env, s Scope) []file {
				dir := filepath.Join(e.dir("XDG_CONFIG_HOME", ".config"), "opencode")
				plugins := filepath.Join(dir, "plugins")
				if s == Project {
					dir, plugins = e.Dir, filepath.Join(e.Dir, ".opencode", "plugins")
				}
				config := filepath.Join(dir, "opencode.json")
				if c := config + "c"; exists(c) && !exists(config) {
					config = c
				}
				return []file{
					pluginFile(filepath.Join(plugins, "memsvc.js"), e),
					serverFile(config, e, []string{"mcp", server}, listServer{"local", append([]string{e.Command.Exe}, e.Command.with("mcp")...), true}),
				}
			},
		},
		{
			Name: hooks.Cursor, Title: "Cursor",
			home: func(e Env) string { return filepath.Join(e.Home, ".cursor") },
			files: func(e Env, s Scope) []file {
				dir := filepath.Join(e.Home, ".cursor")
				if s == Project {
					dir = filepath.Join(e.Dir, ".cursor")
				}
				return []file{
					hookFile(filepath.Join(dir, "hooks.json"), e, hooks.Cursor, flat, func(ev hooks.Event) any {
						return flatHook{e.Command.shell("hook", ev.Name), ev.Matcher, seconds(ev.Timeout)}
					}),
					serverFile(filepath.Join(dir, "mcp.json"), e, []string{"mcpServers", server}, plainServer{e.Command.Exe, e.Command.with("mcp")}),
				}
			},
		},
	}
}

// The forms of hooks and servers, in the order in which their keys are written.
type (
	shellHook struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"` // in the client's unit
	}
	flatHook struct {
		Command string `json:"command"`
		Matcher string `json:"matcher,omitempty"`
		Timeout int    `json:"timeout"` // seconds
	}
	group struct {
		Matcher string `json:"matcher,omitempty"`
		Hooks   []any  `json:"hooks"`
	}
	stdioServer struct {
		Type    string   `json:"type"`
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	plainServer struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	listServer struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
)

func seconds(d time.Duration) int { return int(d.Seconds()) }

// State is how a client stands on this machine.
type State struct {
	Used      bool // its configuration directory is there
	Installed bool // our entries are, for this person
	// Lacks names the events that an earlier version of this program did not install.
	Lacks []string
}

// Look tells how a client stands, by its files alone.
func (c *Client) Look(env Env) State {
	fi, err := os.Stat(c.home(env))
	s := State{Used: err == nil && fi.IsDir()}
	if !s.Used {
		return s
	}
	// Removing changes nothing in a file exactly when we are not in it.
	changes, err := c.Plan(env, User, true)
	s.Installed = err == nil
	var ours strings.Builder
	for _, ch := range changes {
		s.Installed = s.Installed && !ch.Nothing()
		ours.Write(ch.Before)
	}
	for _, ev := range hooks.Events(c.Name) {
		// A line for a shell; the plugin of OpenCode has the name as a text.
		call := ` hook ` + ev.Name + `\b`
		if c.Name == hooks.OpenCode {
			call = `"` + ev.Name + `"`
		}
		if s.Installed && !regexp.MustCompile(call).MatchString(ours.String()) {
			s.Lacks = append(s.Lacks, ev.Name)
		}
	}
	return s
}

// Names lists what can be installed.
func Names() string {
	var names []string
	for _, c := range Clients() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
