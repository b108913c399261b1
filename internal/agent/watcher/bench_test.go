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

// BenchmarkSignalAfterQuiet measures what is added to the quiet time between the end
// of a save and its signal, in a directory of 200 files.
func BenchmarkSignalAfterQuiet(b *testing.B) {
	s := New(Options{})
	defer s.Close()
	root := b.TempDir()
	for j := range 200 {
		write(b, filepath.Join(root, fmt.Sprintf("m%d.md", j)), "x")
	}
	w, err := s.Watch(root)
	if err != nil {
		b.Fatal(err)
	}
	<-w.C()
	var added time.Duration
	n := 0
	for b.Loop() {
		write(b, filepath.Join(root, "m1.md"), fmt.Sprint(n))
		start := time.Now()
		<-w.C()
		added += time.Since(start) - s.opts.Quiet
		n++
	}
	b.ReportMetric(float64(added.Microseconds())/float64(n), "µs-added/op")
}
