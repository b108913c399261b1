// Package agent is the composition root of memsync-agent: it ties directories to
// projects (links), runs one loop a link, shares one connection and one watch stream
// among the links of a hub, and offers all of it as commands.
//
// One bad link never stops another: each runs in its own goroutine, with its own
// state, and a panic in one is caught and reported as its last error.
package agent
