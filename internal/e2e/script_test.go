package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestScripts plays the commands as a person types them. Each script has a hub of its
// own: $HUB is its address, $TOKEN a writer's token file of team acme, $READER a
// reader's of acme/pay, $ADMIN the hub's admin's.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			h := hubtest.Start(t, hubtest.Options{})
			e.Setenv("HUB", h.GRPCAddr)
			e.Setenv("TOKEN", h.TokenFile("acme", "", "writer"))
			e.Setenv("READER", h.TokenFile("acme", "pay", "reader"))
			e.Setenv("ADMIN", h.TokenFile("", "", "admin"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "home", "state"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"trashid":  trashID,
			"big":      big,
			"teamdir":  teamDir,
			"writes":   writes,
			"toolcall": toolCall,
			"served":   served,
		},
	})
}

// exits runs a program and checks its exit code: exits CODE PROGRAM ARGS…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// served waits until a daemon serves a state directory: served STATEDIR
func served(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: served STATEDIR")
	}
	for deadline := time.Now().Add(patience); ts.Exec("memsync-agent", "healthcheck", "--state-dir", args[0]) != nil; {
		if time.Now().After(deadline) {
			ts.Fatalf("no daemon serves %s", args[0])
		}
	}
}

// teamDir puts the team directory of the memories of the working directory into $TEAM, and
// into $WRITE a file with the event of a client about to write into it: teamdir
func teamDir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: teamdir")
	}
	ts.Check(ts.Exec("memsync-agent", "memory", "where", "--json"))
	var where struct{ Team string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &where))
	ts.Setenv("TEAM", where.Team)
	writeEvent(ts, filepath.Join(where.Team, "project_x.md"), "---\nname: x\ntype: project\n---\n\ntext\n")
}

// writes puts into $WRITE a file with the event of a client about to write what another
// file holds: writes FILE CONTENT
func writes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: writes FILE CONTENT")
	}
	writeEvent(ts, ts.MkAbs(args[0]), ts.ReadFile(args[1]))
}

func writeEvent(ts *testscript.TestScript, file, content string) {
	event, err := json.Marshal(map[string]any{
		"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Write",
		"tool_input": map[string]string{"file_path": file, "content": content},
	})
	ts.Check(err)
	name := filepath.Join(ts.Getenv("WORK"), "write.json")
	ts.Check(os.WriteFile(name, event, 0o600))
	ts.Setenv("WRITE", name)
}

// toolCall gives the lines of a file to the tool server, and writes its answer to the
// message with id 2 into another: toolcall FILE ANSWER
func toolCall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: toolcall FILE ANSWER")
	}
	cmd := programCommand("memsync-agent", "mcp")
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_STATE_HOME"} {
		cmd.Env = append(cmd.Environ(), name+"="+ts.Getenv(name))
	}
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	defer func() {
		_ = in.Close() // the server ends with its input
		ts.Check(cmd.Wait())
	}()
	_, err = io.WriteString(in, ts.ReadFile(args[0]))
	ts.Check(err)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var msg struct{ ID any }
		ts.Check(json.Unmarshal(lines.Bytes(), &msg))
		if msg.ID == 2.0 {
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), append(lines.Bytes(), '\n'), 0o600))
			return
		}
	}
	ts.Fatalf("no answer: %v", lines.Err())
}

// trashID puts the id of a trashed text into $ID: trashid PATH REASON STATEDIR
func trashID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: trashid PATH REASON STATEDIR")
	}
	ts.Check(ts.Exec("memsync-agent", "trash", "list", "--json", "--state-dir", args[2]))
	var all []struct{ ID, Path, Reason string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &all))
	for _, e := range all {
		if e.Path == args[0] && e.Reason == args[1] {
			ts.Setenv("ID", e.ID)
			return
		}
	}
	ts.Fatalf("nothing such in the trash: %+v", all)
}

// big writes a file of so many bytes: big FILE BYTES
func big(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: big FILE BYTES")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.Repeat([]byte("x"), n), 0o600))
}
