package inject

import (
	"strings"
	"unicode"
)

// Neutral takes away from a text what would end its wrapper, open another one, or pass
// for words of the client or of a person: tags whose names clients and models give a
// meaning, and closing tags that nothing in the text opened, lose their bracket; a line
// that begins as a turn of a conversation is moved in by a blank. Every line end becomes
// \n, and control characters other than \n and \t go. Other text is unchanged.
//
// What a text says is judged in its folded form, so that no spelling that a model reads
// as a tag passes for none.
func Neutral(s string) string {
	s = printable(s)
	for range maxPasses {
		next := neutralOnce(s, false)
		if next == s {
			return s
		}
		s = next // what stands for one bracket may make another one a tag's
	}
	return neutralOnce(s, true)
}

// maxPasses bounds how often a text is judged anew; one that is not settled then is made of
// brackets, and loses them all.
const maxPasses = 4

func neutralOnce(s string, every bool) string {
	f := foldText(s)
	put := map[int]string{} // by the place of a character in s: what stands for it
	opened := map[string]int{}
	begins := true // nothing but what cannot be seen stands before in this line
	for i, r := range f {
		if begins && isTurn(f[i:]) {
			put[r.at] = " " + s[r.at:r.end]
		}
		begins = r.r == '\n'
		switch r.r {
		case '<':
			if every || tagAt(s, f, i).meant(opened) {
				put[r.at] = "&lt;"
			}
		case '[':
			if end := instAt(f[i:]); end > 0 {
				put[r.at], put[f[i+end].at] = "(", ")"
			}
		}
	}
	if len(put) == 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if p, ok := put[i]; ok {
			b.WriteString(p)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// printable returns a text with \n for every line end that Unicode knows and without
// control characters other than \n and \t.
func printable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\t':
			return r
		case '\r', '\v', '\f', '\u0085', '\u2028', '\u2029':
			return '\n'
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// isTurn reports whether a line begins as the words of a role: the marks by which models
// tell turns apart.
func isTurn(f []folded) bool {
	n := 0
	for n < len(f) && unicode.IsLetter(f[n].r) {
		n++
	}
	switch word(f[:n]) {
	case "human", "assistant", "user", "system", "developer":
	default:
		return false
	}
	for n < len(f) && f[n].r != '\n' && unicode.IsSpace(f[n].r) {
		n++
	}
	return n < len(f) && f[n].r == ':'
}

// instAt returns where the mark [INST] or [/INST] that f begins with ends, 0 = there is none.
func instAt(f []folded) int {
	const longest = 16 // with blanks and the slash
	for end := 1; end < min(len(f), longest); end++ {
		if f[end].r == ']' {
			if strings.Trim(word(f[1:end]), " /\\\t\n") == "inst" {
				return end
			}
			break
		}
	}
	return 0
}

// tag is what follows a bracket.
type tag struct {
	name     string // folded; with - : _
	source   string // the name as it is written
	pipe     bool   // <|im_start|> and its like
	closing  bool   // a slash before the name
	blank    bool   // blanks before the name
	direct   bool   // nothing before the name
	operand  bool   // the bracket follows a letter or digit: a generic, or a comparison
	complete bool   // it ends, or goes on with an attribute
	mail     bool   // an @ after the name
}

// maxBefore bounds the signs between a bracket and the name of a tag.
const maxBefore = 64

func tagAt(s string, f []folded, i int) tag {
	t := tag{operand: i > 0 && isName(f[i-1].r) && f[i-1].r != '-' && f[i-1].r != ':'}
	n := i + 1
	for ; n < len(f) && n-i <= maxBefore && !isWord(f[n].r) && f[n].r != '<' && f[n].r != '>'; n++ {
		switch r := f[n].r; {
		case r == '|':
			t.pipe = t.pipe || n == i+1
		case r == '/' || r == '\\':
			t.closing = true
		case unicode.IsSpace(r):
			t.blank = true
		}
	}
	t.direct = n == i+1
	from := n
	for n < len(f) && isName(f[n].r) && (f[n].r != ':' || n+1 >= len(f) || f[n+1].r != ':') {
		n++
	}
	t.name = strings.TrimRight(word(f[from:n]), ":-_")
	if t.name == "" {
		return tag{}
	}
	t.source = s[f[from].at:f[n-1].end]
	t.mail = n < len(f) && f[n].r == '@'
	spaced := n
	for spaced < len(f) && unicode.IsSpace(f[spaced].r) {
		spaced++
	}
	end := spaced
	for end < len(f) && isName(f[end].r) {
		end++
	}
	switch {
	case spaced == len(f):
		t.complete = !t.blank
	case f[spaced].r == '/':
		t.complete = spaced+1 < len(f) && f[spaced+1].r == '>'
	default:
		t.complete = f[spaced].r == '>' || spaced > n && end > spaced && end < len(f) && f[end].r == '='
	}
	return t
}

// meant reports whether the tag may pass for one of a client or a model, or end what the
// text did not begin. opened counts the other tags that are open.
func (t tag) meant(opened map[string]int) bool {
	if t.name == "" {
		return false
	}
	words := strings.FieldsFunc(t.name, func(r rune) bool { return !isWord(r) })
	hard, soft := false, false
	for _, w := range words {
		hard = hard || strings.Contains(hardWords, " "+w+" ") || strings.HasPrefix(w, "memsvc")
		soft = soft || strings.Contains(softWords, " "+w+" ")
	}
	joined := strings.ContainsAny(t.name, "-:_")
	switch {
	case t.pipe && !t.blank:
		return true
	case t.closing && (hard || (soft || joined) && (!t.blank || t.complete)):
		return true
	case t.closing && t.complete:
		opened[t.name]--
		if opened[t.name] < 0 {
			opened[t.name] = 0
			return true
		}
		return false
	case t.closing || t.mail && !hard:
		return false
	case !hard && !soft && !joined:
		if t.complete {
			opened[t.name]++
		}
		return false
	case !t.direct:
		return t.complete
	case !t.operand:
		return true
	case hard:
		return true
	}
	// Directly after a letter: a generic or a comparison, unless it has the form of a tag.
	generic := soft && !joined && isType(t.source) || !soft && !strings.ContainsAny(t.name, "-:")
	return t.complete && !generic
}

// isType knows the spelling of a type's name, such as User.
func isType(s string) bool {
	for i, r := range s {
		if i == 0 && (r < 'A' || r > 'Z') || r > 'z' || !isWord(r) {
			return false
		}
	}
	return true
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

func isName(r rune) bool { return isWord(r) || r == '-' || r == ':' || r == '_' }

// hardWords are parts of the names of tags that are ours, of a client or of a model, and
// hardly anything else; softWords are so too, but types and placeholders have such names.
const (
	hardWords = " memsvc antml anthropic claude system sys assistant human developer reminder invoke inst im bos eos eot endoftext fim" +
		" pad unk turn thinking "
	softWords = " s user tool tools instruction instructions prompt parameter parameters result results function functions" +
		" message messages memory memories session context command commands document documents search env environment policy rules" +
		" model output start end think reasoning "
)
