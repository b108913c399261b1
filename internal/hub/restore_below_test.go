package hub_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
	"github.com/memsvc/memsvc/internal/wire"
)

// TestRestoreBelowRunningReplicas puts a dump back, in each of the ways in which people do
// it, while two hubs run and are asked all the time: they answer whole answers or
// UNAVAILABLE, nothing that would stop an agent, and write nothing that breaks the restore.
func TestRestoreBelowRunningReplicas(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Own: true})
	url := server.Database()
	hubs := []*hubtest.Hub{hubtest.Start(t, hubtest.Options{DatabaseURL: url}), hubtest.Start(t, hubtest.Options{DatabaseURL: url})}
	token := hubs[0].Token("acme", "app", "writer")
	c := as(t, hubs[0], token)
	const files = 20
	for n := range files {
		c.mustCommit(t, put(fmt.Sprintf("f%d.md", n), strings.Repeat("text ", 2000)))
	}
	dump := filepath.Join(t.TempDir(), "dump")
	if out, err := server.Run("pg_dump", "-Fc", "-f", dump, url); err != nil {
		t.Fatal(err, out)
	}

	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex // guards answers
	answers := map[string]int{}
	note := func(call string, err error) {
		what := "OK"
		if err != nil {
			what = string(wire.ReasonOf(status.Convert(err)))
			if what == "" {
				what = err.Error()
			}
		}
		mu.Lock()
		defer mu.Unlock()
		answers[call+" "+what]++
	}
	var askers sync.WaitGroup
	for i, h := range hubs {
		c, admin := as(t, h, token), as(t, h, hubs[0].AdminToken)
		askers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				res, err := c.ListMemories(c.ctx(t), &memsvcv1.ListMemoriesRequest{Parent: project})
				note("list", err)
				if err == nil && len(res.GetMemories()) < files {
					note("list", fmt.Errorf("%d memories", len(res.GetMemories())))
				}
				_, err = c.GetMemory(c.ctx(t), &memsvcv1.GetMemoryRequest{Name: project + "/memories/f1.md"})
				note("get", err)
				_, err = c.commit(t, put(fmt.Sprintf("asker%d.md", i), fmt.Sprint(n)))
				note("commit", err)
				_, err = admin.ListTokens(admin.ctx(t), &memsvcv1.ListTokensRequest{})
				note("tokens", err)
			}
		})
	}

	name := strings.TrimPrefix(url[strings.LastIndexByte(url, '/'):strings.IndexByte(url, '?')], "/")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	restore := func(args ...string) {
		t.Helper()
		if out, err := server.Run("pg_restore", append(args, "-d", url, dump)...); err != nil {
			t.Errorf("pg_restore: %v\n%s", err, out)
		}
	}
	for _, way := range []struct {
		name string
		do   func()
	}{
		{"clean", func() { restore("--clean", "--if-exists") }},
		{"parallel", func() { restore("--clean", "--if-exists", "-j2") }},
		{"schema dropped", func() {
			// It may be the one to give up where it and a hub's call wait for each other.
			hubtest.Eventually(t, patience, "the schema is dropped", func() bool {
				return (&pgtest.Server{URL: url}).Exec(t.Context(), "DROP SCHEMA memsvc CASCADE") == nil
			})
			restore()
		}},
		{"database dropped", func() {
			must(server.Exec(t.Context(), "DROP DATABASE "+name+" WITH (FORCE)"))
			must(server.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"))
			restore()
		}},
	} {
		way.do()
		for i, h := range hubs {
			c := as(t, h, token)
			hubtest.Eventually(t, patience, way.name+": the hub goes on", func() bool {
				_, err := c.commit(t, put(fmt.Sprintf("after%d.md", i), way.name))
				return err == nil
			})
		}
		if stdout, stderr, code := program(t, "check", "--database-url", url); code != 0 {
			t.Errorf("%s: check: code %d, %s%s", way.name, code, stdout, stderr)
		}
	}
	stop()
	askers.Wait()
	for answer, n := range answers {
		if _, what, _ := strings.Cut(answer, " "); what != "OK" && what != string(memory.ReasonUnavailable) {
			t.Errorf("%d answers: %s", n, answer)
		}
	}
	if answers["list OK"] == 0 || answers["commit OK"] == 0 {
		t.Errorf("nothing was asked: %v", answers)
	}
	t.Log(answers)
}
