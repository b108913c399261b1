package client

import "strings"

// plainWords says why a connection failed as a person would. What gRPC and the network
// say is kept where it is not one of the usual causes, without gRPC's wrapping.
func plainWords(said string, tls bool) string {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(said, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("frame too large", "looked like an HTTP/1.1 header", "unexpected HTTP status code", "malformed HTTP"):
		return "what answers there speaks HTTP, as a hub's REST port does; give its gRPC port (7420 unless it was told otherwise)"
	case has("first record does not look like a TLS handshake"):
		return "what answers there speaks without TLS; leave out the TLS files, or give --plaintext if the way there is safe"
	case has("certificate signed by unknown authority", "certificate is not trusted"):
		return "its certificate is not signed by an authority that this machine trusts; give that authority with --ca-file"
	case has("x509: "):
		return "its certificate does not fit: " + after(said, "x509: ")
	case has("tls: "):
		return "TLS fails: " + after(said, "tls: ") + " (a hub that wants client certificates needs --cert-file and --key-file)"
	case !tls && has("error reading server preface"):
		return "it hung up before a word, as a hub does that wants TLS; give --ca-file with its authority, or see that the address is a hub's gRPC port"
	case has("connection refused"):
		return "nothing listens there; start the hub, or see that the address is right"
	case has("no such host"):
		return "no such host; see that the address is right"
	case has("i/o timeout", "context deadline exceeded", "DeadlineExceeded"):
		return "no answer in time"
	case has("network is unreachable", "no route to host"):
		return "there is no way there in the network"
	}
	for _, wrap := range []string{"last connection error: ", "connection error: desc = ", "transport: "} {
		if i := strings.LastIndex(said, wrap); i >= 0 {
			said = said[i+len(wrap):]
		}
	}
	return strings.Trim(said, `"`)
}

// after returns what follows the last occurrence of mark, without closing quotes.
func after(said, mark string) string {
	return strings.Trim(said[strings.LastIndex(said, mark)+len(mark):], `"`)
}
