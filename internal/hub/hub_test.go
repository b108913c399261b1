package hub_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/changefeed/changefeedtest"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// onBoth runs a test on the store in memory and on the embedded one.
func onBoth(t *testing.T, do func(t *testing.T, h *hubtest.Hub)) {
	for name, sqlite := range map[string]bool{"inmem": false, "sqlite": true} {
		t.Run(name, func(t *testing.T) { do(t, hubtest.Start(t, hubtest.Options{SQLite: sqlite})) })
	}
}

func TestCommitAndRead(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		first := c.mustCommit(t, put("a.md", "one"), put("b/c.md", "two"))
		if !first.GetCreated() || first.GetHead().GetRevision() != 1 || first.GetCommit().GetAuthor().GetPrincipal() != "token:acme-app-writer" {
			t.Errorf("first commit %v", first)
		}
		again := c.mustCommit(t, put("a.md", "one"))
		if again.GetCreated() || again.GetHead().GetRevision() != 1 {
			t.Errorf("unchanged bytes made a revision: %v", again)
		}
		c.mustCommit(t, put("a.md", "three"))
		m, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/a.md", Revision: 1})
		if err != nil || !bytes.Equal(m.GetMemory().GetContent(), note("one")) {
			t.Errorf("a.md at revision 1: %v, %v", m, err)
		}
		list, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project, View: memsvcv1.MemoryView_MEMORY_VIEW_FULL})
		if err != nil || len(list.GetMemories()) != 2 || !bytes.Equal(list.GetMemories()[0].GetContent(), note("three")) {
			t.Errorf("list %v, %v", list, err)
		}
		none, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project, ChangedAfterRevision: 2})
		if err != nil || !none.GetNotModified() {
			t.Errorf("list after the head %v, %v", none, err)
		}
		batch, err := c.BatchGetMemories(c.ctx(t), &memsvcv1.BatchGetMemoriesRequest{Parent: project, Paths: []string{"b/c.md", "none.md", "a.md"}})
		if err != nil || len(batch.GetMemories()) != 2 || batch.GetMemories()[0].GetPath() != "b/c.md" {
			t.Errorf("batch %v, %v", batch, err)
		}
		log, err := c.ListCommits(c.ctx(t), &memsvcv1.ListCommitsRequest{Parent: project, Path: "a.md"})
		if err != nil || len(log.GetCommits()) != 2 || log.GetCommits()[0].GetRevision() != 2 {
			t.Errorf("log of a.md %v, %v", log, err)
		}
		p, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
		if err != nil || p.GetProject().GetHead().GetRevision() != 2 || p.GetProject().GetMemoryCount() != 2 {
			t.Errorf("project %v, %v", p, err)
		}
	})
}

// TestPaging walks lists and logs in small pages and finds everything once.
func TestPaging(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	for i := range 25 {
		c.mustCommit(t, put(string(rune('a'+i))+".md", "x"))
	}
	var paths []string
	req := &memsvcv1.ListMemoriesRequest{Parent: project, PageSize: 4, View: memsvcv1.MemoryView_MEMORY_VIEW_FULL}
	for {
		res, err := c.ListMemories(c.ctx(t), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(res.GetMemories()) > 4 || res.GetHead().GetRevision() != 25 {
			t.Fatalf("page of %d, head %v", len(res.GetMemories()), res.GetHead())
		}
		for _, m := range res.GetMemories() {
			paths = append(paths, m.GetPath())
		}
		if req.PageToken = res.GetNextPageToken(); req.PageToken == "" {
			break
		}
	}
	if got := strings.Join(paths, ""); got != "a.mdb.mdc.mdd.mde.mdf.mdg.mdh.mdi.mdj.mdk.mdl.mdm.mdn.mdo.mdp.mdq.mdr.mds.mdt.mdu.mdv.mdw.mdx.mdy.md" {
		t.Errorf("paths %s", got)
	}
	var revisions []int64
	logs := &memsvcv1.ListCommitsRequest{Parent: project, PageSize: 10}
	for {
		res, err := c.ListCommits(c.ctx(t), logs)
		if err != nil {
			t.Fatal(err)
		}
		for _, commit := range res.GetCommits() {
			revisions = append(revisions, commit.GetRevision())
		}
		if logs.PageToken = res.GetNextPageToken(); logs.PageToken == "" {
			break
		}
	}
	if len(revisions) != 25 || revisions[0] != 25 || revisions[24] != 1 {
		t.Errorf("revisions %v", revisions)
	}
	_, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project, PageToken: "not ours"})
	wantReason(t, err, memory.ReasonInvalidArgument)
}

