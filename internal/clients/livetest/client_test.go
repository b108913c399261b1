package livetest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// secret is made up. Its form is one that clients let pass: Claude Code has an eye of its
// own on known tokens in team/, and would be first with those.
const secret = "postgres://app:9fK2mQvL8xTzR4@db.internal:5432/pay"

// what the model is told by memories, and what a person types.
const (
	description = "unit tests run against a real database"
	fact        = "Never a mock: the CI database is called lighthouse."
	prompt      = "please write unit tests for the parser"
	// lateFact is in a memory that shares no word with the prompt: only a model chooses it.
	lateFact = "The harbour pilot is called Quill."
)

// machine is a home with a project in it, memories, and this program.
type machine struct {
	t                     *testing.T
	home, work, team, exe string
	env                   []string
	chooser               *chooser
}

// chooser is the model of the daemon. It answers once the client's own model was asked,
// and so always too late for the prompt.
type chooser struct {
	asked, answered chan struct{} // closed when the client's model was asked, and this one has answered
	ask, answer     sync.Once
}

// find returns a file of a client below MEMSVC_CLIENTS, or skips the test.
func find(t *testing.T, paths ...string) string {
	t.Helper()
	root := os.Getenv("MEMSVC_CLIENTS")
	if root == "" {
		t.Skip("MEMSVC_CLIENTS is not set: hack/clients.sh fetches the clients and says where")
	}
	for _, p := range paths {
		found, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(p)))
		if len(found) > 0 {
			return found[0]
		}
	}
	t.Skipf("the client is not below %s: none of %s", root, strings.Join(paths, ", "))
	return ""
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	find(t, ".")
	m := &machine{t: t, home: filepath.Join(t.TempDir(), "home of somebody")}
	m.work = filepath.Join(m.home, "work")
	m.exe = filepath.Join(m.home, "bin", "memsync-agent")
	for _, d := range []string{m.work, filepath.Dir(m.exe)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", m.exe, "github.com/memsvc/memsvc/cmd/memsync-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil { // from the cache after the first time
		t.Fatalf("%v: %s", err, out)
	}
	m.env = []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "LANG=C.UTF-8", "NO_PROXY=127.0.0.1", "TMPDIR=" + t.TempDir()}
	m.run(time.Minute, "git", "init", "-q", ".")
	var where struct {
		Team string `json:"team"`
	}
	if err := json.Unmarshal([]byte(m.run(time.Minute, m.exe, "memory", "where", "--json")), &where); err != nil || where.Team == "" {
		t.Fatalf("memory where: %v", err)
	}
	m.team = where.Team
	if err := os.MkdirAll(m.team, 0o700); err != nil {
		t.Fatal(err)
	}
	text := "---\nname: Testing\ndescription: " + description + "\ntype: feedback\n---\n\n" + fact + "\n"
	late := "---\nname: Harbour\ndescription: who brings ships in\ntype: reference\n---\n\n" + lateFact + "\n"
	for name, text := range map[string]string{
		"feedback_testing.md": text, "reference_harbour.md": late,
		"MEMORY.md": "- [Testing](feedback_testing.md) — " + description + "\n- [Harbour](reference_harbour.md) — ships\n",
	} {
		if err := os.WriteFile(filepath.Join(m.team, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.daemon()
	return m
}

// daemon runs the agent with a model that chooses late. Its hub is away.
func (m *machine) daemon() {
	t := m.t
	t.Helper()
	m.chooser = &chooser{asked: make(chan struct{}), answered: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-m.chooser.asked:
		case <-r.Context().Done():
			return
		}
		reply(w, map[string]any{"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": `{"files":["team/reference_harbour.md"]}`}}}})
		m.chooser.answer.Do(func() { close(m.chooser.answered) })
	}))
	t.Cleanup(s.Close)
	m.configure("memsync.yaml", "model:\n  provider: openai\n  name: scripted\n  endpoint: "+s.URL+"/v1\n  timeout: 10m\n") // a client may have much to do before it asks
	m.configure("token", "msv_none\n")
	cmd := exec.Command(m.exe, "run", "--config", filepath.Join(m.home, "memsync.yaml"), "--hub", "127.0.0.1:1", "--token-file", filepath.Join(m.home, "token"), "--team", "acme", "--project", "pay", "--dir", m.team)
	cmd.Env = m.env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		out, err := m.try(time.Minute, m.exe, "status", "--json")
		var st struct {
			Running bool `json:"running"`
		}
		if err == nil && json.Unmarshal([]byte(out), &st) == nil && st.Running {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the daemon does not run: %v\n%s", err, out)
		}
	}
}

