package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// fillHub commits memories of together about 6 MiB, no two alike.
func fillHub(t *testing.T, c caller) {
	t.Helper()
	for i := range 30 {
		c.mustCommit(t, put(fmt.Sprintf("big%d.md", i), strings.Repeat(fmt.Sprintf("line %d of many.\n", i), 12<<10)))
	}
}

// limited runs the program, which may write files of at most some hundred kilobytes,
// as on a disk that is full; it needs no rights for that.
func limited(t *testing.T, args ...string) (code int, stderr string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -f 200; exec memsvc "$@"`, "sh"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), errs.String()
}

// onlyThese checks that a directory holds these names and nothing else.
func onlyThese(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s holds %v, want %v", dir, got, want)
	}
}

// TestNoRoomForTheCopy has no room where backups and exports are written: the commands
// say so in one line, leave nothing behind, and the hub goes on.
func TestNoRoomForTheCopy(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	c := as(t, h, h.Token("acme", "app", "writer"))
	fillHub(t, c)
	token := filepath.Join(t.TempDir(), "admin.token")
	write(t, token, h.AdminToken+"\n")
	dir := t.TempDir()
	hubArgs := []string{"--hub", h.GRPCAddr, "--token-file", token}
	for name, args := range map[string][]string{
		"backup":          {"backup", filepath.Join(dir, "hub.db")},
		"export":          {"export", filepath.Join(dir, "archive")},
		"export of files": {"export", "--team=acme", "--project=app", "--markdown=" + filepath.Join(dir, "files")},
	} {
		code, stderr := limited(t, append(args, hubArgs...)...)
		if code != 1 || !strings.Contains(stderr, "file too large") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q; want 1, and one line that says why", name, code, stderr)
		}
		onlyThese(t, dir)
	}
	c.mustCommit(t, put("after.md", "x"))
}

// TestNoRoomInTheHub has no room in the hub's data directory: a backup and an import
// are refused with what to do, nothing is left there, nothing is taken in, the hub goes
// on, and both work when there is room.
func TestNoRoomInTheHub(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	fillHub(t, as(t, h, h.Token("acme", "app", "writer")))
	h.Stop() // its log is in the database now
	dir, out := h.DataDir, t.TempDir()
	log, err := os.Create(filepath.Join(out, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("memsvc", "serve", "--data-dir", dir, "--grpc-addr=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--ops-addr=127.0.0.1:0")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // unless it has ended
		_ = cmd.Wait()
	})
	var addr string
	hubtest.Eventually(t, patience, "the hub listens", func() bool {
		if m := addresses.FindStringSubmatch(read(t, log.Name())); m != nil {
			addr = m[1]
		}
		return addr != ""
	})
	limit := func(bytes uint64) {
		t.Helper()
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command("memsvc", append(args, "--hub", addr, "--token-file", filepath.Join(dir, "admin.token"))...)
		text, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(text)
	}
	source := inmem.New(inmem.Options{})
	key := memory.ProjectKey{Team: "acme", Project: "moved"}
	if err := source.CreateProject(t.Context(), key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		foreignCommit(fmt.Sprintf("big%d.md", i), strings.Repeat(fmt.Sprintf("line %d of many.\n", i), 12<<10), "", memory.Author{})(t, source, key)
	}
	var text bytes.Buffer
	if err := archive.Export(t.Context(), source, &text, archive.Scope{}, nil); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(out, "archive"), text.String())

	limit(2 << 20)
	code, told := run("backup", filepath.Join(out, "hub.db"))
	if code != 1 || !strings.Contains(told, "backup: no room in the hub's data directory") {
		t.Errorf("backup: exit code %d, %q", code, told)
	}
	code, told = run("import", filepath.Join(out, "archive"))
	if code != 1 || !strings.Contains(told, "import: no room in the hub's data directory") {
		t.Errorf("import: exit code %d, %q", code, told)
	}
	onlyThese(t, out, "archive", "log")
	onlyThese(t, dir, "admin.token", "hub.db", "hub.db-shm", "hub.db-wal", "hub.lock")
	if code, told = run("project", "list", "--team=acme"); code != 0 || strings.Contains(told, "moved") {
		t.Errorf("projects: exit code %d, %q", code, told)
	}
	if code, told = run("project", "create", "--team=acme", "--project=small"); code != 0 {
		t.Errorf("a small change: exit code %d, %q", code, told)
	}
	limit(unix.RLIM_INFINITY)
	if code, told = run("backup", filepath.Join(out, "hub.db")); code != 0 {
		t.Errorf("backup with room: exit code %d, %q", code, told)
	}
	if code, told = run("import", filepath.Join(out, "archive")); code != 0 || !strings.Contains(told, "30 commits added") {
		t.Errorf("import with room: exit code %d, %q", code, told)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the hub ended with %v\n%s", err, read(t, log.Name()))
	}
}
