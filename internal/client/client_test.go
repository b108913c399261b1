package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/porttest"
)

var (
	alpha = memory.ProjectKey{Team: "acme", Project: "alpha"}
	beta  = memory.ProjectKey{Team: "acme", Project: "beta"}
)

// patience bounds what must happen; it is never waited out when all is well.
const patience = time.Minute

func newClient(t *testing.T, opts client.Options) *client.Client {
	t.Helper()
	if opts.MinBackoff == 0 {
		opts.MinBackoff = 5 * time.Millisecond
	}
	if opts.CallTimeout == 0 {
		opts.CallTimeout = patience
	}
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// recorder runs a feed and hands its events to the test.
type recorder struct {
	t      *testing.T
	feed   *client.Feed
	events chan client.Event
}

func follow(t *testing.T, c *client.Client, start map[memory.ProjectKey]memory.Cursor) *recorder {
	t.Helper()
	r := &recorder{t: t, events: make(chan client.Event, 10000)}
	r.feed = c.NewFeed(func(ev client.Event) { r.events <- ev })
	for key, at := range start {
		r.feed.Follow(key, at, false)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.feed.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// until returns the first event that want accepts, and all commits seen on the way.
func (r *recorder) until(what string, want func(client.Event) bool) (client.Event, []memory.Commit) {
	r.t.Helper()
	var commits []memory.Commit
	deadline := time.After(patience)
	for {
		select {
		case ev := <-r.events:
			if ev.Kind == client.EventCommit {
				commits = append(commits, ev.Commit)
			}
			if want(ev) {
				return ev, commits
			}
		case <-deadline:
			r.t.Fatalf("no event: %s", what)
		}
	}
}

func commitOf(key memory.ProjectKey, rev memory.Revision) func(client.Event) bool {
	return func(ev client.Event) bool {
		return ev.Kind == client.EventCommit && ev.Project == key && ev.Commit.Revision == rev
	}
}

func kind(k client.EventKind) func(client.Event) bool {
	return func(ev client.Event) bool { return ev.Kind == k }
}

// checkWhole fails unless the commits of one project are from..to, each once, whole.
func checkWhole(t *testing.T, commits []memory.Commit, from, to memory.Revision) {
	t.Helper()
	var got, want []memory.Revision
	for _, c := range commits {
		got = append(got, c.Revision)
		if len(c.Changes) != 1 || memory.ETagOf(c.Changes[0].Content) != c.Changes[0].ETag {
			t.Errorf("revision %d came without its content", c.Revision)
		}
	}
	for r := from; r <= to; r++ {
		want = append(want, r)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("revisions (-want +got):\n%s", d)
	}
}

func TestFeedFollowsManyProjectsOnOneStream(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "1")
	h.commit(beta, "b.md", "1")
	addr, _ := h.serve(t, "127.0.0.1:0")
	r := follow(t, newClient(t, client.Options{Addr: addr}), map[memory.ProjectKey]memory.Cursor{alpha: {}, beta: {}})
	got := map[memory.ProjectKey]bool{}
	r.until("both projects", func(ev client.Event) bool {
		if ev.Kind == client.EventCommit {
			got[ev.Project] = true
		}
		return len(got) == 2
	})
	h.commit(beta, "b.md", "2")
	r.until("a live commit", commitOf(beta, 2))
	if n := h.count(func(h *fakeHub) int { return h.streams }); n != 1 {
		t.Errorf("%d streams, want one for all projects", n)
	}
}

// TestFeedResumesAfterCuts cuts the connection again and again while commits are made.
func TestFeedResumesAfterCuts(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "0")
	addr, _ := h.serve(t, "127.0.0.1:0")
	p := newProxy(t, addr)
	p.slow(time.Millisecond)
	r := follow(t, newClient(t, client.Options{Addr: p.addr(), MaxBackoff: 20 * time.Millisecond}), map[memory.ProjectKey]memory.Cursor{alpha: {}})
	const n = 60
	var all []memory.Commit
	for i := 2; i <= n; i++ {
		h.commit(alpha, "a.md", fmt.Sprint(i))
		if i%10 == 0 {
			_, commits := r.until("the commit before the cut", commitOf(alpha, memory.Revision(i-5)))
			all = append(all, commits...)
			p.cut()
		}
	}
	_, commits := r.until("the last commit", commitOf(alpha, n))
	checkWhole(t, append(all, commits...), 1, n)
}

// TestFeedNoticesHalfOpen drops everything without closing: the feed must find out by
// itself, here by keepalive since the silence bound is far away.
func TestFeedNoticesHalfOpen(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts client.Options
	}{
		{"by silence", client.Options{Silence: 200 * time.Millisecond}},
		// gRPC raises shorter pings to 10 s, so this one takes its time.
		{"by keepalive", client.Options{Silence: time.Hour, PingEvery: 10 * time.Second, PingTimeout: 300 * time.Millisecond}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newFakeHub()
			h.set(func(h *fakeHub) { h.bookmark = 50 * time.Millisecond })
			h.commit(alpha, "a.md", "1")
			addr, _ := h.serve(t, "127.0.0.1:0")
			p := newProxy(t, addr)
			tc.opts.Addr = p.addr()
			// A connection that is made before the line is healed is given up soon, and however
			// often that happens, the next one is tried soon.
			tc.opts.CallTimeout, tc.opts.MaxBackoff = 3*time.Second, 50*time.Millisecond
			r := follow(t, newClient(t, tc.opts), map[memory.ProjectKey]memory.Cursor{alpha: {}})
			r.until("the first commit", commitOf(alpha, 1))
			heal := p.hush()
			ev, _ := r.until("that the line is dead", kind(client.EventDown))
			if !errors.Is(ev.Err, memory.ErrUnavailable) || !client.IsPassing(ev.Err) {
				t.Errorf("error %v, want a passing ErrUnavailable", ev.Err)
			}
			heal()
			h.commit(alpha, "a.md", "2")
			_, commits := r.until("the commit made meanwhile", commitOf(alpha, 2))
			checkWhole(t, commits, 2, 2)
		})
	}
}

