package workspace

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// fill makes n memories of 2 KB in 20 directories, last changed an hour ago.
func fill(b testing.TB, w *Workspace, n int) {
	b.Helper()
	old := time.Now().Add(-time.Hour)
	for i := range n {
		name := fmt.Sprintf("area%d/project_memory_%d.md", i%20, i)
		put(b, w, name, strings.Repeat(fmt.Sprintf("line %d of a memory\n", i), 100))
		must(b, os.Chtimes(w.dir+"/"+name, old, old))
	}
	// Their change times are now; a clock an hour on makes the cache trust them.
	w.opts.Now = func() time.Time { return time.Now().Add(time.Hour) }
}

// BenchmarkScanUnchanged is what a look costs when nothing changed.
func BenchmarkScanUnchanged(b *testing.B) {
	for _, n := range []int{200, 5000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			w := open(b)
			fill(b, w, n)
			scanOf(b, w)
			b.ReportAllocs()
			for b.Loop() {
				if s := scanOf(b, w); len(s.Files) != n {
					b.Fatal(len(s.Files))
				}
			}
		})
	}
}

// BenchmarkScanFirst hashes everything.
func BenchmarkScanFirst(b *testing.B) {
	w := open(b)
	fill(b, w, 200)
	b.ReportAllocs()
	for b.Loop() {
		v := openAt(b, w.dir)
		scanOf(b, v)
	}
}

// BenchmarkWrite replaces a 2 KB memory durably.
func BenchmarkWrite(b *testing.B) {
	w := open(b)
	fill(b, w, 200)
	scanOf(b, w)
	text := []byte(strings.Repeat("x", 2048))
	expect := memory.ETag("")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		copy(text, fmt.Sprint(i))
		must(b, w.Write(context.Background(), "area1/new.md", text, time.Time{}, expect))
		expect = memory.ETagOf(text)
	}
}