func TestPreconditions(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		c.mustCommit(t, put("a.md", "one"))
		create := put("a.md", "two")
		create.Precondition = &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_MustNotExist{MustNotExist: true}}
		_, err := c.commit(t, create, put("b.md", "never"))
		wantReason(t, err, memory.ReasonETagMismatch)
		var e *memory.Error
		if !errors.As(wire.FromError(err), &e) || len(e.Current) != 1 || !bytes.Equal(e.Current[0].Content, note("one")) || e.Head.Revision != 1 {
			t.Errorf("mismatch without the present memory: %+v", e)
		}
		if _, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/b.md"}); status.Code(err) != codes.NotFound {
			t.Errorf("half a commit was applied: %v", err)
		}
	})
}

func TestRequestIDsAndEpochs(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		req := &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("a.md", "one")}, RequestId: "r1"}
		first, err := c.CommitChanges(c.ctx(t), req)
		if err != nil {
			t.Fatal(err)
		}
		c.mustCommit(t, put("a.md", "two"))
		retry, err := c.CommitChanges(c.ctx(t), req)
		if err != nil || !retry.GetCreated() || retry.GetCommit().GetRevision() != first.GetCommit().GetRevision() {
			t.Errorf("retry: %v, %v", retry, err)
		}
		req.Changes = []*memsvcv1.Change{put("a.md", "three")}
		_, err = c.CommitChanges(c.ctx(t), req)
		wantReason(t, err, memory.ReasonRequestIDReused)

		_, err = c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: project, Changes: req.Changes, Epoch: "another"})
		wantReason(t, err, memory.ReasonEpochChanged)
		head := retry.GetHead()
		_, err = c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project, Cursor: head})
		if err != nil {
			t.Errorf("good cursor: %v", err)
		}
		for name, cursor := range map[string]*memsvcv1.Cursor{
			"beyond the head": {Epoch: head.GetEpoch(), Revision: 99},
			"another commit":  {Epoch: head.GetEpoch(), Revision: 1, CommitId: strings.Repeat("0", 32)},
			"another epoch":   {Epoch: "another", Revision: 1},
		} {
			_, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project, Cursor: cursor})
			st := status.Convert(err)
			if wire.ReasonOf(st) != memory.ReasonEpochChanged {
				t.Errorf("%s: %v", name, err)
			}
		}
		// Nothing was written meanwhile.
		validate := &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("v.md", "x")}, ValidateOnly: true}
		if _, err := c.CommitChanges(c.ctx(t), validate); err != nil {
			t.Errorf("validate_only: %v", err)
		}
		p, err := c.GetProject(c.ctx(t), &memsvcv1.GetProjectRequest{Name: project})
		if err != nil || p.GetProject().GetHead().GetRevision() != 2 {
			t.Errorf("project %v, %v", p, err)
		}
	})
}

