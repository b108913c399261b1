package config_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/config"
)

// TestVariablesThatNothingReads are told, with the one that was meant and without their
// value; those that others set for reasons of their own are not.
func TestVariablesThatNothingReads(t *testing.T) {
	for name, value := range map[string]string{
		"PROG_COLUOR": "hush-hush", "PROG_FROBNICATE": "1", "PROG_YES": "true", // slips
		"PROG_GRPC_PORT": "7420", // a slip too: a link's is an address
		"PROG_COLOUR":    "blue", "PROG_OTHER": "1", "PROG_TEST_SERVER": "x", "PROGRAM_X": "1", "XPROG_COLUOR": "1",
		"PROG_PORT": "tcp://10.0.0.1:7420", "PROG_SERVICE_HOST": "10.0.0.1", "PROG_SERVICE_PORT": "7420", "PROG_SERVICE_PORT_GRPC": "7420",
		"PROG_PORT_7420_TCP": "tcp://10.0.0.1:7420", "PROG_PORT_7420_TCP_PROTO": "tcp", "PROG_PORT_7420_TCP_PORT": "7420", "PROG_PORT_7420_TCP_ADDR": "10.0.0.1",
		"PROG_HEADLESS_SERVICE_HOST": "10.0.0.1", "PROG_HEADLESS_PORT": "tcp://10.0.0.1:7420", "PROG_HEADLESS_PORT_53_UDP_ADDR": "10.0.0.1",
	} {
		t.Setenv(name, value)
	}
	var got []string
	var g grammar
	var out bytes.Buffer
	_, err := config.Parse(&g, config.Options{
		Program: "prog", EnvPrefix: "PROG", Stdout: &out, Stderr: &out,
		OtherVariables: []string{"PROG_OTHER"}, Warn: func(line string) { got = append(got, line) },
	}, []string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the variable PROG_COLUOR is set and nothing reads it; did you mean PROG_COLOUR?",
		"the variable PROG_FROBNICATE is set and nothing reads it; variables are named like flags, see --help",
		"the variable PROG_GRPC_PORT is set and nothing reads it; variables are named like flags, see --help",
		"the variable PROG_YES is set and does nothing: --yes is decided each time, on the command line",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestEmptyValues are mistakes wherever they stand, unless the flag says otherwise.
func TestEmptyValues(t *testing.T) {
	type grammar struct {
		Config config.File `help:"Settings file."`
		Serve  struct {
			URL   string `name:"url" help:"URL."`
			Limit int    `default:"1" help:"Bound."`
			Ops   string `empty:"" help:"Where; empty is nowhere."`
		} `cmd:"" help:"Serve."`
		Other struct{} `cmd:"" help:"Other."`
	}
	for _, tc := range []struct {
		name, env, file, args, want string
	}{
		{"environment", "PROG_URL=", "", "serve", "the variable PROG_URL is set but empty; give it a value, or unset it"},
		{"a number", "PROG_LIMIT=", "", "serve", "the variable PROG_LIMIT is set but empty"},
		{"file", "", "url: ''\n", "serve", `settings file: "url" is empty; give it a value, or leave it out`},
		{"command line", "", "", "serve --url=", "--url is given without a value; give it one, or leave it out"},
		{"environment over file", "PROG_URL=", "url: x\n", "serve", "the variable PROG_URL is set but empty"},
		{"command line over environment", "PROG_URL=", "", "serve --url=x", ""},
		{"one that may be", "PROG_OPS=", "ops: ''\n", "serve --ops=", ""},
		{"of another command", "PROG_URL=", "", "other", ""},
		{"nothing in the file", "", "url:\n", "serve", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if name, value, ok := strings.Cut(tc.env, "="); ok {
				t.Setenv(name, value)
			}
			args := strings.Fields(tc.args)
			if tc.file != "" {
				args = append([]string{"--config", file(t, tc.file)}, args...)
			}
			var g grammar
			var out bytes.Buffer
			_, err := config.Parse(&g, config.Options{Program: "prog", EnvPrefix: "PROG", Stdout: &out, Stderr: &out}, args)
			var usage *config.UsageError
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("error %v", err)
			case tc.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
