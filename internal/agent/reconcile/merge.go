package reconcile

import (
	"bytes"

	"github.com/memsvc/memsvc/internal/memory"
)

// Merged is the outcome of a merge.
type Merged struct {
	// Text is the merged text; nil when OK is false.
	Text []byte
	// OK is false when the two edits touch and both texts must be kept.
	OK bool
	// Lost are the local index lines that gave way to the hub's (ruling 13.7).
	Lost []string
}

// MergeTexts merges the local and the remote text of a path against their ancestor;
// hasBase is false when none is known. An index is merged entry by entry and always
// succeeds. Any other memory is merged frontmatter field by field and body by lines.
// Line ends, byte order mark and a missing last line end are merged by themselves.
//
// It is symmetric in local and remote but for an index entry that both changed:
// there the remote one stays. A side equal to the base yields the other side, byte
// for byte, and equal sides yield themselves.
func MergeTexts(path memory.Path, base []byte, hasBase bool, local, remote []byte) Merged {
	if !hasBase {
		base = nil
	}
	switch {
	case bytes.Equal(local, remote), hasBase && bytes.Equal(base, remote):
		return Merged{Text: bytes.Clone(local), OK: true}
	case hasBase && bytes.Equal(base, local):
		return Merged{Text: bytes.Clone(remote), OK: true}
	}
	b, l, r, form := plain(base, hasBase, local, remote)
	if memory.IsIndex(path) {
		text, lost := mergeIndexFile(b, l, r)
		return Merged{Text: form.put(text), OK: true, Lost: lost}
	}
	text, ok := mergeMemory(b, l, r)
	if !ok {
		return Merged{}
	}
	return Merged{Text: form.put(text), OK: true}
}

// mergeMemory merges plain texts: by fields and body where all frontmatter can be
// read, else as lines throughout.
func mergeMemory(base, local, remote []byte) ([]byte, bool) {
	head, bodies, how := mergeHeads(base, local, remote)
	switch how {
	case headConflict:
		return nil, false
	case headMerged:
		body, ok := mergeLines(bodies[0], bodies[1], bodies[2])
		if !ok {
			return nil, false
		}
		text := append(head, body...)
		// A head that cannot be read again would hide the fields from every reader.
		if fm, _, err := memory.ParseFrontmatter(text); err == nil && fm.Present {
			return text, true
		}
	}
	return mergeLines(base, local, remote)
}

// mergeIndexFile merges plain indexes: by fields where all have frontmatter, the hub's
// winning, and entry by entry below it.
func mergeIndexFile(base, local, remote []byte) (merged []byte, lost []string) {
	head, bodies, how := mergeHeads(base, local, remote)
	switch how {
	case headUnread:
		return mergeIndex(base, local, remote)
	case headConflict:
		head = remote[:len(remote)-len(bodies[2])]
		mine := local[:len(local)-len(bodies[1])]
		for line := range bytes.Lines(mine) {
			if !bytes.Contains(head, line) {
				lost = append(lost, string(bytes.TrimRight(line, "\n")))
			}
		}
		head = bytes.Clone(head)
	case headMerged:
	}
	body, more := mergeIndex(bodies[0], bodies[1], bodies[2])
	return append(head, body...), append(lost, more...)
}