func TestFeedSurvivesRestartOfTheHub(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "1")
	addr, stop := h.serve(t, porttest.Free(t))
	r := follow(t, newClient(t, client.Options{Addr: addr, MaxBackoff: 50 * time.Millisecond}), map[memory.ProjectKey]memory.Cursor{alpha: {}})
	r.until("the first commit", commitOf(alpha, 1))
	stop()
	r.until("that the hub is gone", kind(client.EventDown))
	h.commit(alpha, "a.md", "2")
	h.serve(t, addr)
	_, commits := r.until("the commit made meanwhile", commitOf(alpha, 2))
	checkWhole(t, commits, 2, 2)
}

// TestFeedIsolatesProjects follows one project that exists, one that does not and
// one whose history is another.
func TestFeedIsolatesProjects(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "1")
	h.commit(beta, "b.md", "1")
	addr, _ := h.serve(t, "127.0.0.1:0")
	missing := memory.ProjectKey{Team: "acme", Project: "missing"}
	r := follow(t, newClient(t, client.Options{Addr: addr}), map[memory.ProjectKey]memory.Cursor{
		alpha: {}, missing: {}, beta: {Epoch: "e0", Revision: 7, CommitID: "x"},
	})
	stopped := map[memory.ProjectKey]error{}
	committed := false
	r.until("two statuses and a commit", func(ev client.Event) bool {
		if ev.Kind == client.EventStopped {
			stopped[ev.Project] = ev.Err
		}
		committed = committed || commitOf(alpha, 1)(ev)
		return len(stopped) == 2 && committed
	})
	if !errors.Is(stopped[missing], memory.ErrNotFound) || !errors.Is(stopped[beta], memory.ErrEpochChanged) {
		t.Errorf("statuses: %v", stopped)
	}
	var e *memory.Error
	if errors.As(stopped[beta], &e); e.Head.Revision != 1 {
		t.Errorf("head in the status: %v, want revision 1", e.Head)
	}
	// The stopped one comes back when it is followed again.
	r.feed.Follow(beta, memory.Cursor{}, false)
	r.until("the followed project", commitOf(beta, 1))
}

