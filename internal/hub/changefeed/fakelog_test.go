package changefeed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

const epoch memory.Epoch = "e1"

// fakeLog is a store's log with faults on request.
type fakeLog struct {
	mu       sync.Mutex
	commits  map[memory.ProjectKey][]memory.Commit
	oldest   map[memory.ProjectKey]memory.Revision
	notices  map[chan struct{}][]memory.ProjectKey
	reads    int
	failNext int  // reads that fail before one succeeds
	away     bool // the store cannot be asked which projects there are
	mute     bool // notices are lost
	epoch    memory.Epoch
}

func newLog(keys ...memory.ProjectKey) *fakeLog {
	l := &fakeLog{
		commits: map[memory.ProjectKey][]memory.Commit{}, oldest: map[memory.ProjectKey]memory.Revision{},
		notices: map[chan struct{}][]memory.ProjectKey{}, epoch: epoch,
	}
	for _, k := range keys {
		l.commits[k] = nil
		l.oldest[k] = 1
	}
	return l
}

func key(name string) memory.ProjectKey {
	return memory.ProjectKey{Team: "t", Project: memory.Project(name)}
}

// commit appends a commit with n changes and tells who listens.
func (l *fakeLog) commit(t testing.TB, k memory.ProjectKey, n int) memory.Commit {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	log := l.commits[k]
	c := memory.Commit{Project: k, Revision: memory.Revision(len(log) + 1)}
	for i := range n {
		content := []byte(fmt.Sprintf("text %d of %d", i, c.Revision))
		c.Changes = append(c.Changes, memory.AppliedChange{Path: memory.Path(fmt.Sprintf("p%d.md", i)), Kind: memory.Put, Content: content, ETag: memory.ETagOf(content)})
	}
	parent := memory.CommitID("")
	if len(log) > 0 {
		parent = log[len(log)-1].ID
	}
	c.ID = memory.NextCommitID(parent, l.epoch, &c)
	l.commits[k] = append(log, c)
	if !l.mute {
		for ch, keys := range l.notices {
			if slices.Contains(keys, k) {
				select {
				case ch <- struct{}{}:
				default:
				}
			}
		}
	}
	return c
}

func (l *fakeLog) all(k memory.ProjectKey) []memory.Commit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.commits[k])
}

func (l *fakeLog) compact(k memory.ProjectKey, oldest memory.Revision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.oldest[k] = oldest
}

func (l *fakeLog) readCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reads
}

func (l *fakeLog) Project(_ context.Context, k memory.ProjectKey) (store.ProjectInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	log, ok := l.commits[k]
	switch {
	case l.away:
		return store.ProjectInfo{}, &memory.Error{Reason: memory.ReasonUnavailable, Message: "the database is starting"}
	case !ok:
		return store.ProjectInfo{}, memory.ErrNotFound
	}
	info := store.ProjectInfo{Key: k, Oldest: l.oldest[k], Head: memory.Cursor{Epoch: l.epoch, Revision: memory.Revision(len(log))}}
	if len(log) > 0 {
		info.Head.CommitID = log[len(log)-1].ID
	}
	return info, nil
}

func (l *fakeLog) Changes(_ context.Context, k memory.ProjectKey, after memory.Revision, limit int, _ int64) ([]memory.Commit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.failNext > 0 {
		l.failNext--
		return nil, errors.New("disk trouble")
	}
	log, ok := l.commits[k]
	switch {
	case !ok:
		return nil, memory.ErrNotFound
	case after > memory.Revision(len(log)):
		return nil, memory.ErrInvalidArgument
	case after < l.oldest[k]-1:
		return nil, memory.ErrRevisionCompacted
	}
	return slices.Clone(log[after:min(int(after)+limit, len(log))]), nil
}

func (l *fakeLog) Notify(keys []memory.ProjectKey) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notices[ch] = keys
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.notices, ch)
	}
}

func (l *fakeLog) Rewind(_ context.Context, _ memory.ProjectKey, seen memory.Epoch) (memory.Revision, bool, error) {
	return 2, seen == "e0", nil
}

func (l *fakeLog) listeners() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.notices)
}
