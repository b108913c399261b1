// Package postgres is the store of a hub with several replicas: any number of
// processes share one PostgreSQL database, 14 or newer, and need no extension.
// docs/design/0003-postgres.md says how it works and why.
//
// Nothing of it is bound to a session of the database, so that a pooler in
// transaction mode may stand between: no advisory session locks, no LISTEN that it
// would depend on, no temporary tables, no session settings, no prepared statement
// that has to outlive a transaction (see Options.URL).
package postgres
