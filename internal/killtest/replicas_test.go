//go:build linux

package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

// accident is something that happens to replicas or to their database while they work.
type accident struct {
	name   string
	happen func(t *testing.T, f *fleet, rnd *rand.Rand)
}

func some(f *fleet, rnd *rand.Rand) *hub { return f.hubs[rnd.IntN(len(f.hubs))] }

func accidents(stopped time.Duration) []accident {
	return []accident{
		{"a replica is killed", func(t *testing.T, f *fleet, rnd *rand.Rand) {
			h := some(f, rnd)
			h.kill()
			pause(t, time.Duration(rnd.IntN(500))*time.Millisecond)
			h.start()
		}},
		{"all replicas are killed", func(_ *testing.T, f *fleet, _ *rand.Rand) {
			for _, h := range f.hubs {
				h.kill()
			}
			for _, h := range f.hubs {
				h.start()
			}
		}},
		{"the database is killed", func(t *testing.T, f *fleet, rnd *rand.Rand) {
			f.database.Kill()
			pause(t, time.Duration(rnd.IntN(1500))*time.Millisecond)
			f.database.StartAgain()
		}},
		{"the database restarts", func(_ *testing.T, f *fleet, _ *rand.Rand) {
			f.database.Stop()
			f.database.StartAgain()
		}},
		{"connections are cut", func(t *testing.T, f *fleet, _ *rand.Rand) {
			for range 5 {
				must(t, f.database.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='memsvc'"))
				pause(t, 100*time.Millisecond)
			}
		}},
		{"a replica stands still", func(t *testing.T, f *fleet, rnd *rand.Rand) {
			p := some(f, rnd).process().cmd.Process
			must(t, p.Signal(syscall.SIGSTOP))
			pause(t, stopped)
			must(t, p.Signal(syscall.SIGCONT))
		}},
		{"the database stands still", func(t *testing.T, f *fleet, _ *rand.Rand) {
			f.database.Pause()
			pause(t, stopped)
			f.database.Resume()
		}},
		{"others take all connections", func(t *testing.T, f *fleet, _ *rand.Rand) {
			must(t, f.database.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='memsvc'"))
			greedy(t, f)
		}},
	}
}

// greedy holds every connection that the server gives, for a while.
func greedy(t *testing.T, f *fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var held []*pgx.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close(ctx)
		}
	}()
	const enough = 10 // for the replicas to miss some
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end) || len(held) < enough && ctx.Err() == nil; {
		c, err := pgx.Connect(ctx, f.database.URL)
		if err != nil {
			pause(t, 20*time.Millisecond)
			continue
		}
		held = append(held, c)
	}
	if len(held) < enough {
		t.Errorf("only %d connections were to be had; the replicas missed none", len(held))
	}
}

// TestReplicasUnderFaults lets accidents happen to three replicas and their database
// while many write, watch and edit through all of them. Every acknowledged commit is in the
// history, once; every watcher sees all of it, in order; all recovers unaided.
func TestReplicasUnderFaults(t *testing.T) {
	t.Parallel()
	stopped := 2 * time.Second
	if rounds() > 1 {
		stopped = 30 * time.Second
	}
	f := newFleet(t, 3, "max_connections=60")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	anna, ben := newMachine(t, f.front, "anna"), newMachine(t, f.hubs[1], "ben")
	anna.start()
	ben.start()
	var watches []*watch
	for i, h := range append([]*hub{f.front}, f.hubs...) {
		watches = append(watches, startWatch(t, h, fmt.Sprintf("watcher %d", i)))
	}
	l := startLoad(t, f.front, 8, rnd)
	all := accidents(stopped)
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, a := range all {
		before := time.Now()
		a.happen(t, f, rnd)
		t.Logf("%s: %v", a.name, time.Since(before).Round(time.Millisecond))
		pause(t, time.Duration(200+rnd.IntN(600))*time.Millisecond)
		// Every replica works again before the next accident.
		for i, h := range f.hubs {
			eventually(t, patience, fmt.Sprintf("hub %d is ready after %s", i, a.name), func() string {
				if !h.process().running() {
					t.Fatalf("hub %d ended by itself after %s", i, a.name)
				}
				if !h.ready() {
					return "it is not"
				}
				return ""
			})
		}
	}
	l.end()
	waitInStep(t, f.front, anna, ben)
	history := f.sameEverywhere()
	l.check(history)
	for _, w := range watches {
		w.complete(t, history)
	}
}

// TestReadyTellsOfTheDatabase takes the database away: replicas say that they are not
// ready, stay, and are ready again when it comes back.
func TestReadyTellsOfTheDatabase(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	eventually(t, patience, "a replica with its database is ready", func() string {
		if !f.hubs[0].ready() {
			return "it is not"
		}
		return ""
	})
	f.database.Kill()
	if f.hubs[0].ready() {
		t.Error("a replica without its database is ready")
	}
	f.database.StartAgain()
	eventually(t, patience, "the replica is ready again", func() string {
		if !f.hubs[0].ready() {
			return "it is not"
		}
		return ""
	})
	if !f.hubs[0].process().running() {
		t.Error("the replica ended")
	}
}

