package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal returns the two ends of a new terminal: what a person looks at, and what a
// program writes to.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine gives no terminals: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// atTerminal runs a command whose output goes to a terminal, and returns what came there.
func atTerminal(t *testing.T, args ...string) string {
	t.Helper()
	person, program := terminal(t)
	var stderr strings.Builder
	if code := Main(t.Context(), App{Args: args, Stdin: strings.NewReader(""), Stdout: program, Stderr: &stderr}); code != ExitOK {
		t.Errorf("%q: exit %d: %s", args, code, stderr.String())
	}
	const end = "(end)"
	if _, err := program.WriteString(end); err != nil {
		t.Fatal(err)
	}
	got := ""
	for buf := make([]byte, 4096); !strings.Contains(got, end); {
		n, err := person.Read(buf)
		if err != nil {
			t.Fatalf("%q after %v", got, err)
		}
		got += string(buf[:n])
	}
	// The terminal itself ends lines by \r\n.
	return strings.ReplaceAll(strings.TrimSuffix(got, end), "\r\n", "\n")
}

// What others wrote does nothing to a terminal, whichever command prints it; a file or
// another program gets the bytes.
func TestTerminalsGetTextsVisibly(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	text := "---\nname: x\ndescription: about x\ntype: project\n---\n" + hostile
	save := func(name string) string {
		file := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	save("repo/.claude/skills/x/SKILL.md")
	save("memory/project_x.md")
	t.Chdir(filepath.Join(home, "repo"))
	for _, args := range [][]string{
		{"skills", "show", "x"},
		{"memory", "show", "--memory-dir", filepath.Join(home, "memory"), "project_x.md"},
	} {
		if got, want := atTerminal(t, args...), strings.ReplaceAll(text, hostile, calm); got != want {
			t.Errorf("%q at a terminal: %q, want %q", args, got, want)
		}
		if got, stderr, code := invoke(t, args...); got != text {
			t.Errorf("%q elsewhere: %q, exit %d, %s", args, got, code, stderr)
		}
	}
}
