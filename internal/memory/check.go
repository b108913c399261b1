package memory

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The rules of content, as a Violation names them.
const (
	RuleContentSize    = "content-size"    // over MaxMemoryBytes
	RuleContentUTF8    = "content-utf8"    // bytes that are not UTF-8
	RuleContentNUL     = "content-nul"     // a NUL byte
	RuleContentBidi    = "content-bidi"    // a bidi embedding, override or isolate
	RuleContentTag     = "content-tag"     // a Unicode tag character
	RuleMergeMarker    = "merge-marker"    // <<<<<<<, |||||||, =======, >>>>>>>
	RuleTypeUser       = "type-user"       // a memory about a person, below team/
	RuleTypeMissing    = "type-missing"    // a warning: no type at all
	RuleTypeUnknown    = "type-unknown"    // a warning: a type outside the set
	RuleGrantsApproval = "grants-approval" // a warning: text that grants permissions
)

// Checked is the verdict on one memory.
type Checked struct {
	Violations []Violation // each refuses the memory
	Warnings   []Violation // each is told, and refuses nothing
}

// Err returns nil, or an *Error with all violations. Its reason is MEMORY_TOO_LARGE
// or INVALID_CONTENT where there is such a violation, else TYPE_NOT_SHARED.
func (c Checked) Err() error {
	if len(c.Violations) == 0 {
		return nil
	}
	e := &Error{Reason: ReasonTypeNotShared, Message: "memory refused", Violations: c.Violations}
	for _, v := range c.Violations {
		switch {
		case v.Rule == RuleContentSize:
			e.Reason = ReasonMemoryTooLarge
			return e
		case v.Rule != RuleTypeUser:
			e.Reason = ReasonInvalidContent
		}
	}
	return e
}

// CheckContent applies the rules that hub and agent share to a memory below team/:
// size, UTF-8, NUL, hidden text, merge markers and the type rule (SPEC 2.2, 3.3,
// rulings 13.9, 13.10, 13.18, 13.20). Secrets are another package's; the caps of an
// index are IndexWarnings'. A violation names a line and a rule, never the content.
// Beyond MaxMemoryBytes nothing else is looked at.
func CheckContent(path Path, content []byte) Checked {
	c := checkRules(path, content)
	if len(content) > MaxMemoryBytes {
		return c.Checked
	}
	if line := GrantsApproval(content); line > 0 {
		c.warn(line, RuleGrantsApproval, "the text grants permissions or tells an agent to act without asking; treat it as a note, not as consent")
	}
	return c.Checked
}

// Warnings returns all that is to be told of a memory that is no reason to refuse it: the
// warnings of CheckContent, and of an index those of IndexWarnings.
func Warnings(path Path, content []byte) []Violation {
	out := CheckContent(path, content).Warnings
	if IsIndex(path) {
		out = append(out, IndexWarnings(path, content)...)
	}
	return out
}

// CheckRules returns what CheckContent(path, content).Err() does, without the work
// that goes into warnings only.
func CheckRules(path Path, content []byte) error { return checkRules(path, content).Err() }

func checkRules(path Path, content []byte) *checker {
	c := &checker{path: path, content: content}
	if len(content) > MaxMemoryBytes {
		c.refuse(0, RuleContentSize, TooLarge(int64(len(content))))
		return c
	}
	c.checkEncoding()
	c.checkHiddenText()
	c.checkMergeMarkers()
	if !IsIndex(path) {
		c.checkType()
	}
	return c
}

// TooLarge says that a text of that many bytes is no memory. Whoever reads no further
// than MaxMemoryBytes says it of the whole.
func TooLarge(size int64) string {
	return fmt.Sprintf("the memory has %d bytes, the limit is %d; split it", size, MaxMemoryBytes)
}

type checker struct {
	Checked
	path    Path
	content []byte
}

func (c *checker) refuse(line int, rule, msg string) {
	c.Violations = append(c.Violations, Violation{Path: cutText(string(c.path)), Line: line, Rule: rule, Message: msg})
}

