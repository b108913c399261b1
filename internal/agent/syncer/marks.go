package syncer

import (
	"context"
	"errors"
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// Mark is a point of the hub's history that this machine has passed. A commit's id
// covers all commits before it, so that one mark found again in another history proves
// everything up to it to be shared.
type Mark struct {
	Revision memory.Revision `json:"r"`
	ID       memory.CommitID `json:"i"`
}

// The newest denseMarks commits are marked one by one; before them the gaps are an eighth
// of the age. So maxMarks, the bound of LinkState.Marks, serves for a billion commits.
const (
	maxMarks   = 256
	denseMarks = maxMarks / 2
)

// mark adds a point of the history that goes on from there.
func (s *LinkState) mark(m Mark) {
	if m.ID == "" || m.Revision <= 0 {
		return
	}
	s.cutMarks(m.Revision - 1)
	s.Marks = append(slices.Clip(s.Marks), m)
	if len(s.Marks) <= maxMarks {
		return
	}
	dense := len(s.Marks) - denseMarks
	thin := make([]Mark, 0, maxMarks)
	for i, old := range s.Marks[:dense] {
		if n := len(thin); n == 0 || s.Marks[i+1].Revision-thin[n-1].Revision > (m.Revision-old.Revision)/8 {
			thin = append(thin, old)
		}
	}
	thin = thin[max(0, len(thin)-denseMarks):]
	s.Marks = append(thin, s.Marks[dense:]...)
}

// cutMarks forgets the marks after a revision.
func (s *LinkState) cutMarks(after memory.Revision) {
	n := len(s.Marks)
	for n > 0 && s.Marks[n-1].Revision > after {
		n--
	}
	s.Marks = s.Marks[:n]
}

// passMarks notes the commits that a pull went through, the newest ones alone; the last
// is the cursor's.
func (c *cycle) passMarks(cursors []memory.Cursor) {
	for _, at := range cursors {
		c.marks = append(c.marks, Mark{at.Revision, at.CommitID})
	}
	if n := len(c.marks) - denseMarks; n > 0 {
		c.marks = slices.Delete(c.marks, 0, n)
	}
}

// fork returns the last revision up to which the hub's history is surely the one that
// from is of, and the hub's epoch. The hub knows it of the epochs it had; where a volume
// was put back silently nobody does, and the marks tell. 0 is that nothing is known to
// be shared.
func (c *cycle) fork(ctx context.Context, from memory.Cursor) (memory.Revision, memory.Epoch, error) {
	info, err := c.s.ports.Remote.Head(ctx, from)
	if err == nil {
		// What is missing came after the cursor. Right before the oldest commit that is
		// kept, a cursor fits whatever it says.
		if from.Revision >= info.Oldest || from.Revision == info.Head.Revision {
			return from.Revision, info.Head.Epoch, nil
		}
		return 0, info.Head.Epoch, nil
	}
	var e *memory.Error
	if !errors.Is(err, memory.ErrEpochChanged) || !errors.As(err, &e) {
		return 0, "", err
	}
	told := memory.Revision(0)
	if e.Head.Epoch != from.Epoch {
		told = e.RewindRevision
	}
	marks := c.s.state.Marks
	if n := len(marks); n == 0 || marks[n-1].Revision < from.Revision {
		marks = append(slices.Clip(marks), Mark{from.Revision, from.CommitID})
	}
	n, _ := slices.BinarySearchFunc(marks, e.Head.Revision+1, func(m Mark, r memory.Revision) int { return int(m.Revision - r) })
	marks = marks[:n]
	// The marks are, in this order, older than what the hub keeps, shared, or foreign.
	shared, lo, hi := memory.Revision(0), 0, len(marks)
	for lo < hi {
		mid := (lo + hi) / 2
		is, foreign, err := c.holds(ctx, e.Head.Epoch, marks[mid])
		switch {
		case err != nil:
			return 0, "", err
		case foreign:
			hi = mid
		default:
			lo = mid + 1
			if is {
				shared = marks[mid].Revision
			}
		}
	}
	if told > shared && (hi == len(marks) || told < marks[hi].Revision) {
		shared = told // nothing speaks against what the hub says
	}
	return shared, e.Head.Epoch, nil
}

// holds asks whether the hub's history goes through a mark. Both are false where the hub
// has forgotten.
func (c *cycle) holds(ctx context.Context, epoch memory.Epoch, m Mark) (is, foreign bool, err error) {
	info, err := c.s.ports.Remote.Head(ctx, memory.Cursor{Epoch: epoch, Revision: m.Revision, CommitID: m.ID})
	switch {
	case err == nil:
		return m.Revision >= info.Oldest || m.Revision == info.Head.Revision, false, nil
	case errors.Is(err, memory.ErrEpochChanged):
		return false, true, nil
	case errors.Is(err, memory.ErrRevisionCompacted):
		return false, false, nil
	}
	return false, false, err
}
