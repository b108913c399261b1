package postgres_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// pooler stands between clients and a server as PgBouncer does in transaction mode: a
// client has a connection of the server for one transaction, then the next one in turn.
// Nothing that lasts longer than a transaction survives it.
type pooler struct {
	t       *testing.T
	ln      net.Listener
	url     string
	servers chan *pgconn.HijackedConn
	wg      sync.WaitGroup
	mu      sync.Mutex // guards clients
	clients []net.Conn
}

func startPooler(t *testing.T, url string, connections int) *pooler {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, ln: ln, url: url, servers: make(chan *pgconn.HijackedConn, connections)}
	for range connections {
		must(t, p.connect())
	}
	p.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.clients = append(p.clients, c)
			p.mu.Unlock()
			p.wg.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		p.mu.Lock()
		for _, c := range p.clients {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
		for len(p.servers) > 0 {
			_ = (<-p.servers).Conn.Close()
		}
	})
	return p
}

// connect adds a connection of the server.
func (p *pooler) connect() error {
	c, err := pgconn.Connect(ctx, p.url)
	if err != nil {
		return err
	}
	h, err := c.Hijack()
	if err != nil {
		return err
	}
	p.servers <- h
	return nil
}

func message(kind byte, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// read returns one message, its header included.
func read(r io.Reader) ([]byte, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	m := append(head, make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
	_, err := io.ReadFull(r, m[5:])
	return m, err
}

// greet answers the client's first message, which asks for no encryption.
func greet(c net.Conn) error {
	var n [4]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, make([]byte, binary.BigEndian.Uint32(n[:])-4)); err != nil {
		return err
	}
	out := message('R', 0, 0, 0, 0) // no password
	for _, kv := range []string{"client_encoding\x00UTF8\x00", "standard_conforming_strings\x00on\x00", "server_version\x0015\x00"} {
		out = append(out, message('S', []byte(kv)...)...)
	}
	_, err := c.Write(append(out, message('Z', 'I')...))
	return err
}

// serve passes on one client's transactions.
func (p *pooler) serve(c net.Conn) {
	defer c.Close()
	if greet(c) != nil {
		return
	}
	for {
		first, err := read(c)
		if err != nil || first[0] == 'X' {
			return
		}
		server := <-p.servers
		if !transaction(c, server.Conn, first) {
			_ = server.Conn.Close() // in the middle of something; another takes its place
			if err := p.connect(); err != nil {
				p.t.Error(err)
			}
			return
		}
		p.servers <- server
	}
}

// transaction passes messages on until the server is idle and owes no answer; false if
// the client has gone before.
func transaction(client, server net.Conn, next []byte) bool {
	for {
		// What comes up to a Sync or a Query is answered up to a ReadyForQuery.
		for {
			if _, err := server.Write(next); err != nil {
				return false
			}
			if next[0] == 'S' || next[0] == 'Q' {
				break
			}
			var err error
			if next, err = read(client); err != nil || next[0] == 'X' {
				return false
			}
		}
		for {
			m, err := read(server)
			if err != nil {
				return false
			}
			if _, err := client.Write(m); err != nil && m[0] != 'Z' {
				continue // the server finishes nevertheless
			}
			if m[0] == 'Z' {
				if m[5] == 'I' {
					return true
				}
				break
			}
		}
		var err error
		if next, err = read(client); err != nil || next[0] == 'X' {
			return false
		}
	}
}

// TestPoolerInTransactionMode works through a pooler with fewer connections than there
// are writers, watchers and readers.
func TestPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, mode := range []string{"cache_describe", "exec"} {
		t.Run(mode, func(t *testing.T) {
			url := server.Database()
			if _, err := postgres.Migrate(ctx, postgres.Options{URL: url}); err != nil {
				t.Fatal(err)
			}
			p := startPooler(t, url, 3)
			pooled := strings.Replace(url, hostOf(url), p.ln.Addr().String(), 1) + "&pool_max_conns=8&default_query_exec_mode=" + mode
			a, b := open(t, postgres.Options{URL: pooled}), open(t, postgres.Options{URL: pooled})
			defer func() { _, _ = a.Close(), b.Close() }()
			throughPooler(t, a, b)
		})
	}
	t.Run("named statements", func(t *testing.T) {
		url := server.Database()
		p := startPooler(t, url, 2)
		pooled := strings.Replace(url, hostOf(url), p.ln.Addr().String(), 1)
		s, err := postgres.Open(ctx, postgres.Options{URL: pooled, Migrate: true})
		for n := 0; err == nil && n < 50; n++ {
			_, err = s.Teams(ctx)
		}
		if err == nil || !strings.Contains(err.Error(), "default_query_exec_mode=cache_describe") {
			t.Errorf("a pooler that loses statements: %v, want what to do", err)
		}
		if s != nil {
			_ = s.Close()
		}
	})
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "@")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// throughPooler does a bit of everything at two handles.
func throughPooler(t *testing.T, a, b *postgres.Store) {
	t.Helper()
	const projects, each = 6, 15
	key := func(n int) memory.ProjectKey {
		return memory.ProjectKey{Team: "acme", Project: memory.Project(fmt.Sprint("p", n))}
	}
	var wg sync.WaitGroup
	for n := range projects {
		must(t, a.CreateProject(ctx, key(n), time.Now()))
		notice, stop := b.Notify([]memory.ProjectKey{key(n)})
		wg.Go(func() { // a watcher at b
			defer stop()
			for at := memory.Revision(0); at < 2*each; {
				cs, err := b.Changes(ctx, key(n), at, 4, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if at += memory.Revision(len(cs)); len(cs) == 0 {
					select {
					case <-notice:
					case <-time.After(time.Minute):
						t.Errorf("no notice of project %d at revision %d", n, at)
						return
					}
				}
			}
		})
		for w, s := range []*postgres.Store{a, b} {
			wg.Go(func() {
				for i := range each {
					_, err := s.Commit(ctx, store.CommitRequest{Project: key(n), Now: time.Now(), RequestID: fmt.Sprint(w, i),
						Changes: []memory.Change{{Path: memory.Path(fmt.Sprintf("f%d.md", w)), Kind: memory.Put, Content: fmt.Append(nil, i)}}})
					if err != nil {
						t.Error(err)
						return
					}
					m, err := s.Get(ctx, key(n), memory.Path(fmt.Sprintf("f%d.md", w)), 0)
					if err != nil || string(m.Content) != fmt.Sprint(i) {
						t.Errorf("own write: %q, %v", m.Content, err)
					}
				}
			})
		}
	}
	wg.Wait()
	_, err := a.Redact(ctx, store.RedactRequest{Project: key(0), Path: "f0.md", Marker: []byte("gone"), Now: time.Now(), Fingerprints: []string{"x"}})
	must(t, err)
	_, err = b.Compact(ctx, key(0), time.Now())
	must(t, err)
	must(t, b.NewEpoch(ctx, "next", time.Now()))
	_, err = a.AppendAudit(ctx, store.AuditEvent{Time: time.Now(), Action: "x"})
	must(t, err)
	must(t, b.PutSetting(ctx, "acme", "x", []byte("{}"), 0))
	ms, err := a.List(ctx, key(0), store.ListOptions{Content: true, EarlierETags: true})
	must(t, err)
	if len(ms) != 2 || string(ms[0].Content) != "gone" {
		t.Errorf("list %v", ms)
	}
	must(t, a.PurgeProject(ctx, key(1)))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
