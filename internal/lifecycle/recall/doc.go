// Package recall finds the memories that a prompt needs (SPEC 6.1, 6.2, 6.6): it scans
// the heads of the newest memories, and chooses at most a handful, with a language
// model or without. It reads the disk and changes nothing.
package recall
