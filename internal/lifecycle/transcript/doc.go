// Package transcript reads the conversations that coding clients keep on disk: one JSON
// object a line, appended while the client works, so the last line may be half written.
// Formats are undocumented and move; whatever is not known is passed over.
//
// Files are read in pieces, forwards or backwards from their end, in memory that does
// not grow with them.
package transcript
