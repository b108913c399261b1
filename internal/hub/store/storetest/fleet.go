package storetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Fleet is several handles on one database as one store: every call goes to another
// of them, as calls of clients go to the replicas behind a load balancer. So all that
// one handle has acknowledged must at once be true at every other.
type Fleet struct {
	handles []store.Backend
	turn    atomic.Uint64
}

var _ store.Backend = (*Fleet)(nil)

// NewFleet returns the handles as one store, which owns them.
func NewFleet(handles ...store.Backend) *Fleet { return &Fleet{handles: handles} }

// Handles returns the handles.
func (f *Fleet) Handles() []store.Backend { return slices.Clone(f.handles) }

func (f *Fleet) next() store.Backend {
	return f.handles[int(f.turn.Add(1)%uint64(len(f.handles)))]
}

// Close closes every handle.
func (f *Fleet) Close() error {
	var errs []error
	for _, b := range f.handles {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Totals is that of one of the handles, which all must have it.
func (f *Fleet) Totals(ctx context.Context) (store.Totals, error) {
	return f.next().(store.Totaler).Totals(ctx)
}

// Lease is that of one of the handles, which all must have it.
func (f *Fleet) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	return f.next().(store.Shared).Lease(ctx, name, holder, ttl)
}

// Publish is that of one of the handles, which all must have it.
func (f *Fleet) Publish(ctx context.Context, holder string, doc []byte) error {
	return f.next().(store.Shared).Publish(ctx, holder, doc)
}

// Published is that of one of the handles, which all must have it.
func (f *Fleet) Published(ctx context.Context, within time.Duration) ([]store.Published, error) {
	return f.next().(store.Shared).Published(ctx, within)
}

// Notify is that of one of the handles.
func (f *Fleet) Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func()) {
	return f.next().Notify(keys)
}

// Epoch is that of one of the handles.
func (f *Fleet) Epoch(ctx context.Context) (memory.Epoch, error) {
	return f.next().Epoch(ctx)
}

// CreateProject is that of one of the handles.
func (f *Fleet) CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...store.AuditEvent) error {
	return f.next().CreateProject(ctx, key, now, on...)
}

// Project is that of one of the handles.
func (f *Fleet) Project(ctx context.Context, key memory.ProjectKey) (store.ProjectInfo, error) {
	return f.next().Project(ctx, key)
}

// List is that of one of the handles.
func (f *Fleet) List(ctx context.Context, key memory.ProjectKey, opts store.ListOptions) ([]memory.Memory, error) {
	return f.next().List(ctx, key, opts)
}

// Get is that of one of the handles.
func (f *Fleet) Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (memory.Memory, error) {
	return f.next().Get(ctx, key, path, at)
}

// Commit is that of one of the handles.
func (f *Fleet) Commit(ctx context.Context, req store.CommitRequest) (store.CommitResult, error) {
	return f.next().Commit(ctx, req)
}

// Changes is that of one of the handles.
func (f *Fleet) Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	return f.next().Changes(ctx, key, after, limit, maxBytes)
}

// Compact is that of one of the handles.
func (f *Fleet) Compact(ctx context.Context, key memory.ProjectKey, cut time.Time) (store.CompactResult, error) {
	return f.next().Compact(ctx, key, cut)
}

// Rewind is that of one of the handles.
func (f *Fleet) Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (memory.Revision, bool, error) {
	return f.next().Rewind(ctx, key, seen)
}

// NewEpoch is that of one of the handles.
func (f *Fleet) NewEpoch(ctx context.Context, next memory.Epoch, now time.Time, on ...store.AuditEvent) error {
	return f.next().NewEpoch(ctx, next, now, on...)
}

// Redact is that of one of the handles.
func (f *Fleet) Redact(ctx context.Context, req store.RedactRequest) (store.CommitResult, error) {
	return f.next().Redact(ctx, req)
}

// Redacted is that of one of the handles.
func (f *Fleet) Redacted(ctx context.Context, team memory.Team, fingerprints []string) ([]string, error) {
	return f.next().Redacted(ctx, team, fingerprints)
}

