package extract

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The commands of a shell by what they do to the files that they name. A command that is
// none of these only reads, for all that is known: to hold it for a writer would lose what
// the person asked to be remembered, and what is written twice is found to be the same.
//
//nolint:gochecknoglobals // tables that never change
var (
	// writers change every file that they name.
	writers = wordSet(`tee touch truncate rm unlink shred mv ed ex vi vim nvim nano emacs`)
	// copiers change the last one.
	copiers = wordSet(`cp install ln rsync scp`)
	// interpreters do what their script says.
	interpreters = wordSet(`perl python python2 python3 node deno bun ruby php awk gawk mawk`)
	// shells run theirs.
	shells = wordSet(`sh bash zsh dash ksh ash fish`)
	// keywords stand before a command.
	keywords = wordSet(`if then else elif while until do ! { command exec builtin`)
	// wrappers run the command behind them and their options. Each lists those whose value
	// is a word of its own.
	wrappers = map[string]string{
		"sudo": "ugCpDRTh", "doas": "uC", "env": "uCS", "time": "fo", "nice": "n", "ionice": "cnp", "nohup": "", "setsid": "",
		"timeout": "ks", "stdbuf": "ioe", "xargs": "InPLdsEa",
	}
	// assigners set variables that are named behind them.
	assigners = wordSet(`export local declare typeset readonly`)
)

func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// shell reports whether a command of a shell changes a memory, as far as can be told from
// how it is written: what it only reads is no reason to take nothing from a conversation.
func (w *writes) shell(ctx context.Context, script, cwd string) bool {
	left := maxExpanded
	return w.shellIn(ctx, script, cwd, maxShells, &left)
}

// shellIn is shell for a shell that may start so many in one another, and in which variables
// may add so many bytes.
func (w *writes) shellIn(ctx context.Context, script, cwd string, shellsLeft int, left *int) bool {
	if shellsLeft == 0 {
		return false
	}
	script = script[:min(len(script), maxScript)]
	vars := variables{values: map[string]string{}, left: left}
	if home, err := os.UserHomeDir(); err == nil {
		vars.values["HOME"] = home
	}
	for _, c := range commandsOf(script) {
		if ctx.Err() != nil {
			return false
		}
		words := make([]string, 0, len(c.words))
		for _, word := range c.words {
			words = append(words, vars.expand(word))
		}
		for _, to := range c.to {
			if w.holds(absolute(cwd, vars.expand(to))) {
				return true
			}
		}
		words = vars.assign(words)
		if len(words) == 0 {
			continue
		}
		name, args := filepath.Base(words[0]), words[1:]
		switch {
		case name == "cd" || name == "pushd":
			if len(args) > 0 {
				cwd = absolute(cwd, args[len(args)-1])
			}
			if len(cwd) > maxName {
				cwd = "" // no directory
			}
		case name == "memsync-agent":
			if i := slices.Index(args, "memory"); i >= 0 && i+1 < len(args) && slices.Contains([]string{"add", "edit", "rm"}, args[i+1]) {
				return true
			}
		case shells[name] || name == "eval":
			if script := scriptOf(name, args) + "\n" + c.body; w.shellIn(ctx, script, cwd, shellsLeft-1, left) {
				return true
			}
		case w.changes(name, args, c.body, cwd):
			return true
		}
	}
	return false
}

// assign keeps what a command sets, and returns it without that, and without what only runs
// the command behind it.
func (v variables) assign(words []string) []string {
	set := func(word string) bool {
		name, value, ok := strings.Cut(word, "=")
		if ok && isName(name) {
			v.values[name] = value
		}
		return ok && isName(name)
	}
	for len(words) > 0 {
		options, wraps := wrappers[filepath.Base(words[0])]
		switch {
		case set(words[0]), keywords[words[0]]:
			words = words[1:]
		case assigners[words[0]]:
			for _, word := range words[1:] {
				set(word)
			}
			return nil
		case words[0] == "for" && len(words) > 3: // for x in a b c: the first for all
			set(words[1] + "=" + words[3])
			return nil
		case wraps:
			words = behind(words, options)
		default:
			return words
		}
	}
	return nil
}

// behind returns the command that a wrapper runs.
func behind(words []string, options string) []string {
	wrapper := filepath.Base(words[0])
	words = words[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		n := 1
		if option := words[0]; len(option) == 2 && strings.Contains(options, option[1:]) {
			n = 2
		}
		words = words[min(n, len(words)):]
	}
	if wrapper == "timeout" && len(words) > 0 {
		words = words[1:] // how long
	}
	return words
}

// scriptOf is what a shell is told to run; what a file holds is not known.
func scriptOf(name string, args []string) string {
	if name == "eval" {
		return strings.Join(args, " ")
	}
	for i, arg := range args[:max(len(args)-1, 0)] {
		if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c") {
			return args[i+1]
		}
	}
	return ""
}

