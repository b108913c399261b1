package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
)

// redact redacts texts of a memory, or fails.
func (c caller) redact(t *testing.T, path string, etags ...string) *memsvcv1.RedactMemoryResponse {
	t.Helper()
	res, err := c.RedactMemory(c.ctx(t), &memsvcv1.RedactMemoryRequest{Name: project + "/memories/" + path, Etags: etags, Reason: "why it went"})
	if err != nil {
		t.Fatalf("redact %s: %v", path, err)
	}
	return res
}

// conflict keeps a text for a conflict on the hub.
func (c caller) conflict(t *testing.T, path, text string) {
	t.Helper()
	_, err := c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{Path: path, Theirs: note(text)}})
	if err != nil {
		t.Fatalf("report: %v", err)
	}
}

// conflicts returns the paths and texts of the open conflicts.
func (c caller) conflicts(t *testing.T) (out []string) {
	t.Helper()
	res, err := c.ListConflicts(c.ctx(t), &memsvcv1.ListConflictsRequest{Parent: project})
	if err != nil {
		t.Fatalf("list conflicts: %v", err)
	}
	for _, x := range res.GetConflicts() {
		out = append(out, x.GetPath()+"="+string(x.GetTheirs()))
	}
	return out
}

// served returns every text that the hub serves: all memories at all revisions, and the
// conflicts.
func (c caller) served(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	p, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
	if err != nil {
		t.Fatalf("project: %v", err)
	}
	l, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project, ShowDeleted: true})
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	for _, m := range l.GetMemories() {
		for rev := int64(1); rev <= p.GetProject().GetHead().GetRevision(); rev++ {
			res, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: m.GetName(), Revision: rev})
			if err == nil {
				all.Write(res.GetMemory().GetContent())
			}
		}
	}
	w := c.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: &memsvcv1.Cursor{Revision: 0}})
	for rev := int64(1); rev <= p.GetProject().GetHead().GetRevision(); rev++ {
		for _, ch := range w.commit(t).GetChanges() {
			all.Write(ch.GetContent())
		}
	}
	for _, x := range c.conflicts(t) {
		all.WriteString(x)
	}
	return all.String()
}

const leak = "the launch code is walrus"

func etagOfNote(text string) string { return string(memory.ETagOf(note(text))) }

// TestRedactedTextLeavesTheConflicts: a redacted text that is kept for a conflict goes with
// it, whoever reported it, and other texts of that memory stay.
func TestRedactedTextLeavesTheConflicts(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		admin := as(t, h, h.Token("acme", "", "admin"))
		c.mustCommit(t, put("k.md", "theirs"), put("q.md", leak+" too"), put("x.md", "else"))
		c.conflict(t, "k.md", leak)
		c.conflict(t, "k.md", "my precious unrelated note")
		c.conflict(t, "q.md", leak+" once more")
		c.conflict(t, "x.md", leak)
		c.mustCommit(t, put("k.md", leak))

		res := admin.redact(t, "k.md", etagOfNote(leak))
		if got, want := c.conflicts(t), []string{"k.md=" + string(note("my precious unrelated note")), "q.md=" + string(note(leak+" once more"))}; !slices.Equal(got, want) {
			t.Errorf("conflicts %q, want %q", got, want)
		}
		if got := summary(res); got != "x.md 0+1, k.md 1+1" {
			t.Errorf("the answer says %s", got)
		}
		admin.redact(t, "q.md")
		if got, want := c.conflicts(t), []string{"k.md=" + string(note("my precious unrelated note"))}; !slices.Equal(got, want) {
			t.Errorf("after q.md went whole: conflicts %q, want %q", got, want)
		}
		if strings.Contains(c.served(t), "walrus") {
			t.Error("the text is still served")
		}
		_, err := c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{Path: "z.md", Theirs: note(leak)}})
		wantReason(t, err, memory.ReasonRedacted)
	})
}

