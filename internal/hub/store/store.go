// Package store declares what a hub keeps and the promises its backends make.
// The promises are tested by package storetest, one subtest a promise, on every
// backend.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// ErrClosed is what every method answers after Close.
var ErrClosed = errors.New("store: closed")

// Store keeps the memories of many projects and their history.
//
// Promises, for every backend:
//   - One commit is one revision, all or nothing. Revisions of a project are
//     1, 2, 3 … in commit order, without gap.
//   - A commit that returned without error is durable: it survives a kill of the
//     process and a loss of power at any later instant.
//   - Preconditions hold at the instant of the commit: any, must not exist, or
//     this etag. If one fails, nothing changes and the error is an
//     ErrETagMismatch with the present memories, contents included, inside.
//   - Path collisions (memory.CollisionIndex) are judged on the state after the
//     commit; the error is an ErrPathCollision.
//   - A commit that would change no byte makes no revision: the result is the
//     head, with Created false.
//   - Deletes leave tombstones.
//   - A request id seen before, for the same principal and project and within
//     memory.RequestIDLifetime, answers with the first result; with another
//     payload it is an ErrRequestIDReused.
//   - Values are copies. Concurrent use is safe. Commits of different projects
//     do not wait for each other's fsync.
//   - A project that was not created is an ErrNotFound.
//   - After Close every method returns ErrClosed.
type Store interface {
	// Epoch returns the id of this history.
	Epoch(ctx context.Context) (memory.Epoch, error)

	// CreateProject makes an empty project, and its team if that is new.
	// An existing one is an ErrAlreadyExists.
	CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time) error

	// Project returns where the project stands.
	Project(ctx context.Context, key memory.ProjectKey) (ProjectInfo, error)

	// List returns memories in path order.
	List(ctx context.Context, key memory.ProjectKey, opts ListOptions) ([]memory.Memory, error)

	// Get returns the memory at path as of revision at (0 = now). A path that did
	// not exist then, or was deleted then, is an ErrNotFound; a revision beyond the head
	// an ErrInvalidArgument; one that is no longer kept an ErrRevisionCompacted.
	Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (memory.Memory, error)

	// Commit applies req as described above.
	Commit(ctx context.Context, req CommitRequest) (CommitResult, error)

	// Changes returns whole commits after revision after, ascending, without gap,
	// at most limit and about maxBytes of content (at least one commit, however
	// large). It returns none when after is the head, an ErrInvalidArgument when
	// after is beyond it, and an ErrRevisionCompacted when a commit in between is
	// no longer kept.
	Changes(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error)

	// Notify returns a channel of capacity one that gets a value after each
	// commit to one of the projects, and stop, which releases it. It is a hint:
	// it may fire without cause and merges what it cannot deliver, but it never
	// sleeps through a commit that became visible after Notify returned. An
	// unknown project is allowed and fires once it has been created.
	Notify(keys []memory.ProjectKey) (c <-chan struct{}, stop func())

	// Compact forgets, in the project, old contents and commits that nothing
	// within retention needs: commits before the cut, and versions that were
	// replaced before it. The newest version of every memory, every tombstone's
	// path and last etag, and the head always stay.
	Compact(ctx context.Context, key memory.ProjectKey, cut time.Time) (CompactResult, error)

	// Close ends the store; it waits for calls under way.
	Close() error
}

// ProjectInfo says where a project stands.
type ProjectInfo struct {
	Key        memory.ProjectKey
	Head       memory.Cursor   // epoch, revision and commit id
	Oldest     memory.Revision // the first revision that Changes can still return; Head.Revision+1 if none
	Files      int64           // living memories
	Bytes      int64           // of their contents
	CreateTime time.Time
}

// ListOptions narrows List.
type ListOptions struct {
	After        memory.Path // exclusive; page from here
	Limit        int         // 0 = all
	Content      bool        // fill Memory.Content
	Deleted      bool        // tombstones too
	EarlierETags bool        // fill Memory.EarlierETags, newest first, at most 100
	ChangedAfter memory.Revision
}

// CommitRequest is a commit as the service has admitted it.
type CommitRequest struct {
	Project   memory.ProjectKey
	Author    memory.Author
	Now       time.Time // the one "now" of the commit, UTC
	Message   string
	Changes   []memory.Change
	RequestID string // "" = none
	// Quota bounds the project after the commit; a zero field is no bound. What
	// exceeds it and grows the project is an ErrQuotaExceeded.
	Quota Quota
	// ValidateOnly answers as the commit would be answered and changes nothing.
	ValidateOnly bool
}

