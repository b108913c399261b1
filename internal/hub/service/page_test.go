package service_test

import (
	"errors"
	"testing"

	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestPageTokensBelongToTheirList refuses a token at another project, another list or
// another query, and takes it where it came from, of any size.
func TestPageTokensBelongToTheirList(t *testing.T) {
	w := newWorld(t, inmem.New(inmem.Options{}), service.Limits{})
	other := memory.ProjectKey{Team: "acme", Project: "other"}
	for _, k := range []memory.ProjectKey{key, other} {
		for _, path := range []memory.Path{"a.md", "b.md", "c.md"} {
			_, err := w.Commit(t.Context(), writer, service.CommitRequest{
				Project: k, Changes: []memory.Change{{Path: path, Kind: memory.Put, Content: []byte(path)}},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(k memory.ProjectKey, q service.ListQuery) func(string) (string, error) {
		return func(token string) (string, error) {
			q.Page = service.Page{Size: 1, Token: token}
			l, err := w.List(t.Context(), writer, k, q)
			return l.Next, err
		}
	}
	commits := func(k memory.ProjectKey, path memory.Path) func(string) (string, error) {
		return func(token string) (string, error) {
			_, next, err := w.Commits(t.Context(), writer, k, path, service.Page{Size: 1, Token: token})
			return next, err
		}
	}
	lists := map[string]func(string) (string, error){
		"memories":              list(key, service.ListQuery{}),
		"memories with content": list(key, service.ListQuery{Content: true}),
		"memories with deleted": list(key, service.ListQuery{Deleted: true}),
		"memories changed":      list(key, service.ListQuery{ChangedAfter: 1}),
		"memories of another":   list(other, service.ListQuery{}),
		"commits":               commits(key, ""),
		"commits of c.md":       commits(key, "c.md"),
		"commits of another":    commits(other, ""),
		"projects": func(token string) (string, error) {
			_, next, err := w.Projects(t.Context(), admin, "acme", service.Page{Size: 1, Token: token})
			return next, err
		},
		"audit": func(token string) (string, error) {
			_, next, err := w.AuditEvents(t.Context(), admin, "", service.Page{Size: 1, Token: token})
			return next, err
		},
	}
	for from, first := range lists {
		token, err := first("")
		if err != nil || token == "" {
			t.Fatalf("%s: token %q, %v", from, token, err)
		}
		for to, next := range lists {
			_, err := next(token)
			if from == to && err != nil {
				t.Errorf("%s: its own token: %v", from, err)
			}
			if from != to && !errors.Is(err, memory.ErrInvalidArgument) {
				t.Errorf("%s takes the token of %s: %v", to, from, err)
			}
		}
	}
}