// TestFeedStopsOnPermanentRefusal counts the streams tried while a token is bad, and
// changes the token.
func TestFeedStopsOnPermanentRefusal(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "1")
	h.set(func(h *fakeHub) { h.fail = []error{memory.ErrUnauthenticated} })
	addr, _ := h.serve(t, "127.0.0.1:0")
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, "msv_old\n")
	r := follow(t, newClient(t, client.Options{Addr: addr, TokenFile: token}), map[memory.ProjectKey]memory.Cursor{alpha: {}})
	ev, _ := r.until("the refusal", kind(client.EventDown))
	if client.IsPassing(ev.Err) || !errors.Is(ev.Err, memory.ErrUnauthenticated) {
		t.Fatalf("error %v, want a permanent ErrUnauthenticated", ev.Err)
	}
	write(t, token, "msv_newer\n")
	r.until("the commit after the token changed", commitOf(alpha, 1))
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := cmp.Diff([]string{"Bearer msv_old", "Bearer msv_newer"}, h.tokens); d != "" {
		t.Errorf("a refused feed may try again only for a cause (-want +got):\n%s", d)
	}
}

// TestFeedHearsOfAProjectAsItIsRefused adds a project, and kicks, in the moment in which
// a stream was refused for good: either is a cause to try again, and not lost.
func TestFeedHearsOfAProjectAsItIsRefused(t *testing.T) {
	for name, do := range map[string]func(*client.Feed){
		"follow": func(f *client.Feed) { f.Follow(beta, memory.Cursor{}, false) },
		"kick":   func(f *client.Feed) { f.Kick() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub()
			h.commit(alpha, "a.md", "1")
			h.commit(beta, "b.md", "1")
			h.set(func(h *fakeHub) { h.fail = []error{memory.ErrPermissionDenied} })
			addr, _ := h.serve(t, "127.0.0.1:0")
			r := &recorder{t: t, events: make(chan client.Event, 100)}
			r.feed = newClient(t, client.Options{Addr: addr}).NewFeed(func(ev client.Event) {
				if ev.Kind == client.EventDown {
					do(r.feed)
				}
				r.events <- ev
			})
			r.feed.Follow(alpha, memory.Cursor{}, false)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = r.feed.Run(ctx) }()
			defer func() { cancel(); <-done }()
			r.until("the refusal", kind(client.EventDown))
			r.until("what comes once it is tried again", commitOf(alpha, 1))
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOffset(t *testing.T) {
	h := newFakeHub()
	h.skew = time.Hour
	h.commit(alpha, "a.md", "1")
	addr, _ := h.serve(t, "127.0.0.1:0")
	c := newClient(t, client.Options{Addr: addr})
	if c.Offset() != 0 {
		t.Errorf("offset %v before anything was heard", c.Offset())
	}
	r := follow(t, c, map[memory.ProjectKey]memory.Cursor{alpha: {}})
	r.until("the commit", commitOf(alpha, 1))
	// A message may take long; one of many does not.
	hubtest.Eventually(t, patience, "an offset of about an hour", func() bool {
		return (c.Offset() - time.Hour).Abs() <= 2*time.Second
	})
}

func TestCallsRetryWhatPasses(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "1")
	addr, _ := h.serve(t, "127.0.0.1:0")
	c := newClient(t, client.Options{Addr: addr})
	ctx := context.Background()
	for _, tc := range []struct {
		name  string
		fail  []error
		calls int
		want  error
	}{
		{"passing", []error{memory.ErrUnavailable, memory.ErrUnavailable}, 3, nil},
		{"passing for too long", []error{memory.ErrUnavailable, memory.ErrUnavailable, memory.ErrUnavailable}, 3, memory.ErrUnavailable},
		{"told to wait a little", []error{&memory.Error{Reason: memory.ReasonRateLimited, RetryAfter: time.Millisecond}}, 2, nil},
		{"told to wait for long", []error{&memory.Error{Reason: memory.ReasonRateLimited, RetryAfter: time.Hour}}, 1, memory.ErrRateLimited},
		{"for good", []error{memory.ErrPermissionDenied}, 1, memory.ErrPermissionDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h.set(func(h *fakeHub) { h.fail, h.calls = tc.fail, 0 })
			_, err := c.Project(ctx, alpha, memory.Cursor{})
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if n := h.count(func(h *fakeHub) int { return h.calls }); n != tc.calls {
				t.Errorf("%d calls, want %d", n, tc.calls)
			}
		})
	}
}

