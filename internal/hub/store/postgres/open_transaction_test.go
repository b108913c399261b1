package postgres_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// forgotten opens a transaction that has a number, and leaves it open.
func forgotten(t *testing.T, url string) pgx.Tx {
	t.Helper()
	c, err := pgx.Connect(ctx, url)
	must(t, err)
	t.Cleanup(func() { _ = c.Close(ctx) })
	tx, err := c.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, "SELECT pg_current_xact_id()")
	must(t, err)
	return tx
}

// TestForgottenTransactionWakesNobody tells of each commit once, however long some
// transaction is open on the server.
func TestForgottenTransactionWakesNobody(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url, NoHints: true})
	defer func() { _, _ = a.Close(), b.Close() }()
	quiet, busy := memory.ProjectKey{Team: "acme", Project: "quiet"}, memory.ProjectKey{Team: "acme", Project: "busy"}
	must(t, a.CreateProject(ctx, quiet, time.Now()))
	must(t, a.CreateProject(ctx, busy, time.Now()))
	forgotten(t, url)
	fired := func(c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Fatal("no notice")
		}
	}
	ofQuiet, stop := b.Notify([]memory.ProjectKey{quiet})
	defer stop()
	fired(ofQuiet) // the first look, which tells whoever is there by then
	ofBusy, stop := b.Notify([]memory.ProjectKey{busy})
	defer stop()
	must(t, commitTo(a, quiet, "a.md", "one"))
	fired(ofQuiet)
	for n := range 5 { // looks that follow
		must(t, commitTo(a, busy, "a.md", fmt.Sprint(n)))
		fired(ofBusy)
	}
	select {
	case <-ofQuiet:
		t.Error("a commit was told again")
	default:
	}
}

// plan is what EXPLAIN tells of a step.
type plan struct {
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan
}

// read adds up the rows that were read of tables.
func (p *plan) read() (n float64) {
	if p.Relation == "commits" || p.Relation == "events" {
		n = (p.Rows + p.Removed) * p.Loops
	}
	for i := range p.Plans {
		n += p.Plans[i].read()
	}
	return n
}

// TestLookReadsWhatIsNew bounds what a look reads by what is new, while a transaction of
// before all commits is open.
func TestLookReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	forgotten(t, url)
	const before, after = 300, 3
	for n := range before {
		must(t, commitTo(s, key, "a.md", fmt.Sprint(n)))
	}
	// Small tables are read whole. These rows are as a dump of another server leaves them.
	must(t, (&pgtest.Server{URL: url}).Exec(ctx, `INSERT INTO memsvc.commits(project, rev, id, time, time_ns, bytes, xid, principal, machine, client, session, message)
		SELECT -1, n, '', now(), 0, 0, (1000000000+n)::text::xid8, '', '', '', '', '' FROM generate_series(1, 20000) n`))
	must(t, (&pgtest.Server{URL: url}).Exec(ctx, "ANALYZE memsvc.commits, memsvc.events, memsvc.projects"))
	snapshot := strings1(t, url, "SELECT pg_current_snapshot()::text")[0]
	for n := range after {
		must(t, commitTo(s, key, "b.md", fmt.Sprint(n)))
	}
	c, err := pgx.Connect(ctx, url)
	must(t, err)
	defer func() { _ = c.Close(ctx) }()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		_, err = c.Exec(ctx, "SELECT set_config('plan_cache_mode', $1, false)", mode)
		must(t, err)
		var doc []byte
		must(t, c.QueryRow(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+postgres.SQLChanged, snapshot).Scan(&doc))
		var explained []struct{ Plan plan }
		must(t, json.Unmarshal(doc, &explained))
		if n := explained[0].Plan.read(); n < after || n > 2*after {
			t.Errorf("%s: read %v rows, want about %d of %d:\n%s", mode, n, after, before+after, doc)
		}
	}
}
