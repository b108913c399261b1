package config_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/config"
)

type grammar struct {
	ShowVersion config.VersionFlag `name:"version" cmdline:"" help:"Print the version."`

	Config config.File `help:"Settings file."`
	Serve  struct {
		Addr  string        `default:"127.0.0.1:1" help:"Address."`
		Every time.Duration `default:"1s" help:"Interval."`
		Limit int           `default:"1" help:"Bound."`
		Loud  bool          `help:"Say more."`
		Key   string        `secret:"" help:"Key."`
		Yes   bool          `cmdline:"" help:"Really."`

		Colour string `default:"red" enum:"red,blue" help:"Colour."`
	} `cmd:"" help:"Serve."`
}

func parse(t *testing.T, g *grammar, sections map[string]any, args ...string) error {
	t.Helper()
	var out bytes.Buffer
	_, err := config.Parse(g, config.Options{
		Program: "prog", EnvPrefix: "PROG", Stdout: &out, Stderr: &out, Sections: sections,
	}, args)
	return err
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPrecedence sets one flag more at each level and expects the higher to win.
func TestPrecedence(t *testing.T) {
	t.Setenv("PROG_EVERY", "3s")
	t.Setenv("PROG_LIMIT", "3")
	var g grammar
	name := file(t, "addr: file:2\nevery: 2s\nlimit: 2\nloud: true\n")
	if err := parse(t, &g, nil, "--config", name, "serve", "--limit", "4"); err != nil {
		t.Fatal(err)
	}
	got := []any{g.Serve.Addr, g.Serve.Every, g.Serve.Limit, g.Serve.Loud, g.Serve.Key}
	want := []any{"file:2", 3 * time.Second, 4, true, ""}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestFileFromEnvironment finds the file itself through its variable.
func TestFileFromEnvironment(t *testing.T) {
	t.Setenv("PROG_CONFIG", file(t, "limit: 7\n"))
	var g grammar
	if err := parse(t, &g, nil, "serve"); err != nil {
		t.Fatal(err)
	}
	if g.Serve.Limit != 7 {
		t.Errorf("limit %d, want the file's 7", g.Serve.Limit)
	}
}

func TestStrictFile(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"unknown key", "addr: a:1\nadrr: b:2\n", `c.yaml: line 2: unknown setting "adrr"; did you mean "addr"?`},
		{"another word", "addr: a:1\nfrobnicate: 2\n", `c.yaml: line 2: unknown setting "frobnicate"; settings are named like flags, see --help`},
		{"doubled key", "addr: a:1\naddr: b:2\n", `line 2: "addr" stands there twice`},
		{"not a mapping", "- a\n", "line 1: want a mapping"},
		{"nested", "serve:\n  addr: a:1\n", "settings are flat"},
		{"two documents", "addr: a:1\n---\naddr: b:2\n", "more than one document"},
		{"bad value", "every: soon\n", "every"},
		{"a decision", "yes: true\n", `line 1: "yes" is decided each time, on the command line: --yes`},
		{"bad yaml", "addr: [\n", "settings file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var g grammar
			err := parse(t, &g, nil, "--config", file(t, tc.text), "serve")
			var usage *config.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want a UsageError with %q", err, tc.want)
			}
		})
	}
}

