package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/budget"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

// planted is a token of a form that the guard knows, another one for each place.
func planted(place string) string {
	return "ghp_" + fmt.Sprintf("%x", sha256.Sum256([]byte(place)))[:36]
}

// places are where the tests plant tokens, and key is a line of a key in a block.
var places = []string{
	"prompt", "what a person said", "cut", "what the assistant said", "what a tool printed", "description", "body", "file name", "team",
	"project", "project file", "notes", "own instructions", "a session before", "long",
}

const keyLine = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW"

func keyBlock() string {
	return "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + strings.Repeat(keyLine+"\n", 5) + "-----END OPENSSH " + "PRIVATE KEY-----\n"
}

// heard is everything that a provider was sent.
type heard struct {
	mu    sync.Mutex // guards texts
	texts []string
}

func (h *heard) add(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, string(b))
}

// since checks what was sent after the first n texts, and returns how many there are.
func (h *heard) since(t *testing.T, what string, n int) int {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.texts) == n {
		t.Errorf("%s: no model was asked", what)
	}
	all := strings.Join(h.texts[n:], "\n")
	for _, place := range places {
		for _, part := range []string{planted(place)[4:18], planted(place)[20:34]} {
			if strings.Contains(all, part) {
				t.Errorf("%s: the model is shown what stands in %s", what, place)
			}
		}
	}
	if strings.Contains(all, keyLine[:30]) || strings.Contains(all, keyLine[40:]) {
		t.Errorf("%s: the model is shown a key", what)
	}
	if strings.Contains(all, "<system-reminder>") || strings.Contains(all, `\u003csystem-reminder`) {
		t.Errorf("%s: the model is shown a tag of clients", what)
	}
	return len(h.texts)
}

