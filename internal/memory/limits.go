package memory

import "time"

// Limits of SPEC 2.4, 3.3, 4.1, 4.5 and 13.10. Defaults unless the comment says fixed.
const (
	// MaxMemoryBytes bounds one memory's content (SPEC 3.3).
	MaxMemoryBytes = 256 << 10
	// MaxCommitChanges bounds the changes of one commit (SPEC 13.10, fixed).
	MaxCommitChanges = 500
	// MaxCommitBytes bounds the contents of one commit together (SPEC 13.10, fixed).
	MaxCommitBytes = 8 << 20
	// MaxMessageBytes bounds one gRPC message at both ends (SPEC 13.10, fixed).
	MaxMessageBytes = 12 << 20
	// MaxProjectFiles bounds the living memories of a project (SPEC 4.5).
	MaxProjectFiles = 10_000
	// MaxProjectBytes bounds the living contents of a project (SPEC 4.5).
	MaxProjectBytes = 256 << 20
	// MaxIndexLines and MaxIndexBytes cap MEMORY.md as loaded (SPEC 2.4, fixed).
	MaxIndexLines = 200
	MaxIndexBytes = 25_000
	// MaxIndexLineChars is the length an index line should keep to (SPEC 2.4).
	MaxIndexLineChars = 150
	// Retention is how long every version of every memory is kept (SPEC 4.6).
	Retention = 90 * 24 * time.Hour
	// AuditRetention is how long the audit log keeps an event: over a year, so that one
	// year's review finds the last one's.
	AuditRetention = 400 * 24 * time.Hour
	// RequestIDLifetime is how long a request id is remembered (SPEC 13.13).
	RequestIDLifetime = 24 * time.Hour
)