// TestRules refuses what must not be stored, with the rule and without the text, and
// says so in the audit log.
func TestRules(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	secret := fakeSecret(1)
	raw := func(path, content string) *memsvcv1.Change {
		return &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte(content)}}}
	}
	for name, tc := range map[string]struct {
		change *memsvcv1.Change
		want   memory.Reason
	}{
		"secret":     {raw("a.md", string(note("token "+secret))), memory.ReasonSecretDetected},
		"path":       {raw("../a.md", "x"), memory.ReasonInvalidPath},
		"encoded":    {raw("%2e%2e%2fa.md", "x"), memory.ReasonInvalidPath},
		"user":       {raw("a.md", "---\nname: n\ntype: user\n---\nx"), memory.ReasonTypeNotShared},
		"merge":      {raw("a.md", "<<<<<<< ours\nx\n=======\ny\n>>>>>>> theirs\n"), memory.ReasonInvalidContent},
		"not utf-8":  {raw("a.md", "x\xff"), memory.ReasonInvalidContent},
		"nul":        {raw("a.md", "x\x00"), memory.ReasonInvalidContent},
		"large":      {raw("a.md", strings.Repeat("x", memory.MaxMemoryBytes+1)), memory.ReasonMemoryTooLarge},
		"no action":  {&memsvcv1.Change{Path: "a.md"}, memory.ReasonInvalidArgument},
		"empty path": {raw("", "x"), memory.ReasonInvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.commit(t, tc.change)
			wantReason(t, err, tc.want)
			if strings.Contains(err.Error(), secret) {
				t.Error("the error carries the secret")
			}
		})
	}
	many := make([]*memsvcv1.Change, memory.MaxCommitChanges+1)
	for i := range many {
		many[i] = put("p"+string(rune('a'+i%26))+string(rune('a'+i/26))+".md", "x")
	}
	_, err := c.commit(t, many...)
	wantReason(t, err, memory.ReasonCommitTooLarge)
	var big []*memsvcv1.Change
	for i := range 40 {
		big = append(big, raw(string(rune('a'+i%26))+string(rune('a'+i/26))+".md", strings.Repeat("x y ", 64<<10)))
	}
	_, err = c.commit(t, big...)
	wantReason(t, err, memory.ReasonCommitTooLarge)

	admin := as(t, h, h.AdminToken)
	events, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{TeamId: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, ev := range events.GetEvents() {
		if ev.GetAction() == "commit.refused" {
			seen[strings.SplitN(ev.GetDetail(), ";", 2)[0]] = true
		}
		if strings.Contains(ev.String(), secret) {
			t.Error("the audit log carries the secret")
		}
	}
	for _, reason := range []memory.Reason{memory.ReasonSecretDetected, memory.ReasonInvalidPath, memory.ReasonTypeNotShared, memory.ReasonInvalidContent, memory.ReasonMemoryTooLarge, memory.ReasonCommitTooLarge} {
		if !seen[string(reason)] {
			t.Errorf("no refusal with %s in the audit log: %v", reason, seen)
		}
	}
	if strings.Contains(h.Log.String(), secret) {
		t.Error("the log carries the secret")
	}
	text := metricsText(t, h)
	if strings.Contains(text, secret) {
		t.Error("the metrics carry the secret")
	}
	if !strings.Contains(text, `memsvc_commits_total{outcome="SECRET_DETECTED"} 1`) {
		t.Error("the refusal was not counted")
	}
}

func TestFutureTimesAreClamped(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	ch := put("a.md", "x")
	ch.GetPut().ModifyTime = timestamppb.New(time.Now().Add(24 * time.Hour))
	c.mustCommit(t, ch)
	m, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/a.md"})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.GetMemory(); got.GetModifyTime().AsTime().After(got.GetCommitTime().AsTime()) {
		t.Errorf("modified %v, committed %v", got.GetModifyTime().AsTime(), got.GetCommitTime().AsTime())
	}
}

func TestRestore(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		c.mustCommit(t, put("a.md", "one"), put("b.md", "keep"))
		c.mustCommit(t, put("a.md", "two"), put("new.md", "x"))
		c.mustCommit(t, &memsvcv1.Change{Path: "b.md", Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}})
		res, err := c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: project, Revision: 1})
		if err != nil || res.GetCommit().GetRevision() != 4 || len(res.GetCommit().GetChanges()) != 3 {
			t.Fatalf("restore %v, %v", res, err)
		}
		list, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project, View: memsvcv1.MemoryView_MEMORY_VIEW_FULL})
		if err != nil || len(list.GetMemories()) != 2 || !bytes.Equal(list.GetMemories()[0].GetContent(), note("one")) {
			t.Errorf("after the restore %v, %v", list, err)
		}
		again, err := c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: project, Revision: 1})
		if err != nil || again.GetCreated() || again.GetCommit().GetRevision() != 4 {
			t.Errorf("second restore %v, %v", again, err)
		}
		one, err := c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: project, Revision: 2, Paths: []string{"a.md"}})
		if err != nil || len(one.GetCommit().GetChanges()) != 1 {
			t.Errorf("restore of one path %v, %v", one, err)
		}
		_, err = c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: project, Revision: 2, Paths: []string{"never.md"}})
		wantReason(t, err, memory.ReasonNotFound)
	})
}