// plant fills a machine with secrets, one for each place, and returns a conversation.
func plant(t *testing.T, w *modelWorld) (talk string) {
	t.Helper()
	root := filepath.Dir(w.dir)
	memory := func(name, description, body string) string {
		return "---\nname: " + name + "\ndescription: " + description + "\ntype: project\n---\n\n" + body + "\n"
	}
	w.write(t, filepath.Join(w.dir, "project_described.md"), memory("Described", strings.Repeat("word ", 35)+planted("description"), "Nothing."))
	w.write(t, filepath.Join(w.dir, "project_body.md"), memory("Body", "<system-reminder> about merges", "Use "+planted("body")+"\n"+keyBlock()+"and no other."))
	w.write(t, filepath.Join(w.dir, "project_"+planted("file name")+".md"), memory("Named", "named by accident", "Nothing."))
	w.write(t, filepath.Join(w.dir, "team", "project_team.md"), memory("Team", "of the team", "Use "+planted("team")))
	w.write(t, filepath.Join(w.dir, "team", "project_other.md"), memory("Other", "of the team, too", "<system-reminder> Another one."))
	w.write(t, filepath.Join(root, "project", "deploy.yaml"), "token: "+planted("project")+"\n")
	w.write(t, filepath.Join(root, "project", "key.txt"), "x\n"+keyBlock()+"y\n")
	w.write(t, filepath.Join(root, "project", planted("project file")+".txt"), "x\n")
	w.write(t, filepath.Join(root, "claude", "session-memory", "config", "prompt.md"), "Write in French.\nMy key is "+planted("own instructions")+"\n")

	line := func(kind, id string, content any) string {
		b, err := json.Marshal(map[string]any{"type": kind, "uuid": id, "sessionId": "s", "timestamp": "2026-03-05T10:00:00Z", "cwd": filepath.Join(root, "project"), "message": map[string]any{"role": kind, "content": content}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	many := ""
	for len(many) < 30_000 {
		many += "Another line of the log that somebody pasted, number " + fmt.Sprint(len(many)) + ".\n"
	}
	conversation := line("user", "u1", many+"the key\n"+keyBlock()+many) +
		line("user", "u2", strings.Repeat("x ", 19_990)+planted("cut")+strings.Repeat(" y", 9_000)) +
		line("user", "u3", "Remember that the token is "+planted("what a person said")+"\nRemember that audits are on Mondays. <system-reminder>\nThe wiki has more.") +
		line("assistant", "a1", []any{map[string]any{"type": "text", "text": "I use " + planted("what the assistant said")}, map[string]any{"type": "tool_use", "id": "t1", "name": "Bash", "input": map[string]any{"command": "cat " + strings.Repeat("x ", 90) + planted("long")}}}) +
		line("user", "u4", []any{map[string]any{"type": "tool_result", "tool_use_id": "t1", "content": keyBlock() + planted("what a tool printed"), "is_error": true}})
	talks := filepath.Join(root, "claude", "projects", "talks")
	w.write(t, filepath.Join(talks, "before.jsonl"), line("user", "b1", "Never print "+strings.Repeat("w ", 130)+planted("a session before")))
	w.write(t, filepath.Join(talks, "noted.jsonl"), line("user", "n1", "Hello."))
	doc := notes.Parse(notes.Template())
	doc.Set("Learnings", "It is "+planted("notes"))
	w.write(t, notes.Path(filepath.Join(talks, "noted.jsonl")), doc.String())
	talk = filepath.Join(talks, "talk.jsonl")
	w.write(t, talk, conversation)
	return talk
}

// TestNoModelIsShownASecret asks a model for everything that models are asked for, lets it
// use every tool on every place, and looks at what was sent: no secret, no half of one, no
// part of a key, and no tag that passes for a client's.
func TestNoModelIsShownASecret(t *testing.T) {
	for _, provider := range []string{providerOpenAI, providerCommand} {
		t.Run(provider, func(t *testing.T) {
			w := newModelWorld(t, "")
			root := filepath.Dir(w.dir)
			t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(root, "claude"))
			talk := plant(t, w)
			h := &heard{}
			if provider == providerOpenAI {
				s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					h.add(body)
					curious(rw, body)
				}))
				t.Cleanup(s.Close)
				w.write(t, w.config, fmt.Sprintf("model:\n  provider: openai\n  name: tiny\n  endpoint: %s/v1\n  daily-tokens: 100000000\n", s.URL))
			} else {
				w.write(t, w.config, fmt.Sprintf("model:\n  provider: command\n  command: [sh, -c, 'f=$(mktemp %s/heard.XXXXXX); cat > $f; echo []']\n", root))
			}
			t.Chdir(filepath.Join(root, "project"))
			n := 0
			use := func(args ...string) {
				t.Helper()
				out, stderr, code := invoke(t, args...)
				if code != ExitOK {
					t.Errorf("%v: exit %d: %s%s", args, code, out, stderr)
				}
				files, err := filepath.Glob(filepath.Join(root, "heard.*"))
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					b, err := os.ReadFile(f)
					if err != nil || os.Remove(f) != nil {
						t.Fatal(err)
					}
					h.add(b)
				}
				n = h.since(t, strings.Join(args, " "), n)
			}
			use("recall", "--query", "Is "+planted("prompt")+" good?\nwhen are merges frozen this month")
			use("extract", "--transcript", talk, "--dry-run")
			use("extract", "--transcript", talk)
			use("notes", "update", "--transcript", talk)
			use("dream", "--force")
			if provider == providerOpenAI {
				live := &liveModel{file: w.config, counter: stateDir(w.state).modelCounter(time.Now), secrets: strictSecrets(), log: slog.New(slog.DiscardHandler)}
				ls := newLookups(live.chooser, live.strict(), live.log, time.Now)
				defer ls.close()
				if _, err := ls.begin(t.Context(), lookupParams{Session: "s", Turn: "t", Personal: w.dir, Team: filepath.Join(w.dir, "team"), Prompt: "merges\n" + planted("prompt")}, time.Minute); err != nil {
					t.Fatal(err)
				}
				n = h.since(t, "a prompt", n)
			}
		})
	}
}

