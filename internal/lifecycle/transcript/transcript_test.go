package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// conversation builds a transcript line by line, in the clients' public format.
type conversation struct {
	bytes.Buffer
	n int
}

func (c *conversation) line(fields map[string]any) {
	c.n++
	all := map[string]any{"uuid": fmt.Sprintf("u%d", c.n), "sessionId": "s1", "timestamp": "2026-03-05T10:00:00.123Z", "cwd": "/w", "version": "2.1"}
	for k, v := range fields {
		all[k] = v
	}
	enc := json.NewEncoder(c)
	enc.SetEscapeHTML(false) // as the clients' own encoder
	if err := enc.Encode(all); err != nil {
		panic(err)
	}
}

func (c *conversation) message(role string, content any) {
	c.line(map[string]any{"type": role, "message": map[string]any{"role": role, "content": content}})
}

type object = map[string]any

func (c *conversation) call(tool, id string, failed bool) {
	c.message("assistant", []object{{"type": "tool_use", "id": id, "name": tool, "input": object{"q": "x"}}})
	c.message("user", []object{{"type": "tool_result", "tool_use_id": id, "content": "done", "is_error": failed}})
}

func (c *conversation) compact() {
	c.line(object{"type": "system", "subtype": "compact_boundary", "parentUuid": nil, "content": "Conversation compacted"})
}

func (c *conversation) inject(refs ...string) {
	var texts []string
	for _, r := range refs {
		texts = append(texts, transcript.Mark(r, 1000)+">text</memsvc-memory>")
	}
	c.line(object{"type": "attachment", "attachment": object{"type": "hook_additional_context", "hookName": "UserPromptSubmit", "content": texts}})
}

