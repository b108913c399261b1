// Package client is the typed client of a hub: domain values in, domain values and
// *memory.Error out. It dials, retries what is worth retrying, and follows projects
// on one stream that resumes by itself (Feed).
//
// Errors are what package wire makes of a status. A call that ran into its own
// deadline is an ErrUnavailable, because another attempt may well succeed; a call
// whose caller gave up returns the context's error.
package client