// changes reports whether a command changes a memory.
func (w *writes) changes(name string, args []string, body, cwd string) bool {
	named := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return w.holds(absolute(cwd, n)) })
	}
	files := operands(args)
	into := ""
	if slices.Contains([]string{"cp", "mv", "install", "ln"}, name) {
		into = optionOf(args, "-t", "--target-directory")
	}
	switch {
	case writers[name], edits(name, args):
		return named(files...) || into != "" && named(into)
	case copiers[name] && into != "":
		return named(into)
	case name == "ln" && len(files) == 1:
		return named(filepath.Base(files[0]))
	case copiers[name]:
		return len(files) > 1 && named(files[len(files)-1])
	case name == "find":
		return w.finds(args, cwd)
	case interpreters[name]:
		text := strings.Join(args, "\n") + "\n" + body
		return writing(name, text) && (w.mentions(text) || w.holds(cwd) || named(files...))
	}
	switch to := ""; name {
	case "dd":
		for _, arg := range args {
			if of, ok := strings.CutPrefix(arg, "of="); ok {
				to = of
			}
		}
		return to != "" && named(to)
	case "sort", "curl", "pandoc", "jq":
		to = optionOf(args, "-o", "--output")
		return to != "" && named(to)
	case "wget":
		to = optionOf(args, "-O", "--output-document")
		return to != "" && named(to)
	case "patch":
		return named(files...) || w.mentions(body) || named(cmp.Or(optionOf(args, "-d", "--directory"), "."))
	case "tar":
		extracts := len(args) > 0 && (!strings.HasPrefix(args[0], "--") && strings.Contains(args[0], "x") || slices.Contains(args, "--extract"))
		return extracts && named(cmp.Or(optionOf(args, "-C", "--directory"), "."))
	case "unzip":
		return named(cmp.Or(optionOf(args, "-d"), "."))
	}
	return false
}

// edits reports whether a command is told to change the files it names in their places.
func edits(name string, args []string) bool {
	switch name {
	case "sed", "gsed":
		return slices.ContainsFunc(args, func(a string) bool { return shortFlag(a, 'i') || strings.HasPrefix(a, "--in-place") })
	case "perl", "ruby": // -Mstrict is a module, -Ilib a directory
		return slices.ContainsFunc(args, func(a string) bool {
			return shortFlag(a, 'i') && !strings.HasPrefix(a, "-M") && !strings.HasPrefix(a, "-I")
		})
	case "gawk":
		return slices.Contains(args, "inplace")
	}
	return false
}

// shortFlag reports whether an argument holds a flag of one letter, such as -ni.
func shortFlag(arg string, flag byte) bool {
	flags, ok := strings.CutPrefix(arg, "-")
	if i := strings.IndexByte(flags, flag); ok && i >= 0 {
		return strings.Trim(flags[:i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0") == ""
	}
	return false
}

// operands are the arguments that are no options.
func operands(args []string) (out []string) {
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(arg, "-") {
			out = append(out, arg)
		}
	}
	return out
}

// optionOf is the value of an option, "" where it is not given.
func optionOf(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			value, ok := strings.CutPrefix(arg, name)
			switch {
			case !ok:
			case value == "" && i+1 < len(args):
				return args[i+1]
			case strings.HasPrefix(name, "--") && strings.HasPrefix(value, "="):
				return value[1:]
			case !strings.HasPrefix(name, "--") && value != "":
				return value // -oFILE
			}
		}
	}
	return ""
}

// finds reports whether find deletes memories, or runs on them what changes them.
func (w *writes) finds(args []string, cwd string) bool {
	at := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") || a == "(" || a == "!" })
	if at < 0 {
		return false
	}
	roots := args[:at]
	if at == 0 {
		roots = []string{"."}
	}
	in := slices.IndexFunc(roots, func(r string) bool { return w.holds(absolute(cwd, r)) })
	if in < 0 {
		return false
	}
	for args = args[at:]; len(args) > 0; args = args[1:] {
		switch args[0] {
		case "-delete":
			return true
		case "-exec", "-execdir", "-ok", "-okdir":
			run := args[1:]
			if end := slices.IndexFunc(run, func(a string) bool { return a == ";" || a == "+" }); end >= 0 {
				run, args = run[:end], run[end:]
			} else {
				args = args[:1]
			}
			run = slices.Clone(run[:min(len(run), maxRun)])
			for i, a := range run {
				run[i] = strings.Replace(a, "{}", roots[in], 1)
			}
			if len(run) > 0 && filepath.Base(run[0]) != "find" && w.changes(filepath.Base(run[0]), run[1:], "", cwd) {
				return true
			}
		}
	}
	return false
}

// maxRun is how many words of what find runs are looked at, since each may stand for a name.
const maxRun = 16

// The signs by which a script writes files.
var (
	writeSigns = regexp.MustCompile(`(?i)write|unlink|rmtree|rename|remove|shutil|copyfile|appendfile|truncate|symlink|fileutils|file_put|\.touch\(` +
		`|[,=]\s*["'](?:[wax][bt+]{0,2}|r[bt]?\+[bt]?)["']` + // open(x, "w")
		`|["']\+?>`) // open(F, ">x")
	awkSigns = regexp.MustCompile(`>\s*"`)
)

// writing reports whether a script of an interpreter writes any file.
func writing(name, script string) bool {
	if strings.HasSuffix(name, "awk") {
		return awkSigns.MatchString(script)
	}
	return writeSigns.MatchString(strings.NewReplacer("stdout.write", "", "stderr.write", "").Replace(script))
}
