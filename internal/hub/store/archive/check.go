package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Checked is what Check found to be the same on both sides.
type Checked struct {
	Count
	// Digest is a lower-case hex SHA-256 over every commit's revision, id, paths, etags
	// and the bytes of its texts, project by project in the archive's order.
	Digest string
}

// Check compares the histories of an archive with those in b: every text is hashed
// anew, on both sides. Commits that came to b after the archive's head do not matter. A
// difference is an ErrInternal that names the project. Settings, tokens and labels are
// not compared: the hub that takes an archive in may have its own.
func Check(ctx context.Context, b store.Backend, r io.Reader, progress Progress) (Checked, error) {
	x := checker{b: b, progress: progress, all: sha256.New()}
	if err := each(ctx, r, x.frame); err != nil {
		return Checked{}, err
	}
	return Checked{Count: x.count, Digest: hex.EncodeToString(x.all.Sum(nil))}, nil
}

type checker struct {
	b        store.Backend
	progress Progress
	count    Count
	all      hash.Hash

	project *projectFrame
	sum     digest
}

func (x *checker) frame(ctx context.Context, f frame) error {
	switch {
	case f.Project != nil:
		x.project, x.sum = f.Project, newDigest(f.Project.key())
	case f.Commit != nil:
		c, err := f.Commit.commit(x.project.key())
		if err != nil {
			return err
		}
		x.sum.add(&c)
		x.count.Commits++
		for i := range c.Changes {
			x.count.Bytes += c.Changes[i].Size
		}
	case f.End != nil:
		return x.finish(ctx)
	}
	return nil
}

// finish digests what b has of the project and compares.
func (x *checker) finish(ctx context.Context) error {
	key, have := x.project.key(), newDigest(x.project.key())
	for after := memory.Revision(0); after < x.project.Head; {
		commits, err := x.b.History(ctx, key, after, maxBatchCommits, maxBatchBytes)
		if err != nil {
			return err
		}
		if len(commits) == 0 {
			break
		}
		for i := range commits {
			if after = commits[i].Revision; after <= x.project.Head {
				have.add(&commits[i])
			}
		}
	}
	want := x.sum.h.Sum(nil)
	if got := have.h.Sum(nil); string(got) != string(want) {
		return &memory.Error{Reason: memory.ReasonInternal, Message: fmt.Sprintf(
			"check %s: the hub's history is not the archive's (SHA-256 %x, want %x); if it was not compacted meanwhile, purge the project and import again", key, got, want)}
	}
	x.all.Write(want)
	x.count.Projects++
	x.progress.report(x.count)
	return nil
}

// digest is a running hash of one project's history.
type digest struct{ h hash.Hash }

func newDigest(key memory.ProjectKey) digest {
	d := digest{sha256.New()}
	d.text(key.String())
	return d
}

func (d digest) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	d.h.Write(b[:])
}

func (d digest) text(s string) {
	d.number(uint64(len(s)))
	d.h.Write([]byte(s))
}

func (d digest) add(c *memory.Commit) {
	d.number(uint64(c.Revision))
	d.text(string(c.ID))
	d.number(uint64(c.Time.UnixNano()))
	d.number(uint64(len(c.Changes)))
	for i := range c.Changes {
		ch := &c.Changes[i]
		d.text(string(ch.Path))
		d.text(ch.Kind.String())
		d.text(string(ch.ETag))
		d.text(string(ch.PreviousETag))
		d.text(string(ch.RenamedFrom))
		d.text(string(ch.Content))
	}
}
