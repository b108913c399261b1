package hub_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// program runs memsvc to its end.
func program(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = hub.Main(t.Context(), args, &out, &errOut)
	return strings.TrimSpace(out.String()), strings.TrimSpace(errOut.String()), code
}

// TestFirstStepsOnADatabase walks through what an operator does first, and what goes
// wrong in another order.
func TestFirstStepsOnADatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	secret := strings.Replace(url, "://memsvc@", "://memsvc:not-told@", 1)
	steps := []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"serve", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--ops-addr", "127.0.0.1:0"}, 2, "", "run memsvc migrate"},
		{[]string{"token", "bootstrap"}, 2, "", "run memsvc migrate"},
		{[]string{"migrate", "--restored"}, 2, "", "the database holds no hub's data, so no backup was put back into it"},
		{[]string{"token", "bootstrap"}, 2, "", "run memsvc migrate"}, // nothing was made
		{[]string{"migrate"}, 0, "migrated the schema from 0 to 2", ""},
		{[]string{"migrate", "--restored"}, 2, "the schema is up to date: 2", "the database holds no hub's data"},
		{[]string{"migrate"}, 0, "the schema is up to date: 2", ""},
		{[]string{"token", "bootstrap"}, 0, "msv_", ""},
		{[]string{"token", "bootstrap"}, 1, "", "memsvc token create"},
		{[]string{"token", "bootstrap", "--out", filepath.Join(t.TempDir(), "new")}, 1, "", "memsvc token create"},
	}
	for _, s := range steps {
		stdout, stderr, code := program(t, append(s.args, "--database-url", secret)...)
		if code != s.code || !strings.Contains(stdout, s.stdout) || !strings.Contains(stderr, s.stderr) || strings.Contains(stderr, "\n") {
			t.Fatalf("%v: code %d, %q, %q, want %+v", s.args, code, stdout, stderr, s)
		}
		if strings.Contains(stdout+stderr, "not-told") {
			t.Errorf("%v tells the password", s.args)
		}
		if s.stdout == "msv_" && !authn.WellFormed(stdout) {
			t.Errorf("%v printed no token and nothing else", s.args)
		}
	}
	for _, bad := range []string{"mysql://u:not-told@h/d", "postgres://u:not-told@h:x/d", "postgres://u:not%told@h/d"} {
		_, stderr, code := program(t, "migrate", "--database-url", bad)
		if code != 2 || strings.Contains(stderr, "told@") || strings.Contains(stderr, "not-told") {
			t.Errorf("a URL that cannot work: code %d, %q", code, stderr)
		}
	}
	if _, stderr, code := program(t, "serve", "--migrate"); code != 2 || !strings.Contains(stderr, "--database-url") {
		t.Errorf("--migrate alone: code %d, %q", code, stderr)
	}
}

// TestDatabaseAway tells in one line, once, that nothing answers there.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	var errOut hubtest.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- hub.Main(ctx, []string{"migrate", "--database-url", "postgres://u@127.0.0.1:1/d"}, &out, &errOut)
	}()
	hubtest.Eventually(t, patience, "it is told", func() bool { return strings.Contains(errOut.String(), "dial tcp 127.0.0.1:1") })
	cancel()
	code := <-ended
	for line := range strings.Lines(errOut.String()) {
		if n := strings.Count(line, "dial tcp 127.0.0.1:1"); n > 1 {
			t.Errorf("told %d times in one line: %s", n, line)
		}
	}
	if code != 1 {
		t.Errorf("code %d, %s", code, errOut.String())
	}
}

// TestDataDirBesideADatabase refuses to pass over a store that is there, and says that a
// directory without one is not used.
func TestDataDirBesideADatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	dir := t.TempDir()
	start := func() (string, error) {
		var log hubtest.Buffer
		cfg := hub.Config{
			DataDir: dir, DatabaseURL: url, Migrate: true, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", OpsAddr: "127.0.0.1:0",
			Retention: time.Hour, AuditRetention: time.Hour, MaxProjectFiles: 1, MaxProjectBytes: 1, MaxConnections: 1, MaxWatchers: 1, RateBurst: 1,
		}
		h, err := hub.Start(t.Context(), cfg, hub.Deps{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil {
			err = h.Shutdown(t.Context())
		}
		return log.String(), err
	}
	log, err := start()
	if err != nil || !strings.Contains(log, "--data-dir is not used beside --database-url") {
		t.Errorf("an empty directory: %v, %s", err, log)
	}
	if err := os.WriteFile(filepath.Join(dir, "hub.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = start()
	var usage *hub.ConfigError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "holds a hub's store") || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory with a store: %v, want it refused", err)
	}
}

// TestRestoredDatabase tells watchers and cursors of before that the history may have
// been rewound.
func TestRestoredDatabase(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	h := hubtest.Start(t, hubtest.Options{DatabaseURL: url, Deps: func(d *hub.Deps) { d.Bookmarks = oftenEnough }})
	c := as(t, h, h.Token("acme", "app", "writer"))
	res := c.mustCommit(t, put("a.md", "one"))
	w := c.watch(t, &memsvcv1.WatchedProject{Project: project, Cursor: res.GetHead()})
	stdout, stderr, code := program(t, "migrate", "--restored", "--database-url", url)
	if code != 0 || !strings.Contains(stdout, "new epoch") {
		t.Fatalf("code %d, %q, %q", code, stdout, stderr)
	}
	w.next(t, isStatus(memory.ReasonEpochChanged))
	_, err := c.CommitChanges(c.ctx(t), &memsvcv1.CommitChangesRequest{Parent: project, Changes: []*memsvcv1.Change{put("a.md", "two")}, Epoch: res.GetHead().GetEpoch()})
	wantReason(t, err, memory.ReasonEpochChanged)

	admin := as(t, h, h.AdminToken)
	events, err := admin.ListAuditEvents(admin.ctx(t), &memsvcv1.ListAuditEventsRequest{PageSize: 1})
	if err != nil || len(events.GetEvents()) != 1 {
		t.Fatalf("audit log: %v, %v", events, err)
	}
	if e := events.GetEvents()[0]; e.GetAction() != "restore-backup" || e.GetPrincipal() != "operator" || !strings.HasPrefix(e.GetDetail(), "memsvc migrate --restored, new epoch ") {
		t.Errorf("the newest event is %v, want the restored database", e)
	}
}

// TestBootstrapMayBeRepeated finds the file of a step that died before it was through.
func TestBootstrapMayBeRepeated(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t, pgtest.Options{}).Database()
	if _, stderr, code := program(t, "migrate", "--database-url", url); code != 0 {
		t.Fatal(stderr)
	}
	file := filepath.Join(t.TempDir(), "admin.token")
	text, _, _, err := authn.Mint()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, stderr, code := program(t, "token", "bootstrap", "--database-url", url, "--out", file); code != 0 {
			t.Fatalf("code %d: %s", code, stderr)
		}
	}
	h := hubtest.Start(t, hubtest.Options{DatabaseURL: url})
	if stdout, stderr, code := program(t, "team", "list", "--hub", h.GRPCAddr, "--token-file", file); code != 0 {
		t.Errorf("the token of the file: code %d, %s%s", code, stdout, stderr)
	}
}
