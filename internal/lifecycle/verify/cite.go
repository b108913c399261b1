// Package verify checks what memories cite against the repository that they are about
// (SPEC 6.7): paths, commands and symbols that are no longer there. A false alarm does
// more harm than a missed one, so only what stands in code quotes and is plainly about
// this repository is judged. It reads the disk, and runs nothing.
package verify

import (
	"path"
	"regexp"
	"strings"
)

// Kind says what a citation is.
type Kind string

// The kinds of citations.
const (
	Path    Kind = "path"    // of a file or directory, from the repository's root
	Command Kind = "command" // of make, or a script of package.json
	Symbol  Kind = "symbol"  // a name in code
)

// Citation is what a memory cites.
type Citation struct {
	Kind Kind
	Text string // as it would be looked for: no line numbers, no arguments
	Line int    // of the memory, from 1
	// near are the paths cited on the same line: they tell whose code a symbol is.
	near []string
}

// MaxCitations bounds what is read out of one memory.
const MaxCitations = 100

// Citations returns what a memory cites in code quotes, each once. Fenced blocks are
// examples, and cite nothing.
func Citations(text []byte) []Citation {
	var out []Citation
	seen := map[sameAs]bool{}
	fenced := false
	number := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		var own []Citation
		var near []string
		for _, span := range quoted(line) {
			if c, ok := cite(span); ok {
				c.Line = number
				own = append(own, c)
				if c.Kind == Path {
					near = append(near, c.Text)
				}
			}
		}
		for _, c := range own {
			c.near = near
			if key := (sameAs{c.Kind, c.Text}); !seen[key] && len(out) < MaxCitations {
				seen[key] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// sameAs is what makes a citation the same as another.
type sameAs struct {
	kind Kind
	text string
}

// quoted returns what stands between backticks on a line.
func quoted(line string) []string {
	var out []string
	for {
		_, rest, ok := strings.Cut(line, "`")
		if !ok {
			return out
		}
		ticks := 1 + len(rest) - len(strings.TrimLeft(rest, "`"))
		rest = rest[ticks-1:]
		span, after, ok := strings.Cut(rest, strings.Repeat("`", ticks))
		if !ok {
			return out
		}
		out = append(out, strings.TrimSpace(span))
		line = after
	}
}

// cite tells what a quoted text cites, if anything.
func cite(span string) (Citation, bool) {
	words := strings.Fields(span)
	switch {
	case len(words) == 0 || len(span) > 200:
		return Citation{}, false
	case len(words) > 1:
		if c, ok := command(words); ok {
			return c, true
		}
		if !strings.HasPrefix(words[0], "./") {
			return Citation{}, false // words, or somebody else's program
		}
		span = words[0]
	}
	if p, ok := cleanPath(span); ok {
		return Citation{Kind: Path, Text: p}, true
	}
	if name, ok := symbol(span); ok {
		return Citation{Kind: Symbol, Text: name}, true
	}
	return Citation{}, false
}

// target is a name of a make target or script that needs no quoting.
var target = regexp.MustCompile(`^[a-z][A-Za-z0-9_.:-]*$`)

// command knows make and the runners of package.json's scripts, with one target. What
// has flags may be about another directory.
func command(words []string) (Citation, bool) {
	switch words[0] {
	case "make":
		if len(words) < 2 || !target.MatchString(words[1]) {
			return Citation{}, false
		}
		return Citation{Kind: Command, Text: "make " + words[1]}, true
	case "npm", "pnpm", "yarn", "bun":
		if len(words) < 3 || words[1] != "run" || !target.MatchString(words[2]) {
			return Citation{}, false
		}
		return Citation{Kind: Command, Text: words[0] + " run " + words[2]}, true
	}
	return Citation{}, false
}

var lineNumber = regexp.MustCompile(`(:\d+([-:,]\d+)*|#L\d+(-L?\d+)?)$`)

// placeholder is a part of a path that stands for another.
var placeholder = regexp.MustCompile(`^(?:[A-Z][A-Z_0-9-]*|foo|bar|baz|x|y|xxx|example|path)$`)

// cleanPath returns a path as it would be looked for below the root.
func cleanPath(s string) (string, bool) {
	s = lineNumber.ReplaceAllString(s, "")
	s = strings.TrimPrefix(s, "./")
	s = strings.TrimRight(s, ".,;:")
	if !strings.Contains(s, "/") || strings.ContainsAny(s, "*?[]{}()<>$~|\"'=,;!%\\@:+#&^ ") || strings.Contains(s, "..") || strings.Contains(s, "…") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "-") {
		return "", false
	}
	dir := strings.HasSuffix(s, "/")
	s = strings.TrimRight(s, "/")
	segments := strings.Split(s, "/")
	for _, seg := range segments {
		if seg == "" || seg == "." || placeholder.MatchString(seg) && !in(upperFiles, seg) {
			return "", false
		}
		if in(artefacts, seg) {
			return "", false
		}
	}
	switch ext := strings.TrimPrefix(path.Ext(s), "."); {
	case dir:
		return s, true
	case in(sourceExtensions, ext) && len(segments) > 1:
		return s, true
	case ext == "" && len(segments) > 2:
		return s, true
	}
	return "", false
}

// upperFiles are names in capitals that are files, not placeholders.
const upperFiles = " LICENSE README NOTICE CODEOWNERS OWNERS VERSION BUILD WORKSPACE "

// artefacts are directories whose files come and go with builds.
const artefacts = " dist build out target obj node_modules coverage tmp temp cache .cache .venv venv __pycache__ logs .next .git "

// sourceExtensions are those of files that people keep in repositories.
const sourceExtensions = " go mod py pyi js ts tsx jsx mjs cjs rs java kt c h cc cpp hpp cs rb php swift scala sh bash ps1 sql proto md mdx txt rst json yaml yml toml ini cfg conf xml html css scss less vue svelte tf hcl gradle dart lua ex exs erl hs clj r jl ipynb csv tmpl tpl txtar golden graphql "

// in reports whether a list holds a word.
func in(list, word string) bool { return word != "" && strings.Contains(list, " "+word+" ") }

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z_][A-Za-z0-9_]*)*(\(\))?$`)

// symbol returns the last part of a name in code. Plain words are no names, and names in
// capitals are mostly of the environment, which no repository defines.
func symbol(s string) (string, bool) {
	m := identifier.FindStringSubmatch(s)
	if m == nil || in(sourceExtensions, strings.TrimPrefix(path.Ext(s), ".")) {
		return "", false
	}
	called := m[1] != ""
	s = strings.TrimSuffix(s, "()")
	name := s[strings.LastIndexAny(s, ".:")+1:]
	mixed := strings.IndexFunc(name, isLower) >= 0 && (strings.Contains(strings.Trim(name, "_"), "_") || strings.IndexFunc(name[1:], isUpper) >= 0)
	if len(name) < 4 || strings.IndexFunc(name, isLower) < 0 || !called && !mixed {
		return "", false
	}
	return name, true
}

func isLower(r rune) bool { return 'a' <= r && r <= 'z' }
func isUpper(r rune) bool { return 'A' <= r && r <= 'Z' }
