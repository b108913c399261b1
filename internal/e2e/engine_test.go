package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// githubToken has the form of one, and is none.
const githubToken = "ghp_" + "Zk3vQ8mN1xR7tY5wB2cJ9dL4pH6sF0gA8eU1"

// desk is a machine with a coding client: a home whose memory directory is shared, and
// a repository in which the client works.
type desk struct {
	*machine
	home, repo, memory string
	env                []string // of the daemon, besides
	agent              *exec.Cmd
}

// desks starts machines whose team/ lies where a client keeps the memories of a
// repository. env is added to the environment of their daemons.
func desks(t *testing.T, h *hubtest.Hub, n int, env ...string) []*desk {
	t.Helper()
	file := h.TokenFile(string(project.Team), string(project.Project), "writer")
	var out []*desk
	for i := range n {
		m := newMachine(t, string(rune('A'+i)), h.GRPCAddr, file)
		base, err := filepath.EvalSymlinks(filepath.Dir(m.state))
		if err != nil {
			t.Fatal(err)
		}
		d := &desk{machine: m, home: filepath.Join(base, "home"), repo: filepath.Join(base, "repo"), memory: filepath.Join(base, "home", "memory"), env: env}
		m.dir = filepath.Join(d.memory, "team")
		m.link.Dir = m.dir
		for _, dir := range []string{m.dir, filepath.Join(d.repo, ".git")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		d.daemon()
		out = append(out, d)
	}
	return out
}

// daemon runs the machine's agent as a process of its own, since hooks and commands
// reach it by its socket, and waits until it answers there.
func (d *desk) daemon() {
	d.t.Helper()
	d.agent = d.background(d.t, func(cmd *exec.Cmd) { cmd.Env = append(append(cmd.Env, "HOME="+d.home), d.env...) })
	hubtest.Eventually(d.t, patience, "the daemon serves", func() bool {
		return programCommand("memsync-agent", "healthcheck", "--state-dir", d.state).Run() == nil
	})
}

// run runs the agent's program in the repository.
func (d *desk) run(stdin string, args ...string) string {
	d.t.Helper()
	cmd := programCommand("memsync-agent", append(args, "--state-dir", d.state)...)
	cmd.Dir = d.repo
	cmd.Env = append(cmd.Env, "HOME="+d.home, "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE="+d.memory)
	cmd.Stdin = strings.NewReader(stdin)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatalf("%v: %v\n%s%s", args, err, out, errs.String())
	}
	return string(out)
}

// hook fires an event of the client and returns what its model reads.
func (d *desk) hook(event string, fields map[string]any) string {
	d.t.Helper()
	fields["cwd"] = d.repo
	in, err := json.Marshal(fields)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.run(string(in), "hook", event)
}

// hears fires an event until its answer holds some words, and returns that. A hook has
// fractions of a second for the daemon and some seconds in all: where a machine is too busy
// for that it says nothing, and whoever asks next hears it.
func (d *desk) hears(event string, fields map[string]any, words string) (got string) {
	d.t.Helper()
	hubtest.Eventually(d.t, patience, event+" says "+words, func() bool {
		got = d.hook(event, fields)
		return strings.Contains(got, words)
	})
	return got
}