// TestRedactConflictAlone: a text that only a conflict holds can be redacted, at a path
// that is a memory's, which the watchers are told, and at one that never was.
func TestRedactConflictAlone(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	admin := as(t, h, h.Token("acme", "", "admin"))
	c.mustCommit(t, put("k.md", "fine"))
	c.conflict(t, "k.md", leak)
	c.conflict(t, "never.md", leak+" elsewhere")
	res := admin.redact(t, "k.md", etagOfNote(leak))
	if ch := res.GetCommit().GetChanges(); len(ch) != 1 || ch[0].GetKind() != memsvcv1.ChangeKind_CHANGE_KIND_REDACT || ch[0].GetEtag() != etagOfNote("fine") {
		t.Errorf("watchers were told %v", res.GetCommit())
	}
	res = admin.redact(t, "never.md")
	if res.GetCommit() != nil || summary(res) != "never.md 0+1" {
		t.Errorf("the answer says %v", res)
	}
	if got := c.conflicts(t); len(got) > 0 {
		t.Errorf("conflicts %q", got)
	}
	for _, text := range []string{leak, leak + " elsewhere"} {
		_, err := c.commit(t, put("new.md", text))
		wantReason(t, err, memory.ReasonRedacted)
	}
}

// summary tells an answer in short: path, versions and conflicts.
func summary(res *memsvcv1.RedactMemoryResponse) string {
	var out []string
	for _, r := range res.GetRedacted() {
		out = append(out, r.GetPath()+" "+string(rune('0'+r.GetVersions()))+"+"+string(rune('0'+r.GetConflicts())))
	}
	return strings.Join(out, ", ")
}

func rename(from, to, text string) []*memsvcv1.Change {
	moved := put(to, text)
	moved.GetPut().RenamedFrom = from
	return []*memsvcv1.Change{moved, {Path: from, Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}}}
}

// TestRedactFollowsRenamesAndCopies: the texts that a memory had under an earlier name go
// with it, and so do copies of them; another memory that bore or bears that name does not.
func TestRedactFollowsRenamesAndCopies(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		admin := as(t, h, h.Token("acme", "", "admin"))
		c.mustCommit(t, put("old.md", "an earlier life"))
		c.mustCommit(t, &memsvcv1.Change{Path: "old.md", Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}})
		c.mustCommit(t, put("old.md", leak+" 1"))
		c.mustCommit(t, put("old.md", leak+" 2"), put("copy.md", leak+" 1"))
		c.mustCommit(t, rename("old.md", "mid.md", leak+" 3")...)
		c.mustCommit(t, rename("mid.md", "new.md", leak+" 3")...)
		c.mustCommit(t, put("old.md", "a later life"), put("copy.md", "mine by now"))
		c.mustCommit(t, put("new.md", "clean"))
		res := admin.redact(t, "new.md")
		if got := summary(res); got != "copy.md 1+0, mid.md 1+0, old.md 2+0, new.md 2+0" {
			t.Errorf("the answer says %s", got)
		}
		served := c.served(t)
		if strings.Contains(served, "walrus") {
			t.Error("the text is still served")
		}
		for _, other := range []string{"an earlier life", "a later life", "mine by now"} {
			if !strings.Contains(served, other) {
				t.Errorf("%q is gone", other)
			}
		}
		if got := res.GetRemaining(); len(got) > 0 {
			t.Errorf("remaining %v", got)
		}
	})
}

// TestRedactSaysWhatRemains: the names under which a memory goes on, and where else a
// secret of the redacted text stands, are told.
func TestRedactSaysWhatRemains(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	admin := as(t, h, h.Token("acme", "", "admin"))
	c.mustCommit(t, put("old.md", leak+" 1"))
	c.mustCommit(t, rename("old.md", "new.md", leak+" 2")...)
	res := admin.redact(t, "old.md")
	if got := res.GetRemaining(); len(got) != 1 || got[0].GetPath() != "new.md" || got[0].GetRevision() != 2 {
		t.Errorf("remaining %v, want new.md", got)
	}
	const word = "ZETA-998877"
	c.mustCommit(t, put("a.md", "see "+word))
	c.mustCommit(t, put("a.md", "it is "+word), put("b.md", "ask for "+word))
	c.conflict(t, "b.md", "or "+word)
	zeta(t, admin)
	res = admin.redact(t, "a.md", etagOfNote("see "+word))
	var got []string
	for _, r := range res.GetRemaining() {
		got = append(got, r.GetPath())
	}
	if want := []string{"a.md", "b.md", "b.md"}; !slices.Equal(got, want) {
		t.Errorf("remaining %v, want %v", res.GetRemaining(), want)
	}
	if strings.Contains(res.String(), word) {
		t.Error("the answer holds the secret")
	}
}

