package simtest

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// outcome is how a run ended.
type outcome struct {
	bad   []string
	trace []string
	// end is everything that can be seen at the end, for comparing runs.
	end string
}

// run plays the given steps of a seed, then calm, then the laws.
func run(seed uint64, solo bool, steps []int) (out outcome) {
	w := newWorld(seed, solo)
	defer func() {
		if x := recover(); x != nil {
			w.breakLaw("panic: %v\n%s", x, debug.Stack())
		}
		out.bad, out.trace = w.bad, w.log
		w.hub.feed.Close()
	}()
	for _, i := range steps {
		w.step(i)
	}
	w.calm()
	w.check()
	var b strings.Builder
	for _, m := range w.machines {
		fmt.Fprintf(&b, "%s %v\n", m.name, m.disk.Files())
	}
	out.end = b.String()
	return out
}

func allSteps(n int) []int {
	steps := make([]int, n)
	for i := range steps {
		steps[i] = i
	}
	return steps
}

// shrink returns fewer steps that break a law too, by leaving out ever smaller pieces,
// within a number of tries.
func shrink(seed uint64, solo bool, steps []int, tries int) []int {
	fails := func(s []int) bool {
		tries--
		return len(run(seed, solo, s).bad) > 0
	}
	for size := len(steps) / 2; size >= 1; size /= 2 {
		for at := 0; at < len(steps) && tries > 0; {
			rest := append(append([]int(nil), steps[:at]...), steps[min(at+size, len(steps)):]...)
			if fails(rest) {
				steps = rest
			} else {
				at += size
			}
		}
	}
	return steps
}
