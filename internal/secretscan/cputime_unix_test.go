//go:build unix

package secretscan_test

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the time that this process has computed: how long others kept it from that is not in it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
