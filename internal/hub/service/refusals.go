package service

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of what refusals add to the audit log, so that nobody fills the disk with them.
const (
	// foldSpan is for how long equal refusals of one principal are one event with a count.
	foldSpan = time.Hour
	// maxDistinct is how many different refusals of one principal are events of their own
	// within a span (see whose); what goes beyond is one event for each action and reason. All
	// identities that no rule gives a role are one principal in this: anybody may get one of
	// some issuers.
	maxDistinct = 100
	// flushEvery is how often counts are written. Those since then are lost with the
	// process; the event itself is there.
	flushEvery = 5 * time.Second
	// flushPatience is how long the end of the hub waits for the last counts.
	flushPatience = 5 * time.Second
)

// refusals folds equal refusals into one event.
type refusals struct {
	// writing is held, by a value in it, while counts are taken and written: who reads the
	// log after that misses none that another was about to write.
	writing chan struct{}

	mu    sync.Mutex // guards what follows
	by    map[string]*refuser
	ended []*folded // of spans that are over, with counts that are not written yet
}

// refuser is whoever was refused within a span.
type refuser struct {
	until    time.Time
	distinct int
	rows     map[[sha256.Size]byte]*folded
}

// folded is an event that may have happened more often than is written.
type folded struct {
	id    int64 // 0: it is being written
	more  int64
	last  time.Time
	over  bool // its span has ended
	waits bool // it is among those that ended
}

func newRefusals() *refusals {
	return &refusals{writing: make(chan struct{}, 1), by: map[string]*refuser{}}
}

// refusal is one refusal as it is on record.
type refusal struct {
	team                               memory.Team
	principal, action, subject, detail string
}

func (r refusal) key() [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join([]string{string(r.team), r.principal, r.action, r.subject, r.detail}, "\x00")))
}

// fold counts the refusal if an equal one is on record already. Otherwise it returns what
// to put on record, which may be less precise, and where its id belongs.
func (f *refusals) fold(who string, home memory.Team, r refusal, reason memory.Reason, now time.Time) (_ refusal, row *folded, done func(id int64) (lost int64)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by := f.by[who]
	if by == nil || !now.Before(by.until) {
		f.endLocked(who)
		by = &refuser{until: now.Add(foldSpan), rows: map[[sha256.Size]byte]*folded{}}
		f.by[who] = by
	}
	key := r.key()
	if row := by.rows[key]; row != nil {
		row.more, row.last = row.more+1, now
		return r, nil, nil
	}
	if by.distinct >= maxDistinct {
		// The subject's team may be one of any number of names that do not exist.
		r.team, r.subject = home, "others"
		r.detail = fmt.Sprintf("%s; more than %d different refusals within %v, the further ones are counted here", reason, maxDistinct, foldSpan)
		if who == "" {
			r.principal = "others"
		}
		if key = r.key(); by.rows[key] != nil {
			row := by.rows[key]
			row.more, row.last = row.more+1, now
			return r, nil, nil
		}
	}
	by.distinct++
	row = &folded{}
	by.rows[key] = row
	return r, row, func(id int64) (lost int64) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if id != 0 {
			row.id = id
			return 0
		}
		if by.rows[key] == row {
			delete(by.rows, key)
			by.distinct--
		}
		if row.waits { // its span ended meanwhile
			row.waits = false
			f.ended = slices.DeleteFunc(f.ended, func(r *folded) bool { return r == row })
		}
		lost, row.more = 1+row.more, 0
		return lost
	}
}

// endLocked ends a principal's span.
func (f *refusals) endLocked(who string) {
	by := f.by[who]
	if by == nil {
		return
	}
	for _, row := range by.rows {
		row.over = true
		if row.more > 0 || row.id == 0 {
			f.waitLocked(row)
		}
	}
	delete(f.by, who)
}

// waitLocked has a row whose span is over wait for its count to be written.
func (f *refusals) waitLocked(row *folded) {
	if !row.waits {
		row.waits = true
		f.ended = append(f.ended, row)
	}
}

// unwritten is a count that is to be written.
type unwritten struct {
	row  *folded
	id   int64
	n    int64
	last time.Time
}

// take returns the counts that are not written yet, and forgets spans that are over.
func (f *refusals) take(now time.Time) (out []unwritten) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for who, by := range f.by {
		if !now.Before(by.until) {
			f.endLocked(who)
		}
	}
	add := func(row *folded) {
		if row.id != 0 && row.more > 0 {
			out = append(out, unwritten{row, row.id, row.more, row.last})
			row.more = 0
		}
	}
	var waiting []*folded
	for _, row := range f.ended {
		if row.waits = row.id == 0; row.waits {
			waiting = append(waiting, row)
		}
		add(row)
	}
	f.ended = waiting
	for _, by := range f.by {
		for _, row := range by.rows {
			add(row)
		}
	}
	return out
}

// giveBack takes a count back that could not be written.
func (f *refusals) giveBack(u unwritten) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u.row.more += u.n; u.row.last.Before(u.last) {
		u.row.last = u.last
	}
	if u.row.over {
		f.waitLocked(u.row)
	}
}

// whose names whom a refusal counts for: the token, or the name within its team, as the
// same name may be given in every team.
func whose(p Principal) string {
	switch {
	case p.Role == NoRole:
		return ""
	case p.TokenID != "":
		return "token " + p.TokenID
	}
	return string(p.Team) + "\x00" + p.Name
}

// record puts a refusal on record, with those equal to it.
func (s *Service) record(ctx context.Context, c Call, r refusal, e *memory.Error) {
	who, home := whose(c.Principal), c.Principal.Team
	if who == "" {
		home = ""
	}
	r, row, done := s.refusals.fold(who, home, r, e.Reason, s.Now())
	if row == nil {
		return
	}
	ev := s.event(c, r.team, r.action, r.subject, r.detail)
	ev.Principal = r.principal
	if ev.Detail == Withheld {
		ev.Detail = string(e.Reason) // that much can be said
	}
	id, err := s.Backend.AppendAudit(context.WithoutCancel(ctx), ev)
	if err != nil {
		id = 0
		s.lost(c, r.action, err)
	}
	if lost := done(id); lost > 0 {
		s.Observer.AuditLost(lost)
	}
}

// writeCounts writes how often refusals happened again.
func (s *Service) writeCounts(ctx context.Context) (failed int64) {
	select {
	case s.refusals.writing <- struct{}{}:
		defer func() { <-s.refusals.writing }()
	case <-ctx.Done():
		return 0
	}
	var why error
	for _, u := range s.refusals.take(s.Now()) {
		if err := s.Backend.RepeatAudit(ctx, u.id, u.n, u.last); err != nil {
			why = err
			failed += u.n
			s.refusals.giveBack(u)
		}
	}
	if why != nil && ctx.Err() == nil {
		s.Logger.Warn("audit: counts of refusals are not written yet", "refusals", failed, "error", why.Error())
	}
	return failed
}

// keepCounts writes counts until ctx ends, and then the last ones.
func (s *Service) keepCounts(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPatience)
			defer cancel()
			if lost := s.writeCounts(last); lost > 0 {
				s.Observer.AuditLost(lost)
			}
			return
		case <-ticker.C:
			s.writeCounts(ctx)
		}
	}
}

// trimAudit forgets what the retention of the audit log is over for.
func (s *Service) trimAudit(ctx context.Context) error {
	n, err := s.Backend.TrimAudit(ctx, s.Now().Add(-s.Limits.AuditRetention))
	s.Observer.AuditTrimmed(n)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}
