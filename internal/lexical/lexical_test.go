package lexical

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// terms returns the terms of text; Single ones only if asked for.
func terms(text string, singles bool) []string {
	var out []string
	for t := range Tokens(text) {
		if !t.Single || singles {
			out = append(out, t.Term)
		}
	}
	return out
}

func TestTokens(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string
	}{
		{"words are lowered and stop words left out", "The Database is Down", []string{"databas", "down"}},
		{"forms of a word meet", "test tests tested testing", []string{"test", "test", "test", "test"}},
		{"identifiers by underscore", "feedback_testing.md", []string{"feedback", "test", "md"}},
		{"camel case gives parts and itself", "parseIndexLine", []string{"pars", "index", "lin", "parseindexlin"}},
		{"Han gives pairs", "单元测试", []string{"单元", "元测", "测试"}},
		{"scripts are kept apart", "用Go写测试", []string{"go", "写测", "测试"}},
		{"full-width Latin is Latin", "ＡＰＩ", []string{"api"}},
		{"half-width katakana is katakana", "ﾃｽﾄ", []string{"テス", "スト"}},
		{"decomposed letters are composed", "cafe\u0301", []string{"café"}},
		{"Hangul gives pairs", "한국어 문서", []string{"한국", "국어", "문서"}},
		{"Cyrillic is a spaced script", "База данных", []string{"база", "данных"}},
		{"numbers", "v1.30 2026-03-05", []string{"v1", "30", "2026", "03", "05"}},
		{"an endless word is left out", strings.Repeat("a", 65) + " key", []string{"key"}},
		{"only marks and punctuation", "!! -- \u0301", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, terms(tc.text, false)); diff != "" {
				t.Errorf("Tokens(%q) (-want +got):\n%s", tc.text, diff)
			}
		})
	}
}