// Quota bounds a project's living memories.
type Quota struct {
	Files int64
	Bytes int64
}

// CommitResult is what became of a commit.
type CommitResult struct {
	Commit  memory.Commit // without contents; the head's when Created is false
	Created bool          // a revision was made (by this request or the first one of its id)
	Head    memory.Cursor
}

// CompactResult counts what Compact removed.
type CompactResult struct {
	Commits  int64
	Versions int64
	Bytes    int64
}

// Epochs is the narrow interface for restored hubs (SPEC 3.6, 13.4).
type Epochs interface {
	// Rewind returns, for a project and an epoch that a reader last saw, the last
	// revision that the present history shares with it; ok is false for an epoch
	// this history never had (then nothing is shared: revision 0).
	Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error)
	// NewEpoch mints the given epoch and records each project's head as the rewind revision.
	NewEpoch(ctx context.Context, next memory.Epoch, now time.Time) error
}

// Redactor removes a leaked text from every stored version (SPEC 4.6, 13.14).
type Redactor interface {
	// Redact replaces every stored version of path whose etag is one of etags (all
	// versions when none are named) by marker, rewrites their etags and remembered
	// request results, and appends one Redact commit. fingerprints are kept so that
	// the texts cannot return: see IsRedacted.
	Redact(ctx context.Context, req RedactRequest) (CommitResult, error)
	// IsRedacted reports whether any of the fingerprints was redacted in the team.
	IsRedacted(ctx context.Context, team memory.Team, fingerprints []string) (bool, error)
}

// RedactRequest names the texts to remove.
type RedactRequest struct {
	Project      memory.ProjectKey
	Path         memory.Path
	ETags        []memory.ETag
	Marker       []byte
	Fingerprints []string // keyed; see RedactionFingerprint in package service
	Author       memory.Author
	Now          time.Time
	Reason       string
}

// Directory is the narrow interface for teams, projects and settings.
type Directory interface {
	Teams(ctx context.Context) ([]memory.Team, error)
	Projects(ctx context.Context, team memory.Team) ([]memory.ProjectKey, error) // team "" = all
	// PurgeProject removes a project with its whole history.
	PurgeProject(ctx context.Context, key memory.ProjectKey) error
	// Setting returns a document (JSON) kept under scope ("" = hub, a team, or
	// a project's resource name) and name, with its version; version 0 = none yet.
	Setting(ctx context.Context, scope, name string) (doc []byte, version int64, err error)
	// PutSetting replaces it if its version is still version, else ErrETagMismatch.
	// The new version is version+1.
	PutSetting(ctx context.Context, scope, name string, doc []byte, version int64) error
}

// Tokens is the narrow interface for credentials. Secrets are never kept: only
// their SHA-256.
type Tokens interface {
	PutToken(ctx context.Context, t Token) error // ErrAlreadyExists on a known id
	TokenByHash(ctx context.Context, hash string) (Token, error)
	Tokens(ctx context.Context, team memory.Team) ([]Token, error) // "" = all
	RevokeToken(ctx context.Context, id string, at time.Time) error
}

// Token is a credential as kept. Team "" reaches the whole hub, Project "" the
// whole team.
type Token struct {
	ID         string
	Name       string
	Hash       string // lower-case hex SHA-256 of the token's text
	Team       memory.Team
	Project    memory.Project
	Role       string // reader, writer or admin
	CreateTime time.Time
	ExpireTime time.Time // zero = never
	RevokeTime time.Time // zero = not revoked
}

// Audit is the narrow interface for the audit log.
type Audit interface {
	AppendAudit(ctx context.Context, e AuditEvent) error
	// AuditEvents returns the newest first, at most limit, before id before (0 = from the newest).
	AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) ([]AuditEvent, error)
}

// AuditEvent is one admin act or refusal. It never carries content or a secret.
type AuditEvent struct {
	ID        int64
	Time      time.Time
	Team      memory.Team
	Principal string
	Action    string // e.g. "token.create", "commit.refused"
	Subject   string // a resource name
	Detail    string // reasons, rules, fingerprints
	RequestID string
}

// Backuper copies a running store.
type Backuper interface {
	// Backup writes a consistent copy of the whole store to the file dst, which
	// must not exist.
	Backup(ctx context.Context, dst string) error
}

// Backend is all that a hub needs of one database.
type Backend interface {
	Store
	Epochs
	Redactor
	Directory
	Tokens
	Audit
}
