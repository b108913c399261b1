package agent

import (
	"context"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// gcPercent makes the collector run more often than Go's default: the agent's heap is
// small and mostly idle, and its size is what people see.
const gcPercent = 50

// When the daemon gives memory back to the system.
const (
	restPause  = 5 * time.Second // how often it looks
	quietBytes = 1 << 20         // it rests if it allocated less than this between two looks,
	burstBytes = 8 << 20         // after having allocated more than this
)

// giveBack returns memory to the system whenever a burst of work is over, until ctx
// ends. Left to itself an idle program runs no collection for minutes, and keeps what
// a first sync took.
func giveBack(ctx context.Context) {
	last := allocated()
	done := uint64(0)
	for pause(ctx, restPause) {
		now := allocated()
		if now-last < quietBytes && now-done > burstBytes {
			debug.FreeOSMemory()
			done = now
		}
		last = now
	}
}

// allocated returns how many bytes the program has ever allocated. It stops nothing.
func allocated() uint64 {
	s := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(s)
	return s[0].Value.Uint64()
}
