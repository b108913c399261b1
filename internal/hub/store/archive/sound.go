package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Sound looks for damage in a store, which rows changed or removed by hand leave: per
// project, revisions without gap up to the head, each change made on what was there before
// it, every text equal to its etag, and the present memories equal to what the log ends
// with. Each fault is told in one line without content. The store may be in use:
// what is committed meanwhile is left for another time. The error is about the looking.
func Sound(ctx context.Context, b store.Backend, progress Progress, tell func(fault string)) (Count, error) {
	var count Count
	keys, err := b.Projects(ctx, "")
	if err != nil {
		return count, err
	}
	for _, key := range keys {
		found, err := sound(ctx, b, key, count, progress)
		switch {
		case errors.Is(err, memory.ErrNotFound): // purged meanwhile
			continue
		case err != nil:
			return count, err
		}
		for _, f := range found.faults {
			tell(f)
		}
		count = found.count
		count.Projects++
		progress.report(count)
	}
	return count, nil
}

// looks bounds how often a project is looked at anew that changes while it is looked at:
// a redaction rewrites what was read before it.
const looks = 3

func sound(ctx context.Context, b store.Backend, key memory.ProjectKey, before Count, progress Progress) (*sounding, error) {
	for n := 1; ; n++ {
		s := &sounding{b: b, key: key, at: make(map[memory.Path]state), count: before, progress: progress}
		info, err := b.Project(ctx, key)
		if err == nil {
			err = s.look(ctx, &info)
		}
		if err != nil {
			if errors.Is(err, memory.ErrInternal) && ctx.Err() == nil {
				s.fault("%v", err)
				return s, nil
			}
			return nil, err
		}
		if len(s.faults) == 0 || n == looks {
			return s, nil
		}
		now, err := b.Project(ctx, key)
		if err != nil {
			return nil, err
		}
		if now == info {
			return s, nil
		}
	}
}

// sounding is the look at one project.
type sounding struct {
	b        store.Backend
	key      memory.ProjectKey
	at       map[memory.Path]state // after the commits seen so far
	faults   []string
	count    Count
	progress Progress
}

// state is what a path holds; etag "" is a tombstone.
type state struct {
	rev  memory.Revision
	etag memory.ETag
	size int64
}

// maxFaults bounds what is told of one project: where much is wrong, the first lines
// say what.
const maxFaults = 20

func (s *sounding) fault(format string, args ...any) {
	switch n := len(s.faults); {
	case n < maxFaults:
		s.faults = append(s.faults, fmt.Sprintf("%s: "+format, append([]any{s.key}, args...)...))
	case n == maxFaults:
		s.faults = append(s.faults, fmt.Sprintf("%s: further faults are not listed", s.key))
	}
}

func (s *sounding) look(ctx context.Context, info *store.ProjectInfo) error {
	if err := s.log(ctx, info); err != nil {
		return err
	}
	return s.heads(ctx, info)
}

// log follows the history up to the head.
func (s *sounding) log(ctx context.Context, info *store.ProjectInfo) error {
	var last memory.Revision
	var id memory.CommitID
	for more := true; more && last < info.Head.Revision; {
		commits, err := s.b.History(ctx, s.key, last, maxBatchCommits, maxBatchBytes)
		if err != nil {
			return err
		}
		more = len(commits) > 0
		for i := range commits {
			c := &commits[i]
			if c.Revision > info.Head.Revision {
				more = false // committed meanwhile
				break
			}
			if c.Revision > last+1 && c.Revision > info.Oldest { // below it gaps are right
				s.fault("after revision %d comes %d; what was between is missing", last, c.Revision)
			}
			s.commit(c, info.Oldest)
			last, id = c.Revision, c.ID
			s.count.Commits++
		}
		s.progress.report(s.count)
	}
	if info.Oldest <= info.Head.Revision && (last < info.Head.Revision || id != info.Head.CommitID) {
		s.fault("the history ends at revision %d and not with the head, %d", last, info.Head.Revision)
	}
	return nil
}

func (s *sounding) commit(c *memory.Commit, oldest memory.Revision) {
	for i := range c.Changes {
		ch := &c.Changes[i]
		s.count.Bytes += ch.Size
		if ch.ETag != "" && (memory.ETagOf(ch.Content) != ch.ETag || ch.Size != int64(len(ch.Content))) {
			s.fault("revision %d: the text of %s is not the one of its etag", c.Revision, ch.Path)
		}
		if before := s.at[ch.Path].etag; c.Revision >= oldest && before != ch.PreviousETag {
			s.fault("revision %d: %s was changed from a version that is not the one before; a change is missing", c.Revision, ch.Path)
		}
		s.at[ch.Path] = state{rev: c.Revision, etag: ch.ETag, size: ch.Size}
	}
}

// heads compares the present memories with what the log ended with.
func (s *sounding) heads(ctx context.Context, info *store.ProjectInfo) error {
	seen := make(map[memory.Path]bool, len(s.at))
	for after := memory.Path(""); ; {
		page, err := s.b.List(ctx, s.key, store.ListOptions{After: after, Limit: maxBatchCommits, Deleted: true, Content: true})
		if err != nil {
			return err
		}
		for i := range page {
			m := &page[i]
			after, seen[m.Path] = m.Path, true
			want, known := s.at[m.Path]
			switch {
			case m.Revision > info.Head.Revision: // committed meanwhile
			case !known:
				s.fault("%s is there, and no revision has made it", m.Path)
			case m.Revision != want.rev || m.ETag != want.etag || m.Deleted != (want.etag == ""):
				s.fault("%s is not as revision %d left it", m.Path, want.rev)
			case !m.Deleted && memory.ETagOf(m.Content) != m.ETag:
				s.fault("the text of %s is not the one of its etag", m.Path)
			}
		}
		if len(page) < maxBatchCommits {
			break
		}
	}
	var files, bytes int64
	for path, want := range s.at {
		if !seen[path] {
			s.fault("%s is missing, which revision %d made or deleted", path, want.rev)
		}
		if want.etag != "" {
			files, bytes = files+1, bytes+want.size
		}
	}
	if files != info.Files || bytes != info.Bytes {
		s.fault("the head counts %d memories of %d bytes, the history %d of %d", info.Files, info.Bytes, files, bytes)
	}
	return nil
}
