package secretscan

import (
	"fmt"
	"unicode/utf8"
)

// shownOfName is how many characters of a withheld name are told: enough to find the
// file again, too few to be of use.
const shownOfName = 3

// SafePath returns how path may be named in an error, a log or a record: as it is, or,
// when a finding says that the name itself holds a secret (its Line is 0), cut to its
// first characters and its length in bytes. Everything that is told of the file then
// uses this name, findings in its text included.
func SafePath(findings []Finding, path string) string {
	for _, f := range findings {
		if f.Line == 0 {
			return WithheldPath(path)
		}
	}
	return path
}

// WithheldPath returns path cut to its first characters and its length in bytes.
func WithheldPath(path string) string {
	end := 0
	for range min(shownOfName, utf8.RuneCountInString(path)/4) {
		_, n := utf8.DecodeRuneInString(path[end:])
		end += n
	}
	return fmt.Sprintf("%s… (%d bytes, name withheld)", path[:end], len(path))
}
