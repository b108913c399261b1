package memory

import "bytes"

// CutIndex returns what a client loads of an index: frontmatter and HTML comments
// left out, then the first MaxIndexLines lines and MaxIndexBytes bytes, whichever
// comes first, cut at the end of a line. cutEntries says how many entries did not
// fit, so that truncated is never mistaken for absent. loaded is a prefix of
// StripIndex(content).
func CutIndex(content []byte) (loaded []byte, cutEntries int) {
	stripped := StripIndex(content)
	end := 0
	for lines := 0; end < len(stripped) && lines < MaxIndexLines; lines++ {
		_, n := cutLine(stripped[end:])
		if end+n > MaxIndexBytes {
			break
		}
		end += n
	}
	loaded = stripped[:end:end]
	if end < len(stripped) {
		cutEntries = len(ParseIndex(stripped).Entries()) - len(ParseIndex(loaded).Entries())
	}
	return loaded, max(cutEntries, 0)
}

// StripIndex returns content without a byte order mark, frontmatter and HTML
// comments. A comment that fills its lines goes with them; code is left alone, and
// so is a comment that is never closed, lest it hide the rest.
func StripIndex(content []byte) []byte {
	var s blockScanner
	at := s.start(content)
	body := content[at:]
	if !bytes.Contains(body, commentOpen) {
		return body
	}
	var out []byte
	for at < len(content) {
		text, n := cutLine(content[at:])
		raw := content[at : at+n]
		at += n
		kept, commented := s.strip(text)
		if !commented {
			out = append(out, raw...)
			continue
		}
		if len(bytes.TrimSpace(kept)) > 0 {
			out = append(append(out, kept...), raw[len(text):]...)
		}
	}
	return out
}

func countLines(b []byte) int {
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
