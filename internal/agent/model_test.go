package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/lifecycle/model/budget"
)

const modelKey = "sk-hush-hush"

// modelWorld is a machine with memories, a settings file and a server that stands for a
// provider.
type modelWorld struct {
	dir, config, state string
	asked              atomic.Int64
	reply              http.HandlerFunc
}

func newModelWorld(t *testing.T, more string) *modelWorld {
	t.Helper()
	root := t.TempDir()
	w := &modelWorld{dir: filepath.Join(root, "memory"), config: filepath.Join(root, "c.yaml"), state: filepath.Join(root, "state")}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+modelKey {
			t.Errorf("asked with %q", r.Header.Get("Authorization"))
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.reply(rw, r)
	}))
	t.Cleanup(s.Close)
	w.write(t, filepath.Join(root, "key"), modelKey+"\n")
	w.write(t, w.config, fmt.Sprintf("model:\n  provider: openai\n  name: tiny\n  endpoint: %s/v1\n  key-file: %s\n%s", s.URL, filepath.Join(root, "key"), more))
	w.write(t, filepath.Join(w.dir, "project_freeze.md"), "---\nname: Freeze\ndescription: when merges are frozen\ntype: project\n---\n\nFrozen from 2026-03-05.\n")
	w.write(t, filepath.Join(w.dir, "reference_wiki.md"), "---\nname: Wiki\ndescription: where documents are\ntype: reference\n---\n\nThe wiki.\n")
	t.Setenv("MEMSYNC_CONFIG", w.config)
	t.Setenv("MEMSYNC_STATE_DIR", w.state)
	t.Setenv("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", w.dir)
	t.Setenv("HOME", root)
	return w
}

func (w *modelWorld) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// says answers with a text, in the words of the protocol.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":90,"completion_tokens":10}}`, text)
	}
}

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func recalled(t *testing.T, now func() time.Time) recallEntry {
	t.Helper()
	out, stderr, code := invokeAt(t, now, "recall", "--query", "when are merges frozen this month", "--json")
	var e recallEntry
	if err := json.Unmarshal([]byte(out), &e); err != nil || code != ExitOK {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, stderr)
	}
	return e
}

// A server may echo what it was sent: the key is printed nowhere, and a long answer not
// whole.
func TestExplainShowsNoKeyAndNoEndlessAnswer(t *testing.T) {
	w := newModelWorld(t, "")
	for name, answer := range map[string]string{
		"short": "the key is " + modelKey + " \u001b[2J {\"files\":[]}", "nonsense": "Bearer " + modelKey + "\n" + modelKey, "cut within": strings.Repeat("x", maxAnswerShown-5) + modelKey,
		"long": strings.Repeat(modelKey+" word\n", 40_000),
	} {
		body, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		w.reply = func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":90,"completion_tokens":10}}`, body)
		}
		out, stderr, code := invoke(t, "recall", "--query", "when are merges frozen this month", "--explain")
		_, shown, ok := strings.Cut(out, "the model's answer:\n")
		if code != ExitOK || !ok || shown == "" || len(shown) > maxAnswerShown+20 {
			t.Errorf("%s: exit %d, %d bytes of the answer: %.300s%s", name, code, len(shown), out, stderr)
		}
		if strings.Contains(out+stderr, modelKey[:8]) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: the key or a control character is printed: %.300q", name, out)
		}
	}
}

// What a model makes of its own key never becomes a memory.
func TestAnswersHoldNoKey(t *testing.T) {
	w := newModelWorld(t, "")
	w.reply = func(rw http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(rw, `{"choices":[{"message":{"role":"assistant","content":"key %[1]s","tool_calls":[{"id":"1","type":"function","function":{"name":"write","arguments":"{\"body\":\"%[1]s\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":90,"completion_tokens":10}}`, modelKey)
	}
	settings, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := strings.TrimSpace(strings.SplitN(strings.SplitN(string(settings), "endpoint: ", 2)[1], "\n", 2)[0])
	m := ModelSettings{Provider: providerOpenAI, Name: "tiny", Endpoint: endpoint, KeyFile: filepath.Join(filepath.Dir(w.config), "key")}.open(stateDir(w.state).modelCounter(time.Now), nil)
	resp, err := probe(t.Context(), m, true)
	if err != nil || len(resp.Calls()) != 1 {
		t.Fatalf("%+v, %v", resp, err)
	}
	if resp.Text() != "key "+maskedKey || string(resp.Calls()[0].Input) != `{"body":"`+maskedKey+`"}` {
		t.Errorf("%q, %s", resp.Text(), resp.Calls()[0].Input)
	}
}

