package extract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
	"github.com/memsvc/memsvc/internal/memory"
)

// A labelled talk is a file of testdata/talks: what should come of a conversation, a line
// "---", and the conversation. The number that its name begins with says how much of it was
// known while the rules were made: see labelledTalk.set.
//
//	want TYPE|TYPE: fact; fact|the same in other words   a memory that should come
//	may TYPE: fact                                       one that only a model can see; welcome, not asked for
//	not: words                                           words that may stand in no memory
//	# a comment
//
// A conversation is written as "kind: text", continued by lines that are indented by two
// spaces, and played as the lines that Claude Code writes:
//
//	person, person+         what a person typed, as a text or as a list of pieces
//	assistant               what the assistant said
//	tool NAME INPUT         a call; "result:" or "failed:" is its answer
//	wrote                   the assistant writes this file of the memory directory
//	sidechain person, sidechain assistant   a sub-agent's talk
//	meta, reminder, attachment JSON, injected REF | TEXT    what the client and we add
//	compact                 a compaction with the client's summary
//	raw                     a line as it is
//	half                    what a person typed, of which only half is in the file so far
type labelledTalk struct {
	name  string
	set   string
	wants []wish
	mays  []wish
	nots  []string
	items []talkItem
}

// wish is a memory that an expectation asks for.
type wish struct {
	types []memory.Type
	facts [][]string // each in one of several wordings, lower case
}

type talkItem struct{ kind, arg, text string }

func (w wish) typed(typ memory.Type) bool { return slices.Contains(w.types, typ) }

func (w wish) says(text string) bool {
	for _, fact := range w.facts {
		if !slices.ContainsFunc(fact, func(f string) bool { return strings.Contains(text, f) }) {
			return false
		}
	}
	return true
}

// madeUp is a value that looks like a password, another in every talk; the repository
// holds none.
func madeUp(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return fmt.Sprintf("Kf7%xQz!", h.Sum64())
}

func labelledTalks(t *testing.T) []labelledTalk {
	t.Helper()
	files, err := filepath.Glob("testdata/talks/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no talks: %v", err)
	}
	var out []labelledTalk
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		number := 0
		if _, err := fmt.Sscanf(name, "%d_", &number); err != nil {
			t.Fatalf("%s: a talk's name begins with its number", file)
		}
		talk, err := parseTalk(strings.ReplaceAll(string(content), "{{secret}}", madeUp(name)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		talk.name, talk.set = name, setOf(number)
		out = append(out, talk)
	}
	return out
}

// The sets. Failures of those that are held out are counted, and shown nowhere.
const (
	forSetting = "for setting" // looked at while the rules were made
	fromLife   = "from life"   // in forms met in public; written when the rules stood, looked at after a first measure
	heldOut    = "held out"    // of the same hand and hour as those for setting
	furtherOn  = "further on"  // in other forms met in public, written before the rules were set on those from life; looked at after a first measure
	fartherOn  = "farther on"  // written before the rules were set on those further on; looked at after a first measure
	lastLook   = "last look"   // written when the rules stood; measured once, and nothing was changed after
)

func setOf(number int) string {
	switch {
	case number > 124:
		return lastLook
	case number > 104:
		return fartherOn
	case number > 84:
		return furtherOn
	case number > 60:
		return fromLife
	case number%2 == 0:
		return heldOut
	}
	return forSetting
}

func parseTalk(content string) (labelledTalk, error) {
	var k labelledTalk
	head, body, ok := strings.Cut("\n"+content, "\n---\n")
	if !ok {
		return k, fmt.Errorf("no line ---")
	}
	for line := range strings.Lines(strings.TrimPrefix(head, "\n")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		kind, types, _ := strings.Cut(word, " ")
		switch rest = strings.ToLower(strings.TrimSpace(rest)); {
		case kind == "" || strings.HasPrefix(kind, "#"):
		case kind == "not" && rest != "":
			k.nots = append(k.nots, rest)
		case (kind == "want" || kind == "may") && rest != "":
			var w wish
			for name := range strings.SplitSeq(types, "|") {
				typ, ok := memory.ParseType(strings.TrimSpace(name))
				if !ok {
					return k, fmt.Errorf("no type: %q", name)
				}
				w.types = append(w.types, typ)
			}
			for fact := range strings.SplitSeq(rest, ";") {
				w.facts = append(w.facts, strings.Split(strings.TrimSpace(fact), "|"))
			}
			if kind == "want" {
				k.wants = append(k.wants, w)
			} else {
				k.mays = append(k.mays, w)
			}
		default:
			return k, fmt.Errorf("not an expectation: %q", line)
		}
	}
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		if more, ok := strings.CutPrefix(line, "  "); ok || line == "" {
			if n := len(k.items); n > 0 {
				k.items[n-1].text += "\n" + more
			}
			continue
		}
		it, err := parseItem(line)
		if err != nil {
			return k, err
		}
		k.items = append(k.items, it)
	}
	return k, nil
}

