// Package notes keeps the notes of a conversation (SPEC 8): one file beside it, ten
// sections in fixed order, from which it can go on after its context was compacted.
// Headings and their hints are never edited; what stands below them is.
package notes
