package secretscan

import (
	"math"
	"slices"
	"strings"
)

// stats counts what a value is made of.
type stats struct{ lower, upper, digits, marks, other, turns int }

func charStats(s string) stats {
	var st stats
	last := byte(0)
	for i := range len(s) {
		c := s[i]
		class := byte('m')
		switch {
		case c >= 'a' && c <= 'z':
			st.lower++
			class = 'a'
		case c >= 'A' && c <= 'Z':
			st.upper++
			class = 'A'
		case isDigit(c):
			st.digits++
			class = '0'
		case c >= 0x80:
			st.other++
		default:
			st.marks++
		}
		if i > 0 && class != last && class != 'm' && last != 'm' && !(last == 'A' && class == 'a') {
			st.turns++
		}
		last = class
	}
	return st
}

func (s stats) add(o stats) stats {
	return stats{s.lower + o.lower, s.upper + o.upper, s.digits + o.digits, s.marks + o.marks, s.other + o.other, s.turns + o.turns}
}

func (s stats) letters() int { return s.lower + s.upper }

// kinds counts how many of lower case, upper case, digits and marks occur.
func (s stats) kinds() int {
	n := 0
	for _, c := range []int{s.lower, s.upper, s.digits, s.marks} {
		if c > 0 {
			n++
		}
	}
	return n
}

// entropy is Shannon's, in bits a character, over characters and divided by bytes, as gitleaks counts it.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	total := float64(len(s))
	sum := 0.0
	var ascii [128]int
	var rest map[rune]int
	for _, r := range s {
		if r < 128 {
			ascii[r]++
			continue
		}
		if rest == nil {
			rest = map[rune]int{}
		}
		rest[r]++
	}
	for _, n := range ascii {
		if n > 0 {
			f := float64(n) / total
			sum -= f * math.Log2(f)
		}
	}
	for _, n := range rest {
		f := float64(n) / total
		sum -= f * math.Log2(f)
	}
	return sum
}

// reference reports values that say where a secret is kept: code, paths, URLs, names of variables and vault entries.
func reference(v string) bool {
	if v == "" {
		return false
	}
	low := strings.ToLower(v)
	for _, p := range []string{"/", "./", "../", "~/", "@/", "@./", "@~/", "http://", "https://", "file:", "op://", "vault:", "env:", "arn:", "projects/", "ssm:",
		"process.", "os.", "system.", "config.", "settings.", "self.", "this.", "req.", "request.", "secrets.", "env.", "getenv",
		"keychain", "sops:", "enc[", "!vault", "!secret", "!ref", "refs/", "secret/", "secrets/", "data:", "kv/", "id=", "src=", "type="} {
		if strings.HasPrefix(low, p) {
			return true
		}
	}
	if strings.Contains(v, "](") {
		return true // a Markdown link
	}
	if end := strings.IndexByte(v[1:], ':'); v[0] == ':' && end > 0 && isLowerName(v[1:1+end]) {
		return true // an emoji's short name
	}
	if host, path, ok := strings.Cut(v, "/"); ok && domain(host) && !strings.ContainsAny(path, "?&=@") {
		return true // a URL without its scheme and query, the path of a module
	}
	if selector(low) {
		return true
	}
	if strings.Contains(v, "(") {
		at := strings.IndexByte(v, '(')
		return at > 0 && isName(strings.ReplaceAll(v[:at], "::", "."))
	}
	if at := strings.IndexByte(v, '['); at > 0 && isLowerName(v[:at]) {
		return true // params[:name]
	}
	if len(v) > 2 && isLetter(v[0]) && v[1] == ':' && v[2] == '\\' || strings.Contains(v, "::") || strings.Contains(v, "->") || strings.Contains(v, "://") {
		return true
	}
	if user, host, ok := strings.Cut(v, "@"); ok && user != "" && strings.Contains(host, ".") && isName(user) && isName(host) && charStats(v).digits == 0 {
		return true // an e-mail address
	}
	return isUUID(v) || isDate(v) || isChord(v) || isFileName(low)
}

// domain reports the name of a host below a domain: small letters, and letters alone behind the last dot.
func domain(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	return dot > 2 && len(s)-dot > 2 && charStats(s[dot+1:]).lower == len(s)-dot-1 && charStats(s).upper == 0 && isName(s)
}

// selector reports CSS selectors: the name of an element, or nothing, and then an id, a class, an attribute, a child.
func selector(low string) bool {
	at := strings.IndexAny(low, "#.[>:")
	if at < 0 || at+1 == len(low) {
		return false
	}
	switch low[:at] {
	case "input", "form", "button", "div", "span", "label", "textarea", "select", "body", "section", "iframe", "fieldset", "table", "main", "dialog":
		return true
	case "":
		return low[0] == '[' || strings.HasSuffix(low, "]")
	}
	return false
}

