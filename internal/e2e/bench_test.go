package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// BenchmarkPropagation measures the way of an edit: from the save on one machine to
// the text being readable on the other, over the embedded store, with the debounce
// that people have. What is reported is the way without the debounce.
func BenchmarkPropagation(b *testing.B) {
	const debounce = 300 * time.Millisecond
	for _, files := range []int{200, 5000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			h := hubtest.Start(b, hubtest.Options{SQLite: true})
			token := h.TokenFile("acme", "pay", "writer")
			var dirs [2]string
			for i := range dirs {
				dirs[i] = b.TempDir()
				if i == 0 {
					for n := range files {
						if err := os.WriteFile(fmt.Sprintf("%s/project_%04d.md", dirs[0], n), []byte(note(fmt.Sprint(n), padding(2000))), 0o644); err != nil {
							b.Fatal(err)
						}
					}
				}
				d := daemon(b, b.TempDir(), agent.Link{Hub: h.GRPCAddr, TokenFile: token, Team: "acme", Project: "pay", Dir: dirs[i]})
				hubtest.Eventually(b, 2*time.Minute, "in step", func() bool {
					l := d.Status().Links[0]
					return l.InStep && l.Files == files
				})
			}
			var took []time.Duration
			n := 0
			for b.Loop() {
				// One round is enough for a median and a rough p99; every edit takes
				// the debounce, so that few rounds fit into a second.
				for range 100 {
					from, to := dirs[n%2], dirs[(n+1)%2]
					took = append(took, travel(b, from, to, fmt.Sprintf("/project_%04d.md", n%files), n)-debounce)
					n++
				}
			}
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms(took[len(took)/2]), "ms-median")
			b.ReportMetric(ms(took[len(took)*99/100]), "ms-p99")
		})
	}
}

// travel saves a text in one directory and returns how long it takes to the other.
func travel(b *testing.B, from, to, name string, n int) time.Duration {
	text := note("x", fmt.Sprintf("edit %d", n)+padding(2000))
	if err := os.WriteFile(from+name, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for {
		got, err := os.ReadFile(to + name)
		if err == nil && string(got) == text {
			return time.Since(start)
		}
		if time.Since(start) > patience {
			b.Fatal("the edit does not arrive")
		}
		time.Sleep(200 * time.Microsecond) // how exact the measurement is
	}
}

func padding(n int) string {
	var b []byte
	for len(b) < n {
		b = append(b, "\nA line that tells where something is, and why it is so."...)
	}
	return string(b[:n])
}

// daemon runs links with the times that people have.
func daemon(tb testing.TB, state string, links ...agent.Link) *agent.Daemon {
	tb.Helper()
	d, err := agent.NewDaemon(agent.DaemonOptions{StateDir: state, Watcher: watcher.Options{}, Scan: workspace.Options{}, Client: client.Options{}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = d.Close() })
	if err := d.Apply(links); err != nil {
		tb.Fatal(err)
	}
	return d
}
