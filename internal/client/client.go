package client

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// Client talks to one hub with one credential. It is safe for concurrent use. Make
// it with New and end it with Close.
type Client struct {
	opts   Options
	token  *tokenSource
	dial   func() (*grpc.ClientConn, error)
	offset offsetFilter
	worked atomic.Bool // the hub has answered something

	mu     sync.Mutex // guards what follows
	conn   *grpc.ClientConn
	cert   fileState // of the client certificate, when conn was made
	closed bool
}

// New returns a client. It does not connect yet: a hub that is away is no error
// here. Options that cannot work are an ErrInvalidArgument or a file's error.
func New(opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	creds, err := opts.transport()
	if err != nil {
		return nil, err
	}
	c := &Client{opts: opts, token: &tokenSource{
		file: opts.TokenFile, static: opts.Token, secure: opts.usesTLS(), optional: opts.TokenOptional && opts.CertFile != "", cert: opts.CertFile,
	}}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithPerRPCCredentials(c.token),
		grpc.WithUserAgent(opts.UserAgent),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: opts.PingEvery, Timeout: opts.PingTimeout}),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(memory.MaxMessageBytes),
			grpc.MaxCallSendMsgSize(memory.MaxMessageBytes),
		),
		// The pauses between connections are gRPC's; between calls they are ours.
		// Both start small, so that a hub that was restarted is found at once.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: opts.MinBackoff, Multiplier: 1.6, Jitter: 0.2, MaxDelay: opts.MaxBackoff},
			// Less than a call may take, so that a call tells what its connection met.
			MinConnectTimeout: 2 * opts.CallTimeout / 3,
		}),
		// Service configurations from DNS would change retries behind our back, and
		// a proxy of the environment is not meant for this traffic.
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	}
	target := "dns:///" + opts.Addr
	if opts.Dial != nil {
		target = "passthrough:///" + opts.Addr
		dial = append(dial, grpc.WithContextDialer(opts.Dial))
	} else if host, _, err := net.SplitHostPort(opts.Addr); err == nil && net.ParseIP(host) != nil {
		target = "passthrough:///" + opts.Addr // an address needs no resolver
	}
	c.dial = func() (*grpc.ClientConn, error) { return grpc.NewClient(target, dial...) }
	c.cert = stateOf(opts.CertFile)
	if c.conn, err = c.dial(); err != nil {
		return nil, fmt.Errorf("hub %s: %w", opts.Addr, err)
	}
	return c, nil
}

// Close ends the connection and every call on it.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.conn.Close()
}

func (c *Client) cc() *grpc.ClientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

func (c *Client) api() memsvcv1.MemoryServiceClient  { return memsvcv1.NewMemoryServiceClient(c.cc()) }
func (c *Client) admin() memsvcv1.AdminServiceClient { return memsvcv1.NewAdminServiceClient(c.cc()) }

// renew leaves a connection on which nothing is heard although nothing says that it
// is dead; calls on it fail as unreachable and are tried on the new one.
func (c *Client) renew(old *grpc.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.conn != old {
		return
	}
	cert := stateOf(c.opts.CertFile)
	if conn, err := c.dial(); err == nil {
		c.conn, c.cert = conn, cert
		_ = old.Close()
	}
}

// reintroduce leaves the connection if the client certificate was replaced since it was
// made, and reports whether it did: a connection goes on with the one it began with. It is
// asked after a refusal alone, so that nothing that works is cut off.
func (c *Client) reintroduce() bool {
	if c.opts.CertFile == "" {
		return false
	}
	c.mu.Lock()
	conn, used := c.conn, c.cert
	c.mu.Unlock()
	if now := stateOf(c.opts.CertFile); !now.ok || now == used {
		return false
	}
	c.renew(conn)
	return true
}

// CheckToken returns an error if there is no token to send where there should be one; see
// ReadTokenFile.
func (c *Client) CheckToken() error {
	_, err := c.token.current()
	return err
}

// CredentialFingerprint returns a value that changes when the token or the client
// certificate changes, or the reason why there is none. It reads their files; the value
// tells nothing of the token to whoever does not have it.
func (c *Client) CredentialFingerprint() [sha256.Size]byte { return c.token.fingerprint() }

// refused reports whether err is a refusal of who calls.
func refused(err error) bool {
	return errors.Is(err, memory.ErrUnauthenticated) || errors.Is(err, memory.ErrPermissionDenied)
}

// Addr returns the hub's address as given.
func (c *Client) Addr() string { return c.opts.Addr }

// Offset returns the hub's time minus this machine's, as measured on watch streams;
// 0 while nothing is known.
func (c *Client) Offset() time.Duration { return c.offset.value() }

