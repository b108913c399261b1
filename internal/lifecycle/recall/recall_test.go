package recall_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/scripted"
	"github.com/memsvc/memsvc/internal/lifecycle/recall"
	"github.com/memsvc/memsvc/internal/memory"
)

var now = time.Date(2026, 3, 10, 15, 0, 0, 0, time.UTC)

// shelf is a personal directory with a team's below it.
type shelf struct {
	t   testing.TB
	dir string
}

func newShelf(t testing.TB) shelf { return shelf{t, t.TempDir()} }

func (s shelf) write(ref, text string, age time.Duration) {
	s.t.Helper()
	file := filepath.Join(s.dir, ref)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(file, now.Add(-age), now.Add(-age)); err != nil {
		s.t.Fatal(err)
	}
}

func (s shelf) memory(ref, typ, name, description string) {
	s.t.Helper()
	s.write(ref, fmt.Sprintf("---\nname: %s\ndescription: %s\ntype: %s\n---\n\nText.\n", name, description, typ), time.Hour)
}

func (s shelf) scan() []recall.Memory {
	s.t.Helper()
	list, err := recall.Scan(s.t.Context(), s.dir, filepath.Join(s.dir, "team"))
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func refs[M any](list []M, ref func(M) string) []string {
	var out []string
	for _, m := range list {
		out = append(out, ref(m))
	}
	return out
}

func chosen(c recall.Choice) []string {
	return refs(c.Chosen, func(m recall.Scored) string { return m.Ref })
}

func TestScan(t *testing.T) {
	s := newShelf(t)
	s.write("feedback_a.md", "---\nname: A\ndescription: about a\ntype: feedback\nmetadata:\n  modified: 2026-01-02T03:04:05Z\n  pinned: true\n---\n\nBody of A.\n", 48*time.Hour)
	s.write("team/project_b.md", "\ufeff---\r\nname: B\r\ndescription: about b\r\nmetadata: \r\n  type: project\r\n---\r\nBody of B.\r\n", time.Hour)
	s.write("sub/plain.md", strings.Repeat("line\n", 100), 2*time.Hour)
	s.write("MEMORY.md", "- [A](a.md)\n", 0)
	s.write("team/MEMORY.md", "- [B](b.md)\n", 0)
	s.write(".hidden.md", "x", 0)
	s.write("notes.txt", "x", 0)
	s.write("team/gone.md", memory.RedactionMarker, 0)
	if err := os.Symlink("/etc/hostname", filepath.Join(s.dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	list := s.scan()
	if diff := cmp.Diff([]string{"team/project_b.md", "sub/plain.md", "feedback_a.md"}, refs(list, func(m recall.Memory) string { return m.Ref })); diff != "" {
		t.Fatalf("newest first (-want +got):\n%s", diff)
	}
	if b := list[0]; b.Type != memory.TypeProject || b.Name != "B" || b.Scope != memory.ScopeTeam || b.Head != "Body of B.\r\n" {
		t.Errorf("B is %+v", b)
	}
	if p := list[1]; strings.Count(p.Head, "line") != recall.MaxHeadLines || p.Type != "" {
		t.Errorf("of plain.md %d lines are read", strings.Count(p.Head, "line"))
	}
	if a := list[2]; !a.Pinned || !a.Time.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("A is %+v", a)
	}
	want := "- [project] team/project_b.md (today): about b\n- [untyped] sub/plain.md (today): \n- [feedback] feedback_a.md (67 days ago): about a\n"
	if diff := cmp.Diff(want, recall.Manifest(list, now)); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	none, err := recall.Scan(t.Context(), filepath.Join(s.dir, "none"), "")
	if err != nil || len(none) != 0 {
		t.Errorf("no directory: %v, %v", none, err)
	}
}

func TestScanTakesTheNewest(t *testing.T) {
	s := newShelf(t)
	for i := range recall.MaxMemories + 20 {
		s.write(fmt.Sprintf("m%03d.md", i), "text", time.Duration(i)*time.Minute)
	}
	list := s.scan()
	if len(list) != recall.MaxMemories || list[0].Ref != "m000.md" || list[len(list)-1].Ref != "m199.md" {
		t.Errorf("%d memories from %s to %s", len(list), list[0].Ref, list[len(list)-1].Ref)
	}
}

func TestAge(t *testing.T) {
	for _, test := range []struct {
		t       time.Time
		want    string
		caution bool
	}{
		{now, "today", false},
		{now.Add(time.Hour), "today", false}, // a clock ahead
		{now.Add(-16 * time.Hour), "yesterday", false},
		{now.Add(-25 * time.Hour), "yesterday", true},
		{now.Add(-47 * 24 * time.Hour), "47 days ago", true},
	} {
		if got := recall.Age(test.t, now); got != test.want {
			t.Errorf("%s: %q, want %q", test.t, got, test.want)
		}
		if got := recall.Caution(test.t, now) != ""; got != test.caution {
			t.Errorf("%s: caution %v", test.t, got)
		}
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones on this machine: ", err)
	}
	// The night in which clocks go forward has 23 hours.
	if got := recall.Age(time.Date(2026, 3, 28, 23, 0, 0, 0, berlin), time.Date(2026, 3, 30, 1, 0, 0, 0, berlin)); got != "2 days ago" {
		t.Errorf("over a change of the clocks: %s", got)
	}
}

func TestRankerFindsAcrossLanguages(t *testing.T) {
	s := newShelf(t)
	s.memory("feedback_testing.md", "feedback", "Testing", "write unit tests with a real database, no mocks")
	s.memory("project_freeze.md", "project", "Release freeze", "no merges before the audit")
	s.memory("reference_billing.md", "reference", "账单系统", "发票和退款在内部后台处理")
	s.memory("user_tea.md", "user", "Habits", "likes short answers")
	list := s.scan()
	for prompt, want := range map[string]string{
		"帮我写单元测试":                                 "feedback_testing.md",
		"please add unit tests for the parser":    "feedback_testing.md",
		"where do we handle customer refunds?":    "reference_billing.md",
		"可以发版了吗":                                  "project_freeze.md",
		"the weather in Paris is nice this month": "",
	} {
		c, err := recall.Selector{}.Select(t.Context(), list, recall.Request{Prompt: prompt, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(c.Chosen) > 0 {
			got = c.Chosen[0].Ref
		}
		if got != want || c.By != "ranker" {
			t.Errorf("%s: %v, want %s first; ranked %+v", prompt, chosen(c), want, c.Ranked)
		}
	}
}

func TestSurfacedAndToolsAreLeftOut(t *testing.T) {
	s := newShelf(t)
	s.memory("reference_grep.md", "reference", "Grep usage", "how to use Grep to search the deploy logs")
	s.memory("reference_grep_trap.md", "reference", "Grep trap", "known problem: Grep skips binary deploy logs")
	s.memory("feedback_deploy.md", "feedback", "Deploy logs", "read the deploy logs first")
	list := s.scan()
	const prompt = "search the deploy logs with Grep"
	pick := func(req recall.Request) []string {
		t.Helper()
		req.Prompt, req.Now = prompt, now
		c, err := recall.Selector{}.Select(t.Context(), list, req)
		if err != nil {
			t.Fatal(err)
		}
		out := refs(c.Ranked, func(m recall.Scored) string { return m.Ref })
		slices.Sort(out)
		return out
	}
	all := []string{"feedback_deploy.md", "reference_grep.md", "reference_grep_trap.md"}
	if diff := cmp.Diff(all, pick(recall.Request{})); diff != "" {
		t.Errorf("nothing known (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"feedback_deploy.md", "reference_grep_trap.md"}, pick(recall.Request{Tools: []string{"Grep"}})); diff != "" {
		t.Errorf("Grep was used (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all, pick(recall.Request{Tools: []string{"Gre", "Read"}})); diff != "" {
		t.Errorf("other tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all[1:], pick(recall.Request{Surfaced: []string{"feedback_deploy.md"}})); diff != "" {
		t.Errorf("seen already (-want +got):\n%s", diff)
	}
}

func TestModelChooses(t *testing.T) {
	s := newShelf(t)
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		s.memory(n+".md", "project", n, "about the deploy of "+n)
	}
	list := s.scan()
	for name, test := range map[string]struct {
		turn scripted.Turn
		want []string
		by   string
	}{
		"plain":           {scripted.Say(`{"files":["b.md","a.md"]}`), []string{"b.md", "a.md"}, "model"},
		"none":            {scripted.Say(`{"files":[]}`), nil, "model"},
		"prose around":    {scripted.Say("Sure! [Here] is {it}:\n```json\n{\"files\": [\"c.md\"]}\n```\nGood luck {\"files\":[\"d.md\"]}"), []string{"c.md"}, "model"},
		"bare list":       {scripted.Say(`["d.md"]`), []string{"d.md"}, "model"},
		"wrong and twice": {scripted.Say(`{"files":["none.md","a.md","../../etc/passwd","a.md","team/a.md"]}`), []string{"a.md"}, "model"},
		"too many":        {scripted.Say(`{"files":["a.md","b.md","c.md","d.md","e.md","f.md"]}`), []string{"a.md", "b.md", "c.md", "d.md", "e.md"}, "model"},
		"nonsense":        {scripted.Say("I would read them all."), nil, "ranker"},
		"wrong shape":     {scripted.Say(`{"files":"a.md"}`), nil, "ranker"},
		"empty":           {scripted.Say(""), nil, "ranker"},
		"error":           {scripted.Turn{Err: model.ErrDenied}, nil, "ranker"},
		"hang":            {scripted.Turn{Hang: true}, nil, "ranker"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &scripted.Model{Turns: []scripted.Turn{test.turn}}
			within := time.Hour
			if test.turn.Hang {
				within = 20 * time.Millisecond
			}
			c, err := recall.Selector{Model: m, Timeout: within}.Select(t.Context(), list, recall.Request{Prompt: "deploy of the service", Now: now})
			if err != nil {
				t.Fatal(err)
			}
			if c.By != test.by {
				t.Fatalf("chosen by %s (%s), want %s", c.By, c.Fallback, test.by)
			}
			if test.by == "model" && !cmp.Equal(test.want, chosen(c)) {
				t.Errorf("got %v, want %v", chosen(c), test.want)
			}
			if test.by == "ranker" && c.Fallback == "" {
				t.Error("nobody hears why the model was passed over")
			}
			if asked := m.Asked(); len(asked) != 1 || !strings.Contains(asked[0].Messages[0].Parts[0].Text, "about the deploy of g") {
				t.Errorf("the model was asked %d times, or without the manifest", len(asked))
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &scripted.Model{Turns: []scripted.Turn{{Hang: true}}}
	if _, err := (recall.Selector{Model: m}).Select(ctx, list, recall.Request{Prompt: "deploy", Now: now}); !errors.Is(err, context.Canceled) {
		t.Errorf("a turn that ended: %v, want the context's error", err)
	}
}

// A model is asked with what is left of a prompt, and not at all if nothing is.
func TestAModelIsShownAPromptWithoutItsSecrets(t *testing.T) {
	secrets := model.Secrets(func(text string) (out []model.Secret, err error) {
		for i, line := range strings.Split(text, "\n") {
			if strings.Contains(line, "swordfish") {
				out = append(out, model.Secret{Line: i + 1, Rule: "password"})
			}
		}
		return out, nil
	})
	list := []recall.Memory{{Ref: "a.md", Name: "Deploy", Description: "about the deploy of services", Time: now}}
	for prompt, asked := range map[string]bool{"deploy with swordfish": false, "swordfish\n\nswordfish": false, "the word is swordfish\nhow do I deploy": true, "how do I deploy" + strings.Repeat(" x", 1<<20): true} {
		m := &scripted.Model{Turns: []scripted.Turn{scripted.Say(`{"files":["a.md"]}`)}}
		c, err := recall.Selector{Model: m, Secrets: secrets, Timeout: time.Hour}.Select(t.Context(), list, recall.Request{Prompt: prompt, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if (c.By == "model") != asked || len(m.Asked()) > 0 != asked || !asked && !strings.Contains(c.Fallback, "holds a secret") {
			t.Errorf("%.40q: by %s (%s), asked %d times", prompt, c.By, c.Fallback, len(m.Asked()))
		}
		if asked {
			if text := m.Asked()[0].Messages[0].Parts[0].Text; strings.Contains(text, "swordfish") || !strings.Contains(text, "how do I deploy") || len(text) > 80<<10 {
				t.Errorf("the model was shown %d bytes: %.200q", len(text), text)
			}
		}
	}
}

func TestAmongEqualsThePinnedThenTheNewer(t *testing.T) {
	s := newShelf(t)
	const text = "---\nname: Rollback\ndescription: going back to an earlier version\ntype: reference\nmetadata:\n  pinned: %t\n---\n\nText.\n"
	s.write("reference_p.md", fmt.Sprintf(text, false), 3*time.Hour)
	s.write("reference_q.md", fmt.Sprintf(text, false), time.Hour)
	s.write("reference_r.md", fmt.Sprintf(text, true), 5*time.Hour)
	ranked := recall.Rank(s.scan(), "roll back")
	if diff := cmp.Diff([]string{"reference_r.md", "reference_q.md", "reference_p.md"}, refs(ranked, func(m recall.Scored) string { return m.Ref })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a prompt quotes costs no more than what it asks, and does not decide.
func TestQuotedCodeDoesNotDecide(t *testing.T) {
	s := newShelf(t)
	s.memory("feedback_timeouts.md", "feedback", "Deadlines", "every outgoing call has a timeout")
	s.memory("project_rollback.md", "project", "Rollback", "going back to an earlier version")
	prompt := "the call hangs, give it a timeout\n\n```\n" + strings.Repeat("rollback(); revert()\n", 50_000) + "```\n"
	c, err := recall.Selector{}.Select(t.Context(), s.scan(), recall.Request{Prompt: prompt, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"feedback_timeouts.md"}, chosen(c)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What a book answers needs a memory that fits far better.
func TestTextbookQuestionsNeedMore(t *testing.T) {
	s := newShelf(t)
	s.write("reference_b.md", "---\nname: Branches\ndescription: a branch is named after its ticket\n---\n\nx\n", 0)
	list, err := recall.Scan(t.Context(), s.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	for prompt, textbook := range map[string]bool{
		"make a branch for the login page": false, "what is a branch": true, "What does branch mean in git?": true, "how does a branch work in git": true,
		"what's the difference between a branch and a tag": true, "how do I list every branch in python": true, "分支是什么意思": true, "分支和标签的区别": true, "帮我新建一个分支": false,
		"which branch is the difference between the two releases on, and what do we call it once the ticket of the login page is merged? I ask because the pipeline of yesterday evening says that it cannot be found, and nobody answers": false,
	} {
		c, err := recall.Selector{}.Select(t.Context(), list, recall.Request{Prompt: prompt, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]float64{false: recall.Threshold, true: 2 * recall.Threshold}[textbook]; c.Needed != want {
			t.Errorf("%q needs a fit of %.2f, want %.2f", prompt, c.Needed, want)
		}
	}
}

// A further memory that found the prompt by another word is chosen only if it is nearly
// as good as the best one, and there are three at most.
func TestFurtherOnesSpeakOfTheSame(t *testing.T) {
	s := newShelf(t)
	s.write("project_a.md", "---\nname: Zeppelin gateway\ndescription: the zeppelin gateway takes the orders of partners\n---\n\nx\n", 0)
	s.write("project_b.md", "---\nname: Partners\ndescription: orders of the zeppelin come by night\n---\n\nx\n", 0)
	s.write("project_c.md", "---\nname: Kestrel\ndescription: a kestrel sits on the roof\n---\n\nx\n", 0)
	for i := range 3 {
		s.write(fmt.Sprintf("project_d%d.md", i), "---\nname: Partners\ndescription: orders of the zeppelin come by day\n---\n\nx\n", 0)
	}
	list, err := recall.Scan(t.Context(), s.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := recall.Selector{}.Select(t.Context(), list, recall.Request{Prompt: "why does the zeppelin gateway drop orders of partners when the kestrel is down", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	got := chosen(c)
	if len(got) != 3 || got[0] != "project_a.md" || slices.Contains(got, "project_c.md") {
		t.Errorf("chosen %v", got)
	}
	for _, m := range c.Ranked {
		if m.Ref == "project_c.md" && m.Common != 0 || m.Ref == "project_a.md" && m.Common != 1 || m.Ref == "project_b.md" && (m.Common <= 0 || m.Common >= 1) {
			t.Errorf("%s has %.2f in common with the best", m.Ref, m.Common)
		}
	}
}

// An everyday word is weaker evidence than a rare one, although few memories hold either.
func TestEverydayWordsSayLess(t *testing.T) {
	s := newShelf(t)
	s.write("project_a.md", "---\nname: Zeppelin\ndescription: about the zeppelin\n---\n\nx\n", 0)
	s.write("project_b.md", "---\nname: Argument\ndescription: about the argument\n---\n\nx\n", 0)
	list, err := recall.Scan(t.Context(), s.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	ranked := recall.Rank(list, "an argument over the zeppelin")
	if len(ranked) != 2 || ranked[0].Ref != "project_a.md" || ranked[1].Score > 0.7*ranked[0].Score || ranked[1].Covered >= ranked[0].Covered {
		t.Errorf("%+v", ranked)
	}
}

// TestOneTextIsGivenOnce: what a personal memory and one of the team's say alike is given as
// the team's; one that says more, or another personal one, is not meant.
func TestOneTextIsGivenOnce(t *testing.T) {
	const text = "---\nname: Rollback\ndescription: how to roll back a release\ntype: project\n---\n\n%s\n"
	s := newShelf(t)
	s.write("project_rollback.md", fmt.Sprintf(text, "Run  the rollback\nof the release."), time.Hour)
	s.write("team/project_rollback.md", fmt.Sprintf(text, "Run the rollback of the release."), 2*time.Hour)
	s.write("project_more.md", fmt.Sprintf(text, "Run the rollback of the release. Then tell the team."), time.Hour)
	for _, surfaced := range [][]string{nil, {"team/project_rollback.md"}} {
		c, err := recall.Selector{}.Select(t.Context(), s.scan(), recall.Request{Prompt: "how do I roll back a release?", Surfaced: surfaced, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		got := refs(c.Chosen, func(m recall.Scored) string { return m.Ref })
		want := []string{"project_more.md", "team/project_rollback.md"}
		if surfaced != nil {
			want = want[:1]
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seen %v (-want +got):\n%s\n%+v", surfaced, diff, c.Filtered)
		}
	}
}
