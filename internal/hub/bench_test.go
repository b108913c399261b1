//go:build unix

package hub_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// words make texts that no two commits share and that no rule of the guard knows.
var words = strings.Fields(`the build deploy pipeline runs before tests and after review because staging needs a
	fresh database schema while production keeps two replicas behind the balancer we prefer small commits clear names
	short functions the parser reads markdown front matter yaml lists never tabs retry with backoff on timeouts cache
	results for an hour unless headers say otherwise ask the platform team for quota friday freeze monday release`)

// text2KB returns about 2 KB of text.
func text2KB(rnd *rand.Rand) []byte {
	var b strings.Builder
	b.WriteString("---\nname: note\ndescription: how we work\ntype: project\n---\n\n")
	for b.Len() < 2048-12 {
		b.WriteString(words[rnd.IntN(len(words))])
		if rnd.IntN(12) == 0 {
			b.WriteString(".\n")
		} else {
			b.WriteByte(' ')
		}
	}
	fmt.Fprintf(&b, "%d\n", rnd.Uint32())
	return []byte(b.String())
}

func benchConns(b *testing.B, h *hubtest.Hub, n int) []*grpc.ClientConn {
	conns := make([]*grpc.ClientConn, n)
	for i := range conns {
		conns[i] = dial(b, h)
	}
	return conns
}

