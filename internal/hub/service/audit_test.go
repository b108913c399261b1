package service_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
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

func (noRecord) AppendAudit(context.Context, store.AuditEvent) error { return errNoRecord }

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