// run runs a program in the project and returns what it prints; it must succeed.
func (m *machine) run(patience time.Duration, name string, args ...string) string {
	m.t.Helper()
	out, err := m.try(patience, name, args...)
	if err != nil {
		m.t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

func (m *machine) try(patience time.Duration, name string, args ...string) (string, error) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = m.work, m.env, 5*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// configure writes a client's configuration, as a person would have.
func (m *machine) configure(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.home, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// lesson is what a client's model does: it writes a secret into the shared directory,
// lists the memories, and is done.
type lesson struct {
	write func(file, text string) say // with the client's own tool
	list  string                      // what the client calls memory_list
}

func (l lesson) script(m *machine) func(ask) say {
	return func(a ask) say {
		switch a.Results {
		case 0:
			m.chooser.ask.Do(func() { close(m.chooser.asked) })
			return l.write(filepath.Join(m.team, "reference_token.md"), "---\nname: Database\ndescription: where the data is\ntype: reference\n---\n\nThe database is at "+secret+"\n")
		case 1:
			select {
			case <-m.chooser.answered:
			case <-time.After(20 * time.Second):
				m.t.Error("the daemon's model was not asked")
			}
			return say{Tool: l.list, Args: map[string]any{"scope": "team"}}
		}
		return say{Text: "That is all."}
	}
}

// check looks at what reached the model.
func (m *machine) check(mo *model, l lesson, output string) {
	t := m.t
	t.Helper()
	asks := mo.Asks()
	if len(asks) < 3 {
		t.Fatalf("%d requests reached the model, want 3; the client said:\n%s", len(asks), output)
	}
	for what, text := range map[string]string{"the guide": "Long-term memory of this project", "the recalled memory": "called lighthouse"} {
		if !strings.Contains(asks[0].Body, text) {
			t.Errorf("%s did not reach the first request", what)
		}
	}
	// A client may let its model search for tools, and offers only that.
	if !slices.Contains(asks[0].Tools, l.list) && !slices.Contains(asks[0].Tools, "tool_search") {
		t.Errorf("the model is not offered %s, but %s", l.list, strings.Join(asks[0].Tools, " "))
	}
	if !strings.Contains(asks[1].Body, "is shared with the team, and this may not be") {
		t.Errorf("the model is not told why the secret was refused; the client said:\n%s", output)
	}
	if _, err := os.Stat(filepath.Join(m.team, "reference_token.md")); err == nil {
		t.Error("the secret was written")
	}
	if strings.Contains(asks[0].Body, lateFact) || strings.Contains(asks[1].Body, lateFact) {
		t.Error("what is chosen late came with the prompt")
	}
	last := asks[len(asks)-1].Body
	if strings.Count(last, lateFact) != 1 {
		t.Errorf("what was chosen late is in the request after the tool %d times; the client said:\n%s", strings.Count(last, lateFact), output)
	}
	if i := strings.LastIndex(last, `feedback_testing.md`); i < 0 || !strings.Contains(last, `\"memories\":`) && !strings.Contains(last, `"memories":`) {
		t.Errorf("the tool's answer did not reach the model; the client said:\n%s", output)
	}
	if t.Failed() && os.Getenv("MEMSVC_CLIENTS_DUMP") != "" {
		for i, a := range asks {
			t.Logf("request %d, %d results, tools %s:\n%s", i, a.Results, strings.Join(a.Tools, " "), a.Body)
		}
	}
}

func TestClaudeCode(t *testing.T) {
	m := newMachine(t)
	m.claude("mcp__memsvc__memory_list", func(string) { m.run(time.Minute, m.exe, "install", "claude-code") })
}

// The plugin comes from this repository's own marketplace, and finds the program by name.
func TestClaudeCodePlugin(t *testing.T) {
	m := newMachine(t)
	m.claude("mcp__plugin_memsvc_memsvc__memory_list", func(client string) {
		root, err := filepath.Abs("../../..")
		if err != nil {
			t.Fatal(err)
		}
		m.env = append(m.env, "PATH="+filepath.Dir(m.exe)+string(filepath.ListSeparator)+os.Getenv("PATH"))
		m.run(time.Minute, client, "plugin", "marketplace", "add", root)
		m.run(time.Minute, client, "plugin", "install", "memsvc@memsvc")
	})
}

// claude gives the lesson to Claude Code after a setup.
func (m *machine) claude(list string, setup func(client string)) {
	t := m.t
	t.Helper()
	// Older versions are a script.
	client := find(t, "claude/node_modules/@anthropic-ai/claude-code-*/claude", "claude/node_modules/@anthropic-ai/claude-code/cli.js")
	l := lesson{
		list: list,
		write: func(file, text string) say {
			return say{Tool: "Write", Args: map[string]any{"file_path": file, "content": text}}
		},
	}
	mo := newModel(t, l.script(m))
	m.env = append(m.env, "ANTHROPIC_BASE_URL="+mo.URL, "ANTHROPIC_API_KEY=none", "ENABLE_TOOL_SEARCH=false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1")
	setup(client)
	t.Log(strings.TrimSpace(m.run(time.Minute, client, "--version")))
	out, err := m.try(2*time.Minute, client, "-p", prompt, "--dangerously-skip-permissions")
	if err != nil {
		t.Errorf("the client: %v", err)
	}
	m.check(mo, l, out)
}

func TestCodex(t *testing.T) {
	client := find(t, "codex/node_modules/@openai/codex-*/vendor/*/bin/codex")
	m := newMachine(t)
	l := lesson{
		list: "mcp__memsvc.memory_list",
		write: func(file, text string) say {
			patch := "*** Begin Patch\n*** Add File: " + file + "\n+" + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n+") + "\n*** End Patch\n"
			return say{Tool: "apply_patch", Args: map[string]any{"input": patch}}
		},
	}
	mo := newModel(t, l.script(m))
	m.run(time.Minute, m.exe, "install", "codex")
	t.Log(strings.TrimSpace(m.run(time.Minute, client, "--version")))
	out, err := m.try(2*time.Minute, client, "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox",
		"-c", `model_providers.scripted={name="scripted",base_url="`+mo.URL+`/v1",wire_api="responses"}`, "-c", `model_provider="scripted"`, "-c", `model="gpt-5.5"`, prompt)
	if err != nil {
		t.Errorf("the client: %v", err)
	}
	m.check(mo, l, out)
}

func TestGemini(t *testing.T) {
	client := find(t, "gemini/node_modules/@google/gemini-cli/bundle/gemini.js")
	m := newMachine(t)
	l := lesson{
		list: "mcp_memsvc_memory_list",
		write: func(file, text string) say {
			return say{Tool: "write_file", Args: map[string]any{"file_path": file, "content": text}}
		},
	}
	mo := newModel(t, l.script(m))
	m.env = append(m.env, "GOOGLE_GEMINI_BASE_URL="+mo.URL, "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false")
	m.configure(".gemini/settings.json", `{"security": {"auth": {"selectedType": "gemini-api-key"}}}`)
	m.run(time.Minute, m.exe, "install", "gemini")
	t.Log(strings.TrimSpace(m.run(time.Minute, "node", client, "--version")))
	out, err := m.try(2*time.Minute, "node", client, "--approval-mode", "yolo", "--include-directories", m.team, "-p", prompt)
	if err != nil {
		t.Errorf("the client: %v", err)
	}
	m.check(mo, l, out)
}

func TestOpenCode(t *testing.T) {
	client := find(t, "opencode/node_modules/opencode-*/bin/opencode")
	m := newMachine(t)
	l := lesson{
		list: "memsvc_memory_list",
		write: func(file, text string) say {
			return say{Tool: "write", Args: map[string]any{"filePath": file, "content": text}}
		},
	}
	mo := newModel(t, l.script(m))
	m.configure(".config/opencode/opencode.json", `{
  // ours stays
  "model": "scripted/scripted",
  "small_model": "scripted/scripted",
  "autoupdate": false,
  "share": "disabled",
  "permission": "allow",
  "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "`+mo.URL+`/v1", "apiKey": "none"}, "models": {"scripted": {"tool_call": true, "limit": {"context": 100000, "output": 10000}}}}},
}
`)
	m.env = append(m.env, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_AUTOUPDATE=1")
	m.run(time.Minute, m.exe, "install", "opencode")
	t.Log(strings.TrimSpace(m.run(time.Minute, client, "--version")))
	out, err := m.try(2*time.Minute, client, "run", prompt)
	if err != nil {
		t.Errorf("the client: %v", err)
	}
	m.check(mo, l, out)
}

// TestClaudeCodeCompaction: the client tells of a compaction that it begins, and a
// conversation of which nothing was noted before has its notes then. So short a one the client
// does not compact after all.
func TestClaudeCodeCompaction(t *testing.T) {
	client := find(t, "claude/node_modules/@anthropic-ai/claude-code-*/claude", "claude/node_modules/@anthropic-ai/claude-code/cli.js")
	m := newMachine(t)
	mo := newModel(t, func(ask) say { return say{Text: "The parser is taken apart."} })
	m.env = append(m.env, "ANTHROPIC_BASE_URL="+mo.URL, "ANTHROPIC_API_KEY=none", "ENABLE_TOOL_SEARCH=false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1")
	t.Log(strings.TrimSpace(m.run(time.Minute, client, "--version")))
	m.run(2*time.Minute, client, "-p", "Take the parser apart. "+strings.Repeat("It has many words. ", 4000))
	m.run(time.Minute, m.exe, "install", "claude-code")
	m.without("Stop", "SessionEnd") // which would bring the notes too
	if path := strings.TrimSpace(m.run(time.Minute, m.exe, "notes", "path")); exists(path) {
		t.Fatalf("%s is there before", path)
	}
	t.Log(m.run(2*time.Minute, client, "-p", "--continue", "/compact"))
	if path := strings.TrimSpace(m.run(time.Minute, m.exe, "notes", "path")); !exists(path) {
		t.Errorf("%s is not there after the compaction", path)
	}
	m.run(2*time.Minute, client, "-p", "--continue", "go on please")
	asks := mo.Asks()
	if last := asks[len(asks)-1].Body; !strings.Contains(last, "notes of this conversation so far") || !strings.Contains(last, "Take the parser apart") {
		t.Error("the notes did not reach the model after the compaction")
	}
}

// without takes hooks out of Claude Code's settings.
func (m *machine) without(events ...string) {
	m.t.Helper()
	file := filepath.Join(m.home, ".claude", "settings.json")
	var settings map[string]map[string]any
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &settings)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	for _, e := range events {
		delete(settings["hooks"], e)
	}
	if text, err = json.Marshal(settings); err != nil {
		m.t.Fatal(err)
	}
	m.configure(".claude/settings.json", string(text))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
