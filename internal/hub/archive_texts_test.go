package hub_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/archive"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// foreign is the archive of a hub that guarded nothing.
func foreign(t *testing.T, change func(t *testing.T, b *inmem.Store, key memory.ProjectKey)) []byte {
	t.Helper()
	b := inmem.New(inmem.Options{})
	key := memory.ProjectKey{Team: "acme", Project: "moved"}
	if err := b.CreateProject(t.Context(), key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	change(t, b, key)
	var out bytes.Buffer
	if err := archive.Export(t.Context(), b, &out, archive.Scope{Tokens: true}, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func foreignCommit(path, text, message string, author memory.Author) func(*testing.T, *inmem.Store, memory.ProjectKey) {
	return func(t *testing.T, b *inmem.Store, key memory.ProjectKey) {
		t.Helper()
		_, err := b.Commit(t.Context(), store.CommitRequest{Project: key, Now: time.Unix(2, 0), Author: author, Message: message,
			Changes: []memory.Change{{Path: memory.Path(path), Kind: memory.Put, Content: note(text)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func foreignSetting(scope, name string, doc any) func(*testing.T, *inmem.Store, memory.ProjectKey) {
	return func(t *testing.T, b *inmem.Store, _ memory.ProjectKey) {
		t.Helper()
		text, err := json.Marshal(doc)
		if err == nil {
			err = b.PutSetting(t.Context(), scope, name, text, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// importArchive sends an archive to the hub.
func importArchive(t *testing.T, c caller, text []byte) error {
	t.Helper()
	stream, err := c.ImportArchive(c.ctx(t))
	if err != nil {
		return err
	}
	if err := stream.Send(&memsvcv1.ImportArchiveRequest{Chunk: text}); err != nil && err != io.EOF { //nolint:errorlint // as Send documents
		return err
	}
	_, err = stream.CloseAndRecv()
	return err
}

// TestArchivesAreGuarded imports archives with a secret in every kind of text: words
// are left out, names refuse the archive, and contents are judged by this hub's rules,
// whatever the archive says that they were judged by.
func TestArchivesAreGuarded(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	admin := as(t, h, h.AdminToken)
	secret, bad := fakeSecret(77), "password: "+plantedPassword
	for name, text := range map[string][]byte{
		"message":            foreign(t, foreignCommit("a.md", "x", bad, memory.Author{Principal: "p"})),
		"author":             foreign(t, foreignCommit("a.md", "x", "", memory.Author{Principal: bad, Machine: secret, Client: bad, Session: secret})),
		"a terminal's words": foreign(t, foreignCommit("a.md", "x", "\x1b[2J"+plantedPassword, memory.Author{})),
		"token": foreign(t, func(t *testing.T, b *inmem.Store, _ memory.ProjectKey) {
			if err := b.PutToken(t.Context(), store.Token{ID: "tok-1", Name: bad, Hash: strings.Repeat("a", 64), Role: "reader"}); err != nil {
				t.Fatal(err)
			}
		}),
		"conflict":        foreign(t, foreignSetting("teams/acme/projects/moved", "conflicts", []service.Conflict{{ID: "1", Path: "a.md", Author: memory.Author{Machine: bad}}})),
		"conflict's text": foreign(t, foreignSetting("teams/acme/projects/moved", "conflict/1", map[string][]byte{"theirs": note(bad)})),
	} {
		if err := importArchive(t, admin, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := admin.PurgeProject(admin.ctx(t), &memsvcv1.PurgeProjectRequest{Name: "teams/acme/projects/moved"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string][]byte{
		"path":    foreign(t, foreignCommit(secret+".md", "x", "", memory.Author{})),
		"rules":   foreign(t, foreignSetting("acme", "guard-policy", service.Policy{RulesTOML: []byte("# " + secret + "\n")})),
		"setting": foreign(t, foreignSetting("acme", "of-tomorrow", map[string]string{"note": bad})),
		"project": foreign(t, func(t *testing.T, b *inmem.Store, _ memory.ProjectKey) {
			if err := b.CreateProject(t.Context(), memory.ProjectKey{Team: "acme", Project: "glpat-r3se2a2hhb45bc808lps"}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}),
	} {
		err := importArchive(t, admin, text)
		if st := status.Convert(err); err == nil || wire.ReasonOf(st) != memory.ReasonSecretDetected {
			t.Errorf("%s: %v, want it refused", name, err)
		}
		if _, err := admin.GetProject(admin.ctx(t), &memsvcv1.GetProjectRequest{Name: "teams/acme/projects/moved"}); err == nil {
			t.Errorf("%s: something was written", name)
		}
	}
	nowhere(t, h, secret, plantedPassword, "glpat-r3se2a2hhb45bc808lps")
}

// TestImportedContentsAreJudged imports a memory with a secret, and a record that says
// it was judged: it is on the audit log, without the secret.
func TestImportedContentsAreJudged(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	admin := as(t, h, h.AdminToken)
	// The team is there and judged already.
	as(t, h, h.Token("acme", "app", "writer")).mustCommit(t, put("a.md", "x"))
	text := foreign(t, func(t *testing.T, b *inmem.Store, key memory.ProjectKey) {
		foreignCommit("a.md", "password: "+plantedPassword, "", memory.Author{})(t, b, key)
		foreignSetting("acme", "guard-rules", map[string]any{"version": "judged", "policy": 1})(t, b, key)
	})
	if err := importArchive(t, admin, text); err != nil {
		t.Fatal(err)
	}
	hubtest.Eventually(t, patience, "the finding is on record", func() bool {
		events, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{PageSize: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events.GetEvents() {
			if strings.Contains(ev.String(), plantedPassword) {
				t.Fatal("the record holds the secret")
			}
			if ev.GetAction() == "guard.rescan.hit" && ev.GetSubject() == "teams/acme/projects/moved/memories/a.md" {
				return true
			}
		}
		return false
	})
}
