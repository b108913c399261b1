package simtest

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this seed alone, with its trace")
	manySeeds = flag.Uint64("seeds", 0, "run seeds 1 to this; 0 = as many as fit into -simtime")
	simTime   = flag.Duration("simtime", 10*time.Second, "how long to run when -seeds is not given")
	stepCount = flag.Int("steps", 150, "steps a run")
	firstSeed = flag.Uint64("first", 1, "the first seed of many")
)

// TestSimulate runs seeds until one breaks a law: everybody edits everything.
func TestSimulate(t *testing.T) { simulate(t, false, *simTime) }

// TestSimulateSolo runs seeds in which every file has one machine that edits it.
func TestSimulateSolo(t *testing.T) { simulate(t, true, *simTime/4) }

func simulate(t *testing.T, solo bool, limit time.Duration) {
	if *oneSeed != 0 {
		report(t, *oneSeed, solo, true)
		return
	}
	start, seed := time.Now(), *firstSeed
	for ; *manySeeds == 0 && time.Since(start) < limit || *manySeeds > 0 && seed < *firstSeed+*manySeeds; seed++ {
		if !report(t, seed, solo, false) {
			return
		}
	}
	t.Logf("%d seeds of %d steps in %v", seed-*firstSeed, *stepCount, time.Since(start).Round(time.Millisecond))
}

func report(t *testing.T, seed uint64, solo, verbose bool) bool {
	t.Helper()
	steps := allSteps(*stepCount)
	out := run(seed, solo, steps)
	if len(out.bad) == 0 {
		if verbose {
			t.Log(strings.Join(out.trace, "\n"))
		}
		return true
	}
	small := shrink(seed, solo, steps, 400)
	out = run(seed, solo, small)
	t.Errorf("seed %d breaks laws (replay: go test ./internal/simtest -run '^%s$' -seed=%d -steps=%d)\n%s\n\ntrace of %d steps %v:\n%s",
		seed, t.Name(), seed, *stepCount, strings.Join(out.bad, "\n"), len(small), small, strings.Join(out.trace, "\n"))
	return false
}

// TestSeedsReplay: the same seed is the same run, call by call.
func TestSeedsReplay(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := run(seed, false, allSteps(100)), run(seed, false, allSteps(100))
		if got, want := strings.Join(b.trace, "\n")+b.end, strings.Join(a.trace, "\n")+a.end; got != want {
			t.Errorf("seed %d ran differently:\n%s", seed, firstDifference(want, got))
		}
	}
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i, as[i], bs[i])
		}
	}
	return "one is longer"
}