func TestSearch(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	c.mustCommit(t, put("deploy.md", "We deploy on Fridays with the blue pipeline."), put("db.md", "数据库迁移要先备份,再执行。"), put("cook.md", "Soup."))
	find := func(query string) []string {
		t.Helper()
		res, err := c.SearchMemories(c.ctx(t), &memsvcv1.SearchMemoriesRequest{Parent: project, Query: query})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, hit := range res.GetHits() {
			out = append(out, hit.GetMemory().GetPath())
			if hit.GetSnippet() == "" || len(hit.GetMemory().GetContent()) > 0 {
				t.Errorf("hit %v", hit)
			}
		}
		return out
	}
	if got := find("deployment pipeline"); len(got) == 0 || got[0] != "deploy.md" {
		t.Errorf("English: %v", got)
	}
	if got := find("数据库备份"); len(got) == 0 || got[0] != "db.md" {
		t.Errorf("Chinese: %v", got)
	}
	// The index follows the head.
	c.mustCommit(t, put("deploy.md", "Nothing here."), put("new.md", "The green pipeline."))
	if got := find("pipeline"); len(got) != 1 || got[0] != "new.md" {
		t.Errorf("after a commit: %v", got)
	}
}

func TestConflicts(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	report := func(text string) (*memsvcv1.ReportConflictResponse, error) {
		return c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{Path: "a.md", Theirs: note(text)}})
	}
	first, err := report("mine")
	if err != nil {
		t.Fatal(err)
	}
	same, err := report("mine")
	if err != nil || same.GetConflict().GetName() != first.GetConflict().GetName() {
		t.Errorf("the same conflict twice: %v, %v", same, err)
	}
	_, err = report("password: " + fakeSecret(2))
	wantReason(t, err, memory.ReasonSecretDetected)
	list, err := c.ListConflicts(c.ctx(t), &memsvcv1.ListConflictsRequest{Parent: project})
	if err != nil || len(list.GetConflicts()) != 1 || !bytes.Equal(list.GetConflicts()[0].GetTheirs(), note("mine")) {
		t.Errorf("list %v, %v", list, err)
	}
	if _, err := c.ResolveConflict(c.ctx(t), &memsvcv1.ResolveConflictRequest{Name: first.GetConflict().GetName()}); err != nil {
		t.Error(err)
	}
	_, err = c.ResolveConflict(c.ctx(t), &memsvcv1.ResolveConflictRequest{Name: first.GetConflict().GetName()})
	wantReason(t, err, memory.ReasonNotFound)
}

// TestRedact removes a text from every version, tells the watchers, and refuses its
// return.
func TestRedact(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		const leak = "the launch code is walrus"
		c.mustCommit(t, put("a.md", leak))
		c.mustCommit(t, put("a.md", "clean"))
		w := c.watch(t, &memsvcv1.WatchedProject{Project: project, Start: memsvcv1.WatchStart_WATCH_START_HEAD})
		admin := as(t, h, h.Token("acme", "", "admin"))
		etag := string(memory.ETagOf(note(leak)))
		res, err := admin.RedactMemory(admin.ctx(t), &memsvcv1.RedactMemoryRequest{Name: project + "/memories/a.md", Etags: []string{etag}, Reason: "leak"})
		if err != nil || res.GetCommit().GetRevision() != 3 {
			t.Fatalf("redact %v, %v", res, err)
		}
		if got := w.commit(t); got.GetRevision() != 3 || got.GetChanges()[0].GetKind() != memsvcv1.ChangeKind_CHANGE_KIND_REDACT {
			t.Errorf("watchers were told %v", got)
		}
		old, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/a.md", Revision: 1})
		if err != nil || strings.Contains(string(old.GetMemory().GetContent()), "walrus") {
			t.Errorf("old version %v, %v", old, err)
		}
		from := c.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: &memsvcv1.Cursor{Revision: 0}})
		for range 3 {
			if got := from.commit(t); strings.Contains(got.String(), "walrus") {
				t.Error("the feed still has the text")
			}
		}
		_, err = c.commit(t, put("elsewhere.md", leak+"  "))
		wantReason(t, err, memory.ReasonRedacted)
		if _, err := c.commit(t, put("elsewhere.md", "another text")); err != nil {
			t.Error(err)
		}
	})
}

