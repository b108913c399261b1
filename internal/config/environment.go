package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// EmptyTag marks a flag that may be given without a value, because nothing is a value:
// `empty:""` in the grammar. Of every other flag an empty text is a variable of a shell
// that was not set, and what was meant is not known.
const EmptyTag = "empty"

// serviceLink matches what follows the prefix in the names that Kubernetes gives every
// container for a service of the program's name (MEMSVC_SERVICE_HOST), or one that begins
// with it, and container links before it. Of those that end with PORT the value decides.
var (
	serviceLink = regexp.MustCompile(`(^|_)(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)
	linkPort    = regexp.MustCompile(`(^|_)PORT$`)
	linkValue   = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// unread returns a line for each variable of the prefix that is set and that nothing reads,
// sorted by name, without its value.
func unread(app *kong.Application, opts Options, environ []string) []string {
	prefix := opts.EnvPrefix + "_"
	known, decided := map[string]bool{}, map[string]string{}
	for _, name := range opts.OtherVariables {
		known[name] = true
	}
	for _, flag := range allFlags(app.Node) {
		for _, name := range flag.Envs {
			known[name] = true
		}
		if onlyCommandLine(flag) {
			decided[prefix+strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))] = flag.Name
		}
	}
	names := slices.Sorted(maps.Keys(known))
	var lines []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		rest, ours := strings.CutPrefix(name, prefix)
		switch {
		case !ours, known[name], serviceLink.MatchString(rest), linkPort.MatchString(rest) && linkValue.MatchString(value):
		case strings.HasPrefix(rest, "TEST_"): // of the project's own tests
		case decided[name] != "" && value == "": // it decides nothing either way
		case decided[name] != "":
			lines = append(lines, fmt.Sprintf("the variable %s is set and does nothing: --%s is decided each time, on the command line", name, decided[name]))
		default:
			lines = append(lines, fmt.Sprintf("the variable %s is set and nothing reads it%s", name, likeVariable(name, prefix, names)))
		}
	}
	slices.Sort(lines)
	return lines
}

// likeVariable says which variable was meant.
func likeVariable(name, prefix string, known []string) string {
	rests := make([]string, len(known)) // the prefix is alike in all, and says nothing
	for i, k := range known {
		rests[i] = strings.TrimPrefix(k, prefix)
	}
	if best := nearest(strings.TrimPrefix(name, prefix), rests); best != "" {
		return "; did you mean " + prefix + best + "?"
	}
	return "; variables are named like flags, see --help"
}

// empties finds the flags of the command that were given without a value where that can
// only be a mistake, and says where each was: on the command line, in the environment or
// in the file.
func empties(ctx *kong.Context) error {
	onLine := map[*kong.Flag]bool{}
	fromFile := map[*kong.Flag]bool{}
	for _, p := range ctx.Path {
		if p.Flag != nil {
			onLine[p.Flag] = onLine[p.Flag] || !p.Resolved
			fromFile[p.Flag] = fromFile[p.Flag] || p.Resolved
		}
	}
	var errs []error
	for _, flag := range ctx.Flags() {
		if flag.Tag.Has(EmptyTag) {
			continue
		}
		switch text, isText := ctx.FlagValue(flag).(string); {
		case onLine[flag]:
			if isText && text == "" {
				errs = append(errs, fmt.Errorf("--%s is given without a value; give it one, or leave it out", flag.Name))
			}
		case fromEnvironment(flag):
			for _, name := range flag.Envs {
				if v, ok := os.LookupEnv(name); ok && v == "" {
					errs = append(errs, fmt.Errorf("the variable %s is set but empty; give it a value, or unset it", name))
				}
			}
		case fromFile[flag] && isText && text == "":
			errs = append(errs, fmt.Errorf("settings file: %q is empty; give it a value, or leave it out", flag.Name))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return &emptied{errors.Join(errs...), ctx}
}

// emptied is about flags of a command line that was understood.
type emptied struct {
	error
	ctx *kong.Context
}

func (e *emptied) Unwrap() error { return e.error }
