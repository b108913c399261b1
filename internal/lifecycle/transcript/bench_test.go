package transcript_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/transcript"
)

// long builds a conversation of about size bytes without a compaction, no two lines alike.
func long(size int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var c conversation
	for i := 0; c.Len() < size; i++ {
		words := make([]string, 200+rnd.IntN(800))
		for j := range words {
			words[j] = fmt.Sprintf("w%d", rnd.IntN(5000))
		}
		switch i % 4 {
		case 0:
			c.message("user", strings.Join(words[:50], " "))
		case 1:
			c.call(fmt.Sprintf("Tool%d", i%7), fmt.Sprintf("t%d", i), i%5 == 0)
		default:
			c.message("assistant", []object{{"type": "text", "text": strings.Join(words, " ")}})
		}
		if i%50 == 0 {
			c.inject(fmt.Sprintf("m%d.md", i))
		}
	}
	return c.Bytes()
}

// BenchmarkReadWindow reads a conversation of 20 MB, beside looking for one byte that is
// not there, which is as fast as bytes can be looked at.
func BenchmarkReadWindow(b *testing.B) {
	text := long(20 << 20)
	b.Run("window", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := transcript.ReadWindow(bytes.NewReader(text), int64(len(text))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if bytes.IndexByte(text, 0) >= 0 {
				b.Fatal("found")
			}
		}
	})
}