// TestRedactTellsOfIndexLines: an index line that links to what was redacted is told by its
// place, never by its text; other lines are not, nor an index that was redacted itself.
func TestRedactTellsOfIndexLines(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		admin := as(t, h, h.Token("acme", "", "admin"))
		c.mustCommit(t, put("sub/k.md", leak), put("other.md", "fine"),
			raw("MEMORY.md", "# Team\n\n- [Other](other.md) — fine\n- [K](./sub/k.md#x) — "+leak+"\n"), raw("sub/MEMORY.md", "- [K](k.md) — "+leak+"\n"))
		res := admin.redact(t, "sub/k.md")
		var got []string
		for _, r := range res.GetRemaining() {
			got = append(got, fmt.Sprintf("%s at %d: %s", r.GetPath(), r.GetRevision(), r.GetReason()))
		}
		want := []string{
			"MEMORY.md at 1: line 4 links to sub/k.md: look whether it repeats what was redacted",
			"sub/MEMORY.md at 1: line 1 links to sub/k.md: look whether it repeats what was redacted",
		}
		if !slices.Equal(got, want) {
			t.Errorf("remaining %q\nwant %q", got, want)
		}
		if strings.Contains(res.String(), "walrus") {
			t.Error("the answer holds the text")
		}
		if res := admin.redact(t, "MEMORY.md"); len(res.GetRemaining()) > 0 {
			t.Errorf("of an index that is gone: %v", res.GetRemaining())
		}
	})
}

// raw puts a text as it is.
func raw(path, text string) *memsvcv1.Change {
	return &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte(text)}}}
}

// zeta gives the team a rule of its own, for words like ZETA-998877.
func zeta(t *testing.T, admin caller) {
	t.Helper()
	p, err := admin.GetGuardPolicy(admin.ctx(t), &memsvcv1.GetGuardPolicyRequest{Name: "teams/acme/guardPolicy"})
	if err != nil {
		t.Fatal(err)
	}
	p.GetPolicy().RulesToml = []byte("[extend]\nuseDefault = true\n[[rules]]\nid = \"zeta\"\ndescription = \"a zeta\"\nregex = '''ZETA-[0-9]{6}'''\nkeywords = [\"zeta\"]\n")
	if _, err := admin.UpdateGuardPolicy(admin.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: p.GetPolicy()}); err != nil {
		t.Fatal(err)
	}
}

