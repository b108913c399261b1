// Package sqlite keeps a hub's store in one SQLite file, D/hub.db: the embedded
// default, with nothing to install.
//
// One goroutine writes. It gathers the commits of all projects that wait for it
// into one transaction, so that they share one fsync, and judges each on the state
// that it keeps in memory; while the disk works, the next batch gathers. Readers
// use connections of their own and see only what is durable. The reasons, the
// format and measured figures are in docs/design/0001-embedded-store.md.
package sqlite
