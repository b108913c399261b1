package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Redact replaces texts by a marker, wherever they are kept. The database
// overwrites what it frees, and the write-ahead log is emptied afterwards, so that
// the text is in none of the files any more; while a reader or a backup holds the
// log, that waits for a later commit.
func (s *Store) Redact(ctx context.Context, req store.RedactRequest) (res store.CommitResult, err error) {
	red, err := store.NewRedaction(req)
	if err != nil {
		return store.CommitResult{}, err
	}
	red.Marker = store.CloneContent(red.Marker)
	err = s.within(ctx, req.Project, func(p *project) error {
		return s.submit(ctx, &request{op: "redact in " + req.Project.String(), alone: true, apply: func(t *transaction) (err error) {
			res, err = t.redact(p, red)
			return err
		}})
	})
	if err != nil {
		return store.CommitResult{}, err
	}
	return res, nil
}

func (t *transaction) redact(p *project, red *store.Redaction) (res store.CommitResult, err error) {
	if p.gone {
		return res, errGone(p)
	}
	o := t.on(p)
	type row struct {
		seq int64
		rec *record
	}
	var rows []row
	h, ok := o.entry(red.Path)
	if !ok {
		return res, store.NoMemory(p.key, red.Path, 0)
	}
	newest, err := readRow(t.c, p, h.seq, true)
	if err != nil {
		return res, err
	}
	for seq, rec := h.seq, newest; rec != nil; {
		v := rec.at(red.Path)
		if v == nil {
			break
		}
		if red.Rewrite(&v.AppliedChange) {
			rows = append(rows, row{seq, rec})
		}
		if seq = v.prevSeq; seq == 0 {
			break
		}
		if rec, err = readRow(t.c, p, seq, true); err != nil {
			return res, err
		}
	}
	if newest == nil || newest.at(red.Path) == nil {
		return res, corrupt(p, h.seq)
	}
	if len(rows) == 0 && !red.Elsewhere {
		return res, store.NoMemory(p.key, red.Path, 0)
	}
	t.wrote = true
	for _, r := range rows {
		if err := t.c.exec(stUpdateCommit, appendMeta(nil, r.rec), r.rec.content(), r.seq); err != nil {
			return res, err
		}
	}
	err = t.eachRequest(p, func(r *remembered) (hit bool) {
		if r.commit == nil {
			return false
		}
		for i := range r.commit.versions {
			hit = red.Rewrite(&r.commit.versions[i].AppliedChange) || hit
		}
		return hit
	})
	if err != nil {
		return res, err
	}
	for _, f := range red.Fingerprints {
		if err := t.c.exec(stPutRedaction, string(p.key.Team), f); err != nil {
			return res, err
		}
	}
	c := red.Commit(o.cursor(t.epoch), store.MemoryAt(&newest.Commit, &newest.at(red.Path).AppliedChange, true))
	if err := t.append(o, &c, nil); err != nil {
		return res, err
	}
	t.after = append(t.after, func() {
		p.mu.Lock()
		p.tail = tail{}
		p.mu.Unlock()
		t.w.scrub = true
	})
	return store.CommitResult{Commit: store.WithoutContents(&c), Created: true, Head: o.cursor(t.epoch)}, nil
}

// Redacted returns those of the fingerprints that were redacted in the team.
func (s *Store) Redacted(ctx context.Context, team memory.Team, fingerprints []string) (found []string, err error) {
	err = s.call(ctx, "look up redactions", func(c *conn) error {
		for _, f := range fingerprints {
			err := c.query(stRedacted, func([]driver.Value) error { found = append(found, f); return nil }, string(team), f)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// Redactions lists the fingerprints redacted in team.
func (s *Store) Redactions(ctx context.Context, team memory.Team) (out []string, err error) {
	err = s.call(ctx, "list redactions", func(c *conn) error {
		return c.query(stRedactions, func(v []driver.Value) error {
			out = append(out, text(v[0]))
			return nil
		}, string(team))
	})
	return out, err
}

// ImportRedactions adds fingerprints redacted in team.
func (s *Store) ImportRedactions(ctx context.Context, team memory.Team, fingerprints []string) error {
	return s.change(ctx, "import redactions", func(t *transaction) error {
		t.wrote = true
		for _, f := range fingerprints {
			if err := t.c.exec(stPutRedaction, string(team), f); err != nil {
				return err
			}
		}
		return nil
	})
}