// IsPassing reports whether err may go away by itself: the hub could not be reached,
// was busy, or failed inside. Everything else stays until its cause changes.
func IsPassing(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var e *memory.Error
	if !errors.As(err, &e) {
		return true
	}
	switch e.Reason {
	case memory.ReasonUnavailable, memory.ReasonRateLimited, memory.ReasonInternal:
		return true
	}
	return false
}

// call runs one unary call with a deadline for each attempt, again while the failure
// is passing and attempts are left. Every call of this package is safe to repeat:
// reads by nature, writes by their request id.
func (c *Client) call(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	pause := c.opts.MinBackoff
	for attempt := 1; ; attempt++ {
		token, _ := c.token.current() // what is wrong with it, the call says
		err := c.attempt(ctx, timeout, do)
		if errors.Is(err, memory.ErrUnauthenticated) && attempt < c.opts.Attempts && c.token.replaced(token) {
			continue // it was rotated while the call was under way
		}
		if refused(err) && attempt < c.opts.Attempts && c.reintroduce() {
			continue
		}
		if err == nil || attempt >= c.opts.Attempts || ctx.Err() != nil || !worthRetrying(err) {
			return err
		}
		wait := jitter(pause)
		var e *memory.Error
		if errors.As(err, &e) && e.RetryAfter > 0 {
			wait = e.RetryAfter
		}
		if wait > c.opts.MaxBackoff {
			return err // the caller has better things to do meanwhile
		}
		pause = min(2*pause, c.opts.MaxBackoff)
		if !sleep(ctx, wait) {
			return err
		}
	}
}

func worthRetrying(err error) bool {
	return errors.Is(err, memory.ErrUnavailable) || errors.Is(err, memory.ErrRateLimited)
}

func (c *Client) attempt(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	actx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return c.domain(ctx, do(actx))
}

// domain translates what a call returned, so that the end of our own deadline is
// told from the caller's.
func (c *Client) domain(ctx context.Context, err error) error {
	if err == nil {
		c.worked.Store(true)
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("hub %s: %w", c.opts.Addr, ctx.Err())
	}
	answered := wire.Answered(err)
	if answered {
		c.worked.Store(true)
	}
	err = wire.FromError(err)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &memory.Error{Reason: memory.ReasonUnavailable, Message: fmt.Sprintf("hub %s: no answer in time", c.opts.Addr)}
	}
	var e *memory.Error
	switch {
	case !errors.As(err, &e):
	case e.Reason == memory.ReasonUnavailable && answered:
		told := *e
		told.Message = fmt.Sprintf("hub %s: %s", c.opts.Addr, e.Message)
		return &told
	case e.Reason == memory.ReasonUnavailable:
		told := *e
		told.Message = fmt.Sprintf("hub %s cannot be reached: %s", c.opts.Addr, plainWords(e.Message, c.opts.usesTLS(), c.opts.CertFile != "", c.worked.Load()))
		return &told
	case e.Reason == memory.ReasonUnauthenticated && strings.HasPrefix(e.Message, credsFailed):
		told := *e
		told.Message = strings.TrimPrefix(e.Message, credsFailed)
		return &told
	case e.Reason == memory.ReasonUnauthenticated && c.opts.CertFile != "" && c.tokenless():
		told := *e
		told.Message = fmt.Sprintf("hub %s does not take the client certificate %s for a credential: its identity file knows no certificates, or this one is expired; give a token beside it, or ask who runs the hub", c.opts.Addr, c.opts.CertFile)
		return &told
	case e.Reason == memory.ReasonUnauthenticated && c.opts.TokenFile != "":
		c.token.doubt()
		told := *e
		told.Message = fmt.Sprintf("hub %s does not take the token in %s: it is mistyped, expired or revoked, or another hub's", c.opts.Addr, c.opts.TokenFile)
		return &told
	case e.Reason == memory.ReasonUnauthenticated && c.opts.Token != "":
		told := *e
		told.Message = fmt.Sprintf("hub %s does not take this token: it is mistyped, expired or revoked, or another hub's", c.opts.Addr)
		return &told
	}
	return err
}

// tokenless reports whether calls carry no token.
func (c *Client) tokenless() bool {
	token, err := c.token.current()
	return err == nil && token == ""
}

// credsFailed is what gRPC says before an error of our own tokenSource.
const credsFailed = "transport: per-RPC creds failed due to error: "

func (c *Client) short() time.Duration { return c.opts.CallTimeout }
func (c *Client) long() time.Duration  { return 2 * c.opts.CallTimeout }

// jitter returns a duration between half of d and d, so that many clients of a hub
// that comes back do not come at once.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// sleep waits for d and reports whether it passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
