package agent

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), text); d != "" {
		t.Errorf("%s differs; if this is meant, run the test with -update and look at docs/cli.md (-want +got):\n%s", file, d)
	}
}

// patience is how long tests wait for what has to come, on however busy a machine.
const patience = time.Minute

// invoke runs a command and returns what it printed.
func invoke(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return invokeAt(t, time.Now, args...)
}

// invokeAt runs a command by a clock of the test's own: what is counted by the day must not
// begin anew when midnight comes between two commands.
func invokeAt(t *testing.T, now func() time.Time, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = Main(t.Context(), App{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut, Now: now, ModelTime: patience, Patience: 5 * patience})
	return out.String(), errOut.String(), code
}

// stopped is a clock that stands still at the present.
func stopped() func() time.Time {
	at := time.Now()
	return func() time.Time { return at }
}

// TestHelp keeps the help of the program and of every command.
func TestHelp(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	var all strings.Builder
	for _, cmd := range []string{
		"", "run", "sync", "status", "conflicts list", "conflicts show", "conflicts resolve", "trash list", "trash show", "trash restore", "log", "show", "blame", "diff", "restore", "resume",
		"check", "doctor", "login", "join", "link", "unlink", "links", "dream", "install service", "healthcheck", "version",
	} {
		out, stderr, code := invoke(t, append(strings.Fields(cmd), "--help")...)
		if code != 0 || stderr != "" {
			t.Errorf("%s --help: exit %d, %s", cmd, code, stderr)
		}
		all.WriteString("$ memsync-agent " + strings.TrimSpace(cmd+" --help") + "\n" + out + "\n")
	}
	golden(t, "help.golden", all.String())
}
