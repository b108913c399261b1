package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Refused is an error of Import before which nothing was written: the archive is damaged,
// does not fit what is there, or could not be compared with it.
type Refused struct{ Err error }

// Error returns what is wrong.
func (r *Refused) Error() string { return r.Err.Error() }

// Unwrap returns the cause.
func (r *Refused) Unwrap() error { return r.Err }

// maxOthers bounds how many projects an error names.
const maxOthers = 10

// lookFirst reads an archive to its end and compares it with what b has of its projects.
// It writes nothing. All projects that are there with another history are in the one
// error.
func lookFirst(ctx context.Context, b store.Backend, r io.Reader, judge Judge) error {
	l := look{b: b}
	if err := each(ctx, r, judged(judge, l.frame)); err != nil {
		return err
	}
	return l.verdict()
}

// look compares an archive with what is there.
type look struct {
	b       store.Backend
	project *projectFrame
	there   there
	skip    bool    // of the project under way enough is known
	foreign []error // about projects with another history
	keys    []string
}

func (l *look) frame(ctx context.Context, f frame) error {
	var err error
	switch {
	case f.Project != nil:
		l.project, l.skip = f.Project, false
		l.there, err = thereOf(ctx, l.b, f.Project)
		if errors.Is(err, memory.ErrNotFound) {
			l.skip, err = true, nil
		}
	case f.Commit != nil && !l.skip && f.Commit.Revision <= l.there.have:
		var c memory.Commit
		if c, err = f.Commit.commit(l.project.key()); err == nil {
			err = l.there.compare(ctx, l.b, &c)
		}
	}
	if errors.Is(err, memory.ErrAlreadyExists) {
		l.foreign, l.keys = append(l.foreign, err), append(l.keys, l.project.key().String())
		l.skip, err = true, nil
	}
	return err
}

// verdict tells the first project in full and the others by name.
func (l *look) verdict() error {
	switch len(l.foreign) {
	case 0:
		return nil
	case 1:
		return l.foreign[0]
	}
	others, more := l.keys[1:], ""
	if n := len(others) - maxOthers; n > 0 {
		others, more = others[:maxOthers], fmt.Sprintf(" and %d more", n)
	}
	return &memory.Error{Reason: memory.ReasonAlreadyExists,
		Message: l.foreign[0].Error() + "; the same holds for " + strings.Join(others, ", ") + more}
}

// there is what the target has of a project.
type there struct {
	have  memory.Revision // its head; commits up to it are compared
	known []memory.Commit // read ahead for comparing
}

// thereOf looks how much of a project is there. The error is an ErrNotFound where nothing
// is, and an ErrAlreadyExists where it cannot be the archive's history.
func thereOf(ctx context.Context, b store.Backend, p *projectFrame) (there, error) {
	key := p.key()
	info, err := b.Project(ctx, key)
	if err != nil {
		return there{}, err
	}
	if have := info.Head.Revision; have > p.Head {
		return there{}, &memory.Error{Reason: memory.ReasonAlreadyExists,
			Message: fmt.Sprintf("import %s: it is at revision %d, the archive ends at %d; import into another hub, or purge it first", key, have, p.Head)}
	}
	if info.Head.Revision > 0 && info.Oldest != p.Oldest {
		return there{}, &memory.Error{Reason: memory.ReasonAlreadyExists,
			Message: fmt.Sprintf("import %s: it is there from revision %d on, in the archive from %d; import into another hub, or purge it first", key, info.Oldest, p.Oldest)}
	}
	return there{have: info.Head.Revision}, nil
}

// compare checks that the target has this very commit; commits come in order.
func (t *there) compare(ctx context.Context, b store.Backend, c *memory.Commit) error {
	if len(t.known) == 0 {
		known, err := b.History(ctx, c.Project, c.Revision-1, maxBatchCommits, maxBatchBytes)
		if err != nil {
			return err
		}
		t.known = known
	}
	if len(t.known) == 0 || t.known[0].Revision != c.Revision || t.known[0].ID != c.ID || !sameContents(&t.known[0], c) {
		return &memory.Error{Reason: memory.ReasonAlreadyExists,
			Message: fmt.Sprintf("import %s: the project is there with another history, which parts at revision %d; import into another hub, or purge it first", c.Project, c.Revision)}
	}
	t.known = t.known[1:]
	return nil
}
