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
//   - Changes of a commit that change no byte are left out of it.
//   - The form of a commit is checked as Prepare says.
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
	CreateProject(ctx context.Context, key memory.ProjectKey, now time.Time, on ...AuditEvent) error

	// Project returns where the project stands.
	Project(ctx context.Context, key memory.ProjectKey) (ProjectInfo, error)

	// List returns memories in path order.
	List(ctx context.Context, key memory.ProjectKey, opts ListOptions) ([]memory.Memory, error)

	// Get returns the memory at path as of revision at (0 = now). A path that did
	// not exist then, or was deleted then, is an ErrNotFound; a revision beyond the head
	// an ErrInvalidArgument; one that is no longer kept an ErrRevisionCompacted. Kept
	// are the states from Oldest-1 on, the one that the oldest commit was made on.
	Get(ctx context.Context, key memory.ProjectKey, path memory.Path, at memory.Revision) (memory.Memory, error)

	// Commit applies req as described above.
	Commit(ctx context.Context, req CommitRequest) (CommitResult, error)

	// Changes returns whole commits after revision after, ascending, without gap,
	// at most limit and about maxBytes of content (at least one commit, however
	// large); a bound of zero or less is none. It returns none when after is the head, an ErrInvalidArgument when
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
	// path and last etag, and the head always stay. What goes is a prefix of the
	// history: commits up to the first one that was made at or after the cut.
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
	Paths        []memory.Path // only these, where they exist; nil = all
	After        memory.Path   // exclusive; page from here
	Limit        int           // 0 = all
	Content      bool          // fill Memory.Content
	Deleted      bool          // tombstones too
	EarlierETags bool          // fill Memory.EarlierETags, newest first, at most 100
	ChangedAfter memory.Revision
}

// CommitRequest is a commit as the service has admitted it.
type CommitRequest struct {
	Project memory.ProjectKey
	Author  memory.Author
	Now     time.Time // the one "now" of the commit, UTC
	Message string
	Changes []memory.Change
	// HandedOver says that nobody will change the contents any more, so that the store
	// may keep them instead of copies.
	HandedOver bool
	RequestID  string // "" = none
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
	Commits  int64 // commits that Changes can no longer return
	Versions int64 // texts
	Bytes    int64 // of these texts
}

// Epochs is the narrow interface for restored hubs (SPEC 3.6, 13.4).
type Epochs interface {
	// Rewind returns, for a project and an epoch that a reader last saw, the last
	// revision that the present history shares with it; ok is false for an epoch
	// this history never had (then nothing is shared: revision 0).
	Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error)
	// NewEpoch makes next the present epoch and records each project's head as the
	// rewind revision. An epoch that this history had is an ErrAlreadyExists.
	NewEpoch(ctx context.Context, next memory.Epoch, now time.Time, on ...AuditEvent) error
}

// Redactor removes a leaked text from every stored version (SPEC 4.6, 13.14).
type Redactor interface {
	// Redact replaces every stored version of path whose etag is one of etags (all
	// versions when none are named) by marker, rewrites their etags and remembered
	// request results, and appends one Redact commit, whose change carries the path's
	// present text, or none if it is deleted. Fingerprints are kept so that the texts
	// cannot return: see Redacted. No such version is an ErrNotFound, unless Elsewhere
	// says that texts of the path are taken away which the store knows nothing of: then
	// the commit tells the watchers so. A path that never was is an ErrNotFound always.
	Redact(ctx context.Context, req RedactRequest) (CommitResult, error)
	// Redacted returns those of the fingerprints that were redacted in the team, in the
	// order given.
	Redacted(ctx context.Context, team memory.Team, fingerprints []string) ([]string, error)
}

// RedactRequest names the texts to remove.
type RedactRequest struct {
	Project      memory.ProjectKey
	Path         memory.Path
	ETags        []memory.ETag
	Marker       []byte
	Fingerprints []string // keyed; see memory.RedactionFingerprint
	Author       memory.Author
	Now          time.Time
	Message      string // of the commit
	Elsewhere    bool   // see Redactor.Redact
}

// Directory is the narrow interface for teams, projects and settings.
type Directory interface {
	Teams(ctx context.Context) ([]memory.Team, error)
	Projects(ctx context.Context, team memory.Team) ([]memory.ProjectKey, error) // team "" = all
	// PurgeProject removes a project with its whole history.
	PurgeProject(ctx context.Context, key memory.ProjectKey, on ...AuditEvent) error
	// Setting returns a document (JSON) kept under scope ("" = hub, a team, or
	// a project's resource name) and name, with its version; version 0 = none yet.
	Setting(ctx context.Context, scope, name string) (doc []byte, version int64, err error)
	// PutSetting replaces it if its version is still version, else ErrETagMismatch.
	// The new version is version+1.
	PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...AuditEvent) error
}

