package observed

import (
	"context"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Backup passes on to a store that can be backed up; another is an ErrUnavailable.
func (b *Backend) Backup(ctx context.Context, dst string) error {
	return b.watch(ctx, "backup", "", func() error {
		if s, ok := b.next.(store.Backuper); ok {
			return s.Backup(ctx, dst)
		}
		return &memory.Error{Reason: memory.ReasonUnavailable, Message: "backup: this store cannot copy itself; use its own tools"}
	})
}

// Rewind is watched.
func (b *Backend) Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error) {
	err = b.watch(ctx, "rewind", key.String(), func() (err error) {
		at, ok, err = b.next.Rewind(ctx, key, seen)
		return err
	})
	return at, ok, err
}

// NewEpoch is watched.
func (b *Backend) NewEpoch(ctx context.Context, next memory.Epoch, now time.Time, on ...store.AuditEvent) error {
	return b.watch(ctx, "new_epoch", "", func() error { return b.next.NewEpoch(ctx, next, now, on...) })
}

// Redact is watched.
func (b *Backend) Redact(ctx context.Context, req store.RedactRequest) (res store.CommitResult, err error) {
	err = b.watch(ctx, "redact", req.Project.String(), func() (err error) {
		res, err = b.next.Redact(ctx, req)
		return err
	})
	return res, err
}

// Redacted is watched.
func (b *Backend) Redacted(ctx context.Context, team memory.Team, fingerprints []string) (found []string, err error) {
	err = b.watch(ctx, "is_redacted", string(team), func() (err error) {
		found, err = b.next.Redacted(ctx, team, fingerprints)
		return err
	})
	return found, err
}

// Teams is watched.
func (b *Backend) Teams(ctx context.Context) (out []memory.Team, err error) {
	err = b.watch(ctx, "teams", "", func() (err error) {
		out, err = b.next.Teams(ctx)
		return err
	})
	return out, err
}

// Projects is watched.
func (b *Backend) Projects(ctx context.Context, team memory.Team) (out []memory.ProjectKey, err error) {
	err = b.watch(ctx, "projects", string(team), func() (err error) {
		out, err = b.next.Projects(ctx, team)
		return err
	})
	return out, err
}

// PurgeProject is watched.
func (b *Backend) PurgeProject(ctx context.Context, key memory.ProjectKey, on ...store.AuditEvent) error {
	return b.watch(ctx, "purge_project", key.String(), func() error { return b.next.PurgeProject(ctx, key, on...) })
}

// Setting is watched.
func (b *Backend) Setting(ctx context.Context, scope, name string) (doc []byte, version int64, err error) {
	err = b.watch(ctx, "setting", scope, func() (err error) {
		doc, version, err = b.next.Setting(ctx, scope, name)
		return err
	})
	return doc, version, err
}

// PutSetting is watched.
func (b *Backend) PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...store.AuditEvent) error {
	return b.watch(ctx, "put_setting", scope, func() error { return b.next.PutSetting(ctx, scope, name, doc, version, on...) })
}

// PutToken is watched.
func (b *Backend) PutToken(ctx context.Context, t store.Token, on ...store.AuditEvent) error {
	return b.watch(ctx, "put_token", t.ID, func() error { return b.next.PutToken(ctx, t, on...) })
}

// TokenByHash is watched.
func (b *Backend) TokenByHash(ctx context.Context, hash string) (t store.Token, err error) {
	err = b.watch(ctx, "token_by_hash", "", func() (err error) {
		t, err = b.next.TokenByHash(ctx, hash)
		return err
	})
	return t, err
}

// Tokens is watched.
func (b *Backend) Tokens(ctx context.Context, team memory.Team) (out []store.Token, err error) {
	err = b.watch(ctx, "tokens", string(team), func() (err error) {
		out, err = b.next.Tokens(ctx, team)
		return err
	})
	return out, err
}

// RevokeToken is watched.
func (b *Backend) RevokeToken(ctx context.Context, id string, at time.Time, on ...store.AuditEvent) error {
	return b.watch(ctx, "revoke_token", id, func() error { return b.next.RevokeToken(ctx, id, at, on...) })
}

// AppendAudit is watched.
func (b *Backend) AppendAudit(ctx context.Context, e store.AuditEvent) (id int64, err error) {
	err = b.watch(ctx, "append_audit", string(e.Team), func() (err error) {
		id, err = b.next.AppendAudit(ctx, e)
		return err
	})
	return id, err
}

// RepeatAudit is watched.
func (b *Backend) RepeatAudit(ctx context.Context, id, n int64, last time.Time) error {
	return b.watch(ctx, "repeat_audit", "", func() error { return b.next.RepeatAudit(ctx, id, n, last) })
}

// TrimAudit is watched.
func (b *Backend) TrimAudit(ctx context.Context, cut time.Time) (n int64, err error) {
	err = b.watch(ctx, "trim_audit", "", func() (err error) {
		n, err = b.next.TrimAudit(ctx, cut)
		return err
	})
	return n, err
}

// AuditEvents is watched.
func (b *Backend) AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) (out []store.AuditEvent, err error) {
	err = b.watch(ctx, "audit_events", string(team), func() (err error) {
		out, err = b.next.AuditEvents(ctx, team, before, limit)
		return err
	})
	return out, err
}