func TestSections(t *testing.T) {
	var links []struct {
		Dir string `yaml:"dir"`
	}
	sections := map[string]any{"links": &links}
	var g grammar
	if err := parse(t, &g, sections, "--config", file(t, "links:\n- dir: /a\n- dir: /b\n"), "serve"); err != nil {
		t.Fatal(err)
	}
	if len(links) != 2 || links[1].Dir != "/b" {
		t.Errorf("links %v", links)
	}
	err := parse(t, &g, sections, "--config", file(t, "links:\n- dir: /a\n- dri: /a\n  zzz: 1\nadd: x\nlimit: 1\nlimit: 2\n"), "serve")
	for _, want := range []string{`c.yaml: line 5: unknown setting "add"; did you mean "addr"?`, `c.yaml: line 7: "limit" stands there twice`, `c.yaml: line 3: unknown key "dri"; did you mean "dir"?`, `c.yaml: line 4: unknown key "zzz"; known are dir`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestNoSettingsFile names the flag that named it.
func TestNoSettingsFile(t *testing.T) {
	var g grammar
	name := filepath.Join(t.TempDir(), "none.yaml")
	if err := parse(t, &g, nil, "--config", name, "serve"); err == nil || err.Error() != "--config "+name+": no such file or directory" {
		t.Errorf("error %v", err)
	}
}

// TestUnmarshalStrict names each mistake with its line and what was meant.
func TestUnmarshalStrict(t *testing.T) {
	type rule struct {
		When map[string][]string `yaml:"when"`
		Role string              `yaml:"role"`
	}
	type doc struct {
		Name  string        `yaml:"name"`
		Every time.Duration `yaml:"every"`
		Rules []*rule       `yaml:"rules"`
	}
	for _, tc := range []struct {
		name, text string
		want       []string // "" is no error
	}{
		{"all well", "name: n\nevery: 5m\nrules:\n- when: {anything: [a]}\n  role: r\n", nil},
		{"empty", "", nil},
		{"a misspelt key", "nmae: n\n", []string{`line 1: unknown key "nmae"; did you mean "name"?`}},
		{"deep, and several", "name: n\nrules:\n- whan: {sub: [a]}\n  rolle: r\n", []string{
			`line 3: unknown key "whan"; did you mean "when"?`, `line 4: unknown key "rolle"; did you mean "role"?`}},
		{"nothing like it", "description: x\n", []string{`line 1: unknown key "description"; known are every, name, rules`}},
		{"another kind", "name: n\nevery: soon\n", []string{"line 2: cannot unmarshal"}},
		{"both", "nmae: n\nevery: soon\n", []string{`unknown key "nmae"`, "line 2: cannot unmarshal"}},
		{"twice", "name: a\nname: b\n", []string{`line 2: mapping key "name" already defined at line 1`}},
		{"two documents", "name: a\n---\nname: b\n", []string{"more than one document"}},
		{"an alias", "rules:\n- &r {role: x}\n- *r\n", nil},
		{"no YAML", "name: [\n", []string{"line "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d doc
			err := config.UnmarshalStrict([]byte(tc.text), &d)
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
}

// TestEveryMistakeAtOnce finds all that is wrong with one command line.
func TestEveryMistakeAtOnce(t *testing.T) {
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"serve --every soon --limit much --colour pink --frob", []string{
			"--every: expected duration", "--limit: expected", `--colour must be one of "red","blue" but got "pink"`, "unknown flag --frob"}},
		{"serve --every=soon --limit=much", []string{"--every: ", "--limit: "}},
		{"serve --every -1h", []string{`--every: "-1h" reads like another flag; give the value as --every=VALUE`}},
		{"serve --every", []string{"--every: the value is missing"}},
		{"serve --limit much --limit more", []string{`got "much"`, `got "more"`}},
	} {
		t.Run(tc.args, func(t *testing.T) {
			var g grammar
			err := parse(t, &g, nil, strings.Fields(tc.args)...)
			var usage *config.UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("error %v, want a UsageError", err)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != len(tc.want) {
				t.Errorf("%d lines, want %d:\n%v", len(lines), len(tc.want), err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in\n%v", want, err)
				}
			}
			if got := config.HelpFor("prog", err); got != "prog serve --help" {
				t.Errorf("help in %q", got)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	var g grammar
	if err := parse(t, &g, nil, "serve", "--help"); !errors.Is(err, config.ErrShown) {
		t.Errorf("error %v, want ErrShown", err)
	}
}

// TestShowKeepsSecrets prints a set secret and expects not to find it.
func TestShowKeepsSecrets(t *testing.T) {
	var g grammar
	var out bytes.Buffer
	ctx, err := config.Parse(&g, config.Options{Program: "prog", EnvPrefix: "PROG", Stdout: &out, Stderr: &out}, []string{"serve", "--key", "hush-hush"})
	if err != nil {
		t.Fatal(err)
	}
	if err := config.Show(&out, ctx); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "hush-hush") || !strings.Contains(s, `key: "(set)"`) || !strings.Contains(s, `limit: "1"`) || strings.Contains(s, "yes") {
		t.Errorf("shown:\n%s", s)
	}
}

// TestDecisionsComeFromTheCommandLine sets one in the environment and expects that it
// does nothing and is not offered.
func TestDecisionsComeFromTheCommandLine(t *testing.T) {
	t.Setenv("PROG_YES", "true")
	var g grammar
	var out bytes.Buffer
	options := config.Options{Program: "prog", EnvPrefix: "PROG", Stdout: &out, Stderr: &out}
	if _, err := config.Parse(&g, options, []string{"serve"}); err != nil || g.Serve.Yes {
		t.Errorf("yes=%t, error %v: the environment decided", g.Serve.Yes, err)
	}
	if _, err := config.Parse(&g, options, []string{"serve", "--yes"}); err != nil || !g.Serve.Yes {
		t.Errorf("yes=%t, error %v: the command line did not decide", g.Serve.Yes, err)
	}
	if _, err := config.Parse(&g, options, []string{"serve", "--help"}); !errors.Is(err, config.ErrShown) {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "PROG_YES") || !strings.Contains(s, "PROG_LOUD") {
		t.Errorf("help:\n%s", s)
	}
}

// TestVersionFlag asks for the version without a command.
func TestVersionFlag(t *testing.T) {
	t.Setenv("PROG_VERSION", "9.9") // names of images and the like; it must not be read
	var g grammar
	var out bytes.Buffer
	_, err := config.Parse(&g, config.Options{Program: "prog", Version: "prog 1.2", EnvPrefix: "PROG", Stdout: &out, Stderr: &out}, []string{"--version"})
	if !errors.Is(err, config.ErrShown) || out.String() != "prog 1.2\n" {
		t.Errorf("error %v, printed %q", err, out.String())
	}
	if err := parse(t, &g, nil, "serve"); err != nil {
		t.Error(err)
	}
}
