package memory

import (
	"bytes"
	"unicode/utf8"
)

// scanPlainFields splits a block in which every line is a blank, or a plain
// `key: value`, or such a line below `metadata:`: what nearly every memory has. It
// claims (plain) only what YAML reads in the same way; everything else is left to
// parseYAMLFields. A fuzz test holds the two together.
func scanPlainFields(block []byte, offset int) (fields []Field, plain bool) {
	fields = make([]Field, 0, 8)
	inMetadata, indent := false, 0
	for at, line := 0, 2; at < len(block); line++ {
		text, n := cutLine(block[at:])
		f := Field{Raw: block[at : at+n : at+n], Offset: offset + at, Line: line}
		at += n
		if len(text) == 0 {
			fields = append(fields, f)
			continue
		}
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		key, value, ok := plainPair(text[spaces:])
		if !ok {
			return nil, false
		}
		switch {
		case spaces == 0:
			if value == "" && key != metadataKey {
				// Perhaps the head of a nested value; let YAML say.
				return nil, false
			}
			inMetadata, indent = value == "", 0
			f.Key = key
		case inMetadata && (indent == 0 || indent == spaces):
			if value == "" {
				return nil, false
			}
			indent = spaces
			f.Key = metadataKey + "." + key
		default:
			return nil, false
		}
		for i := range fields {
			if fields[i].Key == f.Key {
				return nil, false // a key twice: YAML reports it
			}
		}
		f.Value = value
		fields = append(fields, f)
	}
	return fields, true
}

// maxPlainKey keeps the fast scanner clear of YAML's own bound on keys, 1,024.
const maxPlainKey = 64

// plainPair reads `key: value` where the key is a simple word and the value is
// empty, a plain scalar without any character that means something to YAML, or
// quoted without escapes.
func plainPair(s []byte) (key, value string, ok bool) {
	i := 0
	for i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || s[i] == '_' || i > 0 && (s[i] >= '0' && s[i] <= '9' || s[i] == '-')) {
		i++
	}
	if i == 0 || i > maxPlainKey || i >= len(s) || s[i] != ':' {
		return "", "", false
	}
	key = string(s[:i])
	v := s[i+1:]
	if len(v) > 0 && v[0] != ' ' {
		return "", "", false
	}
	v = bytes.Trim(v, " ")
	if len(v) == 0 {
		return key, "", true
	}
	if !printable(v) {
		return "", "", false
	}
	if q := v[0]; q == '"' || q == '\'' {
		inner := v[1:]
		if len(inner) < 2 || inner[len(inner)-1] != q {
			return "", "", false
		}
		inner = inner[:len(inner)-1]
		if bytes.IndexByte(inner, q) >= 0 || q == '"' && bytes.IndexByte(inner, '\\') >= 0 {
			return "", "", false
		}
		return key, string(inner), true
	}
	if bytes.IndexByte([]byte("-?:,[]{}#&*!|>'\"%@`<=~"), v[0]) >= 0 ||
		bytes.Contains(v, []byte(": ")) || bytes.Contains(v, []byte(" #")) || v[len(v)-1] == ':' {
		return "", "", false
	}
	return key, string(v), true
}

// printable reports whether YAML takes every character of v as it stands. Tabs and
// exotic line ends are left to YAML.
func printable(v []byte) bool {
	for i := 0; i < len(v); {
		c := v[i]
		if c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(v[i:])
		if r == utf8.RuneError || r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r&0xfffe == 0xfffe {
			return false
		}
		i += size
	}
	return true
}
