package secretscan

import "strings"

// maxPair bounds how far a name and its value stand from each other where each has a key of its own, in bytes.
const maxPair = 160

// pairValue reads the notations that give a name and its value under two keys, in either order: "name: DB_PASSWORD" and
// "value: …" in YAML, JSON, HCL and XML, and HCL's variables with a default. The name ends at i. It returns where the
// value begins, 0 if this is no such notation.
func pairValue(s string, start, i int) int {
	key, kind := nameKey(s, start)
	rest := s[i:min(len(s), i+maxPair)]
	switch kind {
	case pairNone:
		return 0
	case pairHCL:
		body, _, _ := strings.Cut(rest, "}")
		return keyIn(body, i, "default")
	case pairFlags:
		line := rest
		if end := strings.IndexAny(line, "\n;|&"); end >= 0 {
			line = line[:end]
		}
		for _, flag := range [...]string{" --value ", " --value=", " --secret-string ", " --body ", " -b "} {
			if at := strings.Index(line, flag); at >= 0 {
				return i + at + len(flag)
			}
		}
		return 0
	}
	if at := keyIn(item(rest), i, "value"); at > 0 {
		return at
	}
	// The value may stand first, unless the name begins its item.
	head := s[max(0, key-maxPair):key]
	trimmed := strings.TrimRight(head, "\"' \t\r\n,")
	if trimmed == "" || trimmed == head || strings.IndexByte("-{[<(", trimmed[len(trimmed)-1]) >= 0 {
		return 0
	}
	from := 0
	for _, cut := range []string{"\n\n", "- ", "{", "}"} {
		from = max(from, strings.LastIndex(head, cut)+1)
	}
	return keyIn(head[from:], key-len(head)+from, "value")
}

// pairKind is the notation that a name's key belongs to.
type pairKind int

const (
	pairNone  pairKind = iota
	pairKeys           // "name: NAME", the value under a key of its own
	pairHCL            // variable "NAME"
	pairFlags          // "--name NAME --value …", "secret set NAME --body …"
)

// nameKey looks for the key "name", "key" or one that ends so, whose value is the identifier around start; for HCL's
// word "variable" before it, and for flags. It returns where a key begins. Prose ends the search at its first step.
func nameKey(s string, start int) (at int, kind pairKind) {
	i := start
	for i > 0 && start-i < 64 && (isAlnum(s[i-1]) || strings.IndexByte("_.-/", s[i-1]) >= 0) {
		i--
	}
	if i > 1 && s[i-1] == ':' && isAlnum(s[i-2]) {
		// "Section:Name" within quotes, as .NET has it.
		j := i - 2
		for j > 0 && start-j < 64 && (isAlnum(s[j-1]) || s[j-1] == ':') {
			j--
		}
		if j > 0 && s[j-1] == '"' {
			i = j
		}
	}
	back := func(set string) {
		for limit := max(0, i-16); i > limit && strings.IndexByte(set, s[i-1]) >= 0; {
			i--
		}
	}
	back("\"' ")
	if i == 0 {
		return 0, pairNone
	}
	switch c := s[i-1]; {
	case c == ':' || c == '=' || c == '>':
		i--
		back("\"' ")
	case s[i] != ' ':
		return 0, pairNone
	case c == 'e' && strings.HasSuffix(s[:i], "variable"):
		return 0, pairHCL
	case c == 'e' && strings.HasSuffix(s[:i], "name") && strings.Contains(s[max(0, i-16):i], " --"), c == 't' && strings.HasSuffix(s[:i], "secret set"):
		return 0, pairFlags
	default:
		return 0, pairNone
	}
	end := i
	for i > 0 && end-i < 24 && isLetter(s[i-1]) {
		i--
	}
	word := strings.ToLower(s[i:end])
	if !strings.HasSuffix(word, "name") && !strings.HasSuffix(word, "key") {
		return 0, pairNone
	}
	return i, pairKeys
}

// item cuts s, which goes on in an item of a list, before the next item, object, element or paragraph.
func item(s string) string {
	for i := range len(s) {
		switch s[i] {
		case '}', '{':
			return s[:i]
		case '\n':
			next := strings.TrimLeft(s[i+1:], " \t")
			if next == "" || strings.IndexByte("\n\r-#", next[0]) >= 0 {
				return s[:i]
			}
		}
	}
	return s
}

// keyIn finds the key that ends in word, with its sign, in s, which stands at offset from. It returns where the value
// begins, 0 if there is none.
func keyIn(s string, from int, word string) int {
	low := strings.ToLower(s)
	for i := 0; ; {
		n := strings.Index(low[i:], word)
		if n < 0 {
			return 0
		}
		i += n + len(word)
		at := i
		for at < len(s) && strings.IndexByte("\"' ", s[at]) >= 0 {
			at++
		}
		if at < len(s) && strings.IndexByte(":=>", s[at]) >= 0 {
			return from + at + 1
		}
	}
}

// yamlValue steps over what YAML may put before a value that begins at i: a tag, an anchor, or the mark of a block, whose
// first line is then the value, if it is one word.
func yamlValue(s string, i int) int {
	at := i
	for at < len(s) && at < i+8 && s[at] == ' ' {
		at++
	}
	if at == len(s) || at == i {
		return i
	}
	stop := lineStop(s, at)
	switch s[at] {
	case '&':
		if sp := strings.IndexByte(s[at:stop], ' '); sp > 1 && isName(s[at+1:at+sp]) {
			return at + sp
		}
	case '!':
		if strings.HasPrefix(s[at:stop], "!!str ") {
			return at + len("!!str")
		}
	case '>', '|':
		mark, _, _ := strings.Cut(strings.TrimRight(s[at+1:stop], "\r"), " #")
		if strings.Trim(mark, "+-0123456789 ") != "" || stop == len(s) {
			return i
		}
		text := s[stop+1 : lineStop(s, stop+1)]
		if value := strings.TrimSpace(text); value == "" || text[0] != ' ' || strings.IndexByte(value, ' ') >= 0 {
			return len(s) // a text of several words
		}
		return stop + 1
	}
	return i
}
