package instructions

import (
	"bytes"
	"regexp"
	"strings"
)

// frontmatter splits off a YAML head.
func frontmatter(text []byte) (head, body []byte, ok bool) {
	first, rest, found := bytes.Cut(text, []byte("\n"))
	if !found || strings.TrimRight(string(first), " \t\r") != "---" {
		return nil, text, false
	}
	for at := 0; at < len(rest); {
		line, after, found := bytes.Cut(rest[at:], []byte("\n"))
		if strings.TrimRight(string(line), " \t\r") == "---" {
			return rest[:at], after, true
		}
		if !found {
			break
		}
		at += len(line) + 1
	}
	return nil, text, false
}

// importName matches @path after a blank or at the beginning of a line.
var importName = regexp.MustCompile(`(?:^|[\s(])@([^\s` + "`" + `"'<>|*?]+)`)

// scan returns what a model reads of a file, and the files that it imports: frontmatter
// and the HTML comments that stand as blocks are left out, and nothing is imported from
// code, fenced or between backticks.
func scan(text []byte) (visible string, imports []string) {
	_, body, _ := frontmatter(text)
	var b strings.Builder
	fence := ""
	comment := false
	for line := range strings.Lines(string(body)) {
		trimmed := strings.TrimLeft(line, " \t")
		switch {
		case comment:
			_, after, closed := strings.Cut(line, "-->")
			if !closed {
				continue
			}
			comment = false
			if strings.TrimSpace(after) == "" {
				continue
			}
			line = after
		case fence != "":
			b.WriteString(line)
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" \t\r\n") == "" {
				fence = ""
			}
			continue
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
			b.WriteString(line)
			continue
		case strings.HasPrefix(trimmed, "<!--"):
			_, after, closed := strings.Cut(trimmed, "-->")
			if !closed {
				comment = true
				continue
			}
			if strings.TrimSpace(after) == "" {
				continue
			}
			line = after
		}
		b.WriteString(line)
		for _, m := range importName.FindAllStringSubmatch(withoutCode(line), -1) {
			imports = append(imports, strings.TrimRight(m[1], ".,;:!)"))
		}
	}
	return b.String(), imports
}

// withoutCode blanks what stands between backticks.
func withoutCode(line string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(line, '`')
		if i < 0 {
			break
		}
		b.WriteString(line[:i])
		ticks := line[i : len(line)-len(strings.TrimLeft(line[i:], "`"))]
		rest := line[i+len(ticks):]
		end := strings.Index(rest, ticks)
		if end < 0 {
			line = rest // a backtick that opens nothing
			continue
		}
		b.WriteString("` `")
		line = rest[end+len(ticks):]
	}
	b.WriteString(line)
	return b.String()
}