// A teammate's line of an index moves no cursor.
func TestIndexIsPrintedVisibly(t *testing.T) {
	w := newModelWorld(t, "")
	w.write(t, filepath.Join(w.dir, "team", "MEMORY.md"), "- [Fr\x1b[2Jeeze](project_freeze.md) — \x1b]0;t\x07 \u009b no\u202e merges\r\n- [B](b.md) — b\n")
	out, stderr, code := invoke(t, "memory", "index", "--team")
	if want := "- [Fr·[2Jeeze](project_freeze.md) — ·]0;t· · no· merges\n- [B](b.md) — b\n"; out != want || code != ExitOK {
		t.Errorf("exit %d: %q, want %q%s", code, out, want, stderr)
	}
}

func TestRecallAsksTheModelWithinItsTokens(t *testing.T) {
	w := newModelWorld(t, "  daily-tokens: 150\n")
	w.reply = says(`{"files":["reference_wiki.md"]}`)
	now := stopped()
	for i := range 2 {
		e := recalled(t, now)
		if e.By != "model" || len(e.Memories) != 1 || e.Memories[0].Ref != "reference_wiki.md" {
			t.Fatalf("call %d: %+v", i, e)
		}
	}
	if e := recalled(t, now); e.By != "ranker" || !strings.Contains(e.Fallback, "used up") || len(e.Memories) == 0 || e.Memories[0].Ref != "project_freeze.md" {
		t.Errorf("past the tokens: %+v", e)
	}
	if n := w.asked.Load(); n != 2 {
		t.Errorf("asked %d times, want 2", n)
	}
	out, _, _ := invokeAt(t, now, "status", "--json")
	var st Status
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatal(err)
	}
	want := budget.Sum{Calls: 2, Input: 180, Output: 20, Spent: 1}
	if st.Model == nil || st.Model.Today != want || st.Model.Total != want || st.Model.DailyTokens != 150 || st.Model.Provider != "openai" {
		t.Errorf("status %s", out)
	}
	text, _, _ := invokeAt(t, now, "status")
	if !strings.Contains(text, "model openai tiny: 200 of 150 tokens today in 2 calls; it is not asked again before tomorrow (UTC)\n") {
		t.Errorf("status:\n%s", text)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(newModelCollector(stateDir(w.state).modelCounter(now), func() int { return 150 }))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if diff := cmp.Diff(map[string]float64{
		"memsync_model_daily_tokens": 150, "memsync_model_tokens_today": 200,
		"memsync_model_calls_total done": 2, "memsync_model_calls_total failed": 0, "memsync_model_calls_total refused": 1,
		"memsync_model_tokens_total input": 180, "memsync_model_tokens_total output": 20, "memsync_model_tokens_total cached": 0,
	}, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// promptHook runs the prompt hook and returns its answer. Its model has modelTime; 0 = what
// it is given outside tests.
func promptHook(t *testing.T, modelTime time.Duration) string {
	t.Helper()
	var out bytes.Buffer
	in := fmt.Sprintf(`{"hook_event_name":"UserPromptSubmit","cwd":%q,"prompt":"when are merges frozen this month"}`, t.TempDir())
	if code := Main(t.Context(), App{Args: []string{"hook"}, Stdin: strings.NewReader(in), Stdout: &out, Stderr: io.Discard, HookTime: 2 * patience, ModelTime: modelTime}); code != ExitOK {
		t.Errorf("exit %d", code)
	}
	return out.String()
}

func TestHookAsksTheModelButDoesNotWaitLong(t *testing.T) {
	w := newModelWorld(t, "")
	w.reply = says(`{"files":["reference_wiki.md"]}`)
	if got := promptHook(t, patience); !strings.Contains(got, "The wiki.") || strings.Contains(got, "Frozen") {
		t.Errorf("by the model: %s", got)
	}
	w.reply = hangs
	began := time.Now()
	if got := promptHook(t, 0); !strings.Contains(got, "Frozen") {
		t.Errorf("by the ranker: %s", got)
	}
	if took := time.Since(began); took < hookModelTimeout {
		t.Errorf("it took %s", took)
	}
	settings := ModelSettings{Provider: providerOpenAI, Name: "tiny", KeyFile: "/k"}
	if s := (&command{App: App{Now: time.Now}, models: settings}).hookSelector(); s.Model == nil || s.Timeout != hookModelTimeout || hookModelTimeout > hookTime/2 {
		t.Errorf("a prompt waits %s of %s for its model", s.Timeout, hookTime)
	}
	asked := w.asked.Load()
	t.Setenv("MEMSYNC_HOOKS_OFF", "1")
	if got := promptHook(t, 0); got != "" || w.asked.Load() != asked {
		t.Errorf("inside a client that we asked: %q", got)
	}
}

func TestHookLeavesAProgramAndBadSettingsToTheRanker(t *testing.T) {
	w := newModelWorld(t, "")
	w.reply = hangs
	for _, settings := range []string{"model:\n  provider: command\n  command: [false]\n", "model:\n  provider: nobody\n"} {
		w.write(t, w.config, settings)
		if got := promptHook(t, patience); !strings.Contains(got, "Frozen") {
			t.Errorf("%s: %s", settings, got)
		}
	}
}

func TestModelCheck(t *testing.T) {
	w := newModelWorld(t, "")
	w.reply = says("ready")
	now := stopped()
	out, stderr, code := invokeAt(t, now, "model", "check")
	if code != ExitOK || !strings.Contains(out, "for 100 tokens") || !strings.Contains(out, "did not use a tool") || !strings.Contains(out, "model openai tiny: 100 of 1000000 tokens today in 1 call\n") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	w.reply = func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, `{"choices":[{"message":{"tool_calls":[{"id":"1","type":"function","function":{"name":"ready","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	}
	out, _, code = invokeAt(t, now, "model", "check", "--json")
	var got modelCheck
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != ExitOK || !got.Tools || got.Today.Calls != 2 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	w.reply = func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(rw, `{"error":{"type":"invalid_key","message":"%s is wrong"}}`, modelKey)
	}
	out, stderr, code = invoke(t, "model", "check")
	if code != ExitTrouble || !strings.Contains(stderr, "status 401 (invalid_key)") || strings.Contains(out+stderr, "hush") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	w.write(t, w.config, "{}\n")
	if _, stderr, code = invoke(t, "model", "check"); code != ExitUsage || !strings.Contains(stderr, "no model is configured") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestModelSettings(t *testing.T) {
	openAI := ModelSettings{Provider: "openai", Name: "m"}
	with := func(change func(*ModelSettings)) ModelSettings { s := openAI; change(&s); return s }
	for want, s := range map[string]ModelSettings{
		"":                                 {},
		" ":                                openAI,
		"  ":                               with(func(s *ModelSettings) { s.Endpoint = "http://127.0.0.1:1/v1" }),
		"   ":                              with(func(s *ModelSettings) { s.Endpoint, s.Plaintext = "http://10.0.0.7/v1", true }),
		"    ":                             {Provider: "command", Command: []string{"claude", "-p"}},
		"say which provider":               {Name: "m"},
		"provider is none of":              {Provider: "hush"},
		"needs the name":                   {Provider: "anthropic"},
		"needs command":                    {Provider: "command"},
		"absolute path":                    {Provider: "command", Command: []string{"./claude"}},
		"neither endpoint nor key":         {Provider: "command", Command: []string{"x"}, KeyEnv: "hush"},
		"not both":                         with(func(s *ModelSettings) { s.KeyFile, s.KeyEnv = "f", "e" }),
		"cannot be negative":               with(func(s *ModelSettings) { s.DailyTokens = -1 }),
		"no TLS":                           with(func(s *ModelSettings) { s.Endpoint = "http://10.0.0.7/v1" }),
		"endpoint is no http://":           with(func(s *ModelSettings) { s.Endpoint = "https://hush@example.com/v1" }),
		"without user, query and fragment": with(func(s *ModelSettings) { s.Endpoint = "https://example.com/v1?key=hush" }),
	} {
		err := s.check()
		if fine := strings.TrimSpace(want) == ""; fine != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("the error repeats a value: %v", err)
		}
	}
	if err := (ModelSettings{}).open(budget.Counter{}, nil); err != nil {
		t.Error("without settings there is a model")
	}
}

func TestModelKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-own")
	t.Setenv("OTHER", "two words hush")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  sk-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]ModelSettings{
		"sk-own":  {Provider: "openai"},
		"":        {Provider: "openai", Endpoint: "https://other.example/v1"}, // another host gets no key unasked
		"sk-file": {Provider: "openai", Endpoint: "https://other.example/v1", KeyFile: file},
	} {
		if got, err := s.key()(); got != want || err != nil {
			t.Errorf("%+v: %q, %v; want %q", s, got, err, want)
		}
	}
	for _, s := range []ModelSettings{{KeyEnv: "OTHER"}, {KeyEnv: "NOBODY_SET_THIS"}, {KeyFile: file + "x"}} {
		if _, err := s.key()(); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
