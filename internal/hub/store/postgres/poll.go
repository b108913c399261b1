package postgres

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/memsvc/memsvc/internal/memory"
)

// poller looks for what other replicas have committed, while anybody here wants to
// know. It costs one query each time, whatever the number of projects: an index leads
// to the commits of transactions that the snapshot before did not see.
type poller struct {
	s     *Store
	hints *hints

	mu      sync.Mutex // guards what follows
	wanted  int        // how many Notify are open
	running bool
	ended   bool
	cancel  context.CancelFunc
	works   sync.WaitGroup
}

func newPoller(s *Store, h *hints) *poller { return &poller{s: s, hints: h} }

// acquire notes that somebody wants to know; release takes it back.
func (p *poller) acquire() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted++
	if !p.running && !p.ended {
		ctx, cancel := context.WithCancel(context.Background())
		p.running, p.cancel = true, cancel
		p.works.Go(func() { p.run(ctx) })
		if !p.s.opts.NoHints {
			p.works.Go(func() { p.hints.listen(ctx) })
		}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wanted--
	}
}

func (p *poller) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted == 0
}

func (p *poller) stop() {
	p.mu.Lock()
	p.ended = true
	if p.running {
		p.cancel()
	}
	p.mu.Unlock()
	p.works.Wait()
}

// since is what a look has seen: the snapshot as PostgreSQL writes it, and the first
// transaction id that was not given out yet. The zero value is nothing.
type since struct {
	snapshot string
	next     uint64
}

// run looks until ctx ends.
func (p *poller) run(ctx context.Context) {
	tick := time.NewTicker(p.s.opts.PollEvery)
	defer tick.Stop()
	var last since
	var looked time.Time
	hinted := false
	pause := backoff{least: p.s.opts.PollEvery, most: 2 * time.Second}
	troubled := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !hinted && p.hints.hearing.Load() && time.Since(looked) < heardPollEvery {
				continue
			}
		case <-p.hints.heard:
			if time.Since(looked) < hintEvery {
				hinted = true // with the next tick
				continue
			}
		}
		hinted, looked = false, time.Now()
		if p.idle() {
			last = since{} // to begin anew costs less than to read what nobody asked for
			continue
		}
		changed, now, err := p.look(ctx, last)
		if err != nil {
			if !troubled && ctx.Err() == nil {
				troubled = true
				p.s.log.Warn("looking for other replicas' commits failed, trying again", "error", cause(err).Error())
			}
			if !pause.wait(ctx) {
				return
			}
			continue
		}
		if last == (since{}) || troubled || now.next < last.next {
			// What came before this look is not known: it is the first one, or another server
			// may have taken the place of the one before. A notice without cause is fine.
			p.s.notices.WakeAll()
		}
		if troubled {
			troubled, pause = false, backoff{least: pause.least, most: pause.most}
			p.s.log.Info("looking for other replicas' commits works again")
		}
		last = now
		for _, key := range changed {
			p.s.notices.Wake(key)
		}
	}
}

// sqlChanged tells the snapshot with what it sees that the one before did not; one row at
// least. Not visible were the transactions under way then, which the snapshot lists, and
// those that began since: what is read is bounded by what is new, and by how many
// transactions are open, however long. There is an upper bound too: rows that a dump of
// another server brought along may have transaction ids of the future.
const sqlChanged = `WITH new AS MATERIALIZED (
	SELECT pg_snapshot_xmax($1::text::pg_snapshot) AS low, pg_snapshot_xmax(pg_current_snapshot()) AS high,
		ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot)) AS late
), changed AS MATERIALIZED (
	SELECT project FROM memsvc.commits WHERE xid >= (SELECT low FROM new) AND xid < (SELECT high FROM new)
	UNION
	SELECT project FROM memsvc.commits WHERE xid = ANY((SELECT late FROM new)::xid8[])
)
SELECT pg_current_snapshot()::text, (SELECT high FROM new)::text, x.team, x.project FROM (SELECT 1) one LEFT JOIN (
	SELECT p.team, p.project FROM changed JOIN memsvc.projects p ON p.id=changed.project
	UNION
	SELECT team, project FROM memsvc.events WHERE xid >= (SELECT low FROM new) AND xid < (SELECT high FROM new)
	UNION
	SELECT team, project FROM memsvc.events WHERE xid = ANY((SELECT late FROM new)::xid8[])
) x ON true`

// never is a snapshot after all transactions.
const never = "18446744073709551615:18446744073709551615:"

// look returns the projects with commits that were not visible at the time of last.
func (p *poller) look(ctx context.Context, last since) (changed []memory.ProjectKey, now since, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if last.snapshot == "" {
		last.snapshot = never
	}
	err = p.s.once(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		rows, err := c.Query(ctx, p.s.sql(sqlChanged), last.snapshot)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var seen, xmax string
			var team, project *string
			if err := rows.Scan(&seen, &xmax, &team, &project); err != nil {
				return err
			}
			n, err := strconv.ParseUint(xmax, 10, 64)
			if err != nil {
				return err
			}
			now = since{snapshot: seen, next: n}
			if team != nil {
				changed = append(changed, memory.ProjectKey{Team: memory.Team(*team), Project: memory.Project(*project)})
			}
		}
		return rows.Err()
	})
	return changed, now, err
}
