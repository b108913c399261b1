package memory

import (
	"errors"
	"fmt"
	"regexp"
)

// checkType applies ruling 13.9. Where a file names several types, one private one
// among them is enough to keep it here, however it is spelled: see headUserType.
func (c *checker) checkType() {
	fm, _, err := ParseFrontmatter(c.content)
	var broken *Error
	if errors.As(err, &broken) {
		line := readsLikeUserType(c.content, fm)
		if line == 0 {
			line = headUserType(c.content, fm, true)
		}
		if line > 0 {
			c.refuseUser(line)
			return
		}
		for _, v := range broken.Violations {
			c.warn(v.Line, v.Rule, v.Message)
		}
		if nameIsUser(c.path) {
			c.refuseUser(0)
		}
		return
	}
	for _, key := range [...]string{"type", "metadata.type"} {
		if f, ok := fm.Field(key); ok && isPrivateType(f.Value) {
			c.refuseUser(f.Line)
			return
		}
	}
	if isPrivateType(fm.Type) { // in a flow mapping, which has no field of its own
		c.refuseUser(1)
		return
	}
	_, known := ParseType(fm.Type)
	if line := headUserType(c.content, fm, !known); line > 0 {
		c.refuseUser(line)
		return
	}
	switch _, ok := TypeOf(c.path, fm); {
	case fm.Type == "" && nameIsUser(c.path):
		c.refuseUser(0)
	case !ok && fm.Type != "":
		c.warn(typeLine(fm), RuleTypeUnknown, "the type is none of the four; use one of "+TypeNames())
	case !ok && !IsRedactionMarker(c.content): // which nobody here could give a type
		c.warn(0, RuleTypeMissing, fmt.Sprintf("the memory names no type; add 'type:' with one of %s", TypeNames()))
	}
}

func (c *checker) refuseUser(line int) {
	c.refuse(line, RuleTypeUser, "a memory of type user, or said to be personal or private, is about a person and never shared; move it out of team/ or give it another type")
}

func typeLine(fm Frontmatter) int {
	for _, key := range [...]string{"type", "metadata.type"} {
		if f, ok := fm.Field(key); ok && f.Value != "" {
			return f.Line
		}
	}
	return 1
}

// userTypeLine matches `type: user`, or another private word, in every way of writing
// it, also as a part of a longer line, since what surrounds it could not be parsed.
var userTypeLine = regexp.MustCompile(`(?i)(^|[\s{,"'])type["']?\s*:\s*(!!?\w+\s+)?["']?(users?|personal|private)(["'\s,}#]|$)`)

// maxUnclosedLines is how far down a type is looked for when no closing fence says
// where the frontmatter ends.
const maxUnclosedLines = 40

// readsLikeUserType returns the line, in frontmatter that cannot be parsed, which
// reads like `type: user`; 0 when there is none.
func readsLikeUserType(content []byte, fm Frontmatter) int {
	head := content[:fm.YAMLEnd]
	if !fm.Present {
		head = content
	}
	for at, line := 0, 1; at < len(head) && (fm.Present || line <= maxUnclosedLines); line++ {
		text, n := cutLine(head[at:])
		at += n
		if mayBePrivate(text) && userTypeLine.MatchString(foldHead(text)) {
			return line
		}
	}
	return 0
}
