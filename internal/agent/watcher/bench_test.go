//go:build unix

package watcher

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkIdle watches 20 roots of 200 files with the product's own times while
// nothing happens; core-% is the share of one core that this takes.
func BenchmarkIdle(b *testing.B) {
	for _, poll := range []bool{false, true} {
		b.Run(fmt.Sprintf("polling=%v", poll), func(b *testing.B) {
			s := New(Options{AlwaysPoll: poll})
			defer s.Close()
			for range 20 {
				root := b.TempDir()
				for j := range 200 {
					write(b, filepath.Join(root, fmt.Sprintf("m%d.md", j)), "x")
				}
				w, err := s.Watch(root)
				if err != nil {
					b.Fatal(err)
				}
				<-w.C()
			}
			const each = 10 * time.Second
			for b.Loop() {
				before := cpu(b)
				time.Sleep(each)
				b.ReportMetric(100*(cpu(b)-before).Seconds()/each.Seconds(), "core-%")
			}
		})
	}
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
