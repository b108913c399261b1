// Package archtest holds the map of the repository as a table and tests that the
// code keeps to it: which package may import which, who may know a driver or a
// generated type, and what the pure packages may never touch.
//
// It reads every source file, whatever its build tags, so a slip in a file for
// another operating system is found as well. Test files are free: a test may use
// hubtest to put an agent in front of a hub.
//
// A package below internal/ that the table does not know is an error. Add it
// there, to the table in docs/ARCHITECTURE.md, and say why, in one commit.
package archtest
