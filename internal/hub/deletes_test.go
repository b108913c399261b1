package hub_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// TestWhatGoesLeavesNoText names secrets where a commit only takes away: in the paths of
// deletes, in the sources of renames, and beside them in the id of the request. What is
// not there leaves no trace, and no answer repeats it.
func TestWhatGoesLeavesNoText(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	c := as(t, h, h.Token("acme", "app", "writer"))
	c.mustCommit(t, put("a.md", "fine"), put("b.md", "fine, too"))
	var secrets []string
	for n, secret := range []string{fakeSecret(9001), fakeSecret(9002)} {
		secrets = append(secrets, secret)
		path := secret + ".md"
		gone := func(p *memsvcv1.Precondition) *memsvcv1.Change {
			return &memsvcv1.Change{Path: path, Precondition: p, Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}}
		}
		renamed := func(to string) *memsvcv1.Change {
			return &memsvcv1.Change{Path: to, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: note("moved " + fmt.Sprint(n)), RenamedFrom: path}}}
		}
		etag := &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: strings.Repeat("ab", 32)}}
		absent := &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_MustNotExist{MustNotExist: true}}
		for what, changes := range map[string][]*memsvcv1.Change{
			"a delete":                   {gone(nil)},
			"a delete of an etag":        {gone(etag)},
			"a delete of nothing":        {gone(absent)},
			"a delete beside an edit":    {gone(nil), put("a.md", fmt.Sprint("fine again ", n))},
			"twice":                      {gone(nil), gone(nil)},
			"a rename":                   {renamed("c.md"), gone(nil)},
			"a rename without a delete":  {renamed("d.md")},
			"a rename over another":      {renamed("b.md"), gone(etag)},
			"a rename with its own text": {renamed(path), gone(nil)},
		} {
			for _, only := range []bool{true, false} {
				_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: project, Changes: changes, ValidateOnly: only, RequestId: secret + what[2:]})
				if text := fmt.Sprint(status.Convert(err).Proto()); strings.Contains(text, secret) {
					t.Errorf("%s: the answer repeats the secret: %s", what, text)
				}
			}
		}
		req, err := http.NewRequest(http.MethodDelete, "http://"+h.HTTPAddr+"/v1/"+project+"/memories/"+url.PathEscape(path)+"?requestId="+url.QueryEscape(secret), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+h.Token("acme", "app", "writer"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if cerr := resp.Body.Close(); cerr != nil {
			t.Fatal(cerr)
		}
		if err != nil || strings.Contains(string(body), secret) {
			t.Errorf("DELETE repeats the secret: %v, %s", err, body)
		}
	}
	list, err := c.ListCommits(c.ctx(t), &memsvcv1.ListCommitsRequest{Parent: project})
	if err != nil {
		t.Fatal(err)
	}
	memories, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project, ShowDeleted: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if strings.Contains(list.String()+memories.String(), secret) {
			t.Errorf("commits or memories show %s", secret)
		}
	}
	nowhere(t, h, secrets...)
}

// TestASecretNameMayGo deletes and renames a memory whose name became a secret when the
// rules learned it, and nothing else of that name.
func TestASecretNameMayGo(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	admin, c := as(t, h, h.AdminToken), as(t, h, h.Token("acme", "app", "writer"))
	first, err := admin.GetGuardPolicy(admin.ctx(t), &memsvcv1.GetGuardPolicyRequest{Name: "teams/acme/guardPolicy"})
	if err != nil {
		t.Fatal(err)
	}
	version := first.GetPolicy().GetVersion()
	policy := func(rules ...string) {
		t.Helper()
		p, err := admin.UpdateGuardPolicy(admin.ctx(t), &memsvcv1.UpdateGuardPolicyRequest{
			Policy: &memsvcv1.GuardPolicy{Name: "teams/acme/guardPolicy", Version: version, AllowedRules: rules},
		})
		if err != nil {
			t.Fatal(err)
		}
		version = p.GetPolicy().GetVersion()
	}
	one, two := fakeSecret(9003)+".md", fakeSecret(9004)+".md"
	policy("github-pat")
	c.mustCommit(t, put(one, "fine"), put(two, "fine, too"))
	policy()
	gone := func(path string) *memsvcv1.Change {
		return &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}}
	}
	if _, err := c.commit(t, gone(one)); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	moved := &memsvcv1.Change{Path: "moved.md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte("fine, too"), RenamedFrom: two}}}
	if _, err := c.commit(t, gone(two), moved); err != nil {
		t.Errorf("it cannot be renamed: %v", err)
	}
	if _, err := c.commit(t, gone(one)); err != nil {
		t.Errorf("once more: %v", err)
	}
	_, err = c.commit(t, gone(fakeSecret(9005)+".md"))
	wantReason(t, err, memory.ReasonSecretDetected)
}

// TestSecretsInIndexLines refuses an index for a line that holds a secret: in its hook,
// its title, its target, in a comment; and says which.
func TestSecretsInIndexLines(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{SQLite: true})
	c := as(t, h, h.Token("acme", "app", "writer"))
	c.mustCommit(t, put("a.md", "fine"))
	secret := fakeSecret(9010)
	for what, line := range map[string]string{
		"hook":          "- [B](b.md) — clone with " + secret,
		"title":         "- [" + secret + "](b.md) — the bot",
		"target":        "- [B](" + secret + ".md) — the bot",
		"comment":       "<!-- " + secret + " -->",
		"hook password": "- [Grafana](g.md) — admin, password: " + plantedPassword,
	} {
		for _, path := range []string{"MEMORY.md", "ops/MEMORY.md"} {
			change := &memsvcv1.Change{Path: path, Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte("# Index\n- [A](a.md) — fine\n" + line + "\n")}}}
			_, err := c.commit(t, change)
			wantReason(t, err, memory.ReasonSecretDetected)
			var e *memory.Error
			if !errors.As(wire.FromError(err), &e) || len(e.Violations) == 0 || e.Violations[0].Line != 3 || e.Violations[0].Path != path {
				t.Errorf("%s in %s: %+v, want line 3", what, path, e)
			}
		}
	}
	// What is local stays so: the hub takes no file of this name.
	_, err := c.commit(t, put(".memsyncignore", "fine"))
	wantReason(t, err, memory.ReasonInvalidPath)
	nowhere(t, h, secret, plantedPassword)
}

// TestLongRequestIDs bounds what makes a retry harmless.
func TestLongRequestIDs(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	c := as(t, h, h.Token("acme", "app", "writer"))
	_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("a.md", "fine")}, RequestId: strings.Repeat("r", 129)})
	wantReason(t, err, memory.ReasonInvalidArgument)
}
