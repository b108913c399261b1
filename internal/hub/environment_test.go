package hub_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hub"
)

// TestMisspeltVariable tells of a variable that nothing reads: in the log of serve, and on
// the error stream of the other commands.
func TestMisspeltVariable(t *testing.T) {
	t.Setenv("MEMSVC_DATABSE_URL", "postgres://u:hush-hush@127.0.0.1:1/d")
	t.Setenv("MEMSVC_SERVICE_HOST", "10.0.0.1")
	t.Setenv("MEMSVC_PORT", "tcp://10.0.0.1:7420")
	ended, cancel := context.WithCancel(t.Context())
	cancel() // serve ends as soon as it has begun
	for _, args := range [][]string{
		{"serve", "--data-dir", filepath.Join(t.TempDir(), "data"), "--grpc-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--ops-addr=127.0.0.1:0"},
		{"version"},
	} {
		var out, errs bytes.Buffer
		hub.Main(ended, args, &out, &errs)
		if got := errs.String(); strings.Count(got, "the variable MEMSVC_") != 1 ||
			!strings.Contains(got, "the variable MEMSVC_DATABSE_URL is set and nothing reads it; did you mean MEMSVC_DATABASE_URL?") || strings.Contains(got, "hush-hush") {
			t.Errorf("%s:\n%s", args[0], got)
		}
	}
}

// TestEmptyDatabaseURL does not start another hub than the one that was meant.
func TestEmptyDatabaseURL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for name, args := range map[string][]string{
		"MEMSVC_DATABASE_URL":  {"serve", "--data-dir", dir},
		"MEMSVC_TLS_CLIENT_CA": {"serve", "--data-dir", dir},
		"MEMSVC_TEAM":          {"token", "create", "--token-file", dir, "--name=x", "--role=reader", "--project=p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "")
			var out, errs bytes.Buffer
			if code := hub.Main(t.Context(), args, &out, &errs); code != 2 || !strings.Contains(errs.String(), "the variable "+name+" is set but empty; give it a value, or unset it") {
				t.Errorf("exit code %d:\n%s", code, errs.String())
			}
		})
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made (%v)", err)
	}
}
