package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestDeniedSaysWhatLacks tells a role that is too low from a scope that is too narrow.
func TestDeniedSaysWhatLacks(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	ctx := t.Context()
	if _, err := w.CreateProject(ctx, admin, key); err != nil {
		t.Fatal(err)
	}
	team := service.Call{Principal: service.Principal{Name: "token:t", Team: "acme", Role: service.Admin}}
	project := service.Call{Principal: service.Principal{Name: "token:p", Team: "acme", Project: "app", Role: service.Admin}}
	for name, tc := range map[string]struct {
		act  func() error
		want string
	}{
		"export of the hub": {func() error { return w.Export(ctx, team, "", io.Discard) }, "the hub: this needs the role admin of all of it, the token has it of teams/acme only"},
		"token of the hub": {func() error {
			_, _, err := w.CreateToken(ctx, team, service.NewToken{Name: "n", Role: service.Reader})
			return err
		}, "the hub: this needs the role admin of all of it, the token has it of teams/acme only"},
		"import": {func() error { _, err := w.Import(ctx, team, strings.NewReader("")); return err }, "the hub: this needs the role admin of all of it, the token has it of teams/acme only"},
		"audit of a project's admin": {func() error { _, _, err := w.AuditEvents(ctx, project, "", service.Page{}); return err },
			"teams/acme: this needs the role admin of all of it, the token has it of teams/acme/projects/app only"},
		"agents of a project's admin": {func() error { _, _, err := w.Agents(ctx, project, "", service.Page{}); return err },
			"teams/acme: this needs the role admin of all of it, the token has it of teams/acme/projects/app only"},
		"a writer": {func() error { return w.PurgeProject(ctx, writer, key) }, "teams/acme/projects/app: this needs the role admin, the token has writer"},
	} {
		if err := tc.act(); !errors.Is(err, memory.ErrPermissionDenied) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// TestWholeHubHasOneName records exports of the hub under the name that backups and
// imports of it have.
func TestWholeHubHasOneName(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	w.Archive = noArchive{}
	if err := w.Export(t.Context(), admin, "", io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := w.Export(t.Context(), writer, "", io.Discard); !errors.Is(err, memory.ErrPermissionDenied) {
		t.Fatal(err)
	}
	for _, e := range w.events(t) {
		if e.Subject != "the hub" {
			t.Errorf("%s of %q, want the hub", e.Action, e.Subject)
		}
	}
}

// events is the audit log, newest first.
func (w *world) events(t *testing.T) []store.AuditEvent {
	t.Helper()
	events, _, err := w.AuditEvents(t.Context(), admin, "", service.Page{Size: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// noArchive moves nothing.
type noArchive struct{ service.Archiver }

func (noArchive) Export(context.Context, memory.Team, memory.Project, bool, io.Writer) error {
	return nil
}

// noRecord is a store whose audit log cannot be written: what is to be on record with it
// fails, and so does what is recorded alone.
type noRecord struct{ *inmem.Store }

var errNoRecord = errors.New("disk full")

func refuseRecord(on []store.AuditEvent) error {
	if len(on) > 0 {
		return errNoRecord
	}
	return nil
}

func (noRecord) AppendAudit(context.Context, store.AuditEvent) (int64, error) { return 0, errNoRecord }

func (n noRecord) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	if err := refuseRecord(on); err != nil {
		return err
	}
	return n.Store.CreateProject(ctx, key, now)
}

func (n noRecord) PurgeProject(ctx context.Context, key memory.ProjectKey, on ...store.AuditEvent) error {
	if err := refuseRecord(on); err != nil {
		return err
	}
	return n.Store.PurgeProject(ctx, key)
}

func (n noRecord) PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...store.AuditEvent) error {
	if err := refuseRecord(on); err != nil {
		return err
	}
	return n.Store.PutSetting(ctx, scope, name, doc, version)
}

func (n noRecord) PutToken(ctx context.Context, t store.Token, on ...store.AuditEvent) error {
	if err := refuseRecord(on); err != nil {
		return err
	}
	return n.Store.PutToken(ctx, t)
}

func (n noRecord) RevokeToken(ctx context.Context, id string, at time.Time, on ...store.AuditEvent) error {
	if err := refuseRecord(on); err != nil {
		return err
	}
	return n.Store.RevokeToken(ctx, id, at)
}

// TestNoActWithoutRecord tries every act of an administrator while nothing can be put on
// record: none succeeds, and none has done anything. What is to be refused is refused all
// the same, and counted as lost to the record.
func TestNoActWithoutRecord(t *testing.T) {
	backend := inmem.New(inmem.Options{})
	before := newWorld(t, backend, service.Limits{})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := before.CreateProject(ctx, admin, key)
	must(err)
	must(before.put("a.md", "the walrus"))
	tok, _, err := before.CreateToken(ctx, admin, service.NewToken{Name: "n", Team: "acme", Role: service.Reader})
	must(err)
	policy, err := before.GuardPolicy(ctx, admin, "acme")
	must(err)
	events := len(before.events(t))

	feed := changefeed.New(backend, changefeed.Options{})
	t.Cleanup(feed.Close)
	lost := &counts{commits: map[string]int{}}
	s := service.New(service.Config{
		Backend: noRecord{backend}, Feed: feed, Guard: &wordGuard{version: "v1"}, Observer: lost, TempDir: t.TempDir(),
		Now: func() time.Time { return time.Now().UTC() }, Archive: noArchive{},
		MintToken: func() (string, string, string, error) { return "text", "id", "hash", nil },
	})
	state := func() []any {
		t.Helper()
		projects, err := backend.Projects(ctx, "")
		must(err)
		tokens, err := backend.Tokens(ctx, "")
		must(err)
		teams, _, err := before.Teams(ctx, admin, service.Page{})
		must(err)
		memories, err := backend.List(ctx, key, store.ListOptions{Content: true, Deleted: true})
		must(err)
		policy, version, err := backend.Setting(ctx, "acme", "guard-policy")
		must(err)
		settings, settingsVersion, err := backend.Setting(ctx, "acme", "team")
		must(err)
		epoch, err := backend.Epoch(ctx)
		must(err)
		return []any{projects, tokens, teams, memories, policy, version, settings, settingsVersion, epoch}
	}
	want := state()
	for name, act := range map[string]func() error{
		"team create": func() error { _, err := s.CreateTeam(ctx, admin, "beta"); return err },
		"team set":    func() error { _, err := s.UpdateTeam(ctx, admin, service.Team{ID: "acme"}); return err },
		"project create": func() error {
			_, err := s.CreateProject(ctx, admin, memory.ProjectKey{Team: "acme", Project: "p"})
			return err
		},
		"project purge": func() error { return s.PurgeProject(ctx, admin, key) },
		"policy set":    func() error { _, err := s.UpdateGuardPolicy(ctx, admin, "acme", policy); return err },
		"token revoke":  func() error { return s.RevokeToken(ctx, admin, tok.ID) },
		"first token":   func() error { return s.Bootstrap(ctx, "hash") },
		"token create": func() error {
			_, _, err := s.CreateToken(ctx, admin, service.NewToken{Name: "n", Role: service.Reader})
			return err
		},
		"token of a new project": func() error {
			_, _, err := s.CreateToken(ctx, admin, service.NewToken{Name: "n", Team: "t", Project: "p", Role: service.Reader})
			return err
		},
		"export": func() error { return s.Export(ctx, admin, "", io.Discard) },
		"redact": func() error { _, err := s.Redact(ctx, admin, key, "a.md", nil, "leak"); return err },
		"import": func() error { _, err := s.Import(ctx, admin, strings.NewReader("")); return err },
	} {
		if err := act(); !errors.Is(err, errNoRecord) {
			t.Errorf("%s: %v, want it to fail for want of a record", name, err)
		}
		if d := cmp.Diff(want, state()); d != "" {
			t.Fatalf("%s was done off the record (-before +after):\n%s", name, d)
		}
	}
	if n := len(before.events(t)); n != events {
		t.Errorf("%d events, were %d", n, events)
	}
	if err := s.PurgeProject(ctx, writer, key); !errors.Is(err, memory.ErrPermissionDenied) {
		t.Errorf("a writer's purge: %v", err)
	}
	if lost.lost != 1 {
		t.Errorf("%d refusals counted as lost to the record, want 1", lost.lost)
	}
}

// clock is a hub's time, set by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClockedWorld(t *testing.T, limits service.Limits) (*world, *clock) {
	w := newWorld(t, inmem.New(inmem.Options{}), limits)
	c := &clock{now: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
	w.Now = c.Now
	if _, err := w.CreateProject(t.Context(), admin, key); err != nil {
		t.Fatal(err)
	}
	return w, c
}

// rows is what is in the store, without what the service has yet to write.
func (w *world) rows(t *testing.T) []store.AuditEvent {
	t.Helper()
	events, err := w.backend.AuditEvents(t.Context(), "", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

var reader = service.Call{Principal: service.Principal{Name: "token:r", Team: "acme", Role: service.Reader}, RequestID: "q-1"}

// TestEqualRefusalsAreOneEvent counts equal refusals of one principal within an hour in
// one event, and begins another one after it, or for another principal.
func TestEqualRefusalsAreOneEvent(t *testing.T) {
	w, clock := newClockedWorld(t, service.Limits{})
	begin := clock.Now()
	purge := func(c service.Call, n int) {
		t.Helper()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := w.PurgeProject(t.Context(), c, key); !errors.Is(err, memory.ErrPermissionDenied) {
					t.Errorf("purge: %v", err)
				}
			})
		}
		wg.Wait()
	}
	purge(reader, 300)
	clock.move(59 * time.Minute)
	purge(reader, 1)
	purge(writer, 1)
	clock.move(2 * time.Minute)
	purge(reader, 1)
	var got []string
	for _, e := range w.events(t) {
		if e.Action == "project.purge.refused" {
			last := time.Duration(0)
			if !e.LastTime.IsZero() {
				last = e.LastTime.Sub(begin)
			}
			got = append(got, fmt.Sprint(e.Principal, " ", e.Count, " from ", e.Time.Sub(begin), " to ", last, " ", e.Detail))
		}
	}
	want := []string{
		"token:r 1 from 1h1m0s to 0s PERMISSION_DENIED",
		"token:w 1 from 59m0s to 0s PERMISSION_DENIED",
		"token:r 301 from 0s to 59m0s PERMISSION_DENIED",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestRefusalsAreBounded lets nobody fill the audit log, however different what they ask
// for: not a token, and not a crowd of identities that no rule knows.
func TestRefusalsAreBounded(t *testing.T) {
	w, _ := newClockedWorld(t, service.Limits{})
	before := len(w.rows(t))
	for i := range 3000 {
		_, err := w.Project(t.Context(), reader, memory.ProjectKey{Team: "rival", Project: memory.Project(fmt.Sprint("p", i))}, memory.Cursor{})
		if !errors.Is(err, memory.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if n := len(w.rows(t)) - before; n > 110 {
		t.Errorf("3,000 different refusals of one token made %d events", n)
	}
	middle := len(w.rows(t))
	for i := range 3000 {
		c := service.Call{Principal: service.Principal{Name: fmt.Sprint("oidc:ci:", i)}}
		w.RefusedCall(t.Context(), c, "MemoryService/GetProject", &memory.Error{Reason: memory.ReasonPermissionDenied})
	}
	if n := len(w.rows(t)) - middle; n > 110 {
		t.Errorf("3,000 strangers made %d events", n)
	}
	last := len(w.rows(t))
	everywhere := service.Call{Principal: service.Principal{Name: "token:e", Role: service.Reader}}
	for i := range 3000 {
		err := w.PurgeProject(t.Context(), everywhere, memory.ProjectKey{Team: memory.Team(fmt.Sprint("t", i)), Project: "p"})
		if !errors.Is(err, memory.ErrPermissionDenied) {
			t.Fatal(err)
		}
	}
	if n := len(w.rows(t)) - last; n > 110 {
		t.Errorf("3,000 refusals in different teams made %d events", n)
	}
	counted := map[string]int64{}
	for _, e := range w.events(t) {
		counted[e.Action] += e.Count
	}
	for _, action := range []string{"project.get.refused", "call.refused", "project.purge.refused"} {
		if counted[action] != 3000 {
			t.Errorf("%s: counted %d, want 3000: none is to be missing", action, counted[action])
		}
	}
	// Nor is a crowd of odd refusals of a token anybody else's of the same name.
	for i, other := range []service.Principal{
		{Name: reader.Principal.Name, Team: "rival", Role: service.Reader},
		{Name: reader.Principal.Name, Team: reader.Principal.Team, Role: service.Reader, TokenID: "another"},
	} {
		if err := w.PurgeProject(t.Context(), service.Call{Principal: other}, memory.ProjectKey{Team: other.Team, Project: "p"}); !errors.Is(err, memory.ErrPermissionDenied) {
			t.Fatal(err)
		}
		if e := w.rows(t)[0]; e.Subject == "others" || e.Team != other.Team {
			t.Errorf("%d: the newest event is %+v, want who, where and what", i, e)
		}
	}
	// Who did nothing before is on record whole.
	if err := w.PurgeProject(t.Context(), writer, key); !errors.Is(err, memory.ErrPermissionDenied) {
		t.Fatal(err)
	}
	if e := w.rows(t)[0]; e.Principal != "token:w" || e.Subject != key.String() {
		t.Errorf("the newest event is %+v", e)
	}
}

// noRepeat is a store that cannot count events for a while.
type noRepeat struct {
	*inmem.Store
	broken *atomic.Bool
}

func (n noRepeat) RepeatAudit(ctx context.Context, id, times int64, last time.Time) error {
	if n.broken.Load() {
		return errNoRecord
	}
	return n.Store.RepeatAudit(ctx, id, times, last)
}

// TestCountsAreWritten writes counts when the hub ends, and keeps those that could not be
// written, or counts them as lost.
func TestCountsAreWritten(t *testing.T) {
	w, clock := newClockedWorld(t, service.Limits{})
	broken := new(atomic.Bool)
	w.Backend = noRepeat{w.backend, broken}
	refuse := func(n int) {
		for range n {
			_ = w.PurgeProject(t.Context(), reader, key)
		}
	}
	count := func() int64 { return w.rows(t)[0].Count }
	run := func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.Run(ctx)
	}
	refuse(5)
	if count() != 1 {
		t.Fatalf("count %d before anything was written", count())
	}
	run()
	if count() != 5 {
		t.Errorf("count %d after the end, want 5", count())
	}
	broken.Store(true)
	refuse(3)
	w.events(t)
	clock.move(2 * time.Hour) // its span ends meanwhile
	broken.Store(false)
	w.events(t)
	if count() != 8 {
		t.Errorf("count %d once it could be written, want 8", count())
	}
	refuse(3)
	broken.Store(true)
	run()
	if w.counts.lost != 2 {
		t.Errorf("%d counted as lost, want 2", w.counts.lost)
	}
}

// slowRepeat is a store that takes its time to count an event.
type slowRepeat struct {
	*inmem.Store
	open <-chan struct{}
}

func (s slowRepeat) RepeatAudit(ctx context.Context, id, times int64, last time.Time) error {
	<-s.open
	return s.Store.RepeatAudit(ctx, id, times, last)
}

// TestCountsBeingWrittenAreShown reads the audit log while counts are written: it shows
// them.
func TestCountsBeingWrittenAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newClockedWorld(t, service.Limits{})
		open := make(chan struct{})
		w.Backend = slowRepeat{w.backend, open}
		for range 3 {
			_ = w.PurgeProject(t.Context(), reader, key)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		var wg sync.WaitGroup
		wg.Go(func() { w.Run(ended) }) // its end writes the counts
		synctest.Wait()
		wg.Go(func() {
			events, _, err := w.AuditEvents(t.Context(), admin, "", service.Page{})
			if err != nil || events[0].Count != 3 {
				t.Errorf("%+v, %v: want a count of 3", events, err)
			}
		})
		synctest.Wait()
		close(open)
		wg.Wait()
	})
}

// TestAuditLogHasARetention forgets old events with the same job that compacts history.
func TestAuditLogHasARetention(t *testing.T) {
	for _, tc := range []struct {
		limits service.Limits
		kept   time.Duration
	}{
		{service.Limits{}, 400 * 24 * time.Hour},
		{service.Limits{AuditRetention: 48 * time.Hour}, 48 * time.Hour},
	} {
		w, clock := newClockedWorld(t, tc.limits)
		clock.move(tc.kept)
		if err := w.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.rows(t)); n != 1 {
			t.Errorf("%v: %d events when the retention ends, want the one", tc.kept, n)
		}
		clock.move(time.Second)
		if err := w.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.rows(t)); n != 0 || w.counts.trimmed != 1 {
			t.Errorf("%v: %d events past the retention, %d trimmed, want none and 1", tc.kept, n, w.counts.trimmed)
		}
	}
}

// oneEvent is a store whose audit log takes one event and no more.
type oneEvent struct {
	*inmem.Store
	left *atomic.Int64
}

func (o oneEvent) AppendAudit(ctx context.Context, ev store.AuditEvent) (int64, error) {
	if o.left.Add(-1) < 0 {
		return 0, errNoRecord
	}
	return o.Store.AppendAudit(ctx, ev)
}

// TestDoneThoughItsEndIsNotOnRecord says that a redaction was done when it was: its
// beginning is on record, with the reason, and that its end is not is counted.
func TestDoneThoughItsEndIsNotOnRecord(t *testing.T) {
	w, _ := newClockedWorld(t, service.Limits{})
	if err := w.put("a.md", "the walrus"); err != nil {
		t.Fatal(err)
	}
	left := new(atomic.Int64)
	left.Store(1)
	w.Backend = oneEvent{w.backend, left}
	if _, err := w.Redact(t.Context(), admin, key, "a.md", nil, "it leaked"); err != nil {
		t.Fatalf("redact: %v", err)
	}
	if e := w.rows(t)[0]; e.Action != "redact" || e.Detail != "begun; why: it leaked" || w.counts.lost != 1 {
		t.Errorf("%+v on record, %d lost, want the beginning and 1", e, w.counts.lost)
	}
}
