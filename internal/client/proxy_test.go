package client_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between client and hub and does what networks do: it forwards, delays,
// cuts, or goes silent without closing anything (what a NAT does to an idle
// connection, or a sleeping machine).
type proxy struct {
	ln     net.Listener
	target string

	mu     sync.Mutex // guards what follows
	conns  []net.Conn
	silent bool
	delay  time.Duration
	wake   chan struct{}
	closed bool
	wg     sync.WaitGroup
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, target: target, wake: make(chan struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		close(p.wake)
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		ln.Close()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil {
			in.Close()
			continue
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			in.Close()
			out.Close()
			return
		}
		p.conns = append(p.conns, in, out)
		p.wg.Go(func() { p.pump(out, in) })
		p.wg.Go(func() { p.pump(in, out) })
		p.mu.Unlock()
	}
}

// pump copies until the connection is cut, or until silence falls: then it reads
// nothing more and closes nothing.
func (p *proxy) pump(dst, src net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		p.mu.Lock()
		silent, delay, wake := p.silent, p.delay, p.wake
		p.mu.Unlock()
		if silent {
			<-wake // swallow what came, and hold the line
			if p.over() {
				return
			}
		}
		if delay > 0 {
			time.Sleep(delay) // the fault itself, not a wait for anything
		}
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				dst.Close()
			}
			return
		}
	}
}

func (p *proxy) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// hush makes every connection there is half-open for ever. Later ones work.
func (p *proxy) hush() (heal func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.silent = false
	}
}

// cut closes every connection there is.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}
