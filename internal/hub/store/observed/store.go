package observed

import (
	"context"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Notify passes on; it does no work worth timing.
func (b *Backend) Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func()) {
	return b.next.Notify(keys)
}

// Close passes on.
func (b *Backend) Close() error { return b.next.Close() }

// Commit is watched, and its bytes are counted.
func (b *Backend) Commit(ctx context.Context, req store.CommitRequest) (res store.CommitResult, err error) {
	op := "commit"
	if req.ValidateOnly {
		op = "validate"
	}
	err = b.watch(ctx, op, req.Project.String(), func() (err error) {
		res, err = b.next.Commit(ctx, req)
		return err
	})
	if err == nil && res.Created && !req.ValidateOnly {
		var n int64
		for i := range res.Commit.Changes {
			n += res.Commit.Changes[i].Size
		}
		b.bytes.Add(float64(n))
		if b.label != nil {
			b.teams.WithLabelValues(b.label(req.Project.Team)).Inc()
		}
	}
	return res, err
}

// Epoch is watched.
func (b *Backend) Epoch(ctx context.Context) (epoch memory.Epoch, err error) {
	err = b.watch(ctx, "epoch", "", func() (err error) {
		epoch, err = b.next.Epoch(ctx)
		return err
	})
	return epoch, err
}

// CreateProject is watched.
func (b *Backend) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	return b.watch(ctx, "create_project", key.String(), func() error { return b.next.CreateProject(ctx, key, now, on...) })
}

// Project is watched.
func (b *Backend) Project(ctx context.Context, key memory.ProjectKey) (info store.ProjectInfo, err error) {
	err = b.watch(ctx, "project", key.String(), func() (err error) {
		info, err = b.next.Project(ctx, key)
		return err
	})
	return info, err
}

// List is watched.
func (b *Backend) List(ctx context.Context, key memory.ProjectKey, opts store.ListOptions) (out []memory.Memory, err error) {
	err = b.watch(ctx, "list", key.String(), func() (err error) {
		out, err = b.next.List(ctx, key, opts)
		return err
	})
	return out, err
}

// Get is watched.
func (b *Backend) Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (mem memory.Memory, err error) {
	err = b.watch(ctx, "get", key.String(), func() (err error) {
		mem, err = b.next.Get(ctx, key, path, at)
		return err
	})
	return mem, err
}

// Changes is watched.
func (b *Backend) Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) (out []memory.Commit, err error) {
	err = b.watch(ctx, "changes", key.String(), func() (err error) {
		out, err = b.next.Changes(ctx, key, after, limit, maxBytes)
		return err
	})
	return out, err
}

// Compact is watched.
func (b *Backend) Compact(ctx context.Context, key memory.ProjectKey, cut time.Time) (res store.CompactResult, err error) {
	err = b.watch(ctx, "compact", key.String(), func() (err error) {
		res, err = b.next.Compact(ctx, key, cut)
		return err
	})
	return res, err
}
