package hub_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// soundConfig is a configuration that nothing is wrong with.
func soundConfig() hub.Config {
	return hub.Config{
		DataDir: "/data", GRPCAddr: "127.0.0.1:7420", HTTPAddr: "127.0.0.1:7421", OpsAddr: "127.0.0.1:7422",
		LogFormat: "text", LogLevel: "info", Retention: time.Hour, AuditRetention: time.Hour, MaxProjectFiles: 1, MaxProjectBytes: 1,
		MaxConnections: 1, MaxPerPeer: 1, MaxWatchers: 1, Rate: 1, RateBurst: 1, DrainTimeout: time.Second,
	}
}

// nonsense has, for each field of the configuration, values that cannot work, each
// with a part of the line that must be told. Fields without nonsense say so.
var nonsense = map[string]map[any]string{
	"DataDir":     {"": "--data-dir: name a directory", "a\x00b": `--data-dir "a\x00b"`},
	"DatabaseURL": {"db.example": "--database-url", "mysql://u@h/d": "want postgres://", "postgres://u@h:x/d": "--database-url", "postgres://u@h/d?pool_max_conns=0": "--database-url"},
	"Migrate":     {true: "--migrate goes with --database-url"},
	"GRPCAddr":    {"": `--grpc-addr ""`, "localhost": "want host:port", "127.0.0.1:70000": "0 to 65535", "127.0.0.1:-1": "0 to 65535", "127.0.0.1:": "0 to 65535", ":7420": "--tls-cert", "127.0.0.1:7421": "are both"},
	"HTTPAddr":    {"127.0.0.1:x": "--http-addr", "10.0.0.1:1": "loopback", "127.0.0.1:7422": "are both"},
	"OpsAddr":     {"nowhere": "--ops-addr", "0.0.0.0:7422": "ops port", "127.0.0.1:7420": "are both"},
	"TLSCert":     {"cert.pem": "go together", "\x00": "NUL"},
	"TLSKey":      {"key.pem": "go together", "\x00": "NUL"},

	"TLSClientCA":     {"ca.pem": "needs --tls-cert", "\x00": "NUL"},
	"IdentityFile":    {"\x00": "NUL"},
	"OTLPEndpoint":    {"127.0.0.1:4317": "--otlp-endpoint", "ftp://h:1": "want http://", "https://u:p@h:1": "want http://"},
	"AllowHosts":      {"": "--allow-host", "https://hub.example": "without scheme", "hub.example:7421": "without scheme", "a b": "--allow-host", "*": "--allow-host", "a..b": "--allow-host"},
	"Insecure":        nil, // true and false both work
	"LogFormat":       {"xml": "text, json"},
	"LogLevel":        {"loud": "debug, info, warn, error"},
	"AuditRetention":  {time.Duration(0): "--audit-retention 0s: want 1h0m0s to", time.Duration(math.MaxInt64): "--audit-retention"},
	"Retention":       {time.Duration(0): "--retention 0s: want 1h0m0s to", -time.Hour: "--retention -1h0m0s", time.Minute: "--retention", time.Duration(math.MaxInt64): "--retention"},
	"MaxProjectFiles": {int64(0): "--max-project-files 0: want 1 to 100000000", int64(-1): "--max-project-files -1", int64(math.MaxInt64): "--max-project-files"},
	"MaxProjectBytes": {int64(0): "--max-project-bytes 0", int64(-5): "--max-project-bytes -5", int64(math.MaxInt64): "--max-project-bytes"},
	"MaxConnections":  {0: "--max-connections 0: want 1 to 1000000", -1: "--max-connections -1", math.MaxInt: "--max-connections"},
	"MaxPerPeer":      {-1: "--max-connections-per-peer -1: want 0 to", math.MaxInt: "--max-connections-per-peer"},
	"MaxWatchers":     {0: "--max-watchers 0", -1: "--max-watchers -1", math.MaxInt: "--max-watchers"},
	"Rate":            {-1.0: "--rate -1: want 0 (no bound) to", -0.001: "--rate -0.001", math.NaN(): "--rate NaN", math.Inf(1): "--rate +Inf", math.Inf(-1): "--rate -Inf", 1e300: "--rate 1e+300"},
	"RateBurst":       {0: "--rate-burst 0", -1: "--rate-burst -1", math.MaxInt: "--rate-burst"},
	"DrainTimeout":    {-time.Second: "--drain-timeout -1s: want 0s to 24h0m0s", time.Duration(math.MaxInt64): "--drain-timeout"},
}

