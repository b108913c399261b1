package telemetry

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// HostRule returns what decides whether a request that came to the listening address
// at may name host in its Host header. It stands against DNS rebinding: a web page
// whose name was made to point at this machine still sends that name, so what it asks
// is refused before it is answered.
//
// An address is no name and cannot be rebound: probes and scrapes that come by the
// address of a pod pass. On loopback only loopback's own addresses and localhost
// pass, beyond it every name, unless names are allowed: then those and no others.
// allowed are names without scheme and port.
func HostRule(at net.Addr, allowed []string) func(host string) bool {
	allowed = slices.Clone(allowed)
	for i, name := range allowed {
		allowed[i] = plainName(name)
	}
	inside := false
	if t, ok := at.(*net.TCPAddr); ok {
		inside = t.IP.IsLoopback()
	}
	return func(host string) bool {
		name := withoutPort(host)
		if name == "" {
			return true // HTTP/1.0 without one; every browser sends it
		}
		ip, err := netip.ParseAddr(name)
		switch {
		case err == nil:
			return !inside || ip.Unmap().IsLoopback()
		case slices.Contains(allowed, plainName(name)):
			return true
		case inside:
			return plainName(name) == "localhost"
		}
		return len(allowed) == 0 || plainName(name) == "localhost"
	}
}

// plainName is a host name in the one form that is compared.
func plainName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// withoutPort returns the host of a Host header.
func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// fromAnotherSite reports whether a browser sent the request because of a page of
// another origin: such a page cannot read the answer, but could start profiles.
func fromAnotherSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host
}

// guarded lets only requests through that name a host which may be named and that no
// foreign page has caused.
func guarded(mayName func(host string) bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !mayName(r.Host):
			writeLine(w, http.StatusMisdirectedRequest, "this port is not called by that name; use its address, or localhost on this machine")
		case fromAnotherSite(r):
			writeLine(w, http.StatusForbidden, "not for pages of other sites")
		default:
			w.Header().Set("X-Content-Type-Options", "nosniff")
			h.ServeHTTP(w, r)
		}
	})
}
