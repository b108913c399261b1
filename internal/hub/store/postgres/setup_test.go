package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestURLsThatReadOtherwise refuses passwords that stand in the URL as they are, and tells
// no part of them.
func TestURLsThatReadOtherwise(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:Hush@9x/#@host/db", "postgres://u:123/sh9@host/db", "postgres://u:Hu#sh@host/db", "postgres://u:Hu?sh9@host/db",
		"postgres://u:Hu/sh@host/db", "postgres://u:Hush", "postgres://u:Hush/db", "postgres://u:Hush%9@host/db", "postgres://u:H ush@host/db",
		"postgres://u:Hush@host:54320000/db", "postgres://u:Hush@host:x/db", "postgres://u:Hush@host/db?sslmode=disabel",
		"postgres://u:12?3=Hush9@host/db", "postgres://u:Hush@host/db?pool_max_conns=Hush", "postgres://u:5/Hush?a=1?b@host", "postgres://u:[Hush@host/db",
	} {
		err := postgres.CheckURL(url)
		if !errors.Is(err, memory.ErrInvalidArgument) {
			t.Errorf("%s: %v, want it refused", url, err)
			continue
		}
		for _, part := range []string{"ush", "9x", "sh9", "Hu", "123"} {
			if strings.Contains(err.Error(), part) {
				t.Errorf("%s: tells a part of the password: %v", url, err)
			}
		}
	}
	for _, url := range []string{
		"postgres://u:Hush%409x%2F%23@host/db", "postgres://u@h1:5432,h2:5433/db?target_session_attrs=read-write", "postgresql://u:p@[::1]:5432/db?sslmode=disable",
		"postgres:///db?host=/var/run/postgresql", "postgres://h1,h2/db", "postgres://u:p!$&'()*+,;=~x@host",
	} {
		if err := postgres.CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// guarded returns a server that asks role ann of its database for a password, and that URL.
func guarded(t *testing.T, password string) (s *pgtest.Server, url string) {
	t.Helper()
	s = pgtest.Start(t, pgtest.Options{Own: true})
	url = s.Database()
	file := strings1(t, url, "SHOW hba_file")[0]
	for _, sql := range []string{
		"CREATE ROLE ann LOGIN PASSWORD '" + password + "'",
		fmt.Sprintf("COPY (VALUES ('host all memsvc 127.0.0.1/32 trust'), ('host all all 127.0.0.1/32 scram-sha-256')) TO '%s'", file),
		"SELECT pg_reload_conf()",
	} {
		must(t, s.Exec(ctx, sql))
	}
	must(t, (&pgtest.Server{URL: url}).Exec(ctx, "CREATE SCHEMA memsvc AUTHORIZATION ann"))
	// The server takes the file in when it comes to it.
	hubtest.Eventually(t, time.Minute, "the server asks for passwords", func() bool {
		_, err := postgres.SchemaVersion(ctx, postgres.Options{URL: strings.Replace(url, "//memsvc@", "//ann:wrong@", 1)})
		return err != nil
	})
	return s, strings.Replace(url, "//memsvc@", "//ann@", 1)
}

// TestPasswordsChange takes a password file in anew for each connection, and calls a
// password that is wrong meanwhile a trouble that passes.
func TestPasswordsChange(t *testing.T) {
	const first, second = "first-secret", "second-secret"
	server, url := guarded(t, first)
	file := filepath.Join(t.TempDir(), "pgpass")
	write := func(password string) {
		t.Helper()
		must(t, os.WriteFile(file, []byte("*:*:*:ann:"+password+"\n"), 0o600))
	}
	write(first)
	t.Setenv("PGPASSFILE", file)
	s := open(t, postgres.Options{URL: url})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	must(t, server.Exec(ctx, "ALTER ROLE ann PASSWORD '"+second+"'"))
	must(t, server.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename='ann'"))
	var last error
	hubtest.Eventually(t, time.Minute, "the login fails", func() bool { // what dies with the connections is tried again
		last = commitTo(s, key, "a.md", "one")
		return last != nil && strings.Contains(last.Error(), "28P01")
	})
	if !errors.Is(last, memory.ErrUnavailable) || !strings.Contains(last.Error(), "PGPASSFILE") {
		t.Errorf("while the password is wrong: %v, want UNAVAILABLE and where to look", last)
	}
	if err := s.Probe(ctx); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("the probe: %v", err)
	}
	if strings.Contains(last.Error(), first) {
		t.Errorf("tells the password: %v", last)
	}
	write(second)
	must(t, commitTo(s, key, "a.md", "one"))
}

// TestWrongSetUps says in one line what is wrong, where, and what to do.
func TestWrongSetUps(t *testing.T) {
	t.Parallel()
	server, asAnn := guarded(t, "right")
	other := strings.Replace(server.Database(), "//memsvc@", "//ann:right@", 1) // ann may not make a schema there
	for _, c := range []struct {
		what, url string
		says      []string
	}{
		{"a wrong password", strings.Replace(asAnn, "//ann@", "//ann:Hush@", 1), []string{"28P01", "at 127.0.0.1:", "PGPASSFILE"}},
		{"no such database", strings.Replace(server.URL, "/postgres?", "/none?", 1), []string{`"none" at 127.0.0.1:`, "3D000", "make it"}},
		{"no right to make schemas", other, []string{"42501", "GRANT CREATE ON DATABASE"}},
		{"a slip in the parameters", server.URL + "&slmode=disable", []string{`"slmode"`, "42704", "correct the URL"}},
	} {
		_, err := postgres.Migrate(ctx, postgres.Options{URL: c.url})
		if err == nil {
			t.Errorf("%s: no error", c.what)
			continue
		}
		text := err.Error()
		for _, say := range c.says {
			if !strings.Contains(text, say) {
				t.Errorf("%s: %s, want it to say %q", c.what, text, say)
			}
		}
		if strings.Contains(text, "\n") || strings.Contains(text, "try again") || strings.Contains(text, "Hush") || errors.Is(err, memory.ErrInternal) {
			t.Errorf("%s: %s", c.what, text)
		}
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := postgres.Migrate(short, postgres.Options{URL: "postgres://u@name.invalid/d"})
	if err == nil || strings.Count(err.Error(), "lookup name.invalid") > 1 {
		t.Errorf("a name that nobody knows: %v, want it once", err)
	}
}

// TestHintsThatCannotBeSent counts them, says so once, and loses nothing by it.
func TestHintsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	_, url := guarded(t, "right")
	url = strings.Replace(url, "//ann@", "//ann:right@", 1)
	asRoot := &pgtest.Server{URL: strings.Replace(url, "//ann:right@", "//memsvc@", 1)}
	must(t, asRoot.Exec(ctx, "REVOKE EXECUTE ON FUNCTION pg_notify(text, text) FROM PUBLIC"))
	var log hubtest.Buffer
	s := open(t, postgres.Options{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer func() { _ = s.Close() }()
	key := memory.ProjectKey{Team: "acme", Project: "p"}
	must(t, s.CreateProject(ctx, key, time.Now()))
	commits := 0
	hubtest.Eventually(t, time.Minute, "hints are counted", func() bool {
		commits++
		must(t, commitTo(s, key, "a.md", fmt.Sprint(commits)))
		return s.HintsFailed() >= 3
	})
	must(t, asRoot.Exec(ctx, "GRANT EXECUTE ON FUNCTION pg_notify(text, text) TO PUBLIC"))
	hubtest.Eventually(t, time.Minute, "hints go out again", func() bool {
		commits++
		must(t, commitTo(s, key, "a.md", fmt.Sprint(commits)))
		return strings.Contains(log.String(), "go out again")
	})
	if n := strings.Count(log.String(), "cannot be sent"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}
