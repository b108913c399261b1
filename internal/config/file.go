package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// maxFileBytes bounds a settings file; a larger one is not a settings file.
const maxFileBytes = 1 << 20

// loader returns what kong calls to read the file that the --config flag names.
func loader(sections map[string]any) kong.ConfigurationLoader {
	return func(r io.Reader) (kong.Resolver, error) { return readFile(r, sections) }
}

// fileResolver answers kong's question for a flag's value from a YAML mapping of
// flag names to values.
type fileResolver struct {
	values   map[string]any
	lines    map[string]int
	sections map[string]any
}

// readFile reads one YAML document whose top is a mapping. Doubled keys, further
// documents and unknown keys of sections are errors.
func readFile(r io.Reader, sections map[string]any) (*fileResolver, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("settings file: over %d bytes", maxFileBytes)
	}
	f := &fileResolver{values: map[string]any{}, lines: map[string]int{}, sections: sections}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return f, nil // an empty file sets nothing
	case err != nil:
		return nil, fmt.Errorf("settings file: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("settings file: more than one document; keep one")
	}
	top := doc.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return f, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("settings file: line %d: want a mapping of settings, like data-dir: /var/lib/memsvc", top.Line)
	}
	var problems []error
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if err := f.add(key, value); err != nil {
			problems = append(problems, fmt.Errorf("settings file: line %d: %w", key.Line, err))
		}
	}
	return f, errors.Join(problems...)
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

// decodeStrict decodes node into target and refuses unknown fields, which
// yaml.Node cannot do by itself.
func decodeStrict(node *yaml.Node, target any) error {
	text, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(target); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Validate refuses keys that are no flag of the program, or that only the command
// line may set.
func (f *fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, flag := range allFlags(app.Node) {
		known[flag.Name] = known[flag.Name] || !onlyCommandLine(flag)
	}
	var problems []error
	names := make([]string, 0, len(f.values))
	for name := range f.values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch settable, exists := known[name]; {
		case !exists:
			problems = append(problems, fmt.Errorf("settings file: line %d: unknown setting %q; settings are named like flags, see --help", f.lines[name], name))
		case !settable:
			problems = append(problems, fmt.Errorf("settings file: line %d: %q is decided each time, on the command line: --%s", f.lines[name], name, name))
		}
	}
	return errors.Join(problems...)
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
