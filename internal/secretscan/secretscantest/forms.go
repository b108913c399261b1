package secretscantest

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// form writes a text in a form that hides it from a plain search.
func (g *generator) form(name, s string) string {
	switch name {
	case "zwsp":
		return g.sprinkle(s, "\u200b")
	case "zwj":
		return g.sprinkle(s, "\u200d")
	case "zwnbsp":
		return g.sprinkle(s, "\ufeff")
	case "wj":
		return g.sprinkle(s, "\u2060")
	case "shy":
		return g.sprinkle(s, "\u00ad")
	case "vs":
		return g.sprinkle(s, "\ufe0f")
	case "fullwidth":
		return mapRunes(s, '!', '~', 0xfee0)
	case "math":
		// Mathematical monospace letters and digits.
		return mapRunes(mapRunes(mapRunes(s, 'A', 'Z', 0x1d670-'A'), 'a', 'z', 0x1d68a-'a'), '0', '9', 0x1d7f6-'0')
	case "entity":
		return each(s, func(c byte) string { return fmt.Sprintf("&#%d;", c) })
	case "split":
		return cut(s, 2, "\n")
	case "splitquote":
		return cut(s, 2, "\n> ")
	case "splitlist":
		return cut(s, 2, "\n  ")
	case "splitconcat":
		return cut(s, 2, "\" +\n      \"")
	case "splitbackslash":
		return cut(s, 2, "\\\n")
	case "split3":
		return cut(s, 3, "\n")
	case "b64":
		return base64.StdEncoding.EncodeToString([]byte(s))
	case "b64raw":
		return base64.RawStdEncoding.EncodeToString([]byte(s))
	case "b64url":
		return base64.URLEncoding.EncodeToString([]byte(s))
	case "b64lines":
		e := base64.StdEncoding.EncodeToString([]byte(s))
		var lines []string
		for len(e) > 48 {
			lines, e = append(lines, e[:48]), e[48:]
		}
		return strings.Join(append(lines, e), "\n")
	case "b64utf16":
		return base64.StdEncoding.EncodeToString([]byte(each(s, func(c byte) string { return string([]byte{c, 0}) })))
	case "hex":
		return hex.EncodeToString([]byte(s))
	case "hexupper":
		return strings.ToUpper(hex.EncodeToString([]byte(s)))
	case "hexescape":
		return each(s, func(c byte) string { return fmt.Sprintf(`\x%02x`, c) })
	case "uescape":
		return each(s, func(c byte) string { return fmt.Sprintf(`\u%04x`, c) })
	case "pct":
		return strings.ReplaceAll(url.QueryEscape(s), "_", "%5F")
	case "pctall":
		return each(s, func(c byte) string { return fmt.Sprintf("%%%02X", c) })
	case "indent":
		return "    " + strings.ReplaceAll(s, "\n", "\n    ")
	case "blockquote":
		return "> " + strings.ReplaceAll(s, "\n", "\n> ")
	case "oneline":
		return strings.ReplaceAll(s, "\n", `\n`)
	case "head":
		return strings.Join(strings.Split(s, "\n")[:4], "\n")
	case "crlf":
		return s + "\r"
	case "bom":
		return "\ufeff" + s
	}
	panic("secretscantest: unknown form " + name)
}

func each(s string, f func(byte) string) string {
	var out strings.Builder
	for i := range len(s) {
		out.WriteString(f(s[i]))
	}
	return out.String()
}

// sprinkle puts mark between characters, two to five apart.
func (g *generator) sprinkle(s, mark string) string {
	var out strings.Builder
	rest := []rune(s)
	for len(rest) > 0 {
		n := min(2+g.rand.IntN(4), len(rest))
		out.WriteString(string(rest[:n]))
		if rest = rest[n:]; len(rest) > 0 {
			out.WriteString(mark)
		}
	}
	return out.String()
}

func mapRunes(s string, from, to, by rune) string {
	return strings.Map(func(r rune) rune {
		if r >= from && r <= to {
			return r + by
		}
		return r
	}, s)
}

// cut puts sep between n equal parts of s.
func cut(s string, n int, sep string) string {
	var parts []string
	size := (len(s) + n - 1) / n
	for len(s) > size {
		parts, s = append(parts, s[:size]), s[size:]
	}
	return strings.Join(append(parts, s), sep)
}
