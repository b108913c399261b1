package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkHookProcess runs the hooks of a prompt, of a session's start and of a tool as whole
// processes, with 200 memories and a transcript of 20 MB, beside an empty Go program, in
// turns, and reports the median processor time that each takes over it.
func BenchmarkHookProcess(b *testing.B) {
	dir := b.TempDir()
	build := func(name, pkg string) string {
		b.Helper()
		program := filepath.Join(dir, name)
		if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
			b.Fatalf("build %s: %v\n%s", pkg, err, out)
		}
		return program
	}
	write := func(name, text string) string {
		b.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return file
	}
	agent := build("memsync-agent", "github.com/memsvc/memsvc/cmd/memsync-agent")
	empty := build("empty", write("empty.go", "package main\n\nfunc main() {}\n"))
	for i := range 200 {
		at := [2]string{"", "team/"}[i%2]
		write(fmt.Sprintf("memory/%sproject_%d.md", at, i), fmt.Sprintf("---\nname: Service %d\ndescription: about the deployment of service %d and its rollback\ntype: project\n---\n\n%s", i, i,
			strings.Repeat("A line of text about something that was found out, and why.\n", 40)))
	}
	var text strings.Builder
	for i := 0; text.Len() < 20<<20; i++ {
		role := [2]string{"user", "assistant"}[i%2]
		fmt.Fprintf(&text, `{"type":%q,"timestamp":"2026-03-01T10:00:00Z","message":{"role":%q,"content":[{"type":"text","text":%q}]}}`+"\n", role, role, strings.Repeat(fmt.Sprintf("word%d ", i), 200))
	}
	transcript := write("transcript.jsonl", text.String())
	cost := func(program string, args []string, event map[string]string) time.Duration {
		b.Helper()
		input, err := json.Marshal(event)
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"HOME=" + dir, "MEMSYNC_STATE_DIR=" + filepath.Join(dir, "state"), "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE=" + filepath.Join(dir, "memory")}
		cmd.Stdin = strings.NewReader(string(input))
		out, err := cmd.Output()
		if err != nil || len(args) > 0 && (len(out) == 0) != (args[1] == "PostToolUse") {
			b.Fatalf("%s %v: %v, %d bytes", program, args, err, len(out))
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	for _, bench := range []struct{ name, event string }{{"prompt", "UserPromptSubmit"}, {"session", "SessionStart"}, {"tool", "PostToolUse"}} {
		b.Run(bench.name, func(b *testing.B) {
			event := map[string]string{"hook_event_name": bench.event, "cwd": dir, "transcript_path": transcript, "prompt": "how do I roll back the deployment of service 17?", "session_id": "s"}
			var hooks, floors []time.Duration
			for b.Loop() {
				hooks = append(hooks, cost(agent, []string{"hook", bench.event}, event))
				floors = append(floors, cost(empty, nil, nil))
			}
			slices.Sort(hooks)
			slices.Sort(floors)
			over := hooks[len(hooks)/2] - floors[len(floors)/2]
			b.ReportMetric(float64(over.Microseconds())/1000, "cpu-ms-over-empty")
		})
	}
}
