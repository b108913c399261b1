package syncer

import (
	"slices"

	"github.com/memsvc/memsvc/internal/memory"
)

// unfit returns why a text of the hub is not put on the disk, whatever hub took it: it
// is no text, it hides some of itself from whoever reads it, or it is about a person.
// What is merely wrong is pulled, so that somebody can mend it.
func unfit(p memory.Path, content []byte) []memory.Violation {
	return slices.DeleteFunc(memory.CheckContent(p, content).Violations, func(v memory.Violation) bool {
		switch v.Rule {
		case memory.RuleContentUTF8, memory.RuleContentNUL, memory.RuleContentBidi, memory.RuleContentTag, memory.RuleTypeUser:
			return false
		}
		return true
	})
}