// TestConfigNonsense refuses, field by field, what cannot work, and tells flag, value
// and range. A field that is new has to say here what is nonsense in it.
func TestConfigNonsense(t *testing.T) {
	if err := soundConfig().Check(); err != nil {
		t.Fatalf("a sound configuration: %v", err)
	}
	fields := reflect.TypeFor[hub.Config]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		cases, ok := nonsense[name]
		if !ok {
			t.Errorf("%s: no nonsense named here; what must it refuse?", name)
		}
		for value, want := range cases {
			cfg := soundConfig()
			v := reflect.ValueOf(value)
			if field := reflect.ValueOf(&cfg).Elem().Field(i); field.Kind() == reflect.Slice {
				field.Set(reflect.Append(field, v))
			} else {
				field.Set(v)
			}
			err := cfg.Check()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s = %v: error %v, want %q", name, value, err, want)
			}
			if err != nil && strings.Contains(strings.TrimSpace(err.Error()), "\n\n") {
				t.Errorf("%s = %v: an empty line in %q", name, value, err)
			}
		}
	}
}

// TestConfigTellsAllMistakes puts every mistake in a line of its own, from whatever
// source it came.
func TestConfigTellsAllMistakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hub.yaml")
	text := fmt.Sprintf("data-dir: %s\nrate: -1\nretention: 0s\nmax-watchers: -3\nhttp-addr: 127.0.0.1:99999\n", filepath.Join(dir, "data"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MEMSVC_RATE_BURST", "0")
	var out, errs bytes.Buffer
	code := hub.Main(t.Context(), []string{"serve", "--config", file, "--drain-timeout=-1s"}, &out, &errs)
	if code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	for _, want := range []string{"--rate -1", "--retention 0s", "--max-watchers -3", "--http-addr", "--rate-burst 0", "--drain-timeout -1s"} {
		if !strings.Contains(errs.String(), "memsvc: "+want) {
			t.Errorf("no line begins with %q:\n%s", want, errs.String())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("the data directory was made (%v)", err)
	}
}

// TestCommandNonsense refuses numbers of commands that cannot be, before it looks for
// a hub.
func TestCommandNonsense(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for want, args := range map[string][]string{
		"--timeout 0s: want 1ms to 24h0m0s": {"token", "list", "--token-file", none, "--timeout=0s"},
		"--timeout -1s: want":               {"healthcheck", "--timeout=-1s"},
		"--ttl -1h0m0s: want 0s":            {"token", "create", "--token-file", none, "--name=x", "--role=reader", "--ttl=-1h"},
		"--ttl -5m0s: want 0s":              {"invite", "--token-file", none, "--team=t", "--project=p", "--advertise=h:1", "--name=x", "--ttl=-5m"},
		"--limit -1: want 1":                {"audit", "--token-file", none, "--limit=-1"},
		"--retention 1ns: want 1h0m0s":      {"team", "set", "t", "--token-file", none, "--retention=1ns"},
		"--max-files -1: want 0":            {"team", "set", "t", "--token-file", none, "--max-files=-1"},
		"--max-bytes -9: want 0":            {"team", "set", "t", "--token-file", none, "--max-bytes=-9"},
	} {
		var out, errs bytes.Buffer
		if code := hub.Main(t.Context(), args, &out, &errs); code != 2 || !strings.Contains(errs.String(), "memsvc: "+want) {
			t.Errorf("%v: exit code %d, %q; want 2 with %q", args, code, errs.String(), want)
		}
	}
}

// TestTeamNonsense refuses settings of a team that cannot be, from any client.
func TestTeamNonsense(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	h.Token("acme", "app", "reader")
	for want, s := range map[string]service.TeamSettings{
		"retention 1ns: want 0": {Retention: 1}, "retention -1h0m0s": {Retention: -time.Hour},
		"retention 2562047h":         {Retention: math.MaxInt64},
		"max_project_files -1: want": {MaxProjectFiles: -1}, "max_project_bytes -1: want": {MaxProjectBytes: -1},
	} {
		_, err := h.Service().UpdateTeam(t.Context(), hubtest.Admin(), service.Team{ID: "acme", Settings: s})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
	}
}