// TestRescanFindsEveryPlace: rules that come in later report a text at every path where it
// stands, and the texts of conflicts.
func TestRescanFindsEveryPlace(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	admin := as(t, h, h.Token("acme", "", "admin"))
	c.mustCommit(t, put("dupa.md", "ZETA-112233"), put("dupb.md", "ZETA-112233"))
	c.conflict(t, "conf.md", "ZETA-998877")
	zeta(t, admin)
	want := []string{project + "/memories/conf.md", project + "/memories/dupa.md", project + "/memories/dupb.md"}
	var got []string
	hubtest.Eventually(t, patience, "three hits on the audit log", func() bool {
		got = nil
		res, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{TeamId: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range res.GetEvents() {
			if e.GetAction() == "guard.rescan.hit" {
				got = append(got, e.GetSubject())
			}
		}
		slices.Sort(got)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("hits %v, want %v", got, want)
	}
}

// TestRedactReasonIsForTheAuditLog: readers see that a text was redacted, and admins why.
func TestRedactReasonIsForTheAuditLog(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	admin := as(t, h, h.Token("acme", "", "admin"))
	c.mustCommit(t, put("a.md", leak))
	if res := admin.redact(t, "a.md"); strings.Contains(res.GetCommit().GetMessage(), "why it went") {
		t.Errorf("every reader sees %q", res.GetCommit().GetMessage())
	}
	res, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{TeamId: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(res.GetEvents(), func(e *memsvcv1.AuditEvent) bool {
		return e.GetAction() == "redact" && strings.Contains(e.GetDetail(), "why it went")
	}) {
		t.Errorf("the audit log does not say why: %v", res.GetEvents())
	}
}

// TestFindRedacted: members learn about texts that they can name, and about no others.
func TestFindRedacted(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "reader"))
		w := as(t, h, h.Token("acme", "app", "writer"))
		admin := as(t, h, h.Token("acme", "", "admin"))
		w.mustCommit(t, put("a.md", leak), put("b.md", "fine"))
		admin.redact(t, "a.md")
		p, err := c.GetGuardPolicy(c.ctx(t), &memsvcv1.GetGuardPolicyRequest{Name: "teams/acme/guardPolicy"})
		if err != nil {
			t.Fatal(err)
		}
		print := func(text []byte) string {
			return memory.RedactionFingerprint(p.GetPolicy().GetFingerprintKey(), text)
		}
		req := &memsvcv1.FindRedactedRequest{Parent: project, Fingerprints: []string{print(note("fine")), print(note(leak)), print(append(note(leak), "  \r\n"...))}}
		res, err := c.FindRedacted(c.ctx(t), req)
		if err != nil || !slices.Equal(res.GetFingerprints(), []string{print(note(leak)), print(note(leak))}) {
			t.Errorf("found %v, %v", res, err)
		}
	})
}

// TestTextBelowAMarker: what a person writes below the marker is a text like any other:
// it is found, and a restore brings it back.
func TestTextBelowAMarker(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	c.mustCommit(t, put("k.md", leak))
	as(t, h, h.Token("acme", "", "admin")).redact(t, "k.md")
	text := memory.RedactionMarker + "the code is in the vault now\n"
	change := func(text string) *memsvcv1.Change {
		return &memsvcv1.Change{Path: "k.md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte(text)}}}
	}
	written := c.mustCommit(t, change(text)).GetCommit().GetRevision()
	found, err := c.SearchMemories(c.ctx(t), &memsvcv1.SearchMemoriesRequest{Parent: project, Query: "vault"})
	if err != nil || len(found.GetHits()) != 1 {
		t.Errorf("search: %v, %v", found, err)
	}
	c.mustCommit(t, change("over\n"))
	if _, err := c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: project, Revision: written}); err != nil {
		t.Fatal(err)
	}
	got, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/k.md"})
	if err != nil || string(got.GetMemory().GetContent()) != text {
		t.Errorf("restored: %q, %v", got.GetMemory().GetContent(), err)
	}
}

// TestRedactLeavesBlankTextsAlone: a memory that once was as blank as the redacted one is
// none of its copies.
func TestRedactLeavesBlankTextsAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		blank := func(path, text string) *memsvcv1.Change {
			return &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte(text)}}}
		}
		c.mustCommit(t, blank("a.md", "\n"), blank("b.md", "\n"), blank("c.md", "\n"))
		c.mustCommit(t, put("a.md", leak), put("b.md", "other"))
		c.mustCommit(t, blank("a.md", "\t\n"), blank("b.md", "\t\n"))
		c.mustCommit(t, put("b.md", "more"))
		c.conflict(t, "c.md", leak)
		res := as(t, h, h.Token("acme", "", "admin")).redact(t, "a.md")
		if got, want := summary(res), "c.md 0+1, a.md 3+0"; got != want {
			t.Errorf("redacted %v, want %v", got, want)
		}
		for _, tc := range []struct {
			path string
			rev  int64
			want string
		}{{"b.md", 1, "\n"}, {"b.md", 3, "\t\n"}, {"c.md", 1, "\n"}} {
			m, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/" + tc.path, Revision: tc.rev})
			if err != nil || string(m.GetMemory().GetContent()) != tc.want {
				t.Errorf("%s at %d: %q, %v; want %q", tc.path, tc.rev, m.GetMemory().GetContent(), err, tc.want)
			}
		}
	})
}
