// Package livetest runs real coding clients against a scripted language model on
// loopback, with hooks and tools as `memsync-agent install` sets them up, and looks at
// what reaches the model. It needs the clients themselves (hack/clients.sh fetches them)
// and is skipped without: MEMSVC_CLIENTS names the directory that holds them.
package livetest