func isName(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '_' && s[i] != '.' && s[i] != '-' {
			return false
		}
	}
	return s != ""
}

func isFileName(low string) bool {
	for _, ext := range []string{".md", ".txt", ".json", ".yaml", ".yml", ".go", ".ts", ".js", ".py", ".pem", ".key", ".env", ".toml", ".sh", ".sql", ".rs", ".java", ".html", ".crt"} {
		if strings.HasSuffix(low, ext) {
			return isName(strings.ReplaceAll(low, "/", "."))
		}
	}
	return false
}

// isUUID reports 8-4-4-4-12 hexadecimal digits: an id, which nobody can tell from a secret by itself.
func isUUID(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := range len(v) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (v[i] == '-') || !dash && !isHex(v[i:i+1]) {
			return false
		}
	}
	return true
}

// isDate reports an ISO date, with a time or not.
func isDate(v string) bool {
	if len(v) < 10 || v[4] != '-' || v[7] != '-' {
		return false
	}
	for i := range len(v) {
		if c := v[i]; !isDigit(c) && strings.IndexByte("-:.TZ+", c) < 0 {
			return false
		}
	}
	return true
}

// isChord reports a key binding, as "ctrl+shift+down".
func isChord(v string) bool {
	parts := strings.FieldsFunc(v, func(r rune) bool { return r == '+' || r == '-' })
	if len(parts) < 2 {
		return false
	}
	mods := 0
	for _, p := range parts {
		low := strings.ToLower(p)
		if slices.Contains([]string{"ctrl", "control", "shift", "alt", "cmd", "command", "meta", "super", "option", "opt", "hyper", "fn", "win"}, low) {
			mods++
		} else if len(p) > 9 || charStats(p).marks > 1 {
			return false
		}
	}
	return mods > 0
}

// wordish reports whether a value reads like names and numbers joined by marks: "memsvc.v1.MemoryService",
// "release-2024-q3", "PaymentsApiClient". Random values have a part where letters and digits mix.
func wordish(v string) bool {
	parts := strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("._-/:+=,~@#&?%", r) })
	for _, p := range parts {
		if !wordishPart(p) {
			return false
		}
	}
	return true
}

func wordishPart(p string) bool {
	st := charStats(p)
	switch {
	case st.marks > 0:
		return false
	case st.letters() == 0:
		return st.digits <= 14
	case st.digits == 0:
		if st.letters() < 8 || st.upper == 0 || st.lower == 0 {
			return st.letters() < 20 || vowels(p)*5 >= len(p)
		}
		return st.turns*3 <= len(p) && vowels(p)*5 >= len(p)
	}
	// Letters then digits, or digits then letters: "sha256", "v12", "2xl".
	return st.turns <= 1 && st.digits <= 4 && (st.letters() <= 3 || vowels(p) > 0)
}

func vowels(s string) int {
	n := 0
	for i := range len(s) {
		if strings.IndexByte("aeiouyAEIOUY", s[i]) >= 0 {
			n++
		}
	}
	return n
}

// random reports whether a value looks made by a generator: long, letters and digits mixed.
func random(v string) bool {
	st := charStats(v)
	return len(v) >= 12 && st.other == 0 && strings.IndexByte(v, ' ') < 0 && st.kinds() >= 2 && st.letters() > 0 && (st.digits > 0 || st.upper > 2 && st.lower > 2) && entropy(v) > 2.9 &&
		!wordish(v) && !placeholder(v) && !reference(v)
}

// digestWords say that a hexadecimal value is a digest or a revision.
func digestWords() []string {
	return []string{"sha", "digest", "checksum", "hash", "commit", "integrity", "etag", "md5", "revision", "fingerprint", "cache", "cursor", "blob", "tree", "trace", "span"}
}

// harmlessAssigned reports what gitleaks's generic rule takes for a key and is none: ids, digests, key bindings, dates,
// names of things, references, placeholders. It is asked for that rule only.
func harmlessAssigned(v, line string) bool {
	if reference(v) || wordish(v) || placeholderMark(v) {
		return true
	}
	low := strings.ToLower(line)
	if at := strings.Index(line, v); at >= 0 && strings.Contains(low[max(0, min(at, len(low))-24):min(at, len(low))], "public key") {
		return true
	}
	digest := func() bool {
		return slices.ContainsFunc(digestWords(), func(w string) bool { return strings.Contains(low, w) })
	}
	if isHex(v) {
		switch len(v) {
		case 7, 8, 10, 12, 16, 20, 32, 40, 64, 96, 128:
			return digest()
		}
	}
	for _, p := range []string{"sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "h1:"} {
		if strings.HasPrefix(strings.ToLower(v), p) {
			return true
		}
	}
	return placeholder(v)
}
