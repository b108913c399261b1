package sqlite

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memsvc/memsvc/internal/memory"
)

// The tail ends at the newest commit, has no gap and keeps its bounds, and what a
// reader took stays as it was.
func TestTailKeepsItsBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var tl tail
	var taken []memory.Commit
	var end *memory.Commit // of the array that the tail is in
	var beside int64       // what it was dropped of since the array is the same
	for rev := memory.Revision(1); rev <= 2000; rev++ {
		c := memory.Commit{Revision: rev, Changes: []memory.AppliedChange{{Size: rnd.Int64N(6000)}}}
		if rev%300 == 0 {
			c.Changes[0].Size = 2 * tailBytes
		}
		before, counted := slices.Clone(taken), tl.bytes+commitSize(&c)
		tl.push(c)
		beside += counted - tl.bytes
		if n := cap(tl.commits); n == 0 || end != &tl.commits[:n][n-1] {
			end, beside = nil, 0
			if n > 0 {
				end = &tl.commits[:n][n-1]
			}
		}
		for i := range taken {
			if taken[i].Revision != before[i].Revision {
				t.Fatalf("at %d: what a reader holds changed", rev)
			}
		}
		taken = tl.commits
		var bytes int64
		for i := range tl.commits {
			bytes += commitSize(&tl.commits[i])
			if want := rev - memory.Revision(len(tl.commits)-1-i); tl.commits[i].Revision != want {
				t.Fatalf("at %d: revision %d where %d should be", rev, tl.commits[i].Revision, want)
			}
		}
		if bytes != tl.bytes || bytes > tailBytes || beside > tailBytes {
			t.Fatalf("at %d: %d bytes, counted %d, beside %d, want at most %d each", rev, bytes, tl.bytes, beside, tailBytes)
		}
		if len(tl.commits) < 10 && rev%300 > 30 {
			t.Fatalf("at %d: only %d commits", rev, len(tl.commits))
		}
	}
}

// Recent commits are given out as copies, whoever made their contents.
func TestRecentCommitsAreCopies(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	if err := s.CreateProject(t.Context(), key, day0); err != nil {
		t.Fatal(err)
	}
	req := put("a.md", "original")
	req.HandedOver = true
	if _, err := s.Commit(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		commits, err := s.Changes(t.Context(), key, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(commits[0].Changes[0].Content); got != "original" {
			t.Fatalf("got %q after a caller wrote into what it had been given", got)
		}
		copy(commits[0].Changes[0].Content, "scribble")
	}
}
