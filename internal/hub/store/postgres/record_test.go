package postgres_test

import (
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hub/store/storetest"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestNothingOffTheRecord does nothing that belongs on record while the audit log cannot be
// written.
func TestNothingOffTheRecord(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	storetest.NothingOffTheRecord(t, s, func() {
		database := &pgtest.Server{URL: url}
		must(t, database.Exec(ctx, `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the log is full'; END $$`))
		must(t, database.Exec(ctx, `CREATE TRIGGER broken BEFORE INSERT ON memsvc.audit FOR EACH ROW EXECUTE FUNCTION broken()`))
	})
}
