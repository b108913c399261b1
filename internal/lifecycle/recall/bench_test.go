package recall_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/recall"
)

// BenchmarkRecall ranks 10,000 memories, which is fifty scans' worth, beside reading the
// heads of as many files one after the other, as cat does.
func BenchmarkRecall(b *testing.B) {
	const files = 10_000
	s := newShelf(b)
	labelledOnes, _ := labelled(b)
	memories := make([]recall.Memory, files)
	for i := range memories {
		m := labelledOnes[i%len(labelledOnes)]
		m.Ref = fmt.Sprintf("m%05d.md", i)
		m.Head += strings.Repeat("A line of text about something that was found out, and why.\n", 10)
		memories[i] = m
		s.write(m.Ref, "---\nname: "+quoted(m.Name)+"\ndescription: "+quoted(m.Description)+"\n---\n"+m.Head, 0)
	}
	cat := func() {
		for _, m := range memories {
			if _, err := os.ReadFile(filepath.Join(s.dir, m.Ref)); err != nil {
				b.Fatal(err)
			}
		}
	}
	const prompt = "the new version is broken in production, how do we roll back the database migration?"
	b.Run("rank", func(b *testing.B) {
		var own, floor time.Duration
		for b.Loop() {
			began := time.Now()
			recall.Rank(memories, prompt)
			own += time.Since(began)
			began = time.Now()
			cat()
			floor += time.Since(began)
		}
		b.ReportMetric(float64(own)/float64(floor), "times-cat")
	})
	// As the hook does it: of all files only the newest are read.
	b.Run("scan", func(b *testing.B) {
		var own, floor time.Duration
		for b.Loop() {
			began := time.Now()
			list, err := recall.Scan(b.Context(), s.dir, "")
			if err != nil {
				b.Fatal(err)
			}
			recall.Rank(list, prompt)
			own += time.Since(began)
			began = time.Now()
			cat()
			floor += time.Since(began)
		}
		b.ReportMetric(float64(own)/float64(floor), "times-cat")
	})
}
