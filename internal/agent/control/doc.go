// Package control joins the command line and the daemon of one machine: a lock that
// makes the daemon the only one of its state directory, and a unix socket over which
// commands ask it.
//
// One connection carries one request and one response, each a JSON document behind
// its length. The request names the protocol's version; a daemon of another version
// answers with CodeVersion and nothing else. A caller that hangs up cancels its call.
//
// The socket lies in the state directory (0700), is itself 0600, and both ends check
// that the other runs under the same user (Linux, macOS and the BSDs; on Windows the
// directory's permissions alone protect it).
package control
