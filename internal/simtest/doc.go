// Package simtest runs several machines and one hub in memory, with fake time and
// every fault we can think of, from one seed. It is single-threaded and deterministic:
// a seed that fails fails again, alone, and can be shrunk.
//
// The machines run the real syncer over in-memory ports; the hub is the real service
// over the in-memory store. After the faults stop, the laws in check.go must hold.
package simtest
