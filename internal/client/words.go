package client

import "strings"

// plainWords says why a connection failed as a person would. What gRPC and the network
// say is kept where it is not one of the usual causes, without gRPC's wrapping. tls is
// whether the connection is encrypted, cert whether a client certificate goes with it,
// worked whether the hub has answered over such a connection: then it is no mistake in
// what a person gave.
func plainWords(said string, tls, cert, worked bool) string {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(said, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("looked like an HTTP/1.1 header", "unexpected HTTP status code", "malformed HTTP"):
		return "what answers there speaks HTTP, as a hub's REST port does; give its gRPC port (7420 unless it was told otherwise)"
	case has("missing selected ALPN property", "no application protocol"):
		return "what answers there speaks TLS, but no gRPC, as a REST port or a proxy does; give the hub's gRPC port (7420 unless it was told otherwise)"
	case has("frame too large", "not a settings frame", "preface mismatch"):
		return "what answers there is no hub; give a hub's gRPC port (7420 unless it was told otherwise)"
	case has("first record does not look like a TLS handshake"):
		return "what answers there speaks without TLS; leave out the TLS files, or give --plaintext if the way there is safe"
	case has("certificate signed by unknown authority", "certificate is not trusted"):
		return "its certificate is not signed by an authority that this machine trusts; give that authority with --ca-file"
	case has("x509: "):
		return "its certificate does not fit: " + after(said, "x509: ")
	case !cert && has("tls: certificate required", "tls: bad certificate", "tls: handshake failure"):
		return "it wants a client certificate; give one with --cert-file and --key-file"
	case cert && has("remote error: tls: ") && has("certificate", "handshake failure"):
		return "it does not take the client certificate: " + after(said, "tls: ") + "; see --cert-file and --key-file"
	case has("tls: "):
		return "TLS fails: " + after(said, "tls: ")
	case has("error reading from server", "keepalive ping failed", "goaway", "draining", "server is not reading"):
		return "the connection broke off, as it does when a hub stops; try again"
	case has("error reading server preface") && has("use of closed network connection", "i/o timeout", "deadline exceeded"):
		return "it took the connection and gave no answer in time; it may hang or be overloaded, its log may tell"
	case worked && has("error reading server preface", "EOF", "broken pipe", "reset by peer", "forcibly closed", "was aborted"):
		return "it hung up before a word, though it answered before; it may be starting or stopping, or something between broke the connection"
	case !tls && has("error reading server preface"):
		return "it hung up before a word, as a hub does that wants TLS; give --ca-file with its authority, or see that the address is a hub's gRPC port"
	case has("EOF", "broken pipe", "reset by peer", "forcibly closed", "was aborted"):
		return hungUp(has("handshake failed", "dial tcp"), tls, cert)
	}
	for _, c := range usualCauses {
		if has(c.said...) {
			return c.words
		}
	}
	for _, wrap := range []string{"last connection error: ", "connection error: desc = ", "transport: ", "Error while dialing: "} {
		if i := strings.LastIndex(said, wrap); i >= 0 {
			said = said[i+len(wrap):]
		}
	}
	return strings.Trim(said, `"`)
}

// usualCauses are the causes that the network itself names.
var usualCauses = [...]struct {
	said  []string
	words string
}{
	{[]string{"connection refused"}, "nothing listens there; start the hub, or see that the address is right"},
	{[]string{"no such host", "produced zero addresses"}, "no such host; see that the address is right"},
	{[]string{"server misbehaving", "name resolution"}, "its name cannot be looked up now; see that the network is there"},
	{[]string{"unknown port", "invalid port"}, "the port is none; give a number like 7420"},
	{[]string{"i/o timeout", "context deadline exceeded", "DeadlineExceeded"}, "no answer in time"},
	{[]string{"network is unreachable", "no route to host", "network is down", "host is down"}, "there is no way there in the network"},
}

// hungUp says what may be behind a connection that the other side ended: early, before
// encryption stood, or else before it answered. The network tells of a refused handshake
// in this way too, where the word that it sent before comes too late.
func hungUp(early, tls, cert bool) string {
	switch {
	case early:
		return "it hung up as soon as it was called; see that the address is a hub's gRPC port, and that nothing between keeps this machine away"
	case tls && cert:
		return "it hung up before a word, as a hub does that does not take the client certificate; see --cert-file and --key-file"
	case tls:
		return "it hung up before a word, as a hub does that wants a client certificate; give one with --cert-file and --key-file, or see that the address is a hub's gRPC port"
	}
	return "it hung up before a word, as a hub does that wants TLS; give --ca-file with its authority, or see that the address is a hub's gRPC port"
}

// after returns what follows the last occurrence of mark, without closing quotes.
func after(said, mark string) string {
	return strings.Trim(said[strings.LastIndex(said, mark)+len(mark):], `"`)
}
