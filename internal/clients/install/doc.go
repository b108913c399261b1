// Package install writes this program into the configuration of coding clients: as
// hooks, as a tool server, or as a plugin, whatever the client knows. A client is one
// entry of a table.
//
// A configuration file is its owner's. Everything in it that is not ours stays byte for
// byte, comments and order too; a file that cannot be read is left alone; what is written
// is written whole, with a copy of the last text without our part beside it.
package install
