package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// UnmarshalStrict reads the one YAML document in text into target, a pointer. An unknown
// key is an error with its line and the key that was meant, as far as that can be
// guessed; so are a doubled key, a value of another kind and a second document. Each
// mistake is an error of its own in what is returned. An empty text sets nothing.
func UnmarshalStrict(text []byte, target any) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return plainYAML(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document; keep one")
	}
	return decodeStrict(&doc, target)
}

// decodeStrict decodes node into target and refuses unknown keys, which yaml.Node
// cannot do by itself.
func decodeStrict(node *yaml.Node, target any) error {
	return errors.Join(unknownKeys(node, reflect.TypeOf(target)), plainYAML(node.Decode(target)))
}

// plainYAML makes the library's errors one line each, without its own name.
func plainYAML(err error) error {
	var kinds *yaml.TypeError
	if !errors.As(err, &kinds) {
		if err == nil {
			return nil
		}
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var errs []error
	for _, text := range kinds.Errors {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// unknownKeys walks node beside the type that it is to be decoded into.
func unknownKeys(node *yaml.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if node.Kind == yaml.DocumentNode || node.Kind == yaml.AliasNode {
		if node.Kind == yaml.AliasNode {
			return nil // what it stands for is looked at where it is written
		}
		var errs []error
		for _, n := range node.Content {
			errs = append(errs, unknownKeys(n, t))
		}
		return errors.Join(errs...)
	}
	var errs []error
	switch {
	case readsItself(t):
	case node.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		for _, n := range node.Content {
			errs = append(errs, unknownKeys(n, t.Elem()))
		}
	case node.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		for i := 1; i < len(node.Content); i += 2 {
			errs = append(errs, unknownKeys(node.Content[i], t.Elem()))
		}
	case node.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		keys := keysOf(t)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			field, ok := keys[key.Value]
			switch {
			case ok:
				errs = append(errs, unknownKeys(value, field))
			case key.Tag != "!!merge":
				errs = append(errs, fmt.Errorf("line %d: unknown key %q%s", key.Line, key.Value, meant(key.Value, sortedKeys(keys))))
			}
		}
	}
	return errors.Join(errs...)
}

func readsItself(t reflect.Type) bool {
	_, byNode := reflect.New(t).Interface().(yaml.Unmarshaler)
	_, byFunc := reflect.New(t).Interface().(interface{ UnmarshalYAML(func(any) error) error })
	return byNode || byFunc
}

// keysOf returns the keys that the library takes for a struct, with their types.
func keysOf(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(rest, "inline") && f.Type.Kind() == reflect.Struct:
			for k, v := range keysOf(f.Type) {
				keys[k] = v
			}
		case !f.IsExported() || name == "-":
		case name == "":
			keys[strings.ToLower(f.Name)] = f.Type
		default:
			keys[name] = f.Type
		}
	}
	return keys
}

func sortedKeys(keys map[string]reflect.Type) []string {
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// meant says which of the known names is written almost like name, or else, of few, what
// there is.
func meant(name string, known []string) string {
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if len(known) > 0 && len(known) <= 12 {
		return "; known are " + strings.Join(known, ", ")
	}
	return ""
}

// nearest returns the first of the known names that differs least from name, and little
// enough for a slip; "" if none does.
func nearest(name string, known []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, k := range known {
		if d := slips(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// slips counts the letters to change, add, leave out, or swap with their neighbour to
// make one name the other.
func slips(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				change++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, change)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
