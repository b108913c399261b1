package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Run asks /readyz. An address that means "everywhere" is asked on loopback, so that
// the variable of serve serves here too.
func (c *healthcheckCmd) Run(e *env) (err error) {
	if err := within("--timeout", c.Timeout, minWait, maxWait); err != nil {
		return &ConfigError{Err: err}
	}
	host, port, err := net.SplitHostPort(c.OpsAddr)
	if err != nil {
		return &ConfigError{Err: fmt.Errorf("--ops-addr %q: want host:port, like 127.0.0.1:7422", c.OpsAddr)}
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(e.ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("healthcheck: %w", c.trouble(ctx, err))
	}
	defer func() {
		if cerr := res.Body.Close(); err == nil {
			err = cerr
		}
	}()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<10))
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("healthcheck: %w", c.noOpsPort())
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: not ready: %s", strings.TrimSpace(string(text)))
	}
	fmt.Fprintln(e.stdout, "ready")
	return nil
}

// noOpsPort says that something else answers there.
func (c *healthcheckCmd) noOpsPort() error {
	return fmt.Errorf("what answers at %s is no ops port; give --ops-addr the one that the hub names when it starts (ops=)", c.OpsAddr)
}

// trouble says in words why there was no answer.
func (c *healthcheckCmd) trouble(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer from %s within %v", c.OpsAddr, c.Timeout)
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("the ops port %s cannot be reached (%w); start the hub, or see that --ops-addr is right", c.OpsAddr, op.Err)
	case op != nil && !errors.Is(err, io.EOF):
		return err // it broke off
	}
	return c.noOpsPort() // something answered, and not as HTTP does
}
