package config

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CommandOf returns the names of the commands that were chosen, "token create" say,
// without arguments; "" for none, or for an error that is not about the command line.
func CommandOf(ctx *kong.Context) string {
	if ctx == nil {
		return ""
	}
	var names []string
	for _, p := range ctx.Path {
		if p.Command != nil {
			names = append(names, p.Command.Name)
		}
	}
	return strings.Join(names, " ")
}

// HelpFor returns the command whose help explains what err says of the command line:
// the program's name, and as much of the command as was understood. "" if err is no
// mistake in the command line.
func HelpFor(program string, err error) string {
	var ctx *kong.Context
	var parse *kong.ParseError
	var empty *emptied
	switch {
	case errors.As(err, &parse):
		ctx = parse.Context
	case errors.As(err, &empty):
		ctx = empty.ctx
	default:
		return ""
	}
	return strings.TrimSpace(program+" "+CommandOf(ctx)) + " --help"
}

// Of a flag that kong refuses it tells the first only, and in one of these forms.
var (
	badValue    = regexp.MustCompile(`^--([a-z0-9-]+)[ :]`)
	unknownFlag = regexp.MustCompile(`^unknown flag --([a-z0-9-]+)`)
	noValue     = regexp.MustCompile(`^--([a-z0-9-]+): expected .* but got "EOL"`)
	likeAFlag   = regexp.MustCompile(`^--([a-z0-9-]+): expected .* but got "(.*)" \((?:short|long)? ?flag\)`)
)

// maxMistakes bounds how many mistakes of one command line are told.
const maxMistakes = 20

// mistakes is err, which kong returned for args, with all the others that it did not
// come to: further values that cannot be read, flags that nobody knows, and words that are
// none of those allowed.
func mistakes(k *kong.Kong, args []string, err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	told := []error{&mistake{plain(err), parse}}
	seen := map[string]bool{err.Error(): true}
	add := func(text, shown string) {
		if !seen[text] && len(told) < maxMistakes {
			seen[text] = true
			told = append(told, errors.New(shown))
		}
	}
	ctx := parse.Context
	for range maxMistakes {
		var next error
		if ctx, next = kong.Trace(k, args); next != nil || ctx.Error == nil {
			break
		}
		name := badValue.FindStringSubmatch(ctx.Error.Error())
		if name == nil {
			name = unknownFlag.FindStringSubmatch(ctx.Error.Error())
		}
		add(ctx.Error.Error(), plain(ctx.Error))
		rest, ok := withoutFlag(args, name)
		if !ok {
			break // what comes after cannot be told apart from its consequences
		}
		args = rest
	}
	if ctx == nil {
		return errors.Join(told...)
	}
	for _, flag := range ctx.Flags() {
		if flag.Enum == "" || !slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == flag }) {
			continue
		}
		if text := notOneOf(flag, ctx.FlagValue(flag)); text != "" {
			add(text, text)
		}
	}
	return errors.Join(told...)
}

// mistake is kong's error in our words; what it was is still to be found.
type mistake struct {
	text string
	was  *kong.ParseError
}

func (m *mistake) Error() string { return m.text }
func (m *mistake) Unwrap() error { return m.was }

// plain is err without advice that leads astray: a value that begins with a dash was
// meant as a value.
func plain(err error) string {
	if m := likeAFlag.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf("--%s: %q reads like another flag; give the value as --%s=VALUE", m[1], m[2], m[1])
	}
	if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Sprintf("--%s: the value is missing", m[1])
	}
	var file *fs.PathError
	if errors.As(err, &file) { // nothing but the settings file is read here
		return fmt.Sprintf("--config %s: %v", file.Path, file.Err)
	}
	return err.Error()
}

// withoutFlag takes the first use of the flag that name matched, and its value, out of
// args.
func withoutFlag(args, name []string) ([]string, bool) {
	if name == nil {
		return nil, false
	}
	flag := "--" + name[1]
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if arg != flag && !strings.HasPrefix(arg, flag+"=") {
			continue
		}
		end := i + 1
		if arg == flag && end < len(args) && !strings.HasPrefix(args[end], "--") {
			end++ // its value
		}
		return slices.Concat(args[:i], args[end:]), true
	}
	return nil, false // it came from the environment or the file
}

// notOneOf says in kong's words that a flag has none of its words, or "".
func notOneOf(flag *kong.Flag, value any) string {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if v.Kind() != reflect.String || slices.Contains(flag.EnumSlice(), v.String()) {
		return ""
	}
	var words []string
	for _, w := range flag.EnumSlice() {
		words = append(words, fmt.Sprintf("%q", w))
	}
	return fmt.Sprintf("%s must be one of %s but got %q", flag.ShortSummary(), strings.Join(words, ","), v.String())
}
