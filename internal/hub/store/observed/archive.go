package observed

import (
	"context"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Spans is watched.
func (b *Backend) Spans(ctx context.Context, key memory.ProjectKey) (out []store.Span, err error) {
	err = b.watch(ctx, "spans", key.String(), func() (err error) {
		out, err = b.next.Spans(ctx, key)
		return err
	})
	return out, err
}

// History is watched.
func (b *Backend) History(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) (out []memory.Commit, err error) {
	err = b.watch(ctx, "history", key.String(), func() (err error) {
		out, err = b.next.History(ctx, key, after, limit, maxBytes)
		return err
	})
	return out, err
}

// ImportCommits is watched.
func (b *Backend) ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error {
	return b.watch(ctx, "import_commits", key.String(), func() error { return b.next.ImportCommits(ctx, key, oldest, commits) })
}

// ImportSpans is watched.
func (b *Backend) ImportSpans(ctx context.Context, key memory.ProjectKey, spans []store.Span) error {
	return b.watch(ctx, "import_spans", key.String(), func() error { return b.next.ImportSpans(ctx, key, spans) })
}

// SettingNames is watched.
func (b *Backend) SettingNames(ctx context.Context, scope string) (out []string, err error) {
	err = b.watch(ctx, "setting_names", scope, func() (err error) {
		out, err = b.next.SettingNames(ctx, scope)
		return err
	})
	return out, err
}

// Redactions is watched.
func (b *Backend) Redactions(ctx context.Context, team memory.Team) (out []string, err error) {
	err = b.watch(ctx, "redactions", string(team), func() (err error) {
		out, err = b.next.Redactions(ctx, team)
		return err
	})
	return out, err
}

// ImportRedactions is watched.
func (b *Backend) ImportRedactions(ctx context.Context, team memory.Team, fingerprints []string) error {
	return b.watch(ctx, "import_redactions", string(team), func() error { return b.next.ImportRedactions(ctx, team, fingerprints) })
}
