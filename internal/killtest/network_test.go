//go:build linux

package killtest

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// line is a TCP proxy between agents and a hub that can go dead: what goes in does not
// come out, and nobody is told, as behind a NAT that forgot or a laptop that slept.
type line struct {
	to string
	ln net.Listener

	mu    sync.Mutex // guards what follows
	dead  bool
	conns []*carried
}

// carried is one connection of a line.
type carried struct {
	a, b net.Conn
	dead chan struct{} // closed when nothing passes any more
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &line{to: to, ln: ln}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.carry(c, &wg)
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		l.mu.Lock()
		for _, c := range l.conns {
			_ = c.a.Close()
			if c.b != nil {
				_ = c.b.Close()
			}
		}
		l.mu.Unlock()
		wg.Wait()
	})
	return l
}

func (l *line) carry(a net.Conn, wg *sync.WaitGroup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &carried{a: a, dead: make(chan struct{})}
	l.conns = append(l.conns, c)
	if l.dead {
		close(c.dead)
		return // accepted, and never answered
	}
	b, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = a.Close()
		return
	}
	c.b = b
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := way[0].Read(buf)
				select {
				case <-c.dead:
					// Swallowed, and the ends stay open, until the line is closed.
					if err == nil {
						continue
					}
					return
				default:
				}
				if n > 0 {
					if _, err := way[1].Write(buf[:n]); err != nil {
						_ = way[0].Close()
						return
					}
				}
				if err != nil {
					if errors.Is(err, io.EOF) {
						_ = way[1].Close()
					}
					return
				}
			}
		})
	}
}

// cut makes the line dead, for what is open and what comes.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.conns {
		select {
		case <-c.dead:
		default:
			close(c.dead)
		}
	}
}

// mend lets new connections through; the old ones stay dead.
func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = false
}

// TestLineGoesDead cuts the line between an agent and the hub without a reset. The
// agent notices within 30 s, says so, and goes on when there is a line.
func TestLineGoesDead(t *testing.T) {
	t.Parallel()
	long(t, "keepalive, 25 s")
	h := newHub(t, "")
	a, b := newMachine(t, h, "anna"), newMachine(t, h, "ben")
	l := newLine(t, h.grpc)
	b.addr = l.ln.Addr().String()
	a.start()
	b.start()
	waitInStep(t, h, a, b)
	rnd := rand.New(rand.NewPCG(16, 16))

	l.cut()
	began := time.Now()
	annas, bens := newText(rnd, "annas", 1), newText(rnd, "bens", 1)
	a.write("project_annas.md", annas)
	soon(t, 30*time.Second, "ben's agent notices that the line is dead", func() string {
		st := b.status()
		if len(st.Hubs) == 1 && !st.Hubs[0].Connected && st.Hubs[0].Error != "" {
			return ""
		}
		return "it says it is connected"
	})
	t.Logf("noticed after %.1f s", time.Since(began).Seconds())
	b.write("project_bens.md", bens) // offline
	eventually(t, patience, "ben's link says that it is offline", func() string {
		st := b.status()
		if len(st.Links) == 1 && st.Links[0].Phase == "offline" {
			return ""
		}
		return "it says " + st.trouble()
	})
	l.mend()
	began = time.Now()
	b.waitText(patience, "project_annas.md", annas)
	a.waitText(patience, "project_bens.md", bens)
	t.Logf("in step %.1f s after there was a line", time.Since(began).Seconds())
	waitInStep(t, h, a, b)
	if said := b.status().trouble(); said != "" && strings.Contains(said, "offline") {
		t.Errorf("the status stays at %s", said)
	}
}
