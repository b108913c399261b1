//go:build linux

package killtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/pgtest"
	"github.com/memsvc/memsvc/internal/porttest"
)

// TestImportKilled moves a hub from the embedded store to PostgreSQL and kills the
// import again and again: called once more it goes on, and what it leaves is, by its
// digest, what was exported.
func TestImportKilled(t *testing.T) {
	t.Parallel()
	old := newHub(t, "")
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 4))
	l := startLoad(t, old, 8, rnd)
	// Several batches of an import (200 commits each), however slow the machine is.
	for len(old.history()) < 700 {
		pause(t, 300*time.Millisecond)
	}
	l.end()
	history := old.history()
	archive := filepath.Join(tempDir(t), "hub.archive")
	if _, errOut, code := call(t, "memsvc", "export", archive, "--hub", old.grpc, "--token-file", old.adminToken); code != 0 {
		t.Fatalf("export: %s", errOut)
	}
	url := pgtest.Start(t, pgtest.Options{}).Database()
	if _, errOut, code := call(t, "memsvc", "migrate", "--database-url", url); code != 0 {
		t.Fatalf("migrate: %s", errOut)
	}
	args := []string{"import", "--direct", "--database-url", url, archive}
	c, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer func() { _ = c.Close(context.Background()) }()
	head := func() (n int) {
		must(t, c.QueryRow(t.Context(), "SELECT coalesce(max(head), 0) FROM memsvc.projects").Scan(&n))
		return n
	}
	// The first one is stopped on its way by a lock, so that it is killed there however slow
	// the test is; the others at any moment.
	const gate = 7
	for _, sql := range []string{
		fmt.Sprintf("SELECT pg_advisory_lock(%d)", gate),
		fmt.Sprintf("CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(%d); RETURN NEW; END $$", gate),
		"CREATE TRIGGER gate BEFORE INSERT ON memsvc.commits FOR EACH ROW WHEN (NEW.rev = 450) EXECUTE FUNCTION gate()",
	} {
		_, err := c.Exec(t.Context(), sql)
		must(t, err)
	}
	killed := 0
	for n := range 4 {
		before := head()
		p := launch(t, "the import", command(context.Background(), "memsvc", args...))
		eventually(t, patience, "the import comes further", func() string {
			if !p.running() || head() > before {
				return ""
			}
			return "it does not"
		})
		p.kill()
		if at := head(); at > before && at < len(history) {
			killed++
		}
		if n == 0 {
			_, err := c.Exec(t.Context(), fmt.Sprintf("SELECT pg_advisory_unlock(%d)", gate))
			must(t, err)
			_, err = c.Exec(t.Context(), "DROP TRIGGER gate ON memsvc.commits")
			must(t, err)
		}
	}
	if killed == 0 {
		t.Error("no import was killed on its way; the test saw nothing")
	}
	out, errOut, code := call(t, "memsvc", args...)
	if code != 0 || !strings.Contains(out, "SHA-256") {
		t.Fatalf("the last import: code %d, %s%s", code, out, errOut)
	}
	t.Logf("%d killed; %s", killed, strings.TrimSpace(out))
	h := &hub{t: t, data: filepath.Join(tempDir(t), "unused"), grpc: porttest.Free(t), web: porttest.Free(t), ops: porttest.Free(t),
		adminToken: old.adminToken, writerToken: old.writerToken, extra: []string{"--database-url", url}}
	h.start()
	moved := h.history()
	if len(moved) != len(history) {
		t.Fatalf("%d revisions, %d were exported", len(moved), len(history))
	}
	for i := range moved {
		if moved[i].ID != history[i].ID {
			t.Fatalf("revision %d is another commit", i+1)
		}
	}
	l.check(moved)
}
