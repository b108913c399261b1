package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Durable commits of 2 KB, each with a request id and contents of its own.
func BenchmarkCommit64Projects(b *testing.B) { benchCommits(b, 64, 64) }

// As before, all on one project.
func BenchmarkCommit64OneProject(b *testing.B) { benchCommits(b, 64, 1) }

// One writer that waits for each commit. fsync-ns is what one fsync of a grown
// file costs on the same disk in the same run; over-fsync-ns is what a commit
// costs beyond one.
func BenchmarkCommitAlone(b *testing.B) { benchCommits(b, 1, 1) }

func benchCommits(b *testing.B, writers, projects int) {
	ctx := context.Background()
	s := openTest(b, Options{Dir: b.TempDir()})
	keys := make([]memory.ProjectKey, projects)
	for i := range keys {
		keys[i] = memory.ProjectKey{Team: "t", Project: memory.Project(fmt.Sprintf("p%d", i))}
		if err := s.CreateProject(ctx, keys[i], day0); err != nil {
			b.Fatal(err)
		}
	}
	fsync := fsyncCost(b)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			content := make([]byte, 2048)
			for i := 0; left.Add(-1) >= 0; i++ {
				copy(content, fmt.Sprintf("%d/%d ", w, i))
				_, err := s.Commit(ctx, store.CommitRequest{
					Project: keys[w%projects], Now: day0, RequestID: fmt.Sprintf("%d/%d", w, i),
					Author:  memory.Author{Principal: "token:bench", Machine: "mill", Client: "bench", Session: "s"},
					Changes: []memory.Change{{Path: memory.Path(fmt.Sprintf("project_w%d_%d.md", w, i%200)), Kind: memory.Put, Content: content}},
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	fsync = (fsync + fsyncCost(b)) / 2
	per := float64(b.Elapsed()) / float64(b.N)
	b.ReportMetric(float64(time.Second)/per, "commits/s")
	b.ReportMetric(float64(fsync), "fsync-ns")
	b.ReportMetric(per/float64(fsync), "fsyncs/op")
	if writers == 1 {
		b.ReportMetric(per-float64(fsync), "over-fsync-ns")
	}
}

// fsyncCost is the median of a write of 4 KiB and an fsync, in a file that is as
// long already, as the write-ahead log is.
func fsyncCost(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "fsync"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	times := make([]time.Duration, 0, 200)
	for round := range 2 {
		for i := range int64(200) {
			start := time.Now()
			if _, err := f.WriteAt(page, i*4096); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			if round == 1 {
				times = append(times, time.Since(start))
			}
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// A cold List of a project of 5,000 files, with contents, and one of metadata.
func BenchmarkList5000(b *testing.B) {
	for name, opts := range map[string]store.ListOptions{"full": {Content: true}, "metadata": {}} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			s := openTest(b, Options{Dir: b.TempDir()})
			if err := s.CreateProject(ctx, key, day0); err != nil {
				b.Fatal(err)
			}
			for i := range 50 {
				req := store.CommitRequest{Project: key, Now: day0}
				for j := range 100 {
					req.Changes = append(req.Changes, memory.Change{Path: memory.Path(fmt.Sprintf("f%d_%d.md", i, j)), Kind: memory.Put, Content: []byte(noise(2000))})
				}
				if _, err := s.Commit(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for range b.N {
				if ms, err := s.List(ctx, key, opts); err != nil || len(ms) != 5000 {
					b.Fatal(len(ms), err)
				}
			}
		})
	}
}

// Reads beside each other.
func BenchmarkGet(b *testing.B) {
	s := openTest(b, Options{Dir: b.TempDir()})
	if err := s.CreateProject(b.Context(), key, day0); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Commit(b.Context(), put("a.md", noise(2048))); err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Get(context.Background(), key, "a.md", 0); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