// TestMemoryOfOneMachineIsRecalledOnAnother: what is written here, a prompt there finds,
// and a conversation that is under way hears of it.
func TestMemoryOfOneMachineIsRecalledOnAnother(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	talk := filepath.Join(t.TempDir(), "s.jsonl")
	line := fmt.Sprintf(`{"type":"user","timestamp":%q,"message":{"content":"hello"}}`+"\n", time.Now().UTC().Format(time.RFC3339Nano))
	if err := os.WriteFile(talk, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	// What comes with a machine's first look at the project is no news.
	hubtest.Eventually(t, patience, "the other machine in step", func() bool {
		links := b.statusOf().Links
		return len(links) == 1 && links[0].Phase == "in-sync"
	})
	// Clients whose transcripts are not read: what they hear of is noted here.
	others := map[string]string{"codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
	noted := 0
	for session, event := range others {
		noted++
		hubtest.Eventually(t, patience, "what "+session+" has heard is noted", func() bool {
			b.hook(event, map[string]any{"session_id": session, "prompt": "continue"})
			files, err := os.ReadDir(filepath.Join(b.state, "sessions"))
			return err == nil && len(files) == noted
		})
	}
	a.run("Integration tests run against a real database; a mock hid a broken migration.",
		"memory", "add", "--team", "--type", "feedback", "--name", "Testing", "--description", "unit tests use a real database")
	hubtest.Eventually(t, patience, "the memory on the other machine", func() bool {
		return strings.Contains(b.read("feedback_testing.md"), "broken migration")
	})
	if got := b.hears("UserPromptSubmit", map[string]any{"prompt": "帮我写单元测试"}, "broken migration"); !strings.Contains(got, `from=\"team\"`) {
		t.Errorf("a prompt there finds %s", got)
	}
	hubtest.Eventually(t, patience, "news in a running conversation", func() bool {
		got := b.hook("UserPromptSubmit", map[string]any{"prompt": "continue", "transcript_path": talk})
		return strings.Contains(got, "team/feedback_testing.md, changed by") && strings.Contains(got, "unit tests use a real database")
	})
	for session, event := range others {
		const news = "team/feedback_testing.md, changed by"
		prompt := map[string]any{"session_id": session, "prompt": "continue"}
		b.hears(event, prompt, news)
		if got := b.hook(event, prompt); strings.Contains(got, news) {
			t.Errorf("%s hears it again: %s", session, got)
		}
	}
	if got := a.hook("UserPromptSubmit", map[string]any{"prompt": "continue", "transcript_path": talk}); got != "" {
		t.Errorf("the machine that wrote it hears %s", got)
	}
}

// TestAuthorOfAMemoryIsSaid: a team's memory says who shared it, whoever that was, without a
// hub and a daemon too; a text that was changed since says nobody.
func TestAuthorOfAMemoryIsSaid(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	a := desks(t, h, 1)[0]
	other := newMachine(t, "C", h.GRPCAddr, h.TokenFile(string(project.Team), string(project.Project), "admin"))
	other.start()
	other.write("project_freeze.md", note("Release freeze", "No merges until the audit is over."))
	a.run("Integration tests run against a real database.",
		"memory", "add", "--team", "--type", "feedback", "--name", "Testing", "--description", "unit tests use a real database")
	a.run("Tea, not coffee.", "memory", "add", "--type", "user", "--name", "Drinks", "--description", "which drinks are wanted in the office")
	name := func(role string) string {
		return fmt.Sprintf(`from=\"team\" type=\"%%s\" author=\"token:%s-%s-%s\"`, project.Team, project.Project, role)
	}
	theirs, ours := fmt.Sprintf(name("admin"), "project"), fmt.Sprintf(name("writer"), "feedback")
	hears := func(prompt, words string) string {
		t.Helper()
		return a.hears("UserPromptSubmit", map[string]any{"prompt": prompt}, words)
	}
	hears("when is the release freeze over", theirs)
	hears("write unit tests against the database", ours)
	if got := hears("which drinks are wanted in the office", "Tea, not coffee"); strings.Contains(got, "author=") {
		t.Errorf("a personal memory: %s", got)
	}
	must(t, a.agent.Process.Kill())
	_ = a.agent.Wait()
	h.Stop()
	hears("when is the release freeze over", theirs) // without daemon and hub
	a.write("project_freeze.md", note("Release freeze", "Merges as you like."))
	if got := hears("when is the release freeze over", "as you like"); strings.Contains(got, "author=") {
		t.Errorf("changed since: %s", got)
	}
	must(t, os.RemoveAll(filepath.Join(a.state, "links", a.link.ID())))
	if got := hears("write unit tests against the database", "a real database"); strings.Contains(got, "author=") {
		t.Errorf("without a state: %s", got)
	}
}

// TestRefusalsAndConflictsReachTheConversation: what waits for a person is said when a
// session begins, and can be ended through the tools.
func TestRefusalsAndConflictsReachTheConversation(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	a.write("project_rules.md", note("rules", "one\ntwo\nthree"))
	hubtest.Eventually(t, patience, "the memory there", func() bool { return b.read("project_rules.md") != "(project_rules.md is not there)" })
	a.write("reference_bank.md", note("bank", "the token is "+githubToken))
	h.Stop()
	a.write("project_rules.md", note("rules", "one\nA\nthree"))
	b.write("project_rules.md", note("rules", "one\nB\nthree"))
	h.StartAgain()
	var loser *desk
	hubtest.Eventually(t, patience, "a conflict on one side", func() bool {
		for _, d := range ds {
			got := d.hook("SessionStart", map[string]any{"source": "startup"})
			if strings.Contains(got, "in conflict, both texts are kept: project_rules.md") {
				loser = d
				if !strings.Contains(got, "tools conflict_read and conflict_resolve") || !strings.Contains(got, "memsync-agent conflicts show ID") {
					t.Errorf("what can be done is not said: %s", got)
				}
			}
		}
		return loser != nil
	})
	got := ""
	hubtest.Eventually(t, patience, "the refusal in the context", func() bool {
		got = a.hook("SessionStart", map[string]any{"source": "startup"})
		return strings.Contains(got, "reference_bank.md:6") && strings.Contains(got, "github-pat")
	})
	if strings.Contains(got, githubToken) {
		t.Error("the context holds the secret")
	}
	status := loser.tool("sync_status", map[string]any{})
	if !strings.Contains(status, "conflict_read shows both texts") || strings.Contains(status, "memsync-agent conflicts") {
		t.Errorf("the status says %s", status)
	}
	_, id, _ := strings.Cut(status, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if got := loser.tool("conflict_read", map[string]any{"id": id}); !strings.Contains(got, `one\nA\nthree`) || !strings.Contains(got, `one\nB\nthree`) {
		t.Errorf("the texts are %s", got)
	}
	if got := loser.tool("conflict_resolve", map[string]any{"id": id, "take": "merged", "merged": note("rules", "one\nA and B\nthree")}); !strings.Contains(got, "resolved") {
		t.Errorf("resolving says %s", got)
	}
	hubtest.Eventually(t, patience, "the merged text everywhere", func() bool {
		return strings.Contains(a.read("project_rules.md"), "A and B") && strings.Contains(b.read("project_rules.md"), "A and B")
	})
	if got := a.tool("memory_history", map[string]any{"memory": "team/project_rules.md"}); !strings.Contains(got, "put project_rules.md") {
		t.Errorf("the history is %s", got)
	}
}

// TestPromptHearsOfARefusal: a secret that a shell writes in the midst of a session is in the
// next prompt's context, once; and a session that begins while the hub or the daemon is away
// is not promised that the team reads along.
func TestPromptHearsOfARefusal(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	d := desks(t, h, 1)[0]
	const promise = "reads them within seconds"
	start := func() string { return d.hook("SessionStart", map[string]any{"session_id": "s", "source": "startup"}) }
	ask := func() string {
		return d.hook("UserPromptSubmit", map[string]any{"session_id": "s", "prompt": "continue"})
	}
	hubtest.Eventually(t, patience, "a session in step", func() bool {
		got := start()
		return strings.Contains(got, promise) && !strings.Contains(got, "Sharing with")
	})
	d.write("reference_bank.md", note("bank", "the token is "+githubToken))
	got := ""
	hubtest.Eventually(t, patience, "the refusal in a prompt", func() bool { got = ask(); return got != "" })
	if !strings.Contains(got, "stays on this machine: reference_bank.md:6") || !strings.Contains(got, "github-pat") || strings.Contains(got, githubToken) {
		t.Errorf("the prompt hears %s", got)
	}
	if got := ask(); got != "" {
		t.Errorf("the next one hears %s", got)
	}
	h.Stop()
	hubtest.Eventually(t, patience, "the hub's absence", func() bool {
		got = start()
		return strings.Contains(got, ": offline; the hub was last heard of ") && !strings.Contains(got, promise)
	})
	if !strings.Contains(got, "stays on this machine: reference_bank.md:6") {
		t.Errorf("offline a session hears %s", got)
	}
	must(t, d.agent.Process.Kill())
	hubtest.Eventually(t, patience, "the daemon's absence", func() bool {
		got = start()
		return strings.Contains(got, "not-running") && strings.Contains(got, "memsync-agent run") && !strings.Contains(got, promise)
	})
}

// TestConflictOfAnotherMachineThroughTools: a model sees the conflicts that the hub keeps
// for other machines, and ends them as it does its own.
func TestConflictOfAnotherMachineThroughTools(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	ds := desks(t, h, 2)
	a, b := ds[0], ds[1]
	a.write("project_rules.md", note("rules", "one\ntwo\nthree"))
	hubtest.Eventually(t, patience, "the memory there", func() bool { return b.read("project_rules.md") != "(project_rules.md is not there)" })
	h.Stop()
	a.write("project_rules.md", note("rules", "one\nA\nthree"))
	b.write("project_rules.md", note("rules", "one\nB\nthree"))
	h.StartAgain()
	type conflict struct{ ID, Path, Of string }
	open := func(d *desk) (out []conflict) {
		var res struct {
			Structured struct{ Conflicts []conflict } `json:"structuredContent"`
		}
		must(t, json.Unmarshal([]byte(d.tool("sync_status", map[string]any{})), &res))
		return res.Structured.Conflicts
	}
	var other *desk // where it did not arise
	var k conflict
	hubtest.Eventually(t, patience, "the conflict on the other machine", func() bool {
		for _, d := range ds {
			if got := open(d); len(got) == 1 && got[0].Of != "" {
				other, k = d, got[0]
			}
		}
		return other != nil
	})
	loser := a
	if other == a {
		loser = b
	}
	if got := open(loser); len(got) != 1 || got[0].Of != "" || k.Path != "project_rules.md" {
		t.Errorf("the machine of the conflict has %+v, the other %+v", got, k)
	}
	for _, name := range []string{k.ID, k.Path} {
		if got := other.tool("conflict_read", map[string]any{"id": name}); !strings.Contains(got, `one\nA\nthree`) || !strings.Contains(got, `one\nB\nthree`) {
			t.Errorf("the texts of %s are %s", name, got)
		}
	}
	if got := other.tool("conflict_read", map[string]any{"id": "nonsense"}); !strings.Contains(got, "no open conflict is called nonsense; sync_status names them") {
		t.Errorf("an unknown one: %s", got)
	}
	if got := other.tool("conflict_resolve", map[string]any{"id": k.ID, "take": "merged", "merged": "the token is " + githubToken}); !strings.Contains(got, "github-pat") || strings.Contains(got, githubToken) {
		t.Errorf("a secret: %s", got)
	}
	if got := other.tool("conflict_resolve", map[string]any{"id": k.ID, "take": "merged", "merged": note("rules", "one\nA and B\nthree")}); !strings.Contains(got, "in place as of revision") {
		t.Errorf("resolving says %s", got)
	}
	hubtest.Eventually(t, patience, "the merged text everywhere", func() bool {
		return strings.Contains(a.read("project_rules.md"), "A and B") && strings.Contains(b.read("project_rules.md"), "A and B") &&
			len(open(a))+len(open(b)) == 0
	})
	h.Stop()
	if got := other.tool("sync_status", map[string]any{}); !strings.Contains(got, `"unknown":"conflicts of other machines: `) {
		t.Errorf("without the hub: %s", got)
	}
}

// tool calls a tool of the agent's MCP server over standard input and output.
func (d *desk) tool(name string, args map[string]any) string {
	d.t.Helper()
	call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := programCommand("memsync-agent", "mcp", "--state-dir", d.state)
	cmd.Dir = d.repo
	cmd.Env = append(cmd.Env, "HOME="+d.home, "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE="+d.memory)
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	defer func() {
		_ = in.Close() // the server ends with its input
		_ = cmd.Wait()
	}()
	fmt.Fprintf(in, "%s\n%s\n%s\n", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, call)
	dec := json.NewDecoder(out)
	for {
		var msg struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := dec.Decode(&msg); err != nil {
			d.t.Fatalf("%s: %v", name, err)
		}
		if msg.ID == 2 {
			return string(msg.Result) + string(msg.Error)
		}
	}
}

// TestFinishedTurnBecomesAMemory: what a person says is to be remembered is a memory soon
// after the turn, with a daemon and without one.
func TestFinishedTurnBecomesAMemory(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	d := desks(t, h, 1)[0]
	talk := filepath.Join(t.TempDir(), "s1.jsonl")
	say := func(uuid, text string) {
		t.Helper()
		f, err := os.OpenFile(talk, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, `{"type":"user","uuid":%q,"sessionId":"s1","timestamp":"2026-03-10T10:00:00Z","message":{"content":%q}}`+"\n", uuid, text)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop := map[string]any{"session_id": "s1", "transcript_path": talk}
	// A hook has half a second for it. What it did not manage then, the next one does.
	turn := func(what, memory string) {
		t.Helper()
		hubtest.Eventually(t, patience, what, func() bool {
			if got := d.hook("Stop", stop); got != "" {
				t.Errorf("the hook says %s", got)
			}
			return strings.Contains(d.run("", "memory", "list"), memory)
		})
	}
	say("u1", "Always run the linter before you commit.")
	turn("the memory", "Always run the linter")
	if got := d.run("", "extract", "--transcript", talk); !strings.Contains(got, "nothing new was said") {
		t.Errorf("once more: %s", got)
	}
	d.state = filepath.Join(t.TempDir(), "other") // no daemon serves it
	say("u2", "以后提交说明都用中文写。")
	turn("the memory without a daemon", "以后提交说明都用中文写")
}

// TestNotesOfAFirstTurnSurviveACompaction: a long first turn has no end before its context is
// compacted, and yet the conversation goes on with its notes.
func TestNotesOfAFirstTurnSurviveACompaction(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	d := desks(t, h, 1)[0]
	talk := filepath.Join(t.TempDir(), "s1.jsonl")
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-03-10T10:00:00Z","message":{"content":"Take the parser apart."}}`+"\n")
	for i := range 80 {
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"a%d","message":{"content":[{"type":"tool_use","id":"t%d","name":"Edit","input":{"file_path":"/w/parser_%d.go","old_string":"x","new_string":%q}}]}}`+"\n", i, i, i, strings.Repeat("y ", 1000))
		fmt.Fprintf(&b, `{"type":"user","uuid":"r%d","message":{"content":[{"type":"tool_result","tool_use_id":"t%d","content":"done"}]}}`+"\n", i, i)
	}
	must(t, os.WriteFile(talk, []byte(b.String()), 0o600))
	event := map[string]any{"session_id": "s1", "transcript_path": talk, "trigger": "auto"}
	start := map[string]any{"session_id": "s1", "transcript_path": talk, "source": "compact"}
	noted := func() bool { return strings.Contains(d.hook("SessionStart", start), "parser_79.go: changed") }
	if noted() {
		t.Fatal("there are notes before anything wrote them")
	}
	hubtest.Eventually(t, patience, "the notes", func() bool {
		if got := d.hook("PreCompact", event); got != "" { // it may not have reached the daemon in time
			t.Errorf("the hook says %s", got)
		}
		return noted()
	})
}
