package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

const plantedPassword = "Tr0ub4dor&3xK9"

// refusedAt checks that err is a refusal of a secret at the field, and that neither it
// nor anything that the hub keeps or logs holds the secret.
func refusedAt(t *testing.T, err error, field, secret string) {
	t.Helper()
	wantReason(t, err, memory.ReasonSecretDetected)
	e := wire.FromError(err)
	var domain *memory.Error
	if !errors.As(e, &domain) || len(domain.Violations) == 0 || domain.Violations[0].Path != field {
		t.Errorf("violations of %v, want one at %s", e, field)
	}
	if text := fmt.Sprint(status.Convert(err).Proto()); strings.Contains(text, secret) {
		t.Errorf("the answer repeats the secret at %s", field)
	}
}

// TestLabelsAreGuarded lets no secret in beside the memories: in a commit's message
// and author, a conflict's author, a redaction's reason, a token's name.
func TestLabelsAreGuarded(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	c, admin := as(t, h, h.Token("acme", "app", "writer")), as(t, h, h.AdminToken)
	c.mustCommit(t, put("a.md", "fine"))
	bad := "password: " + plantedPassword
	commit := func(message string, author *memsvcv1.Author) error {
		_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{
			Parent: project, Changes: []*memsvcv1.Change{put("b.md", "fine")}, Message: message, Author: author,
		})
		return err
	}
	refusedAt(t, commit(bad, nil), "message", plantedPassword)
	refusedAt(t, commit("", &memsvcv1.Author{Machine: bad}), "author.machine", plantedPassword)
	refusedAt(t, commit("", &memsvcv1.Author{Client: bad}), "author.client", plantedPassword)
	refusedAt(t, commit("", &memsvcv1.Author{Session: bad}), "author.session", plantedPassword)
	for _, hostile := range []string{"a\x00b", "\x1b]0;title\a", "\x1b[2J", "a\u202eb", "a\u2066b", "a\U000e0041", "\u009b31m"} {
		wantReason(t, commit(hostile, nil), memory.ReasonInvalidArgument)
		wantReason(t, commit("", &memsvcv1.Author{Machine: hostile}), memory.ReasonInvalidArgument)
	}

	_, err := c.RestoreMemories(c.ctx(t), &memsvcv1.RestoreMemoriesRequest{Parent: project, Revision: 0, Author: &memsvcv1.Author{Session: bad}})
	refusedAt(t, err, "author.session", plantedPassword)
	_, err = c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{
		Path: "a.md", Theirs: note("x"), Author: &memsvcv1.Author{Machine: bad}}})
	refusedAt(t, err, "author.machine", plantedPassword)
	_, err = c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{Path: "a.md", Theirs: note(bad)}})
	refusedAt(t, err, "a.md", plantedPassword)
	_, err = admin.RedactMemory(admin.ctx(t), &memsvcv1.RedactMemoryRequest{Name: project + "/memories/a.md", Reason: bad})
	refusedAt(t, err, "reason", plantedPassword)
	_, err = admin.CreateToken(admin.ctx(t), &memsvcv1.CreateTokenRequest{DisplayName: bad, TeamId: "acme", Role: memsvcv1.Role_ROLE_READER})
	refusedAt(t, err, "display_name", plantedPassword)

	req, err := http.NewRequest(http.MethodPut, "http://"+h.HTTPAddr+"/v1/"+project+"/memories/b.md?message="+url.QueryEscape(bad), strings.NewReader("fine\n"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "text/markdown")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	if res.StatusCode != http.StatusBadRequest || strings.Contains(string(body), plantedPassword) {
		t.Errorf("REST: %s %s", res.Status, body)
	}
	// What says nothing of a secret goes through.
	if err := commit("sync", &memsvcv1.Author{Machine: "laptop-7", Client: "memsvc/1.2.3", Session: "0b9f7c1e-3a52-4d77-9c0e-5a1f2b3c4d5e"}); err != nil {
		t.Errorf("plain labels: %v", err)
	}
	nowhere(t, h, plantedPassword)
}

// TestSecretFileNames refuses a memory whose name is a secret without telling the name.
func TestSecretFileNames(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	c := as(t, h, h.Token("acme", "app", "writer"))
	c.mustCommit(t, put("a.md", "fine"))
	secret := fakeSecret(1)
	for what, change := range map[string]*memsvcv1.Change{
		"a plain text":    put(secret+".md", "fine"),
		"a secret text":   put(secret+".md", "token: "+fakeSecret(2)),
		"no text":         {Path: secret + ".md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte("bad \xff")}}},
		"an invalid name": put(secret+".txt", "fine"),
	} {
		_, err := c.commit(t, change)
		if err == nil {
			t.Errorf("%s: taken", what)
		}
		if text := fmt.Sprint(status.Convert(err).Proto()); strings.Contains(text, secret[:12]) {
			t.Errorf("%s: the refusal tells the name: %s", what, text)
		}
	}
	_, err := c.ReportConflict(c.ctx(t), &memsvcv1.ReportConflictRequest{Parent: project, Conflict: &memsvcv1.Conflict{Path: secret + ".md", Theirs: note("x")}})
	wantReason(t, err, memory.ReasonSecretDetected)
	if text := fmt.Sprint(status.Convert(err).Proto()); strings.Contains(text, secret[:12]) {
		t.Errorf("conflict: the refusal tells the name: %s", text)
	}
	nowhere(t, h, secret)
}

// nowhere checks that the hub's log, its audit log and its files do not hold the texts.
func nowhere(t *testing.T, h *hubtest.Hub, texts ...string) {
	t.Helper()
	admin := as(t, h, h.AdminToken)
	events, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{PageSize: 1000})
	if err != nil || len(events.GetEvents()) == 0 {
		t.Fatal(events, err)
	}
	h.Stop()
	log := h.Log.String()
	for _, text := range texts {
		for _, ev := range events.GetEvents() {
			if strings.Contains(ev.String(), text) {
				t.Errorf("the audit log holds the text, under %s", ev.GetAction())
				break
			}
		}
		if i := strings.Index(log, text); i >= 0 {
			t.Errorf("the log holds the text: %.200q", log[strings.LastIndexByte(log[:i], '\n')+1:])
		}
	}
	err = filepath.WalkDir(h.DataDir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		held, err := os.ReadFile(name)
		for _, text := range texts {
			if i := bytes.Index(held, []byte(text)); i >= 0 {
				t.Errorf("%s holds %s, after %q", filepath.Base(name), text, held[max(0, i-60):i])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