// TestChanges reads history without a feed, to the head and no further.
func TestChanges(t *testing.T) {
	h := newFakeHub()
	h.set(func(h *fakeHub) { h.bookmark = time.Hour }) // nothing but commits ends it
	for i := range 5 {
		h.commit(alpha, "a.md", fmt.Sprint(i))
	}
	addr, _ := h.serve(t, "127.0.0.1:0")
	c := newClient(t, client.Options{Addr: addr})
	page, err := c.Changes(context.Background(), alpha, memory.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	checkWhole(t, page.Commits, 1, 5)
	if page.More || page.Cursors[4] != page.Head {
		t.Errorf("more %v, last cursor %v, head %v", page.More, page.Cursors[4], page.Head)
	}
	page, err = c.Changes(context.Background(), alpha, page.Head)
	if err != nil || len(page.Commits) != 0 {
		t.Errorf("at the head: %d commits, %v", len(page.Commits), err)
	}
	if _, err = c.Changes(context.Background(), alpha, memory.Cursor{Epoch: "e0", Revision: 1}); !errors.Is(err, memory.ErrEpochChanged) {
		t.Errorf("foreign cursor: %v", err)
	}
}

// TestPathsOfANewerHub pulls past paths that this program's parser refuses, by pages and by
// the stream, and names them apart.
func TestPathsOfANewerHub(t *testing.T) {
	h := newFakeHub()
	h.commit(alpha, "a.md", "one")
	h.commit(alpha, "../odd.md", "two")
	h.commit(alpha, "b.md", "three")
	addr, _ := h.serve(t, "127.0.0.1:0")
	c := newClient(t, client.Options{Addr: addr})
	page, err := c.Changes(context.Background(), alpha, memory.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	_, streamed := follow(t, c, map[memory.ProjectKey]memory.Cursor{alpha: {Epoch: "e1"}}).until("the last commit", commitOf(alpha, 3))
	for name, commits := range map[string][]memory.Commit{"pages": page.Commits, "stream": streamed} {
		if len(commits) != 3 {
			t.Fatalf("%s: %d commits, want 3", name, len(commits))
		}
		if odd := commits[1]; len(odd.Changes) != 0 || len(odd.Unfit) != 1 || odd.Unfit[0].Path != "../odd.md" {
			t.Errorf("%s: %+v", name, odd)
		}
		if last := commits[2]; len(last.Changes) != 1 || last.Changes[0].Path != "b.md" {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts client.Options
		want string
	}{
		{"no port", client.Options{Addr: "hub"}, "host:port"},
		{"empty", client.Options{}, "host:port"},
		{"both ways", client.Options{Addr: "h:1", Plaintext: true, CAFile: "ca"}, "exclude"},
		{"half a pair", client.Options{Addr: "h:1", CertFile: "c"}, "needs its key"},
		{"no CA there", client.Options{Addr: "h:1", CAFile: "/nonexistent"}, "CA file"},
	} {
		if _, err := client.New(tc.opts); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// TestTokenNeverInTheClear sends no token without TLS to a hub that is not on this
// machine, unless told so.
func TestTokenNeverInTheClear(t *testing.T) {
	h := newFakeHub()
	addr, _ := h.serve(t, "127.0.0.1:0")
	p := newProxy(t, addr) // stands for the network behind a name
	c := newClient(t, client.Options{Addr: "hub.example:7420", Token: "msv_x", Dial: dialTo(p.addr()), Attempts: 1, CallTimeout: 2 * time.Second})
	if _, err := c.Project(context.Background(), alpha, memory.Cursor{}); !errors.Is(err, memory.ErrUnavailable) {
		t.Errorf("error %v: a plain hub must not be spoken to", err)
	}
	if n := h.count(func(h *fakeHub) int { return h.calls }); n != 0 {
		t.Errorf("%d calls reached the plain hub", n)
	}
}

func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ name, text, want string }{
		{"missing", "", "no such file"},
		{"empty", "\n", "it is empty"},
		{"words", "msv_a msv_b\n", "more than one word"},
		{"other", "tök\n", "characters no token has"},
		{"large", strings.Repeat("a", 17<<10), "too large"},
	} {
		name := filepath.Join(dir, tc.name)
		if tc.name != "missing" {
			write(t, name, tc.text)
		}
		_, err := client.ReadTokenFile(name)
		if !errors.Is(err, memory.ErrUnauthenticated) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		if strings.Contains(fmt.Sprint(err), "msv_") {
			t.Errorf("%s: the error shows the token", tc.name)
		}
	}
	name := filepath.Join(dir, "good")
	write(t, name, " msv_good\r\n")
	if got, err := client.ReadTokenFile(name); err != nil || got != "msv_good" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestTokenBesideACertificate: where a certificate may say who calls, a token that is not
// there is no error, and one that comes counts; without a certificate it is one.
func TestTokenBesideACertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pair(t, cert, key)
	file := filepath.Join(dir, "token")
	alone := newClient(t, client.Options{Addr: "127.0.0.1:1", TokenFile: file, TokenOptional: true})
	if err := alone.CheckToken(); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("without a certificate: %v", err)
	}
	wanted := newClient(t, client.Options{Addr: "127.0.0.1:1", TokenFile: file, CertFile: cert, KeyFile: key})
	if err := wanted.CheckToken(); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("a token that was asked for: %v", err)
	}
	c := newClient(t, client.Options{Addr: "127.0.0.1:1", TokenFile: file, TokenOptional: true, CertFile: cert, KeyFile: key})
	seen := map[[32]byte]string{}
	changed := func(what string) {
		t.Helper()
		f := c.CredentialFingerprint()
		if was, known := seen[f]; known {
			t.Errorf("%s: nothing changed since %s", what, was)
		}
		if f != c.CredentialFingerprint() {
			t.Errorf("%s: the fingerprint does not hold", what)
		}
		seen[f] = what
	}
	if err := c.CheckToken(); err != nil {
		t.Errorf("no token: %v", err)
	}
	changed("no token")
	write(t, file, "\n")
	if err := c.CheckToken(); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("an empty file: %v", err)
	}
	changed("an empty file")
	write(t, file, "msv_a\n")
	if err := c.CheckToken(); err != nil {
		t.Errorf("a token: %v", err)
	}
	changed("a token")
	pair(t, cert, key)
	changed("another certificate")
}

// TestHubThatWorkedHangsUp: what answers once and then hangs up is no hub that wants TLS.
func TestHubThatWorkedHangsUp(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := mute.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	defer func() { mute.Close(); <-done }()
	var away atomic.Bool
	c := newClient(t, client.Options{
		Addr: h.GRPCAddr, Token: h.AdminToken, Attempts: 1,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			if away.Load() {
				addr = mute.Addr().String()
			}
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
	})
	if _, err := c.Teams(t.Context()); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	h.Stop()
	hubtest.Eventually(t, patience, "says that it answered before", func() bool {
		_, err := c.Teams(t.Context())
		if err == nil || strings.Contains(err.Error(), "TLS") {
			t.Fatalf("%v", err)
		}
		return strings.Contains(err.Error(), "it answered before")
	})
}

// pair writes a certificate and its key.
func pair(t *testing.T, cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}
