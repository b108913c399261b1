package postgres

import (
	"encoding/hex"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// state is what a commit to a project is judged on, as of one revision. Another
// replica may be ahead of it: the transaction that uses it locks the project's head and
// reads from the log what it lacks.
type state struct {
	id      int64 // of the project's row; a project made anew has another
	rev     memory.Revision
	commit  memory.CommitID
	oldest  memory.Revision
	files   int64
	bytes   int64
	entries map[memory.Path]head
	paths   memory.CollisionIndex // of the living entries
}

// head is the newest version of one path.
type head struct {
	rev     memory.Revision
	size    int64
	sum     [32]byte // of a tombstone: the deleted text's
	deleted bool
}

func newState(id int64) *state {
	return &state{id: id, oldest: 1, entries: make(map[memory.Path]head)}
}

func (h head) etag() memory.ETag { return memory.ETag(hex.EncodeToString(h.sum[:])) }

// entry returns what is at a path; ok is false if nothing ever was.
func (s *state) entry(path memory.Path) (e store.Entry, ok bool) {
	h, ok := s.entries[path]
	if !ok {
		return e, false
	}
	if h.deleted {
		return store.Entry{LastETag: h.etag(), Revision: h.rev}, true
	}
	return store.Entry{ETag: h.etag(), Size: h.size, Revision: h.rev}, true
}

func (s *state) view(epoch memory.Epoch) store.View {
	return store.View{Head: s.cursor(epoch), Files: s.files, Bytes: s.bytes, Entry: s.entry, Collides: s.paths.CheckAfter}
}

func (s *state) cursor(epoch memory.Epoch) memory.Cursor {
	return memory.Cursor{Epoch: epoch, Revision: s.rev, CommitID: s.commit}
}

// set puts the newest version of a path in, as the table of heads has it. Paths leave
// before others come, so that a rename by case finds its place free: see follow.
func (s *state) set(path memory.Path, h head) {
	if was, ok := s.entries[path]; ok && !was.deleted {
		s.files--
		s.bytes -= was.size
	}
	s.entries[path] = h
	if !h.deleted {
		s.files++
		s.bytes += h.size
	}
}

// follow takes in a commit's changes.
func (s *state) follow(rev memory.Revision, id memory.CommitID, changes []memory.AppliedChange) {
	for i := range changes {
		if changes[i].ETag == "" {
			s.paths.Remove(changes[i].Path)
		}
	}
	for i := range changes {
		ch := &changes[i]
		s.set(ch.Path, headOf(ch, rev))
		if ch.ETag != "" {
			s.paths.Add(ch.Path)
		}
	}
	s.rev, s.commit = rev, id
}

// headOf returns the head that a change leaves.
func headOf(ch *memory.AppliedChange, rev memory.Revision) head {
	h := head{rev: rev, size: ch.Size}
	etag := ch.ETag
	if etag == "" {
		etag, h.deleted, h.size = ch.PreviousETag, true, 0
	}
	// An etag that is not a SHA-256 cannot get here: commits hash their contents and
	// imports are checked.
	_, _ = hex.Decode(h.sum[:], []byte(etag))
	return h
}

// sum returns an etag as it is stored; nil for none.
func sum(e memory.ETag) []byte {
	if e == "" {
		return nil
	}
	b, _ := hex.DecodeString(string(e)) // see headOf
	return b
}

func etagOf(sum []byte) memory.ETag { return memory.ETag(hex.EncodeToString(sum)) }
