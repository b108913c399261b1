package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
)

// wordGuard finds a word, and can be broken.
type wordGuard struct {
	mu      sync.Mutex
	word    string
	version string
	broken  bool
}

func (g *wordGuard) Scan(p service.Policy, path string, content []byte) ([]service.Finding, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken {
		return nil, errors.New("the guard is broken")
	}
	if g.word == "" || !bytes.Contains(content, []byte(g.word)) {
		return nil, nil
	}
	for _, f := range p.AllowFingerprints {
		if f == "print-"+g.word {
			return nil, nil
		}
	}
	return []service.Finding{{Path: path, Line: 1, Rule: "word", Description: "A word.", Fingerprint: "print-" + g.word}}, nil
}

func (g *wordGuard) RulesVersion(service.Policy) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.version, nil
}

// counts observes.
type counts struct {
	mu            sync.Mutex
	lost, trimmed int64
	commits       map[string]int
	rescans       int
}

func (c *counts) Commit(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commits[outcome]++
}
func (c *counts) Refused(string)          {}
func (c *counts) Delivered(time.Duration) {}
func (c *counts) AuditLost(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += n
}
func (c *counts) AuditTrimmed(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trimmed += n
}
func (c *counts) RescanHits(_ memory.Team, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rescans += n
}
func (c *counts) Compacted(int64, int64, int64) {}

type world struct {
	*service.Service
	backend *inmem.Store
	guard   *wordGuard
	counts  *counts
}

func newWorld(t *testing.T, backend *inmem.Store, limits service.Limits) *world {
	t.Helper()
	w := &world{backend: backend, guard: &wordGuard{version: "v1"}, counts: &counts{commits: map[string]int{}}}
	feed := changefeed.New(backend, changefeed.Options{})
	t.Cleanup(feed.Close)
	n := 0
	w.Service = service.New(service.Config{
		Backend: backend, Feed: feed, Guard: w.guard, Observer: w.counts, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Now().UTC() }, Limits: limits, TempDir: t.TempDir(),
		MintToken: func() (string, string, string, error) {
			n++
			return fmt.Sprint("text", n), fmt.Sprint("id", n), fmt.Sprint("hash", n), nil
		},
	})
	return w
}

var (
	key    = memory.ProjectKey{Team: "acme", Project: "app"}
	writer = service.Call{Principal: service.Principal{Name: "token:w", Team: "acme", Role: service.Writer}}
	admin  = service.Call{Principal: service.Principal{Name: "token:a", Role: service.Admin}}
)

func (w *world) put(path, text string) error {
	_, err := w.Commit(context.Background(), writer, service.CommitRequest{
		Project: key, Changes: []memory.Change{{Path: memory.Path(path), Kind: memory.Put, Content: []byte(text)}},
	})
	return err
}

func (w *world) actions(t *testing.T) map[string]int {
	t.Helper()
	events, _, err := w.AuditEvents(t.Context(), admin, "", service.Page{Size: 1000})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, e := range events {
		out[e.Action]++
	}
	return out
}

// TestGuardFailsClosed stores nothing that was not judged.
func TestGuardFailsClosed(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	if err := w.put("a.md", "fine"); err != nil {
		t.Fatal(err)
	}
	w.guard.broken = true
	err := w.put("b.md", "unknown")
	var known *memory.Error
	if err == nil || errors.As(err, &known) {
		t.Errorf("error %v, want an internal one", err)
	}
	if _, err := w.Get(t.Context(), writer, key, "b.md", 0); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("b.md: %v", err)
	}
}

