// Package pgtest gives tests a PostgreSQL server: the one that MEMSVC_TEST_POSTGRES_URL
// names, or a throw-away one from the machine's own initdb and postgres. Without
// either a test skips and says so; where CI is set it fails.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/memsvc/memsvc/internal/porttest"
)

// Variable names a server that tests may use: they make databases on it.
const Variable = "MEMSVC_TEST_POSTGRES_URL"

// patience bounds every wait for the server.
const patience = 60 * time.Second

// Server is a PostgreSQL server for tests.
type Server struct {
	// URL is that of a database on it, which tests may share by using schemas of
	// their own.
	URL string

	t    testing.TB
	own  *instance // nil for a server that is not ours
	made int
}

// Options say what kind of server is wanted.
type Options struct {
	// Own asks for a server that the test may kill: never the one of the environment.
	Own bool
	// Durable makes it sync to the disk as it does in earnest.
	Durable bool
	// Settings are further ones, like "max_connections=20".
	Settings []string
}

// Start returns a server that ends with the test.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	if url := os.Getenv(Variable); url != "" && !opts.Own {
		if !strings.Contains(url, "?") {
			url += "?connect_timeout=10" // tests add settings of their own with &
		}
		return &Server{URL: url, t: t}
	}
	bin, err := programs()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("pgtest: %v; install PostgreSQL, or set %s", err, Variable)
		}
		t.Skipf("pgtest: %v; install PostgreSQL, or set %s", err, Variable)
	}
	settings := []string{"listen_addresses=127.0.0.1", "max_connections=300", "shared_buffers=64MB", "log_min_messages=warning", "unix_socket_permissions=0777"}
	if !opts.Durable {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	in, err := newInstance(bin, append(settings, opts.Settings...))
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	s := &Server{t: t, own: in}
	t.Cleanup(func() {
		in.end()
		if t.Failed() {
			t.Logf("last lines of PostgreSQL:\n%s", in.lastLines(15))
		}
		if err := os.RemoveAll(in.dir); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	s.StartAgain()
	return s
}

// programs finds the directory of initdb and postgres.
func programs() (dir string, err error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Dir(real), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("no initdb on this machine")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1]), nil
}

// StartAgain starts a server of our own that was stopped or killed, on its former
// address and data, and waits until it answers.
func (s *Server) StartAgain() {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if s.own.port == 0 {
			addr, err := net.ResolveTCPAddr("tcp", porttest.Free(s.t))
			if err != nil {
				s.t.Fatalf("pgtest: %v", err)
			}
			s.own.port = addr.Port
		}
		s.URL = fmt.Sprintf("postgres://memsvc@127.0.0.1:%d/postgres?sslmode=disable", s.own.port)
		if err := s.own.start(); err != nil {
			s.t.Fatalf("pgtest: %v", err)
		}
		if s.own.answers(s.URL, deadline) {
			return
		}
		taken := strings.Contains(s.own.lastLines(20), "could not bind")
		if !taken || s.made > 5 || time.Now().After(deadline) {
			s.t.Fatalf("pgtest: PostgreSQL does not start:\n%s", s.own.lastLines(20))
		}
		s.made++
		s.own.end()
		s.own.port = 0
	}
}

// Stop ends the server as an operator does who does not want to wait for clients.
func (s *Server) Stop() {
	s.t.Helper()
	if err := s.own.stop(); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
}

// Kill ends every process of the server as kill -9 does.
func (s *Server) Kill() { s.own.kill() }

// Pause stops every process of the server where it is, until Resume.
func (s *Server) Pause() { s.own.pause() }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.own.resume() }

// Exec runs a statement on the server, as its superuser.
func (s *Server) Exec(ctx context.Context, sql string, args ...any) error {
	c, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql, args...)
	return errors.Join(err, c.Close(ctx))
}

// Database makes an empty database and returns its URL; it goes with the test.
func (s *Server) Database() string {
	s.t.Helper()
	name := fmt.Sprintf("memsvc_test_%d_%08x", os.Getpid(), rand.Uint32())
	if err := s.Exec(context.Background(), "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	if s.own == nil {
		s.t.Cleanup(func() {
			if err := s.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
				s.t.Errorf("pgtest: %v", err)
			}
		})
	}
	cfg, err := pgx.ParseConfig(s.URL)
	if err != nil {
		s.t.Fatalf("pgtest: %v", err)
	}
	return strings.Replace(s.URL, "/"+cfg.Database, "/"+name, 1)
}

// Run runs a client program of PostgreSQL, such as pg_dump, of the version of a server of
// our own. A machine that has the server without its clients skips the test.
func (s *Server) Run(name string, args ...string) (out string, err error) {
	s.t.Helper()
	program := filepath.Join(s.own.bin, name)
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("CI") != "" {
			s.t.Fatalf("pgtest: %v", err)
		}
		s.t.Skipf("pgtest: %v", err)
	}
	text, err := exec.Command(program, args...).CombinedOutput()
	return string(text), err
}
