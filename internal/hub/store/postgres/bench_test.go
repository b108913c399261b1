package postgres_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// BenchmarkCommit measures commits of 2 KB from many writers, on a server that waits
// for its disk: how the queries are sent, whether writers share a project, and, where
// pgbench is installed, how fast it writes the same rows to the same server.
func BenchmarkCommit(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Durable: true})
	for _, mode := range []string{"cache_statement", "cache_describe", "exec"} {
		for _, projects := range []int{64, 1} {
			b.Run(fmt.Sprintf("mode=%s/writers=64/projects=%d", mode, projects), func(b *testing.B) {
				benchCommit(b, server.Database()+"&default_query_exec_mode="+mode, 64, projects)
			})
		}
	}
	b.Run("pgbench/writers=15/projects=64", func(b *testing.B) { pgbench(b, server.Database()) })
	b.Run("mode=cache_statement/writers=1/projects=1", func(b *testing.B) { benchCommit(b, server.Database(), 1, 1) })
}

// pgbench runs testdata/pgbench.sql with as many connections as the store's writers have.
func pgbench(b *testing.B, url string) {
	program, err := exec.LookPath("pgbench")
	if err != nil {
		b.Skip("no pgbench on this machine")
	}
	if _, err := postgres.Migrate(ctx, postgres.Options{URL: url}); err != nil {
		b.Fatal(err)
	}
	err = (&pgtest.Server{URL: url}).Exec(ctx, "INSERT INTO memsvc.projects(team, project, created, created_ns) SELECT 'acme', 'p' || g, now(), 0 FROM generate_series(1, 64) g")
	if err != nil {
		b.Fatal(err)
	}
	out, err := exec.Command(program, "-n", "-M", "prepared", "-c", "15", "-j", "2", "-t", strconv.Itoa(max(1, b.N/15)), "-f", "testdata/pgbench.sql", url).CombinedOutput()
	rate := regexp.MustCompile(`tps = ([0-9.]+)`).FindSubmatch(out)
	if err != nil || rate == nil {
		b.Fatalf("pgbench: %v: %s", err, out)
	}
	tps, err := strconv.ParseFloat(string(rate[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(tps, "commits/s")
}

func benchCommit(b *testing.B, url string, writers, projects int) {
	s, err := postgres.Open(ctx, postgres.Options{URL: url, Migrate: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	key := func(n int) memory.ProjectKey {
		return memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprintf("p%d", n%projects))}
	}
	for n := range projects {
		if err := s.CreateProject(ctx, key(n), time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	text := strings.Repeat("x", 2000)
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				_, err := s.Commit(ctx, store.CommitRequest{
					Project: key(w), Now: time.Now(), RequestID: fmt.Sprint("r", n), Author: memory.Author{Principal: "token:bench", Machine: "m"},
					Changes: []memory.Change{{Path: memory.Path(fmt.Sprintf("f%d-%d.md", w, n%50)), Kind: memory.Put, Content: fmt.Append(nil, text, n)}},
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
