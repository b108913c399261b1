package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Names of the setting documents.
const (
	settingTeam   = "team"         // scope: a team; TeamSettings
	settingPolicy = "guard-policy" // scope: a team; Policy
	settingTeams  = "teams"        // scope: the hub; the names of teams made without a project
	settingRules  = "guard-rules"  // scope: a team; the rules its texts were last judged by
)

// settingsTTL is how long a setting is believed without asking the store again: how
// late another replica may see a change.
const settingsTTL = 5 * time.Second

// maxCachedSettings bounds the cache of settings.
const maxCachedSettings = 10_000

// TeamSettings is what a team's admin may set. Zero fields mean the hub's defaults.
type TeamSettings struct {
	// WritersCreateProjects lets a writer of the whole team create projects, by name
	// or by a first commit. A new team allows it.
	WritersCreateProjects bool          `json:"writers_create_projects"`
	Retention             time.Duration `json:"retention,omitempty"`
	MaxProjectFiles       int64         `json:"max_project_files,omitempty"`
	MaxProjectBytes       int64         `json:"max_project_bytes,omitempty"`
	// Redactions says that texts of the team were redacted, so that commits are
	// compared with their fingerprints.
	Redactions bool `json:"redactions,omitempty"`
}

// MinRetention and MaxRetention bound what a team may set: shorter ones would lose
// history to a slip, longer ones overflow a calendar.
const (
	MinRetention = time.Hour
	MaxRetention = 100 * 365 * 24 * time.Hour
)

// check refuses numbers that cannot be; the zero value is the hub's default.
func (t TeamSettings) check(subject string) error {
	switch {
	case t.Retention != 0 && (t.Retention < MinRetention || t.Retention > MaxRetention):
		return invalid("%s: retention %v: want 0 (the hub's) or %v to %v", subject, t.Retention, MinRetention, MaxRetention)
	case t.MaxProjectFiles < 0:
		return invalid("%s: max_project_files %d: want 0 (the hub's) or more", subject, t.MaxProjectFiles)
	case t.MaxProjectBytes < 0:
		return invalid("%s: max_project_bytes %d: want 0 (the hub's) or more", subject, t.MaxProjectBytes)
	}
	return nil
}

// Policy is a team's guard policy.
type Policy struct {
	Version           int64    `json:"-"`
	FingerprintKey    []byte   `json:"fingerprint_key"`
	AllowFingerprints []string `json:"allow_fingerprints,omitempty"`
	AllowRules        []string `json:"allow_rules,omitempty"`
	AllowInline       bool     `json:"allow_inline,omitempty"`
	RulesTOML         []byte   `json:"rules_toml,omitempty"`
}

// settingsCache reads and writes setting documents, and believes them for a while.
type settingsCache struct {
	dir store.Directory
	now func() time.Time

	mu   sync.Mutex // guards what follows
	docs map[settingKey]settingDoc
}

type settingKey struct{ scope, name string }

type settingDoc struct {
	value   any // decoded; never changed
	version int64
	until   time.Time
}

func newSettingsCache(dir store.Directory, now func() time.Time) *settingsCache {
	return &settingsCache{dir: dir, now: now, docs: map[settingKey]settingDoc{}}
}

// load returns the document decoded into a T, which nobody may change, and its
// version; without a document it is fallback and 0.
func load[T any](ctx context.Context, c *settingsCache, scope, name string, fallback T) (T, int64, error) {
	at := settingKey{scope, name}
	c.mu.Lock()
	doc, ok := c.docs[at]
	c.mu.Unlock()
	if ok && c.now().Before(doc.until) {
		return doc.value.(T), doc.version, nil
	}
	return loadFresh(ctx, c, scope, name, fallback)
}

func loadFresh[T any](ctx context.Context, c *settingsCache, scope, name string, fallback T) (T, int64, error) {
	text, version, err := c.dir.Setting(ctx, scope, name)
	if err != nil {
		return fallback, 0, fmt.Errorf("setting %s of %q: %w", name, scope, err)
	}
	value := fallback
	if version > 0 && len(text) > 0 {
		if err := json.Unmarshal(text, &value); err != nil {
			return fallback, 0, fmt.Errorf("setting %s of %q cannot be read: %w", name, scope, err)
		}
	}
	c.remember(settingKey{scope, name}, value, version)
	return value, version, nil
}

// save replaces the document if its version is still version, and puts the events on
// record with it.
func save[T any](ctx context.Context, c *settingsCache, scope, name string, value T, version int64, on ...store.AuditEvent) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	c.forget(scope, name)
	if err := c.dir.PutSetting(ctx, scope, name, text, version, on...); err != nil {
		return err
	}
	c.remember(settingKey{scope, name}, value, version+1)
	return nil
}

func (c *settingsCache) remember(at settingKey, value any, version int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.docs) >= maxCachedSettings {
		clear(c.docs)
	}
	// A slower reader must not put an older document over a newer one.
	if old, ok := c.docs[at]; ok && old.version > version && c.now().Before(old.until) {
		return
	}
	c.docs[at] = settingDoc{value: value, version: version, until: c.now().Add(settingsTTL)}
}

// clear forgets everything, because documents were replaced behind the cache.
func (c *settingsCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.docs)
}

func (c *settingsCache) forget(scope, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.docs, settingKey{scope, name})
}

// errUnchanged is what the change of an update returns to leave the document alone.
var errUnchanged = errors.New("setting unchanged")

// update changes a document under compare-and-set until nobody interferes; the events
// are put on record with the change, if there is any.
func update[T any](ctx context.Context, c *settingsCache, scope, name string, fallback T, change func(*T) error, on ...store.AuditEvent) (T, int64, error) {
	for {
		value, version, err := loadFresh(ctx, c, scope, name, fallback)
		if err != nil {
			return value, 0, err
		}
		if err := change(&value); errors.Is(err, errUnchanged) {
			return value, version, nil
		} else if err != nil {
			return value, 0, err
		}
		err = save(ctx, c, scope, name, value, version, on...)
		if errors.Is(err, memory.ErrETagMismatch) && ctx.Err() == nil {
			continue
		}
		return value, version + 1, err
	}
}

func (s *Service) teamSettings(ctx context.Context, team memory.Team) (TeamSettings, error) {
	t, _, err := load(ctx, s.settings, string(team), settingTeam, TeamSettings{WritersCreateProjects: true})
	return t, err
}

// policy returns the team's policy; the first one is made, with its key, when it is
// first asked for.
func (s *Service) policy(ctx context.Context, team memory.Team) (Policy, error) {
	p, version, err := load(ctx, s.settings, string(team), settingPolicy, Policy{})
	if err != nil {
		return Policy{}, err
	}
	if version == 0 {
		p, version, err = update(ctx, s.settings, string(team), settingPolicy, Policy{}, func(p *Policy) error {
			if len(p.FingerprintKey) > 0 {
				return errUnchanged // another request was first
			}
			p.FingerprintKey = make([]byte, 32)
			_, err := rand.Read(p.FingerprintKey)
			return err
		})
		if err != nil {
			return Policy{}, err
		}
	}
	p.Version = version
	return p, nil
}

func (s *Service) quota(t TeamSettings) store.Quota {
	q := s.Limits.Quota
	if t.MaxProjectFiles > 0 {
		q.Files = t.MaxProjectFiles
	}
	if t.MaxProjectBytes > 0 {
		q.Bytes = t.MaxProjectBytes
	}
	return q
}
