package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// NewEpoch makes next the present epoch.
func (s *Store) NewEpoch(ctx context.Context, next memory.Epoch, now time.Time, on ...store.AuditEvent) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.submit(ctx, &request{op: "mint an epoch", alone: true, apply: func(t *transaction) error {
		if next == "" {
			return store.Invalid("new epoch: it has no id")
		}
		if slices.Contains(s.epochs, next) {
			return store.Exists("epoch " + string(next))
		}
		t.wrote = true
		if err := t.settleRevs(); err != nil {
			return err
		}
		if err := t.spanAll(); err != nil {
			return err
		}
		t.after = append(t.after, func() {
			s.epochMu.Lock()
			defer s.epochMu.Unlock()
			s.epochs = append(s.epochs, next)
		})
		if err := t.c.exec(stPutEpoch, string(next), now.Unix()); err != nil {
			return err
		}
		return t.record(on...)
	}})
}

// spanAll records every project's head as where the present epoch ends.
func (t *transaction) spanAll() error {
	var ids []int64
	err := t.c.query(stProjects, func(v []driver.Value) error {
		ids = append(ids, v[0].(int64))
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		end := store.Span{Epoch: t.epoch}
		err := t.c.query(stHead, func(v []driver.Value) error {
			end.Through = memory.Revision(v[1].(int64))
			return nil
		}, id)
		if err != nil {
			return err
		}
		if err := t.addSpans(id, end); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) addSpans(project int64, more ...store.Span) error {
	have, err := readSpans(t.c, project)
	if err != nil {
		return err
	}
	t.wrote = true
	if err := t.c.exec(stDropSpans, project); err != nil {
		return err
	}
	for i, sp := range store.AddSpans(have, more...) {
		if err := t.c.exec(stPutSpan, project, int64(i), string(sp.Epoch), int64(sp.Through)); err != nil {
			return err
		}
	}
	return nil
}

func readSpans(c *conn, project int64) (out []store.Span, err error) {
	err = c.query(stSpans, func(v []driver.Value) error {
		out = append(out, store.Span{Epoch: memory.Epoch(text(v[0])), Through: memory.Revision(v[1].(int64))})
		return nil
	}, project)
	return out, err
}

// Spans returns the epochs of the project's history.
func (s *Store) Spans(ctx context.Context, key memory.ProjectKey) (out []store.Span, err error) {
	err = s.within(ctx, key, func(p *project) error {
		p.mu.RLock()
		now := store.Span{Epoch: s.epoch(), Through: p.rev}
		p.mu.RUnlock()
		return s.read(ctx, "read the epochs of "+key.String(), func(c *conn) (err error) {
			out, err = readSpans(c, p.id)
			out = append(out, now)
			return err
		})
	})
	return out, err
}

// Rewind returns the last revision that the present history shares with seen.
func (s *Store) Rewind(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) (at memory.Revision, ok bool, err error) {
	spans, err := s.Spans(ctx, key)
	if err != nil {
		return 0, false, err
	}
	if now := spans[len(spans)-1]; now.Epoch == seen {
		return now.Through, true, nil
	}
	for _, sp := range spans {
		if sp.Epoch == seen {
			return sp.Through, true, nil
		}
	}
	s.epochMu.RLock()
	defer s.epochMu.RUnlock()
	// True here: the project is younger than an epoch that this history had.
	return 0, slices.Contains(s.epochs, seen), nil
}

// ImportSpans adds epochs of another hub.
func (s *Store) ImportSpans(ctx context.Context, key memory.ProjectKey, spans []store.Span) error {
	return s.within(ctx, key, func(p *project) error {
		return s.submit(ctx, &request{op: "import epochs of " + key.String(), apply: func(t *transaction) error {
			if p.gone {
				return errGone(p)
			}
			return t.addSpans(p.id, spans...)
		}})
	})
}

// ImportCommits appends commits as they are.
func (s *Store) ImportCommits(ctx context.Context, key memory.ProjectKey, oldest memory.Revision, commits []memory.Commit) error {
	return s.within(ctx, key, func(p *project) error {
		own := make([]memory.Commit, len(commits))
		r := &request{op: "import commits of " + key.String()}
		for i := range commits {
			own[i] = store.WithContents(&commits[i])
			own[i].Project = key
			r.size += commitSize(&own[i])
		}
		r.apply = func(t *transaction) error {
			if p.gone {
				return errGone(p)
			}
			o := t.on(p)
			if err := store.CheckImport(key, o.rev, p.oldest, oldest, own); err != nil {
				return err
			}
			t.wrote = true
			for i := range own {
				if err := t.append(o, &own[i], nil); err != nil {
					return err
				}
			}
			t.after = append(t.after, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.oldest = oldest
				if len(p.tail.commits) > 0 && p.tail.commits[0].Revision < oldest {
					p.tail = tail{} // remnants do not follow each other
				}
			})
			return t.c.exec(stSetOldest, int64(oldest), p.id)
		}
		return s.submit(ctx, r)
	})
}

// History returns commits and what is left of compacted ones.
func (s *Store) History(ctx context.Context, key memory.ProjectKey, after memory.Revision, limit int, maxBytes int64) (out []memory.Commit, err error) {
	err = s.within(ctx, key, func(p *project) (err error) {
		p.mu.RLock()
		rev := p.rev
		p.mu.RUnlock()
		out, err = s.collect(ctx, p, after, rev, bound{limit: limit, bytes: maxBytes})
		return err
	})
	return out, err
}

// PurgeProject removes a project with its history and settings.
func (s *Store) PurgeProject(ctx context.Context, key memory.ProjectKey, on ...store.AuditEvent) error {
	return s.within(ctx, key, func(p *project) error {
		return s.submit(ctx, &request{op: "purge " + key.String(), alone: true, apply: func(t *transaction) error {
			if p.gone {
				return errGone(p)
			}
			t.wrote = true
			if err := t.settleRevs(); err != nil {
				return err
			}
			for _, st := range []statement{stDropProjectCommits, stDropProjectRevs, stDropProjectHeads, stDropProjectSpans, stDropProjectRequests, stDropProject} {
				if err := t.c.exec(st, p.id); err != nil {
					return err
				}
			}
			if err := t.c.exec(stDropSettings, key.String()); err != nil {
				return err
			}
			t.after = append(t.after, func() {
				p.mu.Lock()
				p.gone = true
				p.mu.Unlock()
				s.cache.forget(p)
				s.notices.Wake(key)
				t.w.scrub = true
			})
			return t.record(on...)
		}})
	})
}
