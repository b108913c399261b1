// Package memdir knows where a project's memories lie on this machine (SPEC 2.6), and
// reads and writes them there in the order that survives a kill: the memory first,
// durable, then its line in the index (SPEC 2.5).
package memdir
