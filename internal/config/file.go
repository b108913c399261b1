package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a settings file; a larger one is not a settings file.
const maxFileBytes = 1 << 20

// loader returns what kong calls to read the file that the --config flag names.
func loader(sections map[string]any) kong.ConfigurationLoader {
	return func(r io.Reader) (kong.Resolver, error) {
		where := "settings file"
		if f, ok := r.(interface{ Name() string }); ok {
			where += " " + f.Name()
		}
		return readFile(r, where, sections)
	}
}

// ReadSections reads the given sections of a settings file anew, as Parse does with
// Options.Sections. What else the file holds is not looked at; a section that it lacks
// leaves its target as it is.
func ReadSections(name string, sections map[string]any) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("settings file: %w", err) // it names the file
	}
	defer func() { _ = f.Close() }() // only read
	_, err = readFile(f, "settings file "+name, sections)
	return err
}

// fileResolver answers kong's question for a flag's value from a YAML mapping of
// flag names to values.
type fileResolver struct {
	where    string // what errors call the file
	values   map[string]any
	lines    map[string]int
	sections map[string]any
	problems []error // found while reading; told with those that only the grammar shows
}

// readFile reads one YAML document whose top is a mapping. Doubled keys, further
// documents and unknown keys of sections are errors, which call the file where.
func readFile(r io.Reader, where string, sections map[string]any) (*fileResolver, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: over %d bytes", where, maxFileBytes)
	}
	f := &fileResolver{where: where, values: map[string]any{}, lines: map[string]int{}, sections: sections}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f, nil // an empty file sets nothing
	case err != nil:
		return nil, fmt.Errorf("%s: %w", where, plainYAML(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document; keep one", where)
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return f, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: line %d: want a mapping of settings, like log-level: info", where, top.Line)
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if err := f.add(key, value); err != nil {
			f.problems = append(f.problems, at(where, key.Line, err))
		}
	}
	return f, nil
}

// at says where the mistakes in err are, each in a line of its own. Those of a section
// know their lines.
func at(where string, line int, err error) error {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		var errs []error
		for _, one := range many.Unwrap() {
			errs = append(errs, at(where, line, one))
		}
		return errors.Join(errs...)
	}
	if strings.HasPrefix(err.Error(), "line ") {
		return fmt.Errorf("%s: %w", where, err)
	}
	return fmt.Errorf("%s: line %d: %w", where, line, err)
}

func (f *fileResolver) add(key, value *yaml.Node) error {
	if _, dup := f.lines[key.Value]; dup {
		return fmt.Errorf("%q stands there twice; keep one", key.Value)
	}
	f.lines[key.Value] = key.Line
	if target, ok := f.sections[key.Value]; ok {
		return decodeStrict(value, target)
	}
	var v any
	if err := value.Decode(&v); err != nil {
		return fmt.Errorf("%q: %w", key.Value, err)
	}
	if _, nested := v.(map[string]any); nested {
		return fmt.Errorf("%q: settings are flat; write the flag's name and one value", key.Value)
	}
	f.values[key.Value] = v
	return nil
}

// Validate refuses keys that are no flag of the program, or that only the command
// line may set, and tells what was wrong with the rest of the file.
func (f *fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, flag := range allFlags(app.Node) {
		known[flag.Name] = known[flag.Name] || !onlyCommandLine(flag)
	}
	problems := slices.Clone(f.problems)
	names := make([]string, 0, len(f.values))
	for name := range f.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch settable, exists := known[name]; {
		case !exists:
			problems = append(problems, fmt.Errorf("%s: line %d: unknown setting %q%s", f.where, f.lines[name], name, likeFlag(name, known)))
		case !settable:
			problems = append(problems, fmt.Errorf("%s: line %d: %q is decided each time, on the command line: --%s", f.where, f.lines[name], name, name))
		}
	}
	return errors.Join(problems...)
}

// likeFlag says which flag was meant, or how settings are named.
func likeFlag(name string, known map[string]bool) string {
	flag := nearest(strings.ReplaceAll(name, "_", "-"), slices.Sorted(maps.Keys(known)))
	if flag != "" {
		return fmt.Sprintf("; did you mean %q?", flag)
	}
	return "; settings are named like flags, see --help"
}

// Resolve returns the file's value for the flag, unless the environment has one:
// kong lets resolvers win over variables, and here the file is the weaker.
func (f *fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	v, ok := f.values[flag.Name]
	if !ok || onlyCommandLine(flag) || fromEnvironment(flag) {
		return nil, nil
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		// kong splits lists at commas itself.
		parts := make([]any, len(v))
		copy(parts, v)
		return parts, nil
	case string, bool:
		return v, nil
	default:
		return fmt.Sprint(v), nil
	}
}