// TestPolicy lets an admin allow a fingerprint, tells the watchers, and judges what is
// stored again when rules come in.
func TestPolicy(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	admin := as(t, h, h.Token("acme", "", "admin"))
	text := "key " + fakeSecret(3)
	_, err := c.commit(t, put("a.md", text))
	wantReason(t, err, memory.ReasonSecretDetected)
	var e *memory.Error
	if !errors.As(wire.FromError(err), &e) || len(e.Violations) == 0 || e.Violations[0].Fingerprint == "" || e.Violations[0].Line == 0 {
		t.Fatalf("violations %+v", e)
	}
	policy, err := c.GetGuardPolicy(c.ctx(t), &memsvcv1.GetGuardPolicyRequest{Name: "teams/acme/guardPolicy"})
	if err != nil || len(policy.GetPolicy().GetFingerprintKey()) != 32 {
		t.Fatalf("policy %v, %v", policy, err)
	}
	w := c.watch(t, &memsvcv1.WatchedProject{Project: project, Start: memsvcv1.WatchStart_WATCH_START_HEAD})
	p := policy.GetPolicy()
	for _, v := range e.Violations {
		p.AllowedFingerprints = append(p.AllowedFingerprints, v.Fingerprint)
	}
	_, err = c.UpdateGuardPolicy(c.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: p})
	wantReason(t, err, memory.ReasonPermissionDenied)
	next, err := admin.UpdateGuardPolicy(admin.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: p})
	if err != nil || next.GetPolicy().GetVersion() != p.GetVersion()+1 {
		t.Fatalf("update %v, %v", next, err)
	}
	if got := w.next(t, func(m *memsvcv1.WatchMemoriesResponse) bool {
		return m.GetPolicyVersion() == next.GetPolicy().GetVersion()
	}); got == nil {
		t.Error("watchers were not told")
	}
	c.mustCommit(t, put("a.md", text))
	_, err = admin.UpdateGuardPolicy(admin.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: p})
	wantReason(t, err, memory.ReasonETagMismatch)

	// The allowance is taken back: what is stored is found and still served.
	p = next.GetPolicy()
	p.AllowedFingerprints = nil
	if _, err := admin.UpdateGuardPolicy(admin.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: p}); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, patience, "a rescan hit in the audit log", func() bool {
		events, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events.GetEvents() {
			if ev.GetAction() == "guard.rescan.hit" && strings.HasSuffix(ev.GetSubject(), "/a.md") {
				return true
			}
		}
		return false
	})
	if _, err := c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/a.md"}); err != nil {
		t.Errorf("a rescan hit is not served: %v", err)
	}
	p.RulesToml = []byte("[[rules]\n")
	_, err = admin.UpdateGuardPolicy(admin.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{Policy: p})
	if err == nil {
		t.Error("rules that cannot be used were taken")
	}
}

// watcher is an open watch in a test.
type watcher struct {
	stream grpc.ServerStreamingClient[memsvcv1.WatchMemoriesResponse]
	check  *changefeedtest.Checker
	read   time.Time // when the last event was
}

func (c caller) watch(t testing.TB, projects ...*memsvcv1.WatchedProject) *watcher {
	t.Helper()
	stream, err := c.WatchMemories(c.ctx(t), &memsvcv1.WatchMemoriesRequest{
		Projects: projects, Agent: &memsvcv1.AgentInfo{AgentId: "agent-1", Machine: "m", Version: "v"},
	})
	if err != nil {
		t.Fatal(err)
	}
	begin := map[memory.ProjectKey]memory.Revision{}
	for _, p := range projects {
		key, err := memory.ParseProjectKey(p.GetProject())
		if err != nil {
			t.Fatal(err)
		}
		begin[key] = memory.Revision(p.GetCursor().GetRevision())
	}
	w := &watcher{stream: stream}
	if _, err := stream.Header(); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv() // the first event: the watch is open
	if err != nil {
		t.Fatal(err)
	}
	if m.GetBookmark() == nil {
		t.Fatalf("first event %v, want a bookmark", m)
	}
	key, err := memory.ParseProjectKey(m.GetProject())
	if err != nil {
		t.Fatal(err)
	}
	begin[key] = memory.Revision(m.GetBookmark().GetRevision()) // of a start at the head
	w.check = changefeedtest.New(begin, time.Now())
	w.judge(t, m)
	return w
}

