// Package secretscantest is the guard's corpus for tests: Markdown texts with a planted secret in many forms, and
// harmless texts that look alike. Every value is made up from a seed when the corpus is read; the repository holds only
// templates, so that it sets off nobody's scanner and can be reviewed.
//
// In the corpus files an item begins with "%% id path"; "{{kind}}" is a made-up value, "{{form form|text <kind>}}" a
// text written in the named forms, innermost first. Each file is a set; see Set.
package secretscantest

import (
	"embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strings"
)

//go:embed corpus/*.txt
var files embed.FS

// Set says what an item's measure is worth: how much of it was known while rules were written. Only the first look at a
// set tells how often a new form passes; docs/guard.md has these figures, for they cannot be measured again.
type Set string

const (
	// AtHand items (files "_a") were looked at while rules were tuned.
	AtHand Set = "at hand"
	// KeptBack items (files "_b") were written with the first rules, and kept back until these were done.
	KeptBack Set = "kept back"
	// HeldOut items (files "_c") were written before the rules of version 4, and looked at only after those stood.
	HeldOut Set = "held out"
	// HeldOutToo items (files "_d") were written when what HeldOut had shown was still to be mended, and measured after.
	HeldOutToo Set = "held out, too"
	// FromLife items (files "_e") have the forms met in public repositories, with passwords as people make them up.
	FromLife Set = "from life"
	// LastLook items (files "_f") were written when all the others were found. What they show that has no name of a
	// password beside it is left as it is.
	LastLook Set = "last look"
	// Fresh items (files "_g") are every other one of 60 secrets and 120 harmless texts written as a team's notes, in
	// English and Chinese, without a look at the rules. They were measured first and looked at then.
	Fresh Set = "fresh"
	// FreshHeldOut items (files "_h") are the others. They were measured again when the rules were mended on Fresh, and
	// looked at only then.
	FreshHeldOut Set = "fresh, held out"
)

// Sets lists the sets in the order of the corpus.
func Sets() []Set {
	return []Set{AtHand, KeptBack, HeldOut, HeldOutToo, FromLife, LastLook, Fresh, FreshHeldOut}
}

// file is the last letter of the names of a set's files.
func (s Set) file() string {
	switch s {
	case AtHand:
		return "a"
	case KeptBack:
		return "b"
	case HeldOut:
		return "c"
	case HeldOutToo:
		return "d"
	case FromLife:
		return "e"
	case LastLook:
		return "f"
	case Fresh:
		return "g"
	}
	return "h"
}

// Planted is a text with one secret.
type Planted struct {
	// ID names the item in the corpus.
	ID string
	// Path is the memory's path; in some items it holds the secret.
	Path string
	// Content is the Markdown text.
	Content string
	// Secret is the plain value, which must appear in no output of any process. For a private key it is one line of it.
	Secret string
	// Written is the secret as it stands in Content or Path: encoded, cut, or with characters between.
	Written string
	// Line is the 1-based line where Written begins; 0 means it is in Path.
	Line int
	// Set is the part of the corpus that the item belongs to; empty for items of the Matrix.
	Set Set
}

// Text is a harmless text.
type Text struct {
	// ID names the item in the corpus.
	ID string
	// Path is the memory's path.
	Path string
	// Content is the Markdown text.
	Content string
	// Set is the part of the corpus that the item belongs to.
	Set Set
}

// Secrets returns the planted secrets, always the same, in the order of the files. It panics if the corpus is malformed.
func Secrets() []Planted {
	var out []Planted
	for _, set := range Sets() {
		for _, it := range items("secrets_" + set.file()) {
			p := Planted{ID: it.id, Set: set}
			g := newGenerator(it.id)
			p.Path = g.expand(it.path)
			inPath := g.secret != ""
			p.Content = g.expand(it.body)
			if g.secret == "" {
				panic("secretscantest: " + it.id + " plants nothing")
			}
			p.Secret, p.Written = g.secret, g.written
			if !inPath {
				p.Line = 1 + strings.Count(p.Content[:g.at], "\n")
			}
			out = append(out, p)
		}
	}
	return out
}

// Harmless returns the harmless texts, always the same, in the order of the files. It panics if the corpus is malformed.
func Harmless() []Text {
	var out []Text
	for _, set := range Sets() {
		for _, it := range items("harmless_" + set.file()) {
			out = append(out, Text{ID: it.id, Path: "reference_x.md", Content: newGenerator(it.id).expand(it.body), Set: set})
		}
	}
	return out
}

type item struct{ id, path, body string }

func items(name string) []item {
	b, err := files.ReadFile("corpus/" + name + ".txt")
	if err != nil {
		panic(fmt.Sprintf("secretscantest: %v", err))
	}
	var out []item
	for _, part := range strings.Split("\n"+string(b), "\n%% ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		id, path, _ := strings.Cut(head, " ")
		out = append(out, item{id, path, strings.TrimSuffix(body, "\n") + "\n"})
	}
	return out
}

// generator expands templates of one item. Its first made-up value is the item's secret.
type generator struct {
	rand    *rand.Rand
	secret  string
	written string
	at      int // where written begins in the text expanded last
}

func newGenerator(id string) *generator {
	h := fnv.New64a()
	h.Write([]byte(id))
	return &generator{rand: rand.New(rand.NewPCG(h.Sum64(), 2024))}
}

var (
	marker = regexp.MustCompile(`\{\{([a-z0-9_ ]*)(?:\|(.*?\}?))?\}\}`)
	kind   = regexp.MustCompile(`<([a-z0-9_]+)>`)
)

func (g *generator) expand(text string) string {
	var out strings.Builder
	last := 0
	for _, m := range marker.FindAllStringSubmatchIndex(text, -1) {
		words := strings.Fields(text[m[2]:m[3]])
		if len(words) == 0 || text[m[2]] == ' ' {
			continue
		}
		out.WriteString(text[last:m[0]])
		last = m[1]
		had := g.secret != ""
		var value string
		if m[4] < 0 {
			value = g.value(words[0])
		} else {
			value = kind.ReplaceAllStringFunc(text[m[4]:m[5]], func(k string) string {
				if !known(k[1 : len(k)-1]) {
					return k
				}
				return g.value(k[1 : len(k)-1])
			})
			for _, form := range words {
				value = g.form(form, value)
			}
		}
		if !had && g.secret != "" {
			g.written, g.at = value, out.Len()
		}
		out.WriteString(value)
	}
	out.WriteString(text[last:])
	return out.String()
}