// curious answers as a model that calls every tool on every place, and then is content.
func curious(w http.ResponseWriter, body []byte) {
	var req struct {
		Tools    []any
		Messages []struct{ Role string }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	type object = map[string]any
	message, finish := object{"role": "assistant", "content": `{"files":[]}`}, "stop"
	if answered := len(req.Messages) > 0 && req.Messages[len(req.Messages)-1].Role == "tool"; len(req.Tools) > 0 && !answered {
		var calls []object
		for i, c := range []struct {
			tool string
			in   object
		}{
			{"list", object{"path": "memory"}}, {"list", object{"path": "project"}}, {"glob", object{"pattern": "**/*"}},
			{"read", object{"path": "memory/project_body.md"}}, {"read", object{"path": "memory/project_body.md", "offset": 11, "limit": 1}},
			{"read", object{"path": "memory/project_described.md"}}, {"read", object{"path": "memory/team/project_team.md"}},
			{"read", object{"path": "project/deploy.yaml"}}, {"read", object{"path": "project/key.txt", "offset": 4, "limit": 1}}, {"read", object{"path": "transcript"}},
			{"read", object{"path": "memory/project_" + planted("file name") + ".md"}},
			{"grep", object{"pattern": ".", "path": "memory"}}, {"grep", object{"pattern": ".", "path": "project"}}, {"grep", object{"pattern": ".", "path": "transcript"}},
			{"grep", object{"pattern": "AAAA", "path": "memory"}}, {"grep", object{"pattern": "AAAA", "path": "project"}},
		} {
			in, _ := json.Marshal(c.in)
			if strings.Contains(string(in), planted("file name")) {
				continue // it cannot know that name
			}
			calls = append(calls, object{"id": fmt.Sprint("c", i), "type": "function", "function": object{"name": c.tool, "arguments": string(in)}})
		}
		message, finish = object{"role": "assistant", "content": "", "tool_calls": calls}, "tool_calls"
	}
	out, _ := json.Marshal(object{"choices": []any{object{"message": message, "finish_reason": finish}}, "usage": object{"prompt_tokens": 90, "completion_tokens": 10}})
	_, _ = w.Write(out)
}

// TestEveryProviderIsBehindTheBorder: whatever the settings name, what they open does not
// get a secret out.
func TestEveryProviderIsBehindTheBorder(t *testing.T) {
	h := &heard{}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h.add(body)
		rw.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "heard")
	n := 0
	for _, settings := range []ModelSettings{
		{Provider: providerAnthropic, Name: "x", Endpoint: s.URL}, {Provider: providerOpenAI, Name: "x", Endpoint: s.URL}, {Provider: providerCommand, Command: []string{"sh", "-c", "cat > " + file}},
	} {
		if err := settings.check(); err != nil {
			t.Fatal(err)
		}
		m := settings.open(budget.Counter{File: filepath.Join(dir, "tokens.json"), Now: time.Now}, strictSecrets())
		_, err := m.Complete(t.Context(), model.Request{System: "Be brief.", Messages: []model.Message{model.Say(model.RoleUser, "Marker.\nuse "+planted("prompt")+"\n<system-reminder>")}})
		if err == nil || strings.Contains(err.Error(), planted("prompt")) {
			t.Errorf("%s: %v", settings.Provider, err)
		}
		if b, err := os.ReadFile(file); err == nil {
			h.add(b)
		}
		if n = h.since(t, settings.Provider, n); n > 0 && !strings.Contains(h.texts[n-1], "Marker.") {
			t.Errorf("%s was sent %q", settings.Provider, h.texts[n-1])
		}
	}
}

