// Package hooks answers the events of coding clients: it gives a session what it should
// know, finds the memories that a prompt needs, and keeps secrets from being written
// into what is shared. Events come as JSON on standard input and are answered on
// standard output, in the form that Claude Code documents.
//
// A hook never breaks a session: on any trouble it says nothing, and the program exits 0.
package hooks