func parseItem(line string) (talkItem, error) {
	for _, kind := range []string{"raw", "half", "attachment"} {
		if rest, ok := strings.CutPrefix(line, kind+" "); ok {
			return talkItem{kind: kind, text: rest}, nil
		}
	}
	if rest, ok := strings.CutPrefix(line, "tool "); ok {
		name, input, _ := strings.Cut(rest, " ")
		if !json.Valid([]byte(input)) {
			return talkItem{}, fmt.Errorf("tool's input is no JSON: %q", line)
		}
		return talkItem{kind: "tool", arg: name, text: input}, nil
	}
	kind, text, ok := strings.Cut(line, ": ")
	kinds := []string{"person", "person+", "assistant", "result", "failed", "wrote", "sidechain person", "sidechain assistant", "meta", "reminder", "injected", "compact"}
	if !ok || !slices.Contains(kinds, kind) {
		return talkItem{}, fmt.Errorf("not a line of a talk: %q", line)
	}
	it := talkItem{kind: kind, text: text}
	if kind == "injected" {
		it.arg, it.text, _ = strings.Cut(text, " | ")
	}
	return it, nil
}

// turns returns after how many items each turn of the talk ends: before a person speaks
// again, and at the end.
func (k labelledTalk) turns() []int {
	var ends []int
	for i, it := range k.items {
		if i > 0 && strings.HasPrefix(it.kind, "person") {
			ends = append(ends, i)
		}
	}
	return append(ends, len(k.items))
}

// played is the transcript of the first n items. prefix begins every uuid; personal is
// the memory directory.
func (k labelledTalk) played(t *testing.T, n int, prefix, session, personal string) []byte {
	t.Helper()
	var b bytes.Buffer
	at := time.Date(2026, 3, 10, 9, 0, 0, 0, time.UTC) // a Tuesday
	parent, call := any(nil), ""
	put := func(i int, fields object) {
		line := object{
			"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/w", "sessionId": session, "version": "2.1.240",
			"gitBranch": "main", "uuid": fmt.Sprintf("%s-%d-%d", prefix, i, b.Len()), "timestamp": at.Add(time.Duration(i) * time.Minute).Format("2006-01-02T15:04:05.000Z"),
		}
		for f, v := range fields {
			line[f] = v
		}
		parent = line["uuid"]
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	user := func(content any) object {
		return object{"type": "user", "message": object{"role": "user", "content": content}}
	}
	said := func(pieces ...object) object {
		return object{"type": "assistant", "requestId": "r1", "message": object{"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": pieces}}
	}
	text := func(s string) object { return object{"type": "text", "text": s} }
	for i, it := range k.items[:n] {
		switch it.kind {
		case "person":
			put(i, user(it.text))
		case "person+":
			put(i, user([]object{text(it.text)}))
		case "assistant":
			put(i, said(object{"type": "thinking", "thinking": "Always think first. Remember that.", "signature": "s"}))
			put(i, said(text(it.text)))
		case "tool":
			call = fmt.Sprintf("toolu_%d", i)
			put(i, said(object{"type": "tool_use", "id": call, "name": it.arg, "input": json.RawMessage(it.text)}))
		case "result", "failed":
			f := user([]object{{"type": "tool_result", "tool_use_id": call, "content": it.text, "is_error": it.kind == "failed"}})
			f["toolUseResult"] = object{"stdout": it.text}
			put(i, f)
		case "wrote":
			put(i, said(object{"type": "tool_use", "id": "toolu_w", "name": "Write", "input": object{"file_path": filepath.Join(personal, it.text), "content": "x"}}))
			put(i, user([]object{{"type": "tool_result", "tool_use_id": "toolu_w", "content": "ok"}}))
		case "sidechain person", "sidechain assistant":
			f := user(it.text)
			if it.kind != "sidechain person" {
				f = said(text(it.text))
			}
			f["isSidechain"], f["agentId"] = true, "a1"
			put(i, f)
		case "meta":
			f := user(it.text)
			f["isMeta"] = true
			put(i, f)
		case "reminder":
			put(i, user([]object{text("<system-reminder>\n" + it.text + "\n</system-reminder>")}))
		case "attachment":
			put(i, object{"type": "attachment", "attachment": json.RawMessage(it.text)})
		case "injected":
			block := transcript.Mark(it.arg, len(it.text)) + ">\n" + it.text + "\n</memsvc-memory>"
			put(i, object{"type": "attachment", "attachment": object{"type": "hook_additional_context", "content": []string{block}}})
			put(i, user(block))
		case "compact":
			parent = nil
			put(i, object{"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "compactMetadata": object{"trigger": "auto", "preTokens": 150000}})
			f := user("This session continues an earlier one. Summary: " + it.text)
			f["isCompactSummary"], f["isVisibleInTranscriptOnly"] = true, true
			put(i, f)
		case "raw":
			b.WriteString(it.text + "\n")
		case "half":
			put(i, user(it.text))
			b.Truncate(b.Len() - 40)
		default:
			t.Fatalf("%s: no such kind: %s", k.name, it.kind)
		}
	}
	return b.Bytes()
}