// TestAllViolationsTogether tells everything that is wrong in one answer.
func TestAllViolationsTogether(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	w.guard.word = "walrus"
	_, err := w.Commit(t.Context(), writer, service.CommitRequest{Project: key, Changes: []memory.Change{
		{Path: "a.md", Kind: memory.Put, Content: []byte("a walrus")},
		{Path: "b.md", Kind: memory.Put, Content: []byte("bad \xff")},
		{Path: "c.md", Kind: memory.Put, Content: []byte("fine")},
		{Path: "CON.md", Kind: memory.Put, Content: []byte("x")},
	}})
	var e *memory.Error
	if !errors.As(err, &e) || len(e.Violations) != 3 || e.Reason != memory.ReasonSecretDetected {
		t.Fatalf("error %+v", e)
	}
	if strings.Contains(err.Error(), "walrus") {
		t.Error("the error carries the word")
	}
}

// TestRescanAfterRulesChanged judges what is stored again when the hub starts with
// other rules, once, old versions too.
func TestRescanAfterRulesChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := inmem.New(inmem.Options{})
		run := func(word, version string) map[string]int {
			w := newWorld(t, backend, service.Limits{})
			w.guard.word, w.guard.version = word, version
			if word == "" {
				for _, text := range []string{"the walrus", "clean"} {
					if err := w.put("a.md", text); err != nil {
						t.Fatal(err)
					}
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.Run(ctx)
			}()
			synctest.Wait()
			cancel()
			<-done
			return w.actions(t)
		}
		if n := run("", "v1")["guard.rescan.hit"]; n != 0 {
			t.Errorf("%d hits under the first rules", n)
		}
		if n := run("walrus", "v2")["guard.rescan.hit"]; n != 1 {
			t.Errorf("%d hits under new rules, want 1 in the old version", n)
		}
		if n := run("walrus", "v2")["guard.rescan.hit"]; n != 1 {
			t.Errorf("%d hits after another start with the same rules", n)
		}
	})
}

// TestRetention forgets what is older than the team's retention, on time, and keeps
// the newest.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{Retention: 90 * 24 * time.Hour})
		for i := range 3 {
			if err := w.put("a.md", fmt.Sprint("text ", i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.UpdateTeam(t.Context(), admin, service.Team{ID: "acme", Settings: service.TeamSettings{Retention: 48 * time.Hour}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		time.Sleep(47 * time.Hour)
		synctest.Wait()
		if _, err := w.Get(t.Context(), writer, key, "a.md", 1); err != nil {
			t.Errorf("within retention: %v", err)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if _, err := w.Get(t.Context(), writer, key, "a.md", 1); !errors.Is(err, memory.ErrRevisionCompacted) {
			t.Errorf("beyond retention: %v", err)
		}
		if m, err := w.Get(t.Context(), writer, key, "a.md", 0); err != nil || string(m.Content) != "text 2" {
			t.Errorf("the newest: %v, %v", m, err)
		}
		cancel()
		<-done
	})
}

// TestConflictsAreBounded drops the oldest over the bound, text and all.
func TestConflictsAreBounded(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{Conflicts: 3})
	if err := w.put("a.md", "x"); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := w.ReportConflict(t.Context(), writer, key, service.Conflict{Path: "a.md", Theirs: []byte(fmt.Sprint("mine ", i))}); err != nil {
			t.Fatal(err)
		}
	}
	list, next, err := w.Conflicts(t.Context(), writer, key, service.Page{Size: 2})
	if err != nil || len(list) != 2 || next == "" || string(list[0].Theirs) != "mine 2" {
		t.Fatalf("first page %v %q, %v", list, next, err)
	}
	list, next, err = w.Conflicts(t.Context(), writer, key, service.Page{Size: 2, Token: next})
	if err != nil || len(list) != 1 || next != "" || string(list[0].Theirs) != "mine 4" {
		t.Errorf("second page %v %q, %v", list, next, err)
	}
}

// TestAgentsAreBounded forgets who was seen longest ago.
func TestAgentsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{Agents: 50})
		if err := w.put("a.md", "x"); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			watch, err := w.Watch(t.Context(), writer, []service.WatchedProject{{Project: key}}, service.AgentInfo{ID: fmt.Sprint("agent-", i)})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			watch.Close()
		}
		agents, _, err := w.Agents(t.Context(), admin, "", service.Page{Size: 1000})
		if err != nil || len(agents) > 50 || agents[0].ID != "agent-199" || agents[0].Connected {
			t.Errorf("%d agents, %v", len(agents), err)
		}
	})
}