// judge holds every event against the promises of a watch.
func (w *watcher) judge(t testing.TB, m *memsvcv1.WatchMemoriesResponse) {
	t.Helper()
	if w.check == nil {
		return
	}
	w.read = time.Now()
	key, err := memory.ParseProjectKey(m.GetProject())
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case m.GetCommit() != nil:
		err = w.check.Commit(key, memory.Revision(m.GetCommit().GetRevision()), memory.CommitID(m.GetCommit().GetCommitId()), len(m.GetCommit().GetChanges()), time.Now())
	case m.GetBookmark() != nil:
		err = w.check.Bookmark(key, memory.Revision(m.GetBookmark().GetRevision()), time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *watcher) next(t testing.TB, want func(*memsvcv1.WatchMemoriesResponse) bool) *memsvcv1.WatchMemoriesResponse {
	t.Helper()
	for {
		if w.check != nil {
			w.check.Away(time.Since(w.read))
		}
		m, err := w.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetSendTime() == nil {
			t.Fatalf("event without send time: %v", m)
		}
		w.judge(t, m)
		if want(m) {
			return m
		}
	}
}

func (w *watcher) commit(t testing.TB) *memsvcv1.Commit {
	t.Helper()
	return w.next(t, func(m *memsvcv1.WatchMemoriesResponse) bool { return m.GetCommit() != nil }).GetCommit()
}

func TestWatch(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		first := c.mustCommit(t, put("a.md", "one"))
		w := c.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: &memsvcv1.Cursor{}})
		if got := w.commit(t); got.GetRevision() != 1 || !bytes.Equal(got.GetChanges()[0].GetContent(), note("one")) {
			t.Errorf("backlog %v", got)
		}
		c.mustCommit(t, put("a.md", "two"))
		if got := w.commit(t); got.GetRevision() != 2 {
			t.Errorf("live %v", got)
		}
		resumed := c.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: first.GetHead()})
		if got := resumed.commit(t); got.GetRevision() != 2 {
			t.Errorf("resumed %v", got)
		}
		stream, err := c.WatchMemories(c.ctx(t), &memsvcv1.WatchMemoriesRequest{MetadataOnly: true, Projects: []*memsvcv1.WatchedProject{{Project: project}}})
		if err != nil {
			t.Fatal(err)
		}
		meta := &watcher{stream: stream}
		if got := meta.commit(t); len(got.GetChanges()[0].GetContent()) > 0 || got.GetChanges()[0].GetSizeBytes() == 0 {
			t.Errorf("metadata only: %v", got)
		}
		admin := as(t, h, h.AdminToken)
		agents, err := admin.ListAgents(admin.ctx(t), &memsvcv1.ListAgentsRequest{TeamId: "acme"})
		if err != nil || len(agents.GetAgents()) != 1 || !agents.GetAgents()[0].GetConnected() || agents.GetAgents()[0].GetInfo().GetMachine() != "m" {
			t.Errorf("agents %v, %v", agents, err)
		}
	})
}

