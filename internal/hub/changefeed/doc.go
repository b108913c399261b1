// Package changefeed turns a store's log into streams: the one watch loop of the
// hub. A notice of the store says "look"; the log is the truth. Each watched
// project has one tail, which reads new commits once and wakes the project's
// watchers; a watcher owns a cursor, not a queue, and reads commits from a bounded
// cache that all share, or from the log when it has fallen behind.
//
// Promises, each a test of its name:
//   - ordered: revisions of a project ascend.
//   - unique: no revision comes twice.
//   - atomic: a commit comes whole.
//   - reliable: none is skipped between the cursor and the head.
//   - resumable: any cursor within retention is a start.
//   - bookmarked: when a project is quiet, at least every MaxQuiet an event says
//     "you have everything up to R".
package changefeed