// TestModelsOpenAtOnePlace: nothing but ModelSettings.open makes the model of a provider, and
// what it makes is asked past the border.
func TestModelsOpenAtOnePlace(t *testing.T) {
	const adapters = "internal/lifecycle/model/"
	made := map[string]int{}
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of := map[string]string{} // adapters by the name that the file has for them
		for _, spec := range file.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			_, adapter, ok := strings.Cut(path, adapters)
			if !ok || adapter != "anthropic" && adapter != "openai" && adapter != "command" {
				continue
			}
			local := adapter
			if spec.Name != nil {
				local = spec.Name.Name
			}
			of[local] = adapter
		}
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := sel.X.(*ast.Ident)
				if !ok || of[x.Name] == "" || sel.Sel.Name != "New" && sel.Sel.Name != "Model" {
					return true
				}
				if f, ok := decl.(*ast.FuncDecl); !ok || f.Name.Name != "open" || name != filepath.Join("..", "agent", "model.go") {
					t.Errorf("%s: %s.%s is used outside ModelSettings.open", name, x.Name, sel.Sel.Name)
				}
				made[of[x.Name]]++
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 3 {
		t.Errorf("models that are made: %v", made)
	}
}

// TestMarksAreNoSecrets: what stands for a secret is not taken for another one, whichever
// rule it names and wherever it stands.
func TestMarksAreNoSecrets(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join("..", "secretscan", "testdata", "rules.golden"))
	if err != nil {
		t.Fatal(err)
	}
	find := strictSecrets()
	n := 0
	for line := range bytes.Lines(rules) {
		rule, _, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if rule == "" || strings.HasPrefix(rule, "#") {
			continue
		}
		n++
		once := true
		mark := model.Secrets(func(string) ([]model.Secret, error) {
			if once {
				once = false
				return []model.Secret{{Line: 1, Rule: rule}}, nil
			}
			return nil, nil
		}).Masked("x")
		for _, context := range []string{"%s", "## Credentials\n%[1]s\n%[1]s\n", "passwords:\n%s\n", "The password is\n%s\nfor staging.\n", "api_key:\n  %s\n", "What's the pw?\n%s\n"} {
			text := fmt.Sprintf(context, mark)
			if found, err := find(text); err != nil || len(found) > 0 {
				t.Errorf("%q: %v, %v", text, found, err)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d rules were tried", n)
	}
}

// TestTokensThatLineEndsCut: of a token that is written over lines nothing stays, wherever
// they end and however they are joined; what stands below it does.
func TestTokensThatLineEndsCut(t *testing.T) {
	token, secret := "ghp_"+"R4nd0mT0k3nV4lu3Xy7Zq9Wp2Lm8Kj5Hs1Df", "wJalrXUtnFEMIK7MDENG"+"bPxRfiCYzz8KEYkeyx91Q"
	jwt := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ" + ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
	encoded := base64.StdEncoding.EncodeToString([]byte("secret: " + token))
	const below = "\nThe deploy runs on Thursday.\nREGION=eu-west-1\n"
	masked := strictSecrets().Masked
	for _, x := range []struct {
		before, token string
		from, to      int // where it is cut
	}{
		{"x ", token, 4, len(token) - 3},
		{"the token is ", jwt, 60, len(jwt) - 3},
		{"aws_secret_access_key = ", secret, 16, len(secret) - 3},
		{"", encoded, 16, len(encoded) - 6},
	} {
		for at := x.from; at <= x.to; at++ {
			for _, between := range []string{"\n", "\\\n", "\r\n> ", "\" +\n    \"", "\n  "} {
				text := x.before + x.token[:at] + between + x.token[at:] + below
				got := masked(text)
				for i := range len(x.token) - 8 {
					if strings.Contains(got, x.token[i:i+8]) {
						t.Errorf("of %q %q stays", text, got)
						break
					}
				}
				if !strings.HasSuffix(got, below) {
					t.Errorf("of %q too little stays: %q", text, got)
				}
			}
		}
	}
	// In more than two lines, and with what ends a statement.
	for _, text := range []string{
		strings.ReplaceAll(jwt, ".", ".\n"), token[:14] + "\n" + token[14:28] + "\n" + token[28:], "`" + token[:20] + "`\\\n`" + token[20:] + "`;",
	} {
		if got := masked(text + below); strings.Count(got, "[secret left out: ") != strings.Count(text, "\n")+1 || !strings.HasSuffix(got, below) {
			t.Errorf("of %q %q stays", text, got)
		}
	}
}
