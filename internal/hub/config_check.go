package hub

import (
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// Outermost bounds of settings. They are far beyond what makes sense, so that they
// catch slips of the keyboard and arithmetic that would overflow, and nothing else.
const (
	minRetention = service.MinRetention
	maxRetention = service.MaxRetention
	maxDrain     = 24 * time.Hour
	mostFiles    = 100_000_000
	mostBytes    = 1 << 50
	mostConns    = 1_000_000
	mostWatchers = 10_000_000
	mostRate     = 1e9
	mostEvents   = 1_000_000
	maxTokenName = 128 // the contract's bound of display_name
	// minWait and maxWait bound how long a command waits for an answer.
	minWait = time.Millisecond
	maxWait = 24 * time.Hour
)

// Check finds every setting that cannot work, each in a line of its own that names the
// flag, the value and what is allowed. It touches no file.
func (c Config) Check() error {
	return errors.Join(errors.Join(c.checkPlaces()...), errors.Join(c.checkBounds()...))
}

// checkPlaces judges files, addresses and names.
func (c Config) checkPlaces() (errs []error) {
	bad := func(text string) { errs = append(errs, errors.New(text)) }
	if c.DataDir == "" {
		bad("--data-dir: name a directory")
	}
	if c.DatabaseURL != "" {
		errs = append(errs, checkDatabaseURL(c.DatabaseURL))
	} else if c.Migrate {
		bad("--migrate goes with --database-url; the embedded store migrates itself")
	}
	for _, f := range []struct{ flag, name string }{
		{"--data-dir", c.DataDir}, {"--tls-cert", c.TLSCert}, {"--tls-key", c.TLSKey}, {"--tls-client-ca", c.TLSClientCA}, {"--identity-file", c.IdentityFile},
	} {
		if strings.ContainsRune(f.name, 0) {
			bad(fmt.Sprintf("%s %q: holds a NUL character", f.flag, f.name))
		}
	}
	if c.OTLPEndpoint != "" {
		if err := telemetry.CheckEndpoint(c.OTLPEndpoint); err != nil {
			bad("--otlp-endpoint: " + err.Error())
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		bad("--tls-cert and --tls-key go together")
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		bad("--tls-client-ca needs --tls-cert and --tls-key")
	}
	var apis, ops error // why an address beyond loopback is refused; nil: it is not
	if !c.Insecure {
		ops = errOpsNotLoopback
		if c.TLSCert == "" {
			apis = errNotLoopback
		}
	}
	errs = append(errs, checkAddr("--grpc-addr", c.GRPCAddr, apis), checkAddr("--http-addr", c.HTTPAddr, apis), checkAddr("--ops-addr", c.OpsAddr, ops))
	errs = append(errs, checkApart("--grpc-addr", c.GRPCAddr, "--http-addr", c.HTTPAddr),
		checkApart("--grpc-addr", c.GRPCAddr, "--ops-addr", c.OpsAddr), checkApart("--http-addr", c.HTTPAddr, "--ops-addr", c.OpsAddr))
	for _, name := range c.AllowHosts {
		if !isHostName(name) {
			bad(fmt.Sprintf("--allow-host %q: want a name without scheme and port, like hub.example", name))
		}
	}
	return append(errs, oneOf("--log-format", c.LogFormat, "text", "json"), oneOf("--log-level", c.LogLevel, "debug", "info", "warn", "error"))
}

// checkBounds judges numbers and durations.
func (c Config) checkBounds() []error {
	return []error{
		within("--retention", c.Retention, minRetention, maxRetention),
		within("--audit-retention", c.AuditRetention, minRetention, maxRetention),
		within("--max-project-files", c.MaxProjectFiles, 1, mostFiles),
		within("--max-project-bytes", c.MaxProjectBytes, 1, mostBytes),
		within("--max-connections", c.MaxConnections, 1, mostConns),
		within("--max-connections-per-peer", c.MaxPerPeer, 0, mostConns),
		within("--max-watchers", c.MaxWatchers, 1, mostWatchers),
		checkRate(c.Rate),
		within("--rate-burst", c.RateBurst, 1, mostRate),
		within("--drain-timeout", c.DrainTimeout, 0, maxDrain),
	}
}

// within refuses a value outside low to high.
func within[T int | int64 | time.Duration](flag string, v, low, high T) error {
	if v >= low && v <= high {
		return nil
	}
	return fmt.Errorf("%s %v: want %v to %v", flag, v, low, high)
}

// checkName refuses a token's name before anybody is asked; the hub has the last word.
func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n < 1 || n > maxTokenName {
		return usage("--name: %d characters; want 1 to %d", n, maxTokenName)
	}
	return nil
}

// checkTTL refuses a time to live that is over already; 0 is for ever.
func checkTTL(ttl time.Duration) error {
	if ttl >= 0 && ttl <= maxRetention {
		return nil
	}
	return usage("--ttl %v: want 0s (for ever) or a time from now, up to %v", ttl, maxRetention)
}

func checkRate(v float64) error {
	if v >= 0 && v <= mostRate { // not so for NaN
		return nil
	}
	return fmt.Errorf("--rate %v: want 0 (no bound) to %d", v, int64(mostRate))
}

// callRate is the rate as authentication takes it: negative is no bound.
func (c Config) callRate() float64 {
	if c.Rate == 0 {
		return -1
	}
	return c.Rate
}

// oneOf refuses a word that is none of the known ones; "" is their first.
func oneOf(flag, v string, known ...string) error {
	for _, k := range append(known, "") {
		if strings.EqualFold(v, k) {
			return nil
		}
	}
	return fmt.Errorf("%s %q: use one of %s", flag, v, strings.Join(known, ", "))
}

// checkApart refuses one address for two ports, unless the system chooses it.
func checkApart(flag, addr, otherFlag, other string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" || addr != other {
		return nil
	}
	return fmt.Errorf("%s and %s are both %s; each needs its own", flag, otherFlag, addr)
}

// isHostName reports whether name can be the host in a URL: letters, digits, dashes
// and underscores between dots.
func isHostName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// errNotLoopback is the refusal to send credentials through a network in the clear.
var errNotLoopback = errors.New("without TLS a hub listens on loopback only; give --tls-cert and --tls-key, or --insecure if something else protects the connection")

// errOpsNotLoopback is the same for the port that has no TLS and no credentials,
// whatever the others have.
var errOpsNotLoopback = errors.New("the ops port has neither TLS nor credentials, with --tls-cert too; keep it on loopback, or give --insecure if something else protects it")

// checkAddr refuses an address that cannot be listened on, and one beyond loopback
// with beyond, unless that is nil.
func checkAddr(flag, addr string, beyond error) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s %q: want host:port, like 127.0.0.1:7420", flag, addr)
	}
	if n, err := strconv.ParseUint(port, 10, 32); err != nil || n > math.MaxUint16 {
		return fmt.Errorf("%s %q: the port is no number from 0 to 65535", flag, addr)
	}
	if beyond != nil && !isLoopback(host) {
		return fmt.Errorf("%s %q: %w", flag, addr, beyond)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
