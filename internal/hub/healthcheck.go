package hub

import (
	"context"
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
		return fmt.Errorf("healthcheck: %w", err)
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
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: not ready: %s", strings.TrimSpace(string(text)))
	}
	fmt.Fprintln(e.stdout, "ready")
	return nil
}
