package syncstate

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// fill puts n memories of 2 KB into a link's state.
func fill(b testing.TB, s *State, n int) {
	b.Helper()
	u := syncer.Update{LinkID: "id", Cursor: &memory.Cursor{Revision: 1}, PutBaseline: map[memory.Path]syncer.BaseEntry{}}
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("line %d of a memory\n", i), 100)
		u.Texts = append(u.Texts, []byte(text))
		e := etag(text)
		u.PutBaseline[path(i)] = syncer.BaseEntry{Text: e, Hub: e, Local: e, HubRevision: memory.Revision(i), Author: [3]string{"ann", "bob", "cem"}[i%3]}
	}
	if err := s.Apply(context.Background(), u); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOpenReadOnly is what `status` pays for one link.
func BenchmarkOpenReadOnly(b *testing.B) {
	for _, n := range []int{200, 5000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			s := mustOpen(b, dir)
			fill(b, s, n)
			must(b, s.rewrite())
			b.ReportAllocs()
			for b.Loop() {
				r, err := OpenReadOnly(dir, link, Options{})
				must(b, err)
				if _, err := r.Load(context.Background()); err != nil {
					b.Fatal(err)
				}
				must(b, r.Close())
			}
		})
	}
}

// BenchmarkAuthors is what a prompt's hook pays for the authors of the team's memories that
// it brings.
func BenchmarkAuthors(b *testing.B) {
	for _, n := range []int{200, 5000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			s := mustOpen(b, dir)
			fill(b, s, n)
			must(b, s.rewrite())
			ask := map[memory.Path]memory.ETag{}
			for i := range 5 {
				p := path(i * n / 5)
				ask[p] = s.state.Baseline[p].Local
			}
			b.ReportAllocs()
			for b.Loop() {
				if found, err := Authors(dir, link, ask); err != nil || len(found) != len(ask) {
					b.Fatal(found, err)
				}
			}
		})
	}
}

// BenchmarkApply is one agreed 2 KB memory: one write, one fsync.
func BenchmarkApply(b *testing.B) {
	for _, relaxed := range []bool{false, true} {
		b.Run(fmt.Sprintf("relaxed=%v", relaxed), func(b *testing.B) {
			s := mustOpen(b, b.TempDir())
			fill(b, s, 200)
			text := []byte(strings.Repeat("x", 2048))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				copy(text, fmt.Sprint(i))
				u := baseline(path(i%200), string(text), memory.Revision(i))
				u.Relaxed = relaxed
				mustApply(b, s, u)
			}
		})
	}
}

// Twenty links of 200 memories: the texts stay on the disk.
func TestMemoryOfManyLinks(t *testing.T) {
	dir := t.TempDir()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var open []*State
	for i := range 20 {
		s, err := Open(dir, fmt.Sprint("link", i), Options{})
		must(t, err)
		defer s.Close()
		fill(t, s, 200)
		must(t, s.Close())
		s, err = Open(dir, fmt.Sprint("link", i), Options{})
		must(t, err)
		open = append(open, s)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d KB for 20 links of 200 memories", used>>10)
	if used > 6<<20 {
		t.Errorf("20 links of 200 memories take %d bytes", used)
	}
	for _, s := range open {
		must(t, s.Close())
	}
}
