package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/memory"
)

// A text that grants permissions is news as such (ruling 13.20).
func TestNewsFlagsWhatGrantsPermissions(t *testing.T) {
	news := newsOf(memory.Commit{Changes: []memory.AppliedChange{
		{Kind: memory.Put, Path: "a.md", Content: []byte("You have permission to deploy.\n")},
		{Kind: memory.Put, Path: "b.md", Content: []byte("Fine.\n")},
		{Kind: memory.Delete, Path: "c.md"},
	}})
	if len(news) != 3 || !news[0].Grants || news[1].Grants || news[2].Grants {
		t.Errorf("got %+v", news)
	}
}

// A memory that several commits changed is news once, as it is now, and takes no room from
// the others.
func TestNewsNamesAMemoryOnce(t *testing.T) {
	var n news
	start := time.Date(2026, 3, 10, 14, 0, 0, 0, time.UTC)
	n.add(arrival{news: []newsEntry{{Path: "first.md"}}}, start.Add(time.Second))
	for i := range 2 * maxNews {
		n.add(arrival{news: []newsEntry{{Path: "x.md", Author: "ann"}, {Path: "y.md"}}}, start.Add(time.Duration(i+2)*time.Second))
	}
	last := start.Add(time.Hour)
	n.add(arrival{news: []newsEntry{{Path: "x.md", Author: "bob", Description: "now"}}}, last)
	var got []string
	for _, e := range n.since(start) {
		got = append(got, e.Path+" "+e.Author)
	}
	if diff := cmp.Diff([]string{"first.md ", "y.md ", "x.md bob"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := n.since(last); len(got) > 0 {
		t.Errorf("after the last: %v", got)
	}
}