// TestWatchersAreBounded refuses a watch too many and takes one again when there is room.
func TestWatchersAreBounded(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{Watchers: 1})
	if err := w.put("a.md", "x"); err != nil {
		t.Fatal(err)
	}
	projects := []service.WatchedProject{{Project: key}}
	one, err := w.Watch(t.Context(), writer, projects, service.AgentInfo{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Watch(t.Context(), writer, projects, service.AgentInfo{}); !errors.Is(err, memory.ErrRateLimited) {
		t.Errorf("second watch: %v", err)
	}
	one.Close()
	two, err := w.Watch(t.Context(), writer, projects, service.AgentInfo{})
	if err != nil {
		t.Fatal(err)
	}
	two.Close()
}

// TestPolicyIsMadeOnce gives a team one fingerprint key, however many ask first.
func TestPolicyIsMadeOnce(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	if err := w.backend.CreateProject(t.Context(), key, time.Now()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	keys := make([]string, 20)
	for i := range keys {
		wg.Go(func() {
			p, err := w.GuardPolicy(context.Background(), writer, "acme")
			if err != nil || p.Version != 1 {
				t.Errorf("version %d, %v", p.Version, err)
			}
			keys[i] = string(p.FingerprintKey)
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != 32 || k != keys[0] {
			t.Fatal("the team has several keys")
		}
	}
}

// TestAdminActsAreOnRecord looks for each act in the audit log.
func TestAdminActsAreOnRecord(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.CreateTeam(ctx, admin, "acme")
	must(err)
	_, err = w.CreateProject(ctx, admin, key)
	must(err)
	must(w.put("a.md", "the walrus"))
	tok, _, err := w.CreateToken(ctx, admin, service.NewToken{Name: "n", Team: "acme", Role: service.Reader})
	must(err)
	must(w.RevokeToken(ctx, admin, tok.ID))
	p, err := w.GuardPolicy(ctx, admin, "acme")
	must(err)
	_, err = w.UpdateGuardPolicy(ctx, admin, "acme", p)
	must(err)
	_, err = w.UpdateTeam(ctx, admin, service.Team{ID: "acme"})
	must(err)
	_, err = w.Redact(ctx, admin, key, "a.md", nil, "leak")
	must(err)
	if err := w.PurgeProject(ctx, writer, key); !errors.Is(err, memory.ErrPermissionDenied) {
		t.Errorf("a writer's purge: %v", err)
	}
	must(w.PurgeProject(ctx, admin, key))
	got := w.actions(t)
	for _, action := range []string{"team.create", "project.create", "token.create", "token.revoke", "policy.update", "team.update", "redact", "project.purge", "project.purge.refused"} {
		if got[action] == 0 {
			t.Errorf("no %s in the audit log: %v", action, got)
		}
	}
}

// TestNamesInLists refuses what would make rows and columns of its own in a list, and
// makes neither team nor project for a name that it refuses.
func TestNamesInLists(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	ctx := t.Context()
	for _, name := range []string{"a\nb", "a\tb", "a\rb", "a\x1b[31m", "a\u2028b", "a\u202eb", "a\x00b"} {
		_, _, err := w.CreateToken(ctx, admin, service.NewToken{Name: name, Team: "new", Project: "app", Role: service.Reader})
		if !errors.Is(err, memory.ErrInvalidArgument) || !strings.Contains(err.Error(), "display_name: byte 1") {
			t.Errorf("token %q: %v, want it refused", name, err)
		}
		_, err = w.Redact(ctx, admin, key, "a.md", nil, name)
		if !errors.Is(err, memory.ErrInvalidArgument) || !strings.Contains(err.Error(), "reason: byte 1") {
			t.Errorf("reason %q: %v, want it refused", name, err)
		}
	}
	teams, _, err := w.Teams(ctx, admin, service.Page{})
	if err != nil || len(teams) != 0 {
		t.Errorf("teams %v (%v), want none", teams, err)
	}
}

// TestRedactAgain redacts what holds no text any more: it says so, and makes no revision
// and no event.
func TestRedactAgain(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.CreateProject(ctx, admin, key)
	must(err)
	must(w.put("a.md", "the walrus"))
	_, err = w.Redact(ctx, admin, key, "a.md", nil, "leak")
	must(err)
	info, err := w.Project(ctx, admin, key, memory.Cursor{})
	must(err)
	for _, tc := range []struct {
		name  string
		etags []memory.ETag
		want  string
	}{
		{"again", nil, "teams/acme/projects/app/memories/a.md: nothing redacted: no stored version holds a text any more"},
		{"another etag", []memory.ETag{memory.ETagOf([]byte("else"))}, "nothing redacted: no stored version has one of these etags"},
	} {
		_, err := w.Redact(ctx, admin, key, "a.md", tc.etags, "leak")
		if !errors.Is(err, memory.ErrNotFound) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
	after, err := w.Project(ctx, admin, key, memory.Cursor{})
	must(err)
	if after.Head != info.Head {
		t.Errorf("head %v, was %v: a revision about nothing", after.Head, info.Head)
	}
	if n := w.actions(t)["redact"]; n != 2 {
		t.Errorf("%d events of redactions, want the beginning and the end of one", n)
	}
}

// TestFindRedactedKnowsTextsAlone: whoever may read can ask about a text that he keeps, and
// about no secret that stood in one, which he could guess without it.
func TestFindRedactedKnowsTextsAlone(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	ctx := t.Context()
	const text = "nobody guesses this prose, but the walrus"
	if err := w.put("a.md", text); err != nil {
		t.Fatal(err)
	}
	w.guard.word = "walrus"
	if _, err := w.Redact(ctx, admin, key, "a.md", nil, "leak"); err != nil {
		t.Fatal(err)
	}
	policy, err := w.GuardPolicy(ctx, admin, "acme")
	if err != nil {
		t.Fatal(err)
	}
	print := func(text string) string { return memory.RedactionFingerprint(policy.FingerprintKey, []byte(text)) }
	// A hub before FindRedacted kept both kinds without a difference.
	if err := w.backend.ImportRedactions(ctx, "acme", []string{print("old"), "print-old"}); err != nil {
		t.Fatal(err)
	}
	asked := []string{"print-walrus", print("other"), print(text), print("old"), "print-old"}
	kept, err := w.backend.Redactions(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	found, err := w.FindRedacted(ctx, writer, key, append(asked, kept...))
	if want := []string{print(text), print(text)}; err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q (%v), want the text alone: %q", found, err, want)
	}
	w.guard.word = ""
	for _, text := range []string{text, "old"} {
		if err := w.put("b.md", text); !errors.Is(err, memory.ErrRedacted) {
			t.Errorf("%q comes back: %v", text, err)
		}
	}
}

// endingGuard ends the caller's time when it has to judge one of the paths.
type endingGuard struct {
	*wordGuard
	path string
	end  func()
}

func (g *endingGuard) Scan(p service.Policy, path string, content []byte) ([]service.Finding, error) {
	if path == g.path {
		g.end()
	}
	return g.wordGuard.Scan(p, path, content)
}

// endingStore ends with an error once a path was redacted.
type endingStore struct {
	*inmem.Store
	broken, gone bool
}

func (b *endingStore) Redact(ctx context.Context, req store.RedactRequest) (store.CommitResult, error) {
	res, err := b.Store.Redact(ctx, req)
	b.gone = b.broken && err == nil
	return res, err
}

func (b *endingStore) History(ctx context.Context, key memory.ProjectKey, after memory.Revision, n int, bytes int64) ([]memory.Commit, error) {
	if b.gone {
		return nil, errors.New("the disk is full")
	}
	return b.Store.History(ctx, key, after, n, bytes)
}

// TestRedactedThoughTimeIsOver: what a redaction did is answered and on record when the
// search for what remains does not end, or the redaction itself breaks off; asking again
// tells what is still served.
func TestRedactedThoughTimeIsOver(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for p, text := range map[string]string{"a.md": "the walrus one", "b.md": "the walrus two", "c.md": "the third walrus", "d.md": "fine"} {
		must(w.put(p, text))
	}
	w.guard.word = "walrus"
	record := func(want string) {
		t.Helper()
		events, _, err := w.AuditEvents(t.Context(), admin, "", service.Page{Size: 1})
		must(err)
		if e := events[0]; e.Action != "redact" || !strings.Contains(e.Detail, want) {
			t.Errorf("on record %+v, want %q", e, want)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	w.Guard = &endingGuard{w.guard, "b.md", end}
	res, err := w.Redact(ctx, admin, key, "a.md", nil, "leak")
	must(err)
	if r := res.Remaining; len(res.Rewritten) != 1 || res.Commit.Revision == 0 || len(r) == 0 || r[len(r)-1].Why != service.WhyNotKnown {
		t.Errorf("%+v, want a.md and that the rest is not known", res)
	}
	record("1 versions")
	w.Guard = w.guard
	again := func(path memory.Path, want ...memory.Path) {
		t.Helper()
		res, err := w.Redact(t.Context(), admin, key, path, nil, "leak")
		must(err)
		var got []memory.Path
		for _, r := range res.Remaining {
			if got = append(got, r.Path); r.Why != service.WhySameSecret {
				t.Errorf("%+v, want %q", r, service.WhySameSecret)
			}
		}
		if slices.Sort(got); res.Commit.Revision != 0 || len(res.Rewritten) > 0 || !slices.Equal(got, want) {
			t.Errorf("again: %+v, want only that %v remain", res, want)
		}
	}
	again("a.md", "b.md", "c.md")

	broken := &endingStore{Store: w.backend, broken: true}
	w.Backend = broken
	if _, err := w.Redact(t.Context(), admin, key, "b.md", nil, "leak"); err == nil {
		t.Error("no error from a broken disk")
	}
	record("ended early, ask again; revision 6; why: leak; 1 versions")
	broken.gone = false
	again("b.md", "c.md")
}

// TestConflictReportedAgainAfterImport: an import that takes a conflict over without its
// text, since the strict rules refuse it, does not keep the text out that is reported anew.
func TestConflictReportedAgainAfterImport(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.put("a.md", "hub's"))
	report := func(text string) service.Conflict {
		t.Helper()
		x, err := w.ReportConflict(ctx, writer, key, service.Conflict{Path: "a.md", Theirs: []byte(text)})
		must(err)
		return x
	}
	mine, other := report("mine"), report("other")
	name := "conflict/" + mine.ID
	_, version, err := w.backend.Setting(ctx, key.String(), name)
	must(err)
	doc, err := json.Marshal(map[string][]byte{"theirs": []byte(memory.RedactionMarker)}) // what the import writes
	must(err)
	must(w.backend.PutSetting(ctx, key.String(), name, doc, version))
	again, twice := report("mine"), report("mine")
	if again.ID == mine.ID || twice.ID != again.ID {
		t.Errorf("ids %s, then %s and %s; want a new one, once", mine.ID, again.ID, twice.ID)
	}
	list, _, err := w.Conflicts(ctx, writer, key, service.Page{Size: 100})
	must(err)
	if len(list) != 2 || list[0].ID != other.ID || string(list[1].Theirs) != "mine" {
		t.Errorf("listed %+v, want other and mine", list)
	}
	must(w.ResolveConflict(ctx, writer, key, again.ID))
	if err := w.ResolveConflict(ctx, writer, key, mine.ID); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("the hollow one: %v, want that it is gone", err)
	}
}