func TestStem(t *testing.T) {
	for _, group := range [][]string{
		{"cache", "caches", "caching", "cached"},
		{"retry", "retries", "retried", "retrying"},
		{"run", "runs", "running"},
		{"process", "processes", "processing", "processed"},
		{"deploy", "deploys", "deployed", "deploying"},
		{"stop", "stopped", "stopping"},
		{"call", "calls", "called", "calling"},
	} {
		for _, w := range group[1:] {
			if stem(w) != stem(group[0]) {
				t.Errorf("stem(%q) = %q, but stem(%q) = %q", w, stem(w), group[0], stem(group[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"status", "state"}, {"string", "str"}, {"need", "ned"}, {"bring", "br"}, {"analysis", "analysi"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("stem joins %q and %q", pair[0], pair[1])
		}
	}
}

func TestParseQuerySingles(t *testing.T) {
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"锁", []string{"锁"}},
		{"数据库", []string{"数据", "据库"}},
		{"锁 数据 表", []string{"锁", "数据", "表"}},
		{"锁 lock", []string{"锁", "lock"}},
		{"the of and", nil},
		{"test testing", []string{"test"}},
	} {
		if diff := cmp.Diff(tc.want, ParseQuery(tc.text).Terms()); diff != "" {
			t.Errorf("ParseQuery(%q) (-want +got):\n%s", tc.text, diff)
		}
	}
}

// corpus is a small store in two languages.
func corpus() *Index {
	var x Index
	add := func(id, name, body string) {
		x.Add(id, Field{Text: id, Weight: 2}, Field{Text: name, Weight: 3}, Field{Text: body})
	}
	add("feedback_testing.md", "Testing conventions", "Integration tests run against a real database. Never mock the database.")
	add("project_freeze.md", "Merge freeze", "No merges after 2026-03-05; mobile cuts its release branch.")
	add("reference_grafana.md", "延迟面板", "值班看的是 Grafana 的 api-latency 面板，数据库连接数也在那里。")
	add("project_锁.md", "索引锁", "写索引时先取锁，再读，再写。")
	add("reference_linear.md", "Linear", "Pipeline bugs are tracked in the project INGEST.")
	return &x
}

func ids(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

func TestSearch(t *testing.T) {
	x := corpus()
	for _, tc := range []struct {
		query, best string
	}{
		{"how do I test this", "feedback_testing.md"},
		{"mocking databases", "feedback_testing.md"},
		{"when is the freeze", "project_freeze.md"},
		{"merging to the release branch", "project_freeze.md"},
		{"数据库连接", "reference_grafana.md"},
		{"锁", "project_锁.md"},
		{"grafana 面板在哪里", "reference_grafana.md"},
		{"ＩＮＧＥＳＴ bug", "reference_linear.md"},
	} {
		hits := x.Search(tc.query, 3)
		if len(hits) == 0 || hits[0].ID != tc.best {
			t.Errorf("Search(%q) = %v, want %s first", tc.query, ids(hits), tc.best)
		}
	}
	for _, query := range []string{"", "the", "kubernetes", "鲸鱼", "!!"} {
		if hits := x.Search(query, 3); len(hits) != 0 {
			t.Errorf("Search(%q) = %v, want nothing", query, ids(hits))
		}
	}
}

func TestQueryExpansion(t *testing.T) {
	x := corpus()
	q := ParseQuery("帮我写单元测试")
	if hits := x.SearchQuery(q, 0); slices.Contains(ids(hits), "feedback_testing.md") {
		t.Fatalf("found %v before the expansion", ids(hits))
	}
	for tok := range Tokens("unit test") {
		q.Add(tok.Term, 0.5)
	}
	if hits := x.SearchQuery(q, 0); len(hits) == 0 || hits[0].ID != "feedback_testing.md" {
		t.Errorf("after the expansion: %v, want feedback_testing.md first", ids(hits))
	}
}

func TestSearchTiesAreInIDOrder(t *testing.T) {
	var x Index
	for _, id := range []string{"c", "a", "d", "b"} {
		x.Add(id, Field{Text: "same text"})
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ids(x.Search("text", 3))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDocumentTermsAreBounded(t *testing.T) {
	var x Index
	var b strings.Builder
	for i := range MaxDocumentTerms + 1000 {
		fmt.Fprintf(&b, "w%d ", i)
	}
	x.Add("long", Field{Text: b.String()})
	if got := len(x.postings); got != MaxDocumentTerms {
		t.Errorf("the index holds %d terms of one document, want %d", got, MaxDocumentTerms)
	}
	x.Remove("long")
	if len(x.postings) != 0 || x.length != 0 || x.Len() != 0 {
		t.Errorf("after Remove: %d terms, length %v, %d documents", len(x.postings), x.length, x.Len())
	}
}

// TestReplacingDoesNotGrow: an index whose documents are replaced for ever holds
// about what it holds once.
func TestReplacingDoesNotGrow(t *testing.T) {
	var x Index
	for i := range 5000 {
		x.Add(fmt.Sprint(i%100), Field{Text: fmt.Sprintf("note number%d on tests", i)})
	}
	held := 0
	for _, list := range x.postings {
		held += cap(list)
	}
	if x.Len() != 100 || len(x.slots) > 300 || held > 2*300*3 {
		t.Errorf("%d documents in %d slots, %d postings", x.Len(), len(x.slots), held)
	}
	if hits := x.Search("number4999", 0); len(hits) != 1 || hits[0].ID != "99" {
		t.Errorf("hits %v", hits)
	}
	if hits := x.Search("number4000", 0); len(hits) != 0 {
		t.Errorf("a replaced text is found: %v", hits)
	}
}

// TestIndexIsItsDocuments: whatever was added, replaced and removed before, an index
// answers like a fresh one over the same documents.
func TestIndexIsItsDocuments(t *testing.T) {
	vocabulary := []string{"lock", "database", "锁", "数据库", "testing", "freeze", "grafana", "the"}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 8).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		want := map[string]string{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")
			if rapid.Bool().Draw(t, "remove") {
				x.Remove(id)
				delete(want, id)
				continue
			}
			want[id] = text.Draw(t, "text")
			x.Add(id, Field{Text: want[id], Weight: 2})
		}
		var fresh Index
		for _, id := range []string{"d", "c", "b", "a"} {
			if body, ok := want[id]; ok {
				fresh.Add(id, Field{Text: body, Weight: 2})
			}
		}
		query := text.Draw(t, "query")
		if diff := cmp.Diff(fresh.Search(query, 0), x.Search(query, 0)); diff != "" {
			t.Fatalf("Search(%q) (-fresh +got):\n%s", query, diff)
		}
	})
}

func TestSnippet(t *testing.T) {
	body := "# Testing\n\nWe write many things here that are of no concern to anybody.\n" +
		"Integration tests run against a real database.\nThe rest goes on for a while and says nothing else.\n"
	for _, tc := range []struct {
		name, content, query string
		max                  int
		want                 string
	}{
		{"whole text", "one  line\n\nand more\n", "more", 80, "one line and more"},
		{"around the match, from the start of a word", body, "real database", 50, "…run against a real database. The rest goes on fo…"},
		{"no match: the beginning", body, "kubernetes", 20, "# Testing We write…"},
		{"characters, not bytes", "写索引时先取锁，再读，再写，最后放锁。", "取锁", 8, "…引时先取锁，…"},
		{"no room", body, "database", 0, ""},
		{"empty", "", "database", 10, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Snippet(tc.content, tc.query, tc.max); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"The Database", "单元测试 unit", "ﾃﾞｰﾀ", "caf\u0301e", "\xff\xfe", "aBcDé\u0301", "한국어", "e\u0301\u0301\u0301"} {
		f.Add(s, "database 测试")
	}
	f.Fuzz(func(t *testing.T, text, query string) {
		last := 0
		for tok := range Tokens(text) {
			if tok.Term == "" || tok.Start < 0 || tok.Start >= tok.End || tok.End > len(text) {
				t.Fatalf("Tokens(%q): %+v", text, tok)
			}
			if tok.End < last {
				t.Fatalf("Tokens(%q): %+v ends before %d", text, tok, last)
			}
			last = tok.End
		}
		for _, max := range []int{0, 1, 7, 40} {
			s := Snippet(text, query, max)
			if utf8.RuneCountInString(s) > max || !utf8.ValidString(s) || strings.ContainsAny(s, "\n\r") {
				t.Fatalf("Snippet(%q, %q, %d) = %q", text, query, max, s)
			}
		}
		var x Index
		x.Add("a", Field{Text: text})
		for _, h := range x.Search(query, 0) {
			if !(h.Score > 0) {
				t.Fatalf("score %v for %q in %q", h.Score, query, text)
			}
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	text := strings.Repeat("Integration tests run against a real database. 写索引时先取锁，再读。 ", 25)
	b.SetBytes(int64(len(text)))
	var x Index
	for i := 0; b.Loop(); i++ {
		x.Add(fmt.Sprint(i%1000), Field{Text: text})
	}
}

func BenchmarkSearch(b *testing.B) {
	var x Index
	for i := range 1000 {
		x.Add(fmt.Sprint(i), Field{Text: fmt.Sprintf("note %d on tests and the database, %d, 数据库", i, i%17)})
	}
	for b.Loop() {
		x.Search("database test 数据库 13", 10)
	}
}
