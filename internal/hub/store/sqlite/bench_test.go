package sqlite

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func BenchmarkCommit64Projects(b *testing.B)           { benchProjects(b, 64, "") }
func BenchmarkCommit64ProjectsRequestIDs(b *testing.B) { benchProjects(b, 64, "r") }
func BenchmarkCommitAlone(b *testing.B)                { benchProjects(b, 1, "") }

func benchProjects(b *testing.B, n int, rid string) {
	ctx := context.Background()
	s, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	now := time.Unix(1_700_000_000, 0)
	keys := make([]memory.ProjectKey, n)
	for i := range keys {
		keys[i] = memory.ProjectKey{Team: "t", Project: memory.Project(fmt.Sprintf("p%d", i))}
		if err := s.CreateProject(ctx, keys[i], now); err != nil {
			b.Fatal(err)
		}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range keys {
		wg.Add(1)
		go func() {
			defer wg.Done()
			content := make([]byte, 2048)
			for j := 0; left.Add(-1) >= 0; j++ {
				copy(content, fmt.Sprintf("%d/%d", i, j))
				req := store.CommitRequest{Project: keys[i], Now: now, Author: memory.Author{Principal: "p", Machine: "m", Client: "c", Session: "s"},
					Changes: []memory.Change{{Path: memory.Path(fmt.Sprintf("project_%d.md", j%200)), Kind: memory.Put, Content: content}}}
				if rid != "" {
					req.RequestID = fmt.Sprint(i, j)
				}
				if _, err := s.Commit(ctx, req); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
}