// cpu returns what the process has used of the processors: both ends of every call.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rate runs do from n goroutines until d has passed and returns calls a second, and
// the microseconds of processor that one took.
func rate(b *testing.B, n int, d time.Duration, do func(worker, i int) error) (perSecond, cpuMicros float64) {
	b.Helper()
	used := cpu(b)
	var calls atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for w := range n {
		wg.Go(func() {
			for i := 0; time.Since(begin) < d; i++ {
				if err := do(w, i); err != nil {
					b.Error(err)
					return
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	n64 := float64(calls.Load())
	return n64 / time.Since(begin).Seconds(), float64((cpu(b) - used).Microseconds()) / n64
}

// alone runs do again and again until d has passed and returns the microseconds that a
// call took: the mean, which has every stall of disk and machine in it, and the median,
// which is what a fsync's median can be held against.
func alone(b *testing.B, d time.Duration, do func(worker, i int) error) (mean, middle float64) {
	b.Helper()
	var took []float64
	begin := time.Now()
	for i := 0; time.Since(begin) < d; i++ {
		start := time.Now()
		if err := do(0, i); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(start).Nanoseconds())/1000)
	}
	return float64(time.Since(begin).Microseconds()) / float64(len(took)), median(took)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// drafts are texts made ahead, so that making them is not measured.
type drafts struct {
	texts [][][]byte // by worker
	rnds  []*rand.Rand
}

func newDrafts(workers int) *drafts {
	d := &drafts{texts: make([][][]byte, workers), rnds: make([]*rand.Rand, workers)}
	for w := range workers {
		d.rnds[w] = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(w)))
	}
	return d
}

// fill makes n texts ahead for each worker.
func (d *drafts) fill(n int) {
	for w := range d.texts {
		d.more(w, n)
	}
}

// more makes n texts ahead for one worker.
func (d *drafts) more(w, n int) {
	for len(d.texts[w]) < n {
		d.texts[w] = append(d.texts[w], text2KB(d.rnds[w]))
	}
}

// take returns a text that nobody else has.
func (d *drafts) take(w int) []byte {
	n := len(d.texts[w])
	if n == 0 {
		return text2KB(d.rnds[w])
	}
	t := d.texts[w][n-1]
	d.texts[w] = d.texts[w][:n-1]
	return t
}

// fsyncs returns the median time of appending 4 KiB to a file and syncing it, on the
// disk of the benchmark's temporary directory.
func fsyncs(b *testing.B) float64 {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "fsync"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	times := make([]float64, 0, 100)
	for round := range 2 { // the second one writes over what is there, as a log does
		for i := range int64(100) {
			begin := time.Now()
			if _, err := f.WriteAt(page, i*4096); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			if round == 1 {
				times = append(times, float64(time.Since(begin).Nanoseconds())/1000)
			}
		}
	}
	return median(times)
}

// BenchmarkCommitRPC measures durable commits of 2 KB, the guard on, by 64 writers on
// 64 projects of the embedded store, beside empty unary calls on the same server and
// connections (the health check, which is sent the same credential and does not look at
// it), and one writer alone beside the disk's fsync; medians of alternating rounds. Processor times are both ends', and so is their ratio, which other work on
// the machine disturbs less.
func BenchmarkCommitRPC(b *testing.B) {
	const writers, rounds, ahead = 64, 5, 150
	h := hubtest.Start(b, hubtest.Options{SQLite: true, Quiet: true})
	token := h.Token("acme", "", "writer")
	conns := benchConns(b, h, 8)
	ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer "+token)
	texts := newDrafts(writers)
	commit := func(w, i int) error {
		_, err := memsvcv1.NewMemoryServiceClient(conns[w%len(conns)]).CommitChanges(ctx, &memsvcv1.CommitChangesRequest{
			Parent: fmt.Sprintf("teams/acme/projects/p%d", w), SkipWarnings: true, // as agents do
			Changes: []*memsvcv1.Change{{
				Path:   fmt.Sprintf("note-%d.md", i%200),
				Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: texts.take(w)}},
			}},
		})
		return err
	}
	empty := func(w, _ int) error {
		_, err := healthv1.NewHealthClient(conns[w%len(conns)]).Check(ctx, &healthv1.HealthCheckRequest{})
		return err
	}
	rate(b, writers, 500*time.Millisecond, commit) // projects, the guard's rules, connections
	rate(b, writers, 200*time.Millisecond, empty)
	var commits, commitCPU, empties, emptyCPU, aloneMean, aloneMid, aloneEmpty, disk []float64
	for b.Loop() {
		for range rounds {
			texts.fill(ahead)
			r, u := rate(b, writers, 700*time.Millisecond, commit)
			commits, commitCPU = append(commits, r), append(commitCPU, u)
			r, u = rate(b, writers, 300*time.Millisecond, empty)
			empties, emptyCPU = append(empties, r), append(emptyCPU, u)
			disk = append(disk, fsyncs(b))
			texts.more(0, 1000)
			mean, mid := alone(b, 200*time.Millisecond, commit)
			aloneMean, aloneMid = append(aloneMean, mean), append(aloneMid, mid)
			_, mid = alone(b, 100*time.Millisecond, empty)
			aloneEmpty = append(aloneEmpty, mid)
			disk = append(disk, fsyncs(b))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(commits), "commits/s")
	b.ReportMetric(median(empties), "empty/s")
	b.ReportMetric(100*median(commits)/median(empties), "%_of_empty")
	b.ReportMetric(median(commitCPU), "cpu-µs/commit")
	b.ReportMetric(median(emptyCPU), "cpu-µs/empty")
	b.ReportMetric(100*median(emptyCPU)/median(commitCPU), "%_of_empty_by_cpu")
	b.ReportMetric(median(aloneMean), "µs/commit_alone_mean")
	b.ReportMetric(median(aloneMid), "µs/commit_alone")
	b.ReportMetric(median(aloneEmpty), "µs/empty_alone")
	b.ReportMetric(median(disk), "µs/fsync")
	b.ReportMetric(median(aloneMid)-2*median(disk), "µs_alone_over_2_fsyncs")
}

// bareStreams is a gRPC server that does nothing but stream the same bytes.
type bareStreams struct {
	memsvcv1.UnimplementedMemoryServiceServer
	n     int
	msg   *memsvcv1.WatchMemoriesResponse
	start chan struct{}
}

func (s *bareStreams) WatchMemories(_ *memsvcv1.WatchMemoriesRequest, out grpc.ServerStreamingServer[memsvcv1.WatchMemoriesResponse]) error {
	if err := out.Send(&memsvcv1.WatchMemoriesResponse{}); err != nil {
		return err
	}
	<-s.start
	for range s.n {
		if err := out.Send(s.msg); err != nil {
			return err
		}
	}
	<-out.Context().Done()
	return nil
}

// readers opens watchers on conns and returns a function that waits until each has
// seen n more commits.
func readers(ctx context.Context, b *testing.B, conns []*grpc.ClientConn, watchers int) func(n int) {
	b.Helper()
	counts := make([]chan struct{}, watchers)
	for i := range watchers {
		stream, err := memsvcv1.NewMemoryServiceClient(conns[i%len(conns)]).WatchMemories(ctx, &memsvcv1.WatchMemoriesRequest{
			Projects: []*memsvcv1.WatchedProject{{Project: project, Start: memsvcv1.WatchStart_WATCH_START_HEAD}},
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			b.Fatal(err)
		}
		counts[i] = make(chan struct{}, 1<<12)
		go func() {
			defer close(counts[i])
			m := &memsvcv1.WatchMemoriesResponse{}
			for stream.RecvMsg(m) == nil {
				if m.GetCommit() != nil {
					counts[i] <- struct{}{}
				}
			}
		}()
	}
	return func(n int) {
		for _, c := range counts {
			for range n {
				if _, ok := <-c; !ok {
					b.Error("a stream ended early")
					return
				}
			}
		}
	}
}

// BenchmarkWatchFanout delivers commits of 2 KB to 5,000 watchers on 10 connections,
// beside a bare gRPC server that streams the same messages to as many; and measures
// the memory of a watcher. An operation is a commit delivered to all.
func BenchmarkWatchFanout(b *testing.B) {
	const watchers, connections, commits = 5000, 10, 20
	rnd := rand.New(rand.NewPCG(1, 2))
	h := hubtest.Start(b, hubtest.Options{SQLite: true, Quiet: true})
	token := h.Token("acme", "app", "writer")
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token))
	defer cancel()
	writer := memsvcv1.NewMemoryServiceClient(dial(b, h))
	commit := func() {
		_, err := writer.CommitChanges(ctx, &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{{
			Path: "note.md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: text2KB(rnd)}},
		}}})
		if err != nil {
			b.Fatal(err)
		}
	}
	commit()
	conns := benchConns(b, h, connections)

	// The message that the hub sends, as the bare server will.
	sample, err := writer.WatchMemories(ctx, &memsvcv1.WatchMemoriesRequest{Projects: []*memsvcv1.WatchedProject{{Project: project}}})
	if err != nil {
		b.Fatal(err)
	}
	var msg *memsvcv1.WatchMemoriesResponse
	for msg.GetCommit() == nil {
		if msg, err = sample.Recv(); err != nil {
			b.Fatal(err)
		}
	}

	before := heap()
	wait := readers(ctx, b, conns, watchers)
	perWatcher := float64(heap()-before) / watchers
	var ours, bare []float64
	for b.Loop() {
		for range 3 {
			begin := time.Now()
			go func() {
				for range commits {
					commit()
				}
			}()
			wait(commits)
			ours = append(ours, watchers*commits/time.Since(begin).Seconds())
			bare = append(bare, bareRate(b, msg, watchers, connections, commits))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ours), "deliveries/s")
	b.ReportMetric(median(bare), "bare/s")
	b.ReportMetric(100*median(ours)/median(bare), "%_of_bare")
	b.ReportMetric(perWatcher/1024, "KiB/watcher_both_ends")
	runtime.KeepAlive(wait)
}

// bareRate streams n messages to each watcher from a server that does nothing else.
func bareRate(b *testing.B, msg *memsvcv1.WatchMemoriesResponse, watchers, connections, n int) float64 {
	b.Helper()
	s := &bareStreams{n: n, msg: msg, start: make(chan struct{})}
	server := grpc.NewServer(grpc.MaxConcurrentStreams(uint32(watchers)))
	memsvcv1.RegisterMemoryServiceServer(server, s)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(ln) })
	ctx, cancel := context.WithCancel(context.Background())
	conns := make([]*grpc.ClientConn, connections)
	for i := range conns {
		if conns[i], err = grpc.NewClient("passthrough:///"+ln.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
			b.Fatal(err)
		}
	}
	wait := readers(ctx, b, conns, watchers)
	begin := time.Now()
	close(s.start)
	wait(n)
	took := time.Since(begin)
	cancel()
	for _, c := range conns {
		_ = c.Close()
	}
	server.Stop()
	wg.Wait()
	return float64(watchers*n) / took.Seconds()
}
