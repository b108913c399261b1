package service_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

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
