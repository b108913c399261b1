package agent

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

func at(r int) memory.Cursor {
	c := memory.Cursor{Epoch: "e", Revision: memory.Revision(r)}
	if r > 0 {
		c.CommitID = memory.CommitID(fmt.Sprint("c", r))
	}
	return c
}

func commitEvent(r int, size int64) client.Event {
	return client.Event{Kind: client.EventCommit, Cursor: at(r), Commit: memory.Commit{
		Revision: memory.Revision(r), ID: at(r).CommitID, Time: time.Unix(int64(r), 0),
		Changes: []memory.AppliedChange{{Path: "x.md", Kind: memory.Put, Size: size}},
	}}
}

func bookmarkEvent(r int) client.Event {
	return client.Event{Kind: client.EventBookmark, Cursor: at(r)}
}

// TestBufferNeverHidesACommit plays streams that come, go and start anew, own commits,
// and heads that calls find: whatever the buffer answers without a call is the gapless
// continuation of the cursor up to all that the stream has delivered, and it says
// "nothing" only where nothing the hub told is missing.
func TestBufferNeverHidesACommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &remote{}
		hub, stream, cursor, told := 0, 0, 0, 0
		live := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"commit", "deliver", "up", "down", "head", "read", "push", "big"}).Draw(t, "step") {
			case "commit":
				hub++
			case "deliver", "big":
				if live && stream < hub {
					stream++
					size := int64(1)
					if rapid.Bool().Draw(t, "large") {
						size = maxBufferedBytes / 2
					}
					r.event(commitEvent(stream, size))
					told = max(told, stream)
				}
			case "up":
				// It begins where the syncer stands, or earlier for another link's sake.
				r.event(client.Event{Kind: client.EventDown})
				stream, live = rapid.IntRange(0, cursor).Draw(t, "from"), true
				r.event(bookmarkEvent(stream))
			case "down":
				live = false
				r.event(client.Event{Kind: client.EventDown})
			case "head":
				r.sawHead(at(hub))
				told = hub
			case "push":
				// Our own commit on top of what we have, whose answer says where the head is.
				if cursor == hub {
					hub++
					r.mu.Lock()
					r.pushed = at(hub)
					r.mu.Unlock()
					cursor = hub
				}
			case "read":
				page, ok := r.buffered(at(cursor))
				if !ok {
					cursor = hub // a call would have told all
					continue
				}
				if !live {
					t.Fatalf("answered without a stream")
				}
				for i, c := range page.Commits {
					if int(c.Revision) != cursor+1+i || page.Cursors[i] != at(cursor+1+i) {
						t.Fatalf("cursor %d, but commit %d came at place %d", cursor, c.Revision, i)
					}
				}
				cursor += len(page.Commits)
				if cursor < stream {
					t.Fatalf("the stream has delivered %d, the buffer answers only up to %d", stream, cursor)
				}
				if len(page.Commits) == 0 && cursor < told && cursor < stream {
					t.Fatalf("the hub told of %d, the buffer says that nothing follows %d", told, cursor)
				}
			}
		}
	})
}

func TestOwnCommitsAreNoNews(t *testing.T) {
	r := &remote{own: map[memory.Revision]bool{3: true}}
	r.event(bookmarkEvent(2))
	r.sawHead(at(2))
	r.event(commitEvent(3, 1))
	if !r.onlyOwn(at(2)) {
		t.Error("our own commit counts as news")
	}
	r.event(commitEvent(4, 1))
	if r.onlyOwn(at(2)) {
		t.Error("another's commit behind ours does not count as news")
	}
	// Only the other's is measured.
	if got := r.appliedUpTo(at(4)); len(got) != 1 || !got[0].time.Equal(time.Unix(4, 0)) {
		t.Errorf("measured: %v", got)
	}
	if got := r.appliedUpTo(at(4)); len(got) != 0 {
		t.Errorf("measured twice: %v", got)
	}
}

func TestChangedEpochIsNotAnswered(t *testing.T) {
	r := &remote{}
	r.event(bookmarkEvent(2))
	r.sawHead(at(2))
	other := at(2)
	other.Epoch = "another"
	if _, ok := r.buffered(other); ok {
		t.Error("a cursor of another history was answered without the hub")
	}
	if _, ok := r.buffered(at(2)); !ok {
		t.Error("the head of a live stream needs a call")
	}
}
