// Package hub is the composition root of memsvc: it builds the store, the service
// and the servers, runs them, and drains them; and it holds the program's commands.
// Only this package knows concrete types.
package hub