// Tokens is the narrow interface for credentials. Secrets are never kept: only
// their SHA-256.
type Tokens interface {
	PutToken(ctx context.Context, t Token, on ...AuditEvent) error // ErrAlreadyExists on a known id or hash
	// TokenByHash returns the token as kept, revoked or expired ones too.
	TokenByHash(ctx context.Context, hash string) (Token, error)
	Tokens(ctx context.Context, team memory.Team) ([]Token, error) // "" = all
	// RevokeToken sets RevokeTime; a token revoked before keeps its first one.
	RevokeToken(ctx context.Context, id string, at time.Time, on ...AuditEvent) error
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
	// AppendAudit adds an event and returns its id. Ids ascend.
	AppendAudit(ctx context.Context, e AuditEvent) (id int64, err error)
	// RepeatAudit says that the event with the id happened n more times, for the last time
	// at last. An event that is no longer kept stays forgotten.
	RepeatAudit(ctx context.Context, id, n int64, last time.Time) error
	// AuditEvents returns the newest first, at most limit (0 = all), before id before
	// (0 = from the newest), of one team ("" = all).
	AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) ([]AuditEvent, error)
	// TrimAudit forgets the events of before cut, and returns how many. Where clocks went
	// back, some may stay until the events around them go.
	TrimAudit(ctx context.Context, cut time.Time) (n int64, err error)
}

// AuditEvent is one admin act, or one or more equal refusals. It never carries content or
// a secret.
type AuditEvent struct {
	ID        int64
	Time      time.Time // of the first one
	Count     int64     // how often; what is added as 0 is 1
	LastTime  time.Time // of the last one; zero while Count is 1
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

// Totaler counts what a store holds. It is for operators: a backend may lack it.
type Totaler interface {
	// Totals counts over all projects. What a commit or a purge that returned has
	// changed is seen by every later call, on every replica. It must be cheap enough
	// to be asked every few seconds.
	Totals(ctx context.Context) (Totals, error)
}

// Totals are counts over all projects of a store.
type Totals struct {
	Projects  int64
	Revisions int64 // the sum of the projects' heads
}

// Prober is the narrow interface of a store that can fail in more ways than not to
// answer. A backend may lack it.
type Prober interface {
	// Probe reports what keeps the store from being read or written now; it writes
	// nothing and ends within seconds.
	Probe(ctx context.Context) error
}

// Shared is the narrow interface of a store that several processes use at a time. A
// backend that one process has for itself lacks it.
type Shared interface {
	// Lease reports whether the work called name is holder's for ttl from now on. It
	// is if it was before, or if nobody's lease still runs; by the store's clock. A
	// ttl of zero gives it back.
	Lease(ctx context.Context, name, holder string, ttl time.Duration) (mine bool, err error)
	// Publish keeps what holder tells the others of itself, in place of what it told
	// before; a nil doc only says that holder is still there.
	Publish(ctx context.Context, holder string, doc []byte) error
	// Published returns what was told by holders that were there within the given
	// time, in the holders' order. What is older than a day may be gone.
	Published(ctx context.Context, within time.Duration) ([]Published, error)
}

// Published is what a holder told of itself.
type Published struct {
	Holder string
	Age    time.Duration // since it last said that it is there
	Doc    []byte
}

// Span says up to which revision a project's commits were made under an epoch.
type Span struct {
	Epoch   memory.Epoch
	Through memory.Revision // the rewind revision of the epoch after it
}

// Archiver is the narrow interface for moving histories from hub to hub: package
// archive exports and imports through it.
type Archiver interface {
	// Spans returns the epochs that the project's history went through, oldest
	// first; the last is the present one, through the head.
	Spans(ctx context.Context, key memory.ProjectKey) ([]Span, error)
	// History returns commits as Changes does, and below ProjectInfo.Oldest what is
	// left of compacted ones: those changes that a kept state still needs.
	History(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) ([]memory.Commit, error)
	// ImportCommits appends commits as they are, ids, times and authors included, to
	// a project whose oldest revision is to be oldest. Revisions follow each other
	// without gap, except below oldest, where they ascend; else ErrInvalidArgument.
	// It takes no preconditions, quotas or request ids, and is all or nothing.
	ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error
	// ImportSpans adds epochs of another hub, through which the project's imported
	// history went, so that Rewind knows them. Known epochs are left as they are.
	ImportSpans(ctx context.Context, key memory.ProjectKey, spans []Span) error
	// SettingNames lists what Setting can return under scope, in order.
	SettingNames(ctx context.Context, scope string) ([]string, error)
	// Redactions lists the fingerprints that Redacted knows in team, in order.
	Redactions(ctx context.Context, team memory.Team) ([]string, error)
	// ImportRedactions adds fingerprints to what Redacted knows in team.
	ImportRedactions(ctx context.Context, team memory.Team, fingerprints []string) error
}

// Backend is all that a hub needs of one database.
//
// Where a method takes audit events it puts them on record (see Audit) in the same step as
// what it does: after a crash at any instant both are there or neither. What is refused, or
// fails, leaves no event.
type Backend interface {
	Store
	Epochs
	Redactor
	Directory
	Tokens
	Audit
	Archiver
}