// Teams is that of one of the handles.
func (f *Fleet) Teams(ctx context.Context) ([]memory.Team, error) {
	return f.next().Teams(ctx)
}

// Projects is that of one of the handles.
func (f *Fleet) Projects(ctx context.Context, team memory.Team) ([]memory.ProjectKey, error) {
	return f.next().Projects(ctx, team)
}

// PurgeProject is that of one of the handles.
func (f *Fleet) PurgeProject(ctx context.Context, key memory.ProjectKey, on ...store.AuditEvent) error {
	return f.next().PurgeProject(ctx, key, on...)
}

// Setting is that of one of the handles.
func (f *Fleet) Setting(ctx context.Context, scope, name string) ([]byte, int64, error) {
	return f.next().Setting(ctx, scope, name)
}

// PutSetting is that of one of the handles.
func (f *Fleet) PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...store.AuditEvent) error {
	return f.next().PutSetting(ctx, scope, name, doc, version, on...)
}

// PutToken is that of one of the handles.
func (f *Fleet) PutToken(ctx context.Context, t store.Token, on ...store.AuditEvent) error {
	return f.next().PutToken(ctx, t, on...)
}

// TokenByHash is that of one of the handles.
func (f *Fleet) TokenByHash(ctx context.Context, hash string) (store.Token, error) {
	return f.next().TokenByHash(ctx, hash)
}

// Tokens is that of one of the handles.
func (f *Fleet) Tokens(ctx context.Context, team memory.Team) ([]store.Token, error) {
	return f.next().Tokens(ctx, team)
}

// RevokeToken is that of one of the handles.
func (f *Fleet) RevokeToken(ctx context.Context, id string, at time.Time, on ...store.AuditEvent) error {
	return f.next().RevokeToken(ctx, id, at, on...)
}

// AppendAudit is that of one of the handles.
func (f *Fleet) AppendAudit(ctx context.Context, e store.AuditEvent) (int64, error) {
	return f.next().AppendAudit(ctx, e)
}

// RepeatAudit is that of one of the handles.
func (f *Fleet) RepeatAudit(ctx context.Context, id, n int64, last time.Time) error {
	return f.next().RepeatAudit(ctx, id, n, last)
}

// TrimAudit is that of one of the handles.
func (f *Fleet) TrimAudit(ctx context.Context, cut time.Time) (int64, error) {
	return f.next().TrimAudit(ctx, cut)
}

// AuditEvents is that of one of the handles.
func (f *Fleet) AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) ([]store.AuditEvent, error) {
	return f.next().AuditEvents(ctx, team, before, limit)
}

// Spans is that of one of the handles.
func (f *Fleet) Spans(ctx context.Context, key memory.ProjectKey) ([]store.Span, error) {
	return f.next().Spans(ctx, key)
}

// History is that of one of the handles.
func (f *Fleet) History(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error) {
	return f.next().History(ctx, key, after, limit, maxBytes)
}

// ImportCommits is that of one of the handles.
func (f *Fleet) ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error {
	return f.next().ImportCommits(ctx, key, oldest, commits)
}

// ImportSpans is that of one of the handles.
func (f *Fleet) ImportSpans(ctx context.Context, key memory.ProjectKey, spans []store.Span) error {
	return f.next().ImportSpans(ctx, key, spans)
}

// SettingNames is that of one of the handles.
func (f *Fleet) SettingNames(ctx context.Context, scope string) ([]string, error) {
	return f.next().SettingNames(ctx, scope)
}

// Redactions is that of one of the handles.
func (f *Fleet) Redactions(ctx context.Context, team memory.Team) ([]string, error) {
	return f.next().Redactions(ctx, team)
}

// ImportRedactions is that of one of the handles.
func (f *Fleet) ImportRedactions(ctx context.Context, team memory.Team, fingerprints []string) error {
	return f.next().ImportRedactions(ctx, team, fingerprints)
}
