package install

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// program is what this program is called, whatever its path.
const program = "memsync-agent"

// Command is how clients start this program.
type Command struct {
	Exe  string   // absolute
	Args []string // flags for every subcommand, such as --state-dir
}

// with returns the arguments of a subcommand. It comes first: a command line that begins
// with "hook" never ends with a veto, whatever is wrong with its flags.
func (c Command) with(args ...string) []string { return append(slices.Clone(args), c.Args...) }

// shell returns a subcommand as one line for a shell.
func (c Command) shell(args ...string) string {
	words := append([]string{c.Exe}, c.with(args...)...)
	for i, w := range words {
		words[i] = quote(w)
	}
	return strings.Join(words, " ")
}

// quote makes a word safe for a shell: POSIX shells, and cmd for Windows paths.
func quote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:=@%+,", r)
	}
	switch {
	case w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0:
		return w
	case strings.Contains(w, `\`) && !strings.ContainsAny(w, "\"$`"):
		return `"` + w + `"`
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// words splits a shell's line at spaces outside quotes; it needs to understand no more
// than what quote makes.
func words(line string) (out []string) {
	var b strings.Builder
	var in rune
	open, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case in == 0 && r == '\\' && strings.Contains(line, `'\''`):
			escaped = true
		case in == 0 && (r == '\'' || r == '"'):
			in, open = r, true
		case r == in && in != 0:
			in = 0
		case in == 0 && (r == ' ' || r == '\t'):
			if open {
				out, open = append(out, b.String()), false
				b.Reset()
			}
		default:
			open = true
			b.WriteRune(r)
		}
	}
	if open {
		out = append(out, b.String())
	}
	return out
}

// ours reports whether a command is this program with a subcommand, wherever it lay when
// it was installed.
func ours(argv []string, subcommand string) bool {
	if len(argv) == 0 {
		return false
	}
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(strings.ReplaceAll(argv[0], `\`, "/"))), ".exe")
	return base == program && slices.Contains(argv[1:], subcommand)
}

// oursJSON is ours for an entry of a configuration: command a line or a list, with or
// without args.
func oursJSON(entry []byte, subcommand string) bool {
	var e struct {
		Command json.RawMessage `json:"command"`
		Args    []string        `json:"args"`
	}
	if json.Unmarshal(entry, &e) != nil {
		return false
	}
	var line string
	if json.Unmarshal(e.Command, &line) == nil {
		if e.Args != nil {
			return ours(append([]string{line}, e.Args...), subcommand)
		}
		return ours(words(line), subcommand)
	}
	var argv []string
	return json.Unmarshal(e.Command, &argv) == nil && ours(argv, subcommand)
}
