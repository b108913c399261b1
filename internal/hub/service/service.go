package service

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Guard is the secret guard as the hub needs it. It fails closed: an error means
// that the text was not judged and must not be stored.
type Guard interface {
	// Scan judges a text under the team's policy.
	Scan(p Policy, path string, content []byte) ([]Finding, error)
	// RulesVersion names the rules that p leads to; it changes when they change.
	RulesVersion(p Policy) (string, error)
}

// Finding is a hit of the guard; it never carries the secret.
type Finding struct {
	Path        string
	Line        int
	Rule        string
	Description string
	Fingerprint string
}

// Observer is told what is worth counting. Its labels are bounded: outcomes are
// reasons, rules are the guard's and the domain's.
type Observer interface {
	Commit(outcome string)                          // "created", "unchanged", "valid", or a reason
	Refused(rule string)                            // one violation of a refused commit
	Delivered(lag time.Duration)                    // from commit, or from the watch's begin, to the stream
	AuditLost(n int64)                              // events that could not be put on record
	AuditTrimmed(n int64)                           // events that the audit log's retention removed
	RescanHits(team memory.Team, hits int)          // stored texts that the present rules refuse
	Compacted(versions, commits int64, bytes int64) // what retention removed
}

// Limits are the hub's defaults; a team's settings may say otherwise.
type Limits struct {
	Quota     store.Quota
	Retention time.Duration
	// AuditRetention is how long events of the audit log are kept; 0 is memory.AuditRetention.
	AuditRetention time.Duration
	// Conflicts bounds the conflicts kept of one project; 0 is 200.
	Conflicts int
	// Agents bounds the list of agents; 0 is 10,000.
	Agents int
	// Watchers bounds the open watches; 0 is no bound.
	Watchers int
}

// Config is what a Service is made of.
type Config struct {
	Backend store.Backend
	// Shared is the store as other replicas use it too; nil when there are none.
	Shared   store.Shared
	Feed     *changefeed.Feed
	Guard    Guard
	Observer Observer
	Logger   *slog.Logger     // nil: nobody is told
	Now      func() time.Time // UTC
	// MintToken returns a new credential: its text, its id and the hash to keep.
	MintToken func() (text, id, hash string, err error)
	// Archive moves histories between hubs.
	Archive Archiver
	// TempDir is where backups are made before they are sent.
	TempDir string
	// Revoked is told the id of a token that was revoked.
	Revoked func(tokenID string)
	Limits  Limits
	// Replica is how other replicas know this one; "" chooses a name by chance.
	Replica string
}

// Service is the hub's behaviour. Its methods are safe for concurrent use. Every
// error is a *memory.Error, a context's end, or an internal cause for the log.
type Service struct {
	Config
	settings *settingsCache
	agents   *registry
	search   *searchIndexes
	refusals *refusals

	rescans chan memory.Team // teams whose stored texts are to be judged again
	replica string           // how other replicas know this one

	epochMu sync.Mutex   // guards epoch
	epoch   memory.Epoch // last seen, by whom watches are ended when it changes
}

// New returns a service. Run does its background work.
func New(c Config) *Service {
	if c.Limits.Quota.Files == 0 {
		c.Limits.Quota.Files = memory.MaxProjectFiles
	}
	if c.Limits.Quota.Bytes == 0 {
		c.Limits.Quota.Bytes = memory.MaxProjectBytes
	}
	if c.Limits.Retention == 0 {
		c.Limits.Retention = memory.Retention
	}
	if c.Limits.AuditRetention == 0 {
		c.Limits.AuditRetention = memory.AuditRetention
	}
	if c.Limits.Conflicts == 0 {
		c.Limits.Conflicts = 200
	}
	if c.Limits.Agents == 0 {
		c.Limits.Agents = 10_000
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Revoked == nil {
		c.Revoked = func(string) {}
	}
	if c.Replica == "" {
		c.Replica = rand.Text()
	}
	return &Service{
		Config:   c,
		settings: newSettingsCache(c.Backend, c.Now),
		agents:   newRegistry(c.Limits.Agents),
		search:   newSearchIndexes(),
		refusals: newRefusals(),
		rescans:  make(chan memory.Team, 1024),
		replica:  c.Replica,
	}
}

// Run enforces retention, judges stored texts again when rules have changed, and counts
// refusals, until ctx ends.
func (s *Service) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.retain(ctx) })
	wg.Go(func() { s.rescanLoop(ctx) })
	wg.Go(func() { s.keepCounts(ctx) })
	if s.Shared != nil {
		wg.Go(func() { s.followReplicas(ctx) })
	}
	wg.Wait()
}

// Ready reports whether the store answers.
func (s *Service) Ready(ctx context.Context) error {
	_, err := s.Backend.Epoch(ctx)
	return err
}

// hide turns the store's answer about a project that does not exist into the one
// that all callers get.
func hide(key memory.ProjectKey, err error) error {
	if errors.Is(err, memory.ErrNotFound) {
		return noProject(key)
	}
	return err
}

// Refused puts on record that a commit was refused before it reached the service,
// because a path or a change in it cannot be read.
func (s *Service) Refused(ctx context.Context, c Call, key memory.ProjectKey, err error) error {
	if perr := c.Principal.mayProject(key, Writer); perr != nil {
		err = perr // who may not write learns nothing else
	} else {
		err = s.withholdNames(ctx, key.Team, err)
	}
	var e *memory.Error
	if errors.As(err, &e) {
		s.Observer.Commit(string(e.Reason))
		for _, v := range e.Violations {
			s.Observer.Refused(v.Rule)
		}
	}
	return s.refused(ctx, c, key.Team, "commit", key.String(), err)
}

// Token is a credential as it is listed; its secret is not kept.
type Token = store.Token