// TestRollingRestart restarts replicas one after the other, as a release does, under
// clients that try again as the product's client does. None of them sees an error.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.underClients(func() {
		for range rounds() {
			for _, h := range f.hubs {
				f.replace(h, h.programs)
			}
		}
	})
}

// replace stops a replica and starts it anew with the programs of a directory.
func (f *fleet) replace(h *hub, programs string) {
	f.t.Helper()
	pause(f.t, 300*time.Millisecond)
	if code := h.process().stop(f.t); code != 0 {
		f.t.Errorf("a replica ended with code %d", code)
	}
	h.programs = programs
	h.start()
}

// underClients does something with the replicas under clients that try again as the
// product's client does. None of them may see an error, no commit may be lost, and a
// watcher misses none.
func (f *fleet) underClients(do func()) {
	t := f.t
	t.Helper()
	w := startWatch(t, f.front, "the watcher")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	made := make([]int, 6)
	for i := range made {
		c, err := client.New(client.Options{Addr: f.front.grpc, TokenFile: f.front.writerToken, UserAgent: "killtest"})
		must(t, err)
		defer func() { _ = c.Close() }()
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				text := fmt.Sprintf("---\nname: n\ndescription: d\ntype: project\n---\n%d %d\n", i, n)
				_, err := c.Commit(t.Context(), client.CommitRequest{Project: key(), Changes: []memory.Change{
					{Path: memory.Path(fmt.Sprintf("project_roll_%d.md", i)), Kind: memory.Put, Content: []byte(text)}}})
				if err == nil {
					_, err = c.Get(t.Context(), key(), memory.Path(fmt.Sprintf("project_roll_%d.md", i)), 0)
				}
				if err != nil {
					t.Errorf("client %d sees an error: %v", i, err)
					return
				}
				made[i]++
			}
		})
	}
	do()
	pause(t, 300*time.Millisecond)
	cancel()
	wg.Wait()
	history := f.sameEverywhere()
	theirs := 0
	for _, c := range history {
		if len(c.Changes) == 1 && strings.HasPrefix(string(c.Changes[0].Path), "project_roll_") {
			theirs++
		}
	}
	if sum(made) != theirs {
		t.Errorf("%d commits were made, the history has %d", sum(made), theirs)
	}
	w.complete(t, history)
	for _, err := range w.downs {
		if !client.IsPassing(err) {
			t.Errorf("a stream ended with an error that is not tried again: %v", err)
		}
	}
}

func sum(all []int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}

// TestReplicaPropagation measures how long a commit takes from the call at one replica
// to the watchers at the others: under 150 ms at the median (SPEC 4.7).
func TestReplicaPropagation(t *testing.T) {
	f := newFleet(t, 3)
	var mu sync.Mutex // guards arrived
	arrived := map[memory.Revision]chan time.Time{}
	at := func(r memory.Revision) chan time.Time {
		mu.Lock()
		defer mu.Unlock()
		if arrived[r] == nil {
			arrived[r] = make(chan time.Time, 2)
		}
		return arrived[r]
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer func() { cancel(); wg.Wait() }()
	for _, h := range f.hubs[1:] {
		feed := h.client().NewFeed(func(ev client.Event) {
			if ev.Kind == client.EventCommit {
				at(ev.Commit.Revision) <- time.Now()
			}
		})
		feed.Follow(key(), memory.Cursor{}, false)
		wg.Go(func() { _ = feed.Run(ctx) })
		eventually(t, patience, "the watcher watches", func() string {
			if up, err := feed.Status(); !up {
				return fmt.Sprint(err)
			}
			return ""
		})
	}
	c := f.hubs[0].client()
	var took, calls []time.Duration
	for n := range 100 {
		begin := time.Now()
		res, err := c.Commit(ctx, client.CommitRequest{Project: key(), Changes: []memory.Change{
			{Path: "project_p.md", Kind: memory.Put, Content: fmt.Appendf(nil, "---\nname: n\ndescription: d\ntype: project\n---\n%d\n", n)}}})
		must(t, err)
		calls = append(calls, time.Since(begin))
		for range 2 {
			select {
			case end := <-at(res.Commit.Revision):
				took = append(took, end.Sub(begin))
			case <-time.After(patience):
				t.Fatalf("revision %d does not arrive", res.Commit.Revision)
			}
		}
	}
	slices.Sort(took)
	slices.Sort(calls)
	call := calls[len(calls)/2]
	median, high := took[len(took)/2], took[len(took)*99/100]
	t.Logf("from the call at one replica to a watcher at another, %d times: median %v, 99th percentile %v, the call itself %v", len(took), median, high, call)
	// A machine under other load is slow in all that it does.
	if median > max(150*time.Millisecond, 4*call) {
		t.Errorf("the median is %v, want under 150 ms; the call itself takes %v", median, call)
	}
}
