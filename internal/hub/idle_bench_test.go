//go:build unix

package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// BenchmarkIdleWatches opens watches on a quiet hub and lets them be: how much memory
// one takes, both ends together, and how much processor all of them, who get a bookmark
// every 15 s. A hundred watches share a connection, as behind a load balancer.
func BenchmarkIdleWatches(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		b.Run(fmt.Sprintf("watches=%d", n), func(b *testing.B) {
			for b.Loop() {
				idleWatches(b, n)
			}
		})
	}
}

func idleWatches(b *testing.B, watches int) {
	const perConnection, idle = 100, 30 * time.Second
	h := hubtest.Start(b, hubtest.Options{SQLite: true, Quiet: true})
	token := h.Token("acme", "app", "writer")
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer "+token))
	defer cancel()
	if _, err := memsvcv1.NewMemoryServiceClient(dial(b, h)).CommitChanges(ctx, &memsvcv1.CommitChangesRequest{
		Parent: project, Changes: []*memsvcv1.Change{{Path: "a.md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte("x")}}}},
	}); err != nil {
		b.Fatal(err)
	}
	conns := benchConns(b, h, watches/perConnection)
	before := heap()
	opened := make(chan error, watches)
	room := make(chan struct{}, 256) // how many open at a time, as machines do that wake one by one
	for i := range watches {
		go func() {
			room <- struct{}{}
			stream, err := memsvcv1.NewMemoryServiceClient(conns[i%len(conns)]).WatchMemories(ctx, &memsvcv1.WatchMemoriesRequest{
				Projects: []*memsvcv1.WatchedProject{{Project: project, Start: memsvcv1.WatchStart_WATCH_START_HEAD}},
			})
			if err == nil {
				_, err = stream.Recv()
			}
			<-room
			opened <- err
			for err == nil {
				_, err = stream.Recv()
			}
		}()
	}
	for range watches {
		if err := <-opened; err != nil {
			b.Fatal(err)
		}
	}
	each := float64(heap()-before) / float64(watches)
	used := cpu(b)
	time.Sleep(idle) // what is measured is that nothing happens
	b.ReportMetric(each/1024, "KiB/watch")
	b.ReportMetric(100*(cpu(b)-used).Seconds()/idle.Seconds(), "%core")
}
