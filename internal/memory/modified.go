package memory

import (
	"bytes"
	"regexp"
	"slices"
	"time"
)

// timeKeys are the fields that a memory's own time is read from; the first that has a
// value counts, a time or not.
func timeKeys() []string { return []string{"metadata.modified", "modified", "date"} }

// timeLayouts are the ways in which people and clients write a time. What has no zone is
// UTC.
func timeLayouts() []string {
	return []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}
}

// flowModified finds the time in a metadata mapping on one line, {type: x, modified: y}.
var flowModified = regexp.MustCompile(`\bmodified\s*:\s*["']?([^"',}\s][^"',}]*)`)

// WithModified returns content with at for the memory's own time, Frontmatter.Modified,
// written in the form that the time has now: a date stays a date. No other byte differs.
// ok is false, and content comes back, where the head has no own time or cannot be read.
func WithModified(content []byte, at time.Time) (text []byte, ok bool) {
	fm, _, err := ParseFrontmatter(content)
	if err != nil || fm.Modified.IsZero() {
		return content, false
	}
	start, end := fm.timeAt()
	if start == end {
		return content, false
	}
	for _, layout := range timeLayouts() {
		if _, err := time.Parse(layout, string(content[start:end])); err != nil {
			continue
		}
		if layout == time.RFC3339Nano {
			layout = "2006-01-02T15:04:05.000Z07:00" // as clients write it
		}
		value := at.UTC().Format(layout)
		text = slices.Concat(content[:start], []byte(value), content[end:])
		// A head that means something else now was not understood.
		next, _, err := ParseFrontmatter(text)
		if err != nil || !next.Modified.Equal(parseTime(value)) || len(next.Fields) != len(fm.Fields) {
			return content, false
		}
		return text, true
	}
	return content, false
}

// timeAt returns where in the content the value of the own time stands, without quotes;
// nothing where that cannot be told.
func (f *Frontmatter) timeAt() (start, end int) {
	for _, key := range timeKeys() {
		field, there := f.Field(key)
		if there && field.Value != "" {
			colon := bytes.IndexByte(field.Raw, ':')
			i := bytes.Index(field.Raw[colon+1:], []byte(field.Value))
			if colon < 0 || i < 0 {
				return 0, 0 // written with escapes
			}
			start = field.Offset + colon + 1 + i
			return start, start + len(field.Value)
		}
		if key != timeKeys()[0] {
			continue
		}
		if field, there = f.Field(metadataKey); there {
			if at := flowModified.FindSubmatchIndex(field.Raw); at != nil {
				value := bytes.TrimRight(field.Raw[at[2]:at[3]], " \t\r\n")
				return field.Offset + at[2], field.Offset + at[2] + len(value)
			}
		}
	}
	return 0, 0
}