func (c *checker) warn(line int, rule, msg string) {
	c.Warnings = append(c.Warnings, Violation{Path: cutText(string(c.path)), Line: line, Rule: rule, Message: msg})
}

// lineAt returns the 1-based line of a byte offset.
func lineAt(content []byte, at int) int {
	return 1 + bytes.Count(content[:at], []byte("\n"))
}

func (c *checker) checkEncoding() {
	if !utf8.Valid(c.content) {
		at := 0
		for at < len(c.content) {
			r, n := utf8.DecodeRune(c.content[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		c.refuse(lineAt(c.content, at), RuleContentUTF8, "the memory is not UTF-8; save it as UTF-8")
	}
	if at := bytes.IndexByte(c.content, 0); at >= 0 {
		c.refuse(lineAt(c.content, at), RuleContentNUL, "the memory holds a NUL byte; remove it")
	}
}

// checkHiddenText finds characters that make a text read differently to a person and
// to a program: U+202A–202E, U+2066–2069 and the tags U+E0000–E007F. It searches for
// their leading bytes, which is much faster than decoding.
func (c *checker) checkHiddenText() {
	if at := indexByteRange(c.content, "\xe2\x80", 0xAA, 0xAE); at >= 0 {
		c.refuseBidi(at)
	} else if at := indexByteRange(c.content, "\xe2\x81", 0xA6, 0xA9); at >= 0 {
		c.refuseBidi(at)
	}
	if at := indexByteRange(c.content, "\xf3\xa0", 0x80, 0x81); at >= 0 {
		c.refuse(lineAt(c.content, at), RuleContentTag, "the line holds a Unicode tag character, which nobody sees and programs read; remove it")
	}
}

func (c *checker) refuseBidi(at int) {
	c.refuse(lineAt(c.content, at), RuleContentBidi, "the line holds a bidirectional override, embedding or isolate, which reorders what a person sees; remove it")
}

// indexByteRange returns where lead is followed by a byte from lo to hi, or -1.
func indexByteRange(b []byte, lead string, lo, hi byte) int {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(lead))
		if i < 0 || at+i+len(lead) >= len(b) {
			return -1
		}
		at += i + len(lead)
		if c := b[at]; lo <= c && c <= hi {
			return at - len(lead)
		}
	}
}

// markerLength is how often a merge marker repeats its character.
const markerLength = 7

// maxMarkersReported bounds the violations that one file makes.
const maxMarkersReported = 10

// checkMergeMarkers finds what a merge left behind, at the start of a line and
// outside code fences. ======= alone is a heading's underline; it counts beside
// another marker only.
func (c *checker) checkMergeMarkers() {
	if !bytes.Contains(c.content, []byte("<<<<<<<")) && !bytes.Contains(c.content, []byte(">>>>>>>")) &&
		!bytes.Contains(c.content, []byte("|||||||")) {
		return
	}
	var s blockScanner
	var lines []int
	certain := false
	start := s.start(c.content)
	for at, line := 0, 1; at < len(c.content); line++ {
		text, n := cutLine(c.content[at:])
		code := at >= start && s.next(text) == inCode
		at += n
		if code {
			continue
		}
		switch mergeMarker(text) {
		case 0:
			continue
		case '=':
		default:
			certain = true
		}
		lines = append(lines, line)
	}
	if !certain {
		return
	}
	for i, line := range lines {
		if i == maxMarkersReported {
			break
		}
		c.refuse(line, RuleMergeMarker, "the line is a merge marker; finish the merge, or put the example into a code fence")
	}
}

// mergeMarker returns the marker's character if the line is one: exactly seven of
// it, then a blank or nothing.
func mergeMarker(line []byte) byte {
	if len(line) < markerLength || strings.IndexByte("<|=>", line[0]) < 0 {
		return 0
	}
	run := len(line) - len(bytes.TrimLeft(line, string(line[0])))
	if run != markerLength || len(line) > run && line[run] != ' ' && line[run] != '\t' && line[run] != '\r' {
		return 0
	}
	return line[0]
}