func window(t *testing.T, c *conversation) transcript.Window {
	t.Helper()
	w, err := transcript.ReadWindow(bytes.NewReader(c.Bytes()), int64(c.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// spoken is when all lines were written.
var spoken = time.Date(2026, 3, 5, 10, 0, 0, 123e6, time.UTC)

func TestWindow(t *testing.T) {
	var c conversation
	c.call("Old", "t0", false)
	c.inject("old.md")
	c.compact()
	c.message("user", "how do we deploy?")
	c.inject("team/deploy.md", "a.md")
	c.call("Bash", "t1", true)
	c.call("Read", "t2", false)
	c.call("Bash", "t3", false)
	c.call("Grep", "t4", true)
	c.inject("a.md")
	c.message("assistant", []object{{"type": "tool_use", "id": "t5", "name": "Pending", "input": object{}}})
	c.line(object{"type": "assistant", "isSidechain": true, "message": object{"content": []object{{"type": "tool_use", "id": "t6", "name": "Sub", "input": object{}}}}})
	c.line(object{"type": "user", "isSidechain": true, "message": object{"content": []object{{"type": "tool_result", "tool_use_id": "t6", "content": transcript.Mark("sub.md", 9) + ">"}}}})
	// A file that a tool printed may hold our marker; nothing was injected by it.
	c.message("user", []object{{"type": "tool_result", "tool_use_id": "t9", "content": transcript.Mark("printed.md", 7) + ">"}})
	c.WriteString(`{"type":"assistant","message":{"content":[{"type":"tool_use","na`) // being written
	want := transcript.Window{
		Tools: []string{"Bash", "Read"}, Failed: []string{"Grep"},
		Surfaced: []string{"a.md", "team/deploy.md"}, Injected: 3000, Compact: true, Known: true, LastPrompt: spoken,
	}
	if diff := cmp.Diff(want, window(t, &c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.WriteByte('\n')
	c.compact()
	if diff := cmp.Diff(transcript.Window{Compact: true, Known: true, LastPrompt: spoken}, window(t, &c)); diff != "" {
		t.Errorf("after a compaction (-want +got):\n%s", diff)
	}
}

// A transcript of another client is read as well as can be, and known to be one.
func TestFormIsKnown(t *testing.T) {
	for text, want := range map[string]bool{
		"": false,
		`{"type":"file-history-snapshot"}` + "\n" + `{"type":"user","message":{"content":"hi"}}` + "\n" + `{"type":"last-prompt"}` + "\n":  true,
		strings.Repeat(`{"timestamp":"2026-03-01T10:00:00Z","type":"response_item","payload":{"type":"message","role":"user"}}`+"\n", 200): false,
		`{"id":"1","type":"user","content":[{"text":"hi"}]}` + "\n":                                                                        false,
		"{\n  \"sessionId\": \"s\",\n  \"messages\": [\n    {\n      \"type\": \"user\"\n    }\n  ]\n}\n":                                  false,
	} {
		w, err := transcript.ReadWindow(strings.NewReader(text), int64(len(text)))
		if err != nil || w.Known != want {
			t.Errorf("%.60q is known: %v, %v", text, w.Known, err)
		}
	}
}

func TestEmptyAndNoise(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "blank": "\n\n\n", "no JSON": "hello\nworld", "half": `{"type":"user"`, "arrays": "[1]\n[2]\n",
		"other shapes": `{"type":7,"message":"text","uuid":{}}` + "\n" + `{"type":"user","message":{"content":[{"type":"tool_use","name":3}]}}` + "\n",
		"NUL":          "\x00\x00\n{\"type\":\"user\"}\n",
	} {
		if _, err := transcript.ReadWindow(strings.NewReader(text), int64(len(text))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParse(t *testing.T) {
	line, ok := transcript.Parse([]byte(`{"type":"assistant","uuid":"a","parentUuid":"b","sessionId":"s","timestamp":"2026-01-02T03:04:05.678Z",
		"cwd":"/w","gitBranch":"main","isSidechain":false,"message":{"role":"assistant","content":[
		{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}},{"type":"new","x":1}]},"later":{"y":[1]}}`))
	if !ok {
		t.Fatal("not read")
	}
	if line.Kind != transcript.Assistant || line.UUID != "a" || line.ParentUUID != "b" || line.SessionID != "s" || line.CWD != "/w" || line.Branch != "main" ||
		line.Time.Format("2006-01-02T15:04:05.000") != "2026-01-02T03:04:05.678" {
		t.Errorf("got %+v", line)
	}
	want := []transcript.Block{
		{Kind: transcript.Thinking, Text: "hm"}, {Kind: transcript.Text, Text: "hi"},
		{Kind: transcript.ToolUse, Tool: "Bash", ID: "t", Input: json.RawMessage(`{"command":"ls"}`)},
	}
	if diff := cmp.Diff(want, line.Blocks); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	line, ok = transcript.Parse([]byte(`{"type":"user","uuid":5,"message":{"content":"typed"}}`))
	if !ok || line.Kind != transcript.User || len(line.Blocks) != 1 || line.Blocks[0].Text != "typed" {
		t.Errorf("a field of another shape takes the line with it: %+v", line)
	}
	line, _ = transcript.Parse([]byte(`{"type":"attachment","attachment":{"kind":"k","content":["one",{"text":"two","n":3,"deep":["three"]}]}}`))
	var texts []string
	for _, b := range line.Blocks {
		texts = append(texts, b.Text)
	}
	if diff := cmp.Diff([]string{"k", "one", "two", "three"}, texts); diff != "" {
		t.Errorf("attachment (-want +got):\n%s", diff)
	}
}

// TestBackwardIsForwardReversed: both ways see the same lines, whatever their lengths
// and wherever the pieces that are read end; only the last, unfinished one is seen from
// behind alone.
func TestBackwardIsForwardReversed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(250_000, 270_000), rapid.IntRange(500_000, 600_000))
		var text []byte
		for i, n := range rapid.SliceOfN(size, 0, 6).Draw(t, "lines") {
			text = append(text, bytes.Repeat([]byte{'a' + byte(i)}, n)...)
			text = append(text, '\n')
		}
		tail := rapid.IntRange(0, 3).Draw(t, "tail")
		text = append(text, bytes.Repeat([]byte("z"), tail)...)
		type line struct {
			Offset int64
			Text   string
		}
		collect := func(seq func(func(transcript.Raw, error) bool)) (out []line) {
			for l, err := range seq {
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, line{l.Offset, string(l.Text)})
			}
			return out
		}
		fwd := collect(transcript.Forward(iotest.HalfReader(bytes.NewReader(text)), 0))
		back := collect(transcript.Backward(bytes.NewReader(text), int64(len(text))))
		if tail > 0 {
			if len(back) == 0 || back[0].Text != strings.Repeat("z", tail) {
				t.Fatalf("the unfinished line is not first: %.40v", back)
			}
			back = back[1:]
		}
		slices.Reverse(back)
		if !slices.Equal(fwd, back) {
			t.Fatalf("forward %d lines, backward %d, or they differ", len(fwd), len(back))
		}
	})
}

func TestTooLongALineIsPassedOver(t *testing.T) {
	long := bytes.Repeat([]byte("x"), transcript.MaxLineBytes+3<<20)
	text := slices.Concat([]byte("{\"a\":1}\n"), long, []byte("\n{\"b\":1}\n"))
	var back, fwd []string
	for l, err := range transcript.Backward(bytes.NewReader(text), int64(len(text))) {
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, fmt.Sprintf("%.40s", l.Text))
	}
	for l, err := range transcript.Forward(bytes.NewReader(text), 0) {
		if err != nil {
			t.Fatal(err)
		}
		fwd = append(fwd, fmt.Sprintf("%.40s", l.Text))
		if want := int64(bytes.Index(text, l.Text)); l.Offset != want {
			t.Errorf("%s at %d, want %d", l.Text, l.Offset, want)
		}
	}
	if !slices.Equal(back, []string{`{"b":1}`, `{"a":1}`}) || !slices.Equal(fwd, []string{`{"a":1}`, `{"b":1}`}) {
		t.Errorf("backward %v, forward %v", back, fwd)
	}
}

func TestReadErrorsAreTold(t *testing.T) {
	broken := errors.New("broken disk")
	if _, err := transcript.ReadWindow(brokenReader{broken}, 100); !errors.Is(err, broken) {
		t.Errorf("backward: %v", err)
	}
	for _, err := range transcript.Forward(iotest.ErrReader(broken), 0) {
		if !errors.Is(err, broken) {
			t.Errorf("forward: %v", err)
		}
	}
}

type brokenReader struct{ err error }

func (b brokenReader) ReadAt([]byte, int64) (int, error) { return 0, b.err }

var _ io.ReaderAt = brokenReader{}

func FuzzReadWindow(f *testing.F) {
	var c conversation
	c.call("Bash", "t1", false)
	c.inject("a.md")
	c.compact()
	f.Add(c.Bytes())
	f.Add([]byte(`{"type":"attachment","attachment":{"a":[}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := transcript.ReadWindow(bytes.NewReader(text), int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		if w.Injected < 0 {
			t.Fatal("negative budget")
		}
	})
}

func TestSearch(t *testing.T) {
	dir := t.TempDir()
	var c conversation
	c.message("user", "Why does the Deploy fail on staging?")
	c.message("assistant", []object{{"type": "text", "text": "The deploy needs a fresh token."}, {"type": "tool_use", "id": "t", "name": "Bash", "input": object{"command": "make deploy"}}})
	c.message("user", "结算规则在哪里？")
	c.message("user", "quote \"x\" and Ünïcode")
	if err := os.MkdirAll(filepath.Join(dir, "s", "subagents"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.jsonl", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), c.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	search := func(q string) []string {
		t.Helper()
		found, err := transcript.Search(t.Context(), []string{dir, filepath.Join(dir, "none")}, transcript.Query{Text: q})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, h := range found.Hits {
			out = append(out, h.Role+": "+h.Excerpt)
		}
		return out
	}
	for q, want := range map[string][]string{
		"DEPLOY":        {`tool: Bash {"command":"make deploy"}`, "assistant: The deploy needs a fresh token.", "user: Why does the Deploy fail on staging?"},
		"deploy fail":   {"user: Why does the Deploy fail on staging?"},
		"结算":            {"user: 结算规则在哪里？"},
		"ünïcode":       {`user: quote "x" and Ünïcode`},
		`"x"`:           {`user: quote "x" and Ünïcode`},
		"not there":     nil,
		"sessionId":     nil, // of the format, not of the conversation
		"staging token": nil, // in two messages
	} {
		if diff := cmp.Diff(want, search(q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", q, diff)
		}
	}
	if _, err := transcript.Search(t.Context(), []string{dir}, transcript.Query{Text: " "}); err == nil {
		t.Error("an empty query is taken")
	}
}

func TestSearchKeepsToItsBounds(t *testing.T) {
	dir := t.TempDir()
	var c conversation
	for range 100 {
		c.message("user", "needle "+strings.Repeat("hay ", 400))
	}
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var last, total int64
	found, err := transcript.Search(t.Context(), []string{dir}, transcript.Query{Text: "needle", Limit: 50, MaxBytes: 1000, Excerpt: 100,
		Progress: func(d, n int64) { last, total = d, n }})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(found.Hits); n < 8 || n > 11 || !found.Cut {
		t.Errorf("%d hits of about 100 bytes in a budget of 1000, cut %v", n, found.Cut)
	}
	if last != total || total != int64(c.Len()) {
		t.Errorf("progress ended at %d of %d", last, total)
	}
}

// TestSearchReadsLongLinesInPieces: a line that is not held is found all the same, once,
// wherever in it the words stand.
func TestSearchReadsLongLinesInPieces(t *testing.T) {
	const piece = 1 << 20
	line := func(kind, text string) []byte {
		var c conversation
		c.message("user", []object{{"type": kind, map[string]string{"text": "text", "tool_result": "content"}[kind]: text}})
		return c.Bytes()
	}
	pad := func(n int) string { return strings.Repeat("hay ", n/4) }
	for name, test := range map[string]struct {
		text, query, role, excerpt string
	}{
		"at the beginning": {"a needle here " + pad(3*piece), "NEEDLE here", "user", "a needle here"},
		"at the end":       {pad(3*piece) + "a needle here", "needle", "user", "a needle here"},
		"on a border":      {pad(piece)[:piece-120] + strings.Repeat("needle ", 30) + pad(2*piece), "needle", "user", "needle"},
		"escaped":          {pad(2*piece) + "say \"Größe\"\n\\ 结算规则 \u2028 <b> " + pad(piece), `"größe" 结算`, "user", `say "Größe" \ 结算规则`},
		"a pair":           {pad(3*piece) + "\u2028🎉 party", "party", "user", "🎉 party"},
		"too far apart":    {"needle " + pad(3*piece) + "haystack", "needle haystack", "", ""},
		"nowhere":          {pad(3 * piece), "needle", "", ""},
	} {
		for _, kind := range []string{"text", "tool_result"} {
			dir := t.TempDir()
			content := slices.Concat(line("text", "before"), line(kind, test.text), line("text", "after"))
			if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := transcript.Search(t.Context(), []string{dir}, transcript.Query{Text: test.query})
			if err != nil {
				t.Fatal(err)
			}
			role := test.role
			if role != "" && kind == "tool_result" {
				role = "tool"
			}
			switch {
			case role == "" && len(found.Hits) > 0:
				t.Errorf("%s, %s: found %+v", name, kind, found.Hits)
			case role != "" && (len(found.Hits) != 1 || found.Hits[0].Role != role || !strings.Contains(found.Hits[0].Excerpt, test.excerpt)):
				t.Errorf("%s, %s: found %+v", name, kind, found.Hits)
			}
			for _, q := range []string{"before", "after"} { // what is around it is still found
				found, err := transcript.Search(t.Context(), []string{dir}, transcript.Query{Text: q})
				if err != nil || len(found.Hits) != 1 {
					t.Errorf("%s: %d hits for %s, %v", name, len(found.Hits), q, err)
				}
			}
		}
	}
}

// A line of many megabytes, such as a tool's output, costs a window little.
func TestWindowHoldsNoLongLines(t *testing.T) {
	var c conversation
	c.message("user", "how do we deploy?")
	c.inject("deploy.md")
	c.call("Bash", "t1", false)
	c.message("user", []object{{"type": "tool_result", "tool_use_id": "t2", "content": strings.Repeat("0123456789abcdef", 2<<20)}})
	c.call("Read", "t3", false)
	r := bytes.NewReader(c.Bytes())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, err := transcript.ReadWindow(r, int64(c.Len()))
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(transcript.Window{Tools: []string{"Read", "Bash"}, Surfaced: []string{"deploy.md"}, Injected: 1000, Known: true, LastPrompt: spoken}, w); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 40 {
		t.Errorf("%d MB were allocated for a line of 32", mb)
	}
}
