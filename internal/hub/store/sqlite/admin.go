package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// errMoved is a read that compaction overtook again and again.
var errMoved = errors.New("the history was compacted under the read")

// call runs f with a reader's connection as a whole call.
func (s *Store) call(ctx context.Context, op string, f func(c *conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.read(ctx, op, f)
}

// change runs apply in the writer as a whole call.
func (s *Store) change(ctx context.Context, op string, apply func(t *transaction) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.submit(ctx, &request{op: op, apply: apply})
}

// Teams returns the teams in order.
func (s *Store) Teams(ctx context.Context) (out []memory.Team, err error) {
	err = s.call(ctx, "list teams", func(c *conn) error {
		return c.query(stTeams, func(v []driver.Value) error {
			out = append(out, memory.Team(text(v[0])))
			return nil
		})
	})
	return out, err
}

// Projects returns the projects of a team, or all, in order.
func (s *Store) Projects(ctx context.Context, team memory.Team) (out []memory.ProjectKey, err error) {
	err = s.call(ctx, "list projects", func(c *conn) error {
		return c.query(stProjects, func(v []driver.Value) error {
			key := memory.ProjectKey{Team: memory.Team(text(v[1])), Project: memory.Project(text(v[2]))}
			if team == "" || key.Team == team {
				out = append(out, key)
			}
			return nil
		})
	})
	return out, err
}

// Totals counts over all projects; each costs one look into the index of commits.
func (s *Store) Totals(ctx context.Context) (out store.Totals, err error) {
	err = s.call(ctx, "count", func(c *conn) error {
		return c.query(stTotals, func(v []driver.Value) error {
			out = store.Totals{Projects: v[0].(int64), Revisions: v[1].(int64)}
			return nil
		})
	})
	return out, err
}

// Setting returns a document and its version.
func (s *Store) Setting(ctx context.Context, scope, name string) (doc []byte, version int64, err error) {
	err = s.call(ctx, "read setting "+name, func(c *conn) (err error) {
		doc, version, err = readSetting(c, scope, name)
		return err
	})
	return doc, version, err
}

func readSetting(c *conn, scope, name string) (doc []byte, version int64, err error) {
	err = c.query(stSetting, func(v []driver.Value) error {
		version, doc = v[0].(int64), store.CloneContent(blob(v[1]))
		return nil
	}, scope, name)
	return doc, version, err
}

// PutSetting replaces a document if it is still at version.
func (s *Store) PutSetting(ctx context.Context, scope, name string, doc []byte, version int64, on ...store.AuditEvent) error {
	doc = store.CloneContent(doc)
	return s.change(ctx, "write setting "+name, func(t *transaction) error {
		_, have, err := readSetting(t.c, scope, name)
		if err != nil {
			return err
		}
		if have != version {
			return store.StaleSetting(scope, name, have)
		}
		t.wrote = true
		if err := t.c.exec(stPutSetting, scope, name, version+1, doc); err != nil {
			return err
		}
		return t.record(on...)
	})
}

// SettingNames lists the settings under scope.
func (s *Store) SettingNames(ctx context.Context, scope string) (out []string, err error) {
	err = s.call(ctx, "list settings", func(c *conn) error {
		return c.query(stSettingNames, func(v []driver.Value) error {
			out = append(out, text(v[0]))
			return nil
		}, scope)
	})
	return out, err
}

// PutToken keeps a new token.
func (s *Store) PutToken(ctx context.Context, tok store.Token, on ...store.AuditEvent) error {
	return s.change(ctx, "keep token "+tok.ID, func(t *transaction) error {
		exists := false
		err := t.c.query(stTokenExists, func([]driver.Value) error { exists = true; return nil }, tok.ID, tok.Hash)
		if err != nil {
			return err
		}
		if exists {
			return store.Exists("token " + tok.ID)
		}
		t.wrote = true
		err = t.c.exec(stPutToken, tok.ID, tok.Hash, string(tok.Team), string(tok.Project), tok.Name, tok.Role,
			appendTime(nil, tok.CreateTime), appendTime(nil, tok.ExpireTime), appendTime(nil, tok.RevokeTime))
		if err != nil {
			return err
		}
		return t.record(on...)
	})
}

func readToken(v []driver.Value) store.Token {
	return store.Token{
		ID: text(v[0]), Hash: text(v[1]), Team: memory.Team(text(v[2])), Project: memory.Project(text(v[3])),
		Name: text(v[4]), Role: text(v[5]),
		CreateTime: decodeTime(blob(v[6])), ExpireTime: decodeTime(blob(v[7])), RevokeTime: decodeTime(blob(v[8])),
	}
}

// TokenByHash returns the token with this hash.
func (s *Store) TokenByHash(ctx context.Context, hash string) (tok store.Token, err error) {
	err = s.call(ctx, "find token", func(c *conn) error {
		found := false
		err := c.query(stTokenByHash, func(v []driver.Value) error {
			tok, found = readToken(v), true
			return nil
		}, hash)
		if err == nil && !found {
			return store.NoToken("")
		}
		return err
	})
	return tok, err
}

// Tokens returns a team's tokens, or all, oldest first.
func (s *Store) Tokens(ctx context.Context, team memory.Team) (out []store.Token, err error) {
	err = s.call(ctx, "list tokens", func(c *conn) error {
		return c.query(stTokens, func(v []driver.Value) error {
			if tok := readToken(v); team == "" || tok.Team == team {
				out = append(out, tok)
			}
			return nil
		})
	})
	slices.SortFunc(out, func(a, b store.Token) int {
		if c := a.CreateTime.Compare(b.CreateTime); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, err
}

// RevokeToken marks a token as revoked.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time, on ...store.AuditEvent) error {
	return s.change(ctx, "revoke token "+id, func(t *transaction) error {
		found, revoked := false, false
		err := t.c.query(stTokens, func(v []driver.Value) error {
			if tok := readToken(v); tok.ID == id {
				found, revoked = true, !tok.RevokeTime.IsZero()
			}
			return nil
		})
		switch {
		case err != nil:
			return err
		case !found:
			return store.NoToken(id)
		}
		t.wrote = true
		if !revoked {
			if err := t.c.exec(stRevokeToken, appendTime(nil, at), id); err != nil {
				return err
			}
		}
		return t.record(on...)
	})
}

// AppendAudit adds an event to the audit log.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEvent) (id int64, err error) {
	err = s.change(ctx, "append to the audit log", func(t *transaction) (err error) {
		id, err = t.recordOne(e)
		return err
	})
	return id, err
}

// RepeatAudit counts an event that happened again.
func (s *Store) RepeatAudit(ctx context.Context, id, n int64, last time.Time) error {
	return s.change(ctx, "count in the audit log", func(t *transaction) error {
		t.wrote = true
		return t.c.exec(stRepeatAudit, n, appendTime(nil, last), id)
	})
}

// trimSlice bounds the events that one transaction looks at, and takes away, so that
// others wait for milliseconds.
const trimSlice = 500

// TrimAudit forgets old events, slice by slice, the oldest first.
func (s *Store) TrimAudit(ctx context.Context, cut time.Time) (total int64, err error) {
	for after := int64(0); ; {
		n := int64(0)
		err := s.change(ctx, "trim the audit log", func(t *transaction) error {
			n = 0
			var old []int64
			err := t.c.query(stAuditTimes, func(v []driver.Value) error {
				after = v[0].(int64)
				if decodeTime(blob(v[1])).Before(cut) {
					old = append(old, after)
				}
				return nil
			}, after, int64(trimSlice))
			if err != nil {
				return err
			}
			for _, id := range old {
				t.wrote = true
				if err := t.c.exec(stDropAudit, id); err != nil {
					return err
				}
			}
			n = int64(len(old))
			return nil
		})
		if total += n; err != nil || n == 0 {
			return total, err
		}
	}
}

// record adds events to the audit log.
func (t *transaction) record(events ...store.AuditEvent) error {
	for _, e := range events {
		if _, err := t.recordOne(e); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) recordOne(e store.AuditEvent) (id int64, err error) {
	t.wrote = true
	last := []byte{}
	if !e.LastTime.IsZero() {
		last = appendTime(nil, e.LastTime)
	}
	err = t.c.query(stPutAudit, func(v []driver.Value) error { id = v[0].(int64); return nil },
		appendTime(nil, e.Time), string(e.Team), e.Principal, e.Action, e.Subject, e.Detail, e.RequestID, max(e.Count, 1), last)
	return id, err
}

// AuditEvents returns events, the newest first.
func (s *Store) AuditEvents(ctx context.Context, team memory.Team, before int64, limit int) (out []store.AuditEvent, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	if limit <= 0 {
		limit = -1
	}
	err = s.call(ctx, "read the audit log", func(c *conn) error {
		row := func(v []driver.Value) error {
			e := store.AuditEvent{
				ID: v[0].(int64), Time: decodeTime(blob(v[1])), Team: memory.Team(text(v[2])), Principal: text(v[3]),
				Action: text(v[4]), Subject: text(v[5]), Detail: text(v[6]), RequestID: text(v[7]), Count: v[8].(int64),
			}
			if last := blob(v[9]); len(last) > 0 {
				e.LastTime = decodeTime(last)
			}
			out = append(out, e)
			return nil
		}
		if team == "" {
			return c.query(stAudit, row, before, int64(limit))
		}
		return c.query(stTeamAudit, row, before, string(team), int64(limit))
	})
	return out, err
}
