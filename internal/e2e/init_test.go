package e2e

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNothingCostlyBeforeMain: a hook is a process for every prompt and tool of a client,
// so no package of ours may do much before main begins, such as compile what only other
// commands need. Counted in bytes, which do not depend on the machine.
func TestNothingCostlyBeforeMain(t *testing.T) {
	const most = 1 << 20
	cmd := programCommand("memsync-agent", "hook", "None")
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1", "MEMSYNC_STATE_DIR="+t.TempDir())
	cmd.Stdin = strings.NewReader("{}")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	seen := 0
	for _, m := range regexp.MustCompile(`init (github\.com/memsvc/\S+) .* (\d+) bytes`).FindAllStringSubmatch(errs.String(), -1) {
		seen++
		n, err := strconv.Atoi(m[2])
		must(t, err)
		if n > most {
			t.Errorf("%s allocates %d bytes before main, want at most %d", m[1], n, most)
		}
	}
	if seen < 3 {
		t.Errorf("%d packages were traced: %.300s", seen, errs.String())
	}
}