// TestWatchStatuses gives a project that cannot be followed its own status and goes on
// with the others.
func TestWatchStatuses(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "", "writer"))
	h.Token("acme", "app", "reader")
	h.Token("acme", "other", "reader")
	h.Token("rival", "plans", "reader")
	stream, err := c.WatchMemories(c.ctx(t), &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{
		{Project: "teams/rival/projects/plans"}, {Project: "teams/acme/projects/none"},
		{Project: "teams/acme/projects/other", Cursor: &memsvcv1.Cursor{Epoch: "older", Revision: 4}}, {Project: project},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"teams/rival/projects/plans": "NOT_FOUND", "teams/acme/projects/none": "NOT_FOUND",
		"teams/acme/projects/other": "EPOCH_CHANGED", project: "",
	}
	for range len(want) {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if reason := m.GetStatus().GetReason(); reason != want[m.GetProject()] {
			t.Errorf("%s: %q, want %q", m.GetProject(), reason, want[m.GetProject()])
		}
	}
	c.mustCommit(t, put("a.md", "x"))
	w := &watcher{stream: stream}
	if got := w.commit(t); got.GetRevision() != 1 {
		t.Errorf("commit %v", got)
	}
}

// TestDrain ends watches with a retryable status after a whole commit, and a hub that
// comes back on the same data goes on.
func TestDrain(t *testing.T) {
	onBoth(t, func(t *testing.T, h *hubtest.Hub) {
		c := as(t, h, h.Token("acme", "app", "writer"))
		c.mustCommit(t, put("a.md", "one"))
		w := c.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: &memsvcv1.Cursor{}})
		if got := w.commit(t); got.GetRevision() != 1 {
			t.Fatal(got)
		}
		h.Stop()
		for {
			_, err := w.stream.Recv()
			if err == nil {
				continue
			}
			if status.Code(err) != codes.Unavailable {
				t.Errorf("a draining hub ended the watch with %v", err)
			}
			break
		}
		h.StartAgain()
		c = as(t, h, c.token)
		res := c.mustCommit(t, put("a.md", "two"))
		if res.GetHead().GetRevision() != 2 {
			t.Errorf("after the restart %v", res)
		}
	})
}

func TestHealthAndReflection(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	conn := dial(t, h)
	res, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: "memsvc.v1.MemoryService"})
	if err != nil || res.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health %v, %v", res, err)
	}
	var md metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-request-id", "mine-1")
	_, err = memsvcv1.NewMemoryServiceClient(conn).GetProject(ctx, &memsvcv1.GetProjectRequest{Name: project}, grpc.Header(&md))
	wantReason(t, err, memory.ReasonUnauthenticated)
	if got := md.Get("x-request-id"); len(got) != 1 || got[0] != "mine-1" {
		t.Errorf("request id %v", got)
	}
	if !strings.Contains(h.Log.String(), "request_id=mine-1") {
		t.Error("the log does not know the request id")
	}
}

// TestStartRefusals starts nothing that cannot or must not run.
func TestStartRefusals(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	base := hub.Config{
		DataDir: t.TempDir(), GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0",
		Retention: time.Hour, AuditRetention: time.Hour, MaxProjectFiles: 1, MaxProjectBytes: 1, MaxConnections: 1, MaxWatchers: 1, RateBurst: 1,
	}
	for name, tc := range map[string]struct {
		change func(*hub.Config)
		usage  bool
		want   string
	}{
		"beyond loopback": {func(c *hub.Config) { c.GRPCAddr = "0.0.0.0:0" }, true, "--grpc-addr"},
		"everywhere":      {func(c *hub.Config) { c.HTTPAddr = ":0" }, true, "--http-addr"},
		"half of TLS":     {func(c *hub.Config) { c.TLSCert = "x" }, true, "go together"},
		"no certificate":  {func(c *hub.Config) { c.TLSCert, c.TLSKey = "/none", "/none" }, true, "/none"},
		"port no number":  {func(c *hub.Config) { c.OpsAddr = "127.0.0.1:http" }, true, "--ops-addr"},
		"no port":         {func(c *hub.Config) { c.OpsAddr = "127.0.0.1" }, true, "--ops-addr"},
		"port taken":      {func(c *hub.Config) { c.GRPCAddr = h.GRPCAddr }, false, "cannot listen there"},
		"data in use":     {func(c *hub.Config) { c.DataDir = h.DataDir }, false, h.DataDir},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := base
			tc.change(&cfg)
			_, err := hub.Start(context.Background(), cfg, hub.Deps{Logger: quiet()})
			var usage *hub.ConfigError
			if err == nil || errors.As(err, &usage) != tc.usage || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v; want usage %t with %q", err, tc.usage, tc.want)
			}
		})
	}
}
