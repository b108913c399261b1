package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store"
)

var _ store.Shared = (*Store)(nil)

const (
	sqlLease = `INSERT INTO memsvc.leases(name, holder, until) VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
ON CONFLICT(name) DO UPDATE SET holder=excluded.holder, until=excluded.until
WHERE leases.holder=excluded.holder OR leases.until <= clock_timestamp()`

	sqlPublish = `INSERT INTO memsvc.replicas(replica, at, doc) VALUES ($1, clock_timestamp(), coalesce($2::bytea, ''))
ON CONFLICT(replica) DO UPDATE SET at=excluded.at, doc=coalesce($2::bytea, replicas.doc)`

	// sqlForgotten is how long what a replica told outlives it.
	sqlForgotten = `DELETE FROM memsvc.replicas WHERE at < clock_timestamp() - interval '1 day'`

	sqlPublished = `SELECT replica, greatest(0, extract(epoch FROM clock_timestamp() - at))::float8, doc FROM memsvc.replicas
WHERE at >= clock_timestamp() - make_interval(secs => $1) ORDER BY replica COLLATE "C"`
)

// Lease takes, keeps or gives back a lease.
func (s *Store) Lease(ctx context.Context, name, holder string, ttl time.Duration) (bool, error) {
	n, err := s.exec(ctx, "take the lease "+name, sqlLease, name, holder, ttl.Seconds())
	return n > 0, err
}

// Publish keeps what a replica tells of itself.
func (s *Store) Publish(ctx context.Context, holder string, doc []byte) error {
	if _, err := s.exec(ctx, "publish", sqlPublish, holder, doc); err != nil || doc == nil {
		return err
	}
	_, err := s.exec(ctx, "publish", sqlForgotten)
	return err
}

// Published returns what replicas tell of themselves.
func (s *Store) Published(ctx context.Context, within time.Duration) ([]store.Published, error) {
	return query(ctx, s, "read what replicas publish", sqlPublished, func(row pgx.CollectableRow) (p store.Published, err error) {
		var age float64
		err = row.Scan(&p.Holder, &age, &p.Doc)
		p.Age = time.Duration(age * float64(time.Second))
		return p, err
	}, within.Seconds())
}
