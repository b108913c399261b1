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
		{"unknown key", "addr: a:1\nadress: b:2\n", `line 2: unknown setting "adress"`},
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
	if err := parse(t, &g, sections, "--config", file(t, "links:\n- dri: /a\n"), "serve"); err == nil {
		t.Error("an unknown field of a section was accepted")
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
