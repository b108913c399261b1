package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// ImportOptions say what an import does beside adding what it reads.
type ImportOptions struct {
	// Epoch is the id of the epoch that the import mints (SPEC 13.4); required.
	Epoch memory.Epoch
	// Now is its time.
	Now time.Time
	// Progress, if set, is told how far it has come.
	Progress Progress
	// Judge, if set, decides about texts other than contents of memories.
	Judge Judge
}

// Import adds what the archive holds to b and mints a new epoch, so that clients
// see that the history may have been rewound. Projects that are there already must
// have the archive's history, or a beginning of it: their commits are compared by
// id, and only what is missing is added. Another history under the same name is an
// ErrAlreadyExists. Settings and tokens that are there already stay as they are.
//
// If r can seek, the whole archive is verified and compared with what is there first: a
// damaged one, or one with another history of any project, is a *Refused and changes
// nothing. If it cannot, damage is found when it is reached: what came before it
// stays, whole commits only, and a further import goes on from there.
func Import(ctx context.Context, b store.Backend, r io.Reader, opts ImportOptions) (Count, error) {
	if opts.Epoch == "" {
		return Count{}, store.Invalid("import: it needs an epoch to mint")
	}
	if s, ok := r.(io.Seeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			// The judge's refusals come here too, before anything is written.
			if err := lookFirst(ctx, b, r, opts.Judge); err != nil {
				return Count{}, &Refused{err}
			}
			if _, err := s.Seek(start, io.SeekStart); err != nil {
				return Count{}, fmt.Errorf("import: %w", err)
			}
		}
	}
	x := importer{b: b, opts: opts}
	if err := each(ctx, r, judged(opts.Judge, x.frame)); err != nil {
		return x.count, err
	}
	return x.count, b.NewEpoch(ctx, opts.Epoch, opts.Now)
}

// Verify reads an archive to its end and reports what is wrong with it.
func Verify(ctx context.Context, r io.Reader) error {
	return each(ctx, r, func(context.Context, frame) error { return nil })
}

// each calls f with every frame of a well-formed archive, in order.
func each(ctx context.Context, r io.Reader, f func(context.Context, frame) error) error {
	a, err := newReader(r)
	if err != nil {
		return err
	}
	var g grammar
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		fr, err := a.read()
		if errors.Is(err, io.EOF) {
			return g.end()
		}
		if err != nil {
			return err
		}
		if err := g.accept(fr); err != nil {
			return err
		}
		if err := f(ctx, fr); err != nil {
			return err
		}
	}
}

// grammar checks that frames follow each other as Export writes them, and are
// sound in themselves.
type grammar struct {
	began   bool
	project *projectFrame // the one under way
	last    memory.Revision
	lastID  memory.CommitID
	commits int64
}

func (g *grammar) accept(f frame) error {
	set := 0
	for _, is := range []bool{f.Header != nil, f.Setting != nil, f.Redact != nil, f.Token != nil, f.Project != nil, f.Commit != nil, f.End != nil} {
		if is {
			set++
		}
	}
	inProject := f.Commit != nil || f.End != nil
	if set != 1 || g.began == (f.Header != nil) || (g.project != nil) != inProject {
		return damaged("a part is out of place")
	}
	switch {
	case f.Header != nil:
		g.began = true
		if v := f.Header.Version; v < 1 || v > Version {
			return store.Invalid("archive: it has version %d, this program reads up to %d; use the newer memsvc that wrote it", v, Version)
		}
	case f.Project != nil:
		if _, err := memory.ParseProjectKey(f.Project.key().String()); err != nil {
			return unsound(err)
		}
		if f.Project.Oldest < 1 || f.Project.Head < 0 || len(f.Project.Spans) == 0 {
			return damaged("%s has no beginning or no epoch", f.Project.key())
		}
		g.project, g.last, g.lastID, g.commits = f.Project, 0, "", 0
	case f.Commit != nil:
		c, err := f.Commit.commit(g.project.key())
		if err != nil {
			return unsound(err)
		}
		if err := store.CheckImport(c.Project, g.last, g.project.Oldest, g.project.Oldest, []memory.Commit{c}); err != nil {
			return unsound(err)
		}
		g.last, g.lastID = c.Revision, c.ID
		g.commits++
	case f.End != nil:
		if g.last != g.project.Head || g.lastID != g.project.HeadID || f.End.Commits != g.commits {
			return damaged("%s lacks commits", g.project.key())
		}
		g.project = nil
	}
	return nil
}

