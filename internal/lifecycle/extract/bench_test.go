package extract_test

import (
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/extract"
)

// BenchmarkRules reads a long message in which nothing is to be remembered.
func BenchmarkRules(b *testing.B) {
	said := []extract.Said{{Person: true, Text: strings.Repeat("Please look at the handler and tell me why it fails when the queue is empty. ", 250)}}
	b.SetBytes(int64(len(said[0].Text)))
	for b.Loop() {
		if got := extract.Explicit(said); len(got) != 0 {
			b.Fatal(got)
		}
	}
}