func (g *grammar) end() error {
	if !g.began || g.project != nil {
		return damaged("it ends too early")
	}
	return nil
}

type importer struct {
	b     store.Backend
	opts  ImportOptions
	count Count

	project *projectFrame
	there   there
	batch   []memory.Commit
	size    int64
}

func (x *importer) frame(ctx context.Context, f frame) error {
	switch {
	case f.Setting != nil:
		return x.setting(ctx, f.Setting)
	case f.Redact != nil:
		return x.b.ImportRedactions(ctx, f.Redact.Team, f.Redact.Fingerprints)
	case f.Token != nil:
		return x.token(ctx, *f.Token)
	case f.Project != nil:
		return x.begin(ctx, f.Project)
	case f.Commit != nil:
		return x.commit(ctx, f.Commit)
	case f.End != nil:
		return x.finish(ctx)
	}
	return nil
}

func (x *importer) setting(ctx context.Context, s *settingFrame) error {
	err := x.b.PutSetting(ctx, s.Scope, s.Name, s.Doc, 0)
	if errors.Is(err, memory.ErrETagMismatch) {
		return nil // the hub has its own
	}
	return err
}

func (x *importer) token(ctx context.Context, t store.Token) error {
	err := x.b.PutToken(ctx, t)
	if errors.Is(err, memory.ErrAlreadyExists) {
		return nil
	}
	return err
}

// begin makes the project, or looks at how much of it is there.
func (x *importer) begin(ctx context.Context, p *projectFrame) error {
	key := p.key()
	err := x.b.CreateProject(ctx, key, p.Created)
	if err != nil && !errors.Is(err, memory.ErrAlreadyExists) {
		return err
	}
	if x.there, err = thereOf(ctx, x.b, p); err != nil {
		return err
	}
	x.project, x.batch, x.size = p, nil, 0
	return nil
}

// commit compares a commit that is there, or collects one that is not.
func (x *importer) commit(ctx context.Context, f *commitFrame) error {
	c, err := f.commit(x.project.key())
	if err != nil {
		return err
	}
	x.count.Commits++
	for i := range c.Changes {
		x.count.Bytes += c.Changes[i].Size
		x.size += c.Changes[i].Size
	}
	if c.Revision <= x.there.have {
		return x.there.compare(ctx, x.b, &c)
	}
	x.batch = append(x.batch, c)
	if len(x.batch) >= maxBatchCommits || x.size >= maxBatchBytes {
		return x.flush(ctx)
	}
	return nil
}

// sameContents reports whether two commits of one id say the same. They need not:
// redaction rewrites what an id covered.
func sameContents(a, b *memory.Commit) bool {
	if len(a.Changes) != len(b.Changes) {
		return false
	}
	for i := range a.Changes {
		if a.Changes[i].Path != b.Changes[i].Path || a.Changes[i].ETag != b.Changes[i].ETag ||
			!bytes.Equal(a.Changes[i].Content, b.Changes[i].Content) {
			return false
		}
	}
	return true
}

func (x *importer) flush(ctx context.Context) error {
	if len(x.batch) == 0 {
		return nil
	}
	if err := x.b.ImportCommits(ctx, x.project.key(), x.project.Oldest, x.batch); err != nil {
		return err
	}
	x.batch, x.size = nil, 0
	x.opts.Progress.report(x.count)
	return nil
}

func (x *importer) finish(ctx context.Context) error {
	if err := x.flush(ctx); err != nil {
		return err
	}
	if err := x.b.ImportSpans(ctx, x.project.key(), x.project.Spans); err != nil {
		return err
	}
	x.count.Projects++
	x.opts.Progress.report(x.count)
	return nil
}
