package install

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/memsvc/memsvc/internal/clients/hooks"
)

// shape is how a client arranges the hooks of an event.
type shape int

const (
	grouped shape = iota // a list of groups, each with a matcher and a list of hooks
	flat                 // a list of hooks; the file has a version
)

// hookFile keeps our hooks in a JSON file, below "hooks".
func hookFile(path string, e Env, client string, sh shape, render func(hooks.Event) any) file {
	return file{path: path, empty: emptyJSON, edit: func(before []byte, remove bool, was []byte) ([]byte, error) {
		d, err := parse(before)
		if err != nil {
			return nil, err
		}
		d.remember(was)
		wanted := map[string]hooks.Event{}
		if !remove {
			for _, ev := range hooks.Events(client) {
				wanted[ev.Name] = ev
			}
		}
		if err := d.pruneHooks(sh, wanted, render); err != nil {
			return nil, err
		}
		if sh == flat && !remove && child(&d.root, "version") == nil {
			d.add(&d.root, 1, "version", 1)
		}
		for _, ev := range hooks.Events(client) {
			if _, missing := wanted[ev.Name]; !missing {
				continue
			}
			list, err := d.open("array", "hooks", ev.Name)
			if err != nil {
				return nil, err
			}
			item := render(ev)
			if sh == grouped {
				item = group{ev.Matcher, []any{item}}
			}
			d.add(list, 3, "", item)
		}
		return d.pack(), nil
	}}
}

// pruneHooks removes our hooks, but those that are as they should be: these are taken
// off wanted.
func (d *document) pruneHooks(sh shape, wanted map[string]hooks.Event, render func(hooks.Event) any) error {
	all := child(&d.root, "hooks")
	if all == nil {
		return nil
	}
	o, ok := all.Value.(*hujson.Object)
	if !ok {
		return errors.New("hooks: want an object")
	}
	touched := false
	for m := len(o.Members) - 1; m >= 0; m-- {
		name, _ := o.Members[m].Name.Value.(hujson.Literal)
		list := &o.Members[m].Value
		ev, want := wanted[name.String()]
		removed := false
		for i := itemsOf(list).len() - 1; i >= 0; i-- {
			item := itemsOf(list).value(i)
			inner := item
			if sh == grouped {
				if inner = child(item, "hooks"); inner == nil {
					continue
				}
			}
			keep := func(v *hujson.Value) bool {
				if !want || !same(v, render(ev)) || sh == grouped && !matches(item, ev.Matcher) {
					return false
				}
				want = false // a second one is one too many
				delete(wanted, ev.Name)
				return true
			}
			if sh == flat {
				if oursJSON(plain(item), "hook") && !keep(item) {
					d.remove(list, i)
					removed = true
				}
				continue
			}
			mine := false
			for j := itemsOf(inner).len() - 1; j >= 0; j-- {
				if v := itemsOf(inner).value(j); oursJSON(plain(v), "hook") && !keep(v) {
					d.remove(inner, j)
					mine, removed = true, true
				}
			}
			if mine && hollow(inner) {
				d.remove(list, i)
			}
		}
		touched = touched || removed
		if removed && hollow(list) && !d.had("hooks", name.String()) {
			if _, coming := wanted[name.String()]; !coming {
				d.remove(all, m)
			}
		}
	}
	if touched && len(wanted) == 0 && sh == flat && d.was != nil && !d.had("version") {
		d.drop("version") // it came with our hooks
	}
	if touched && len(wanted) == 0 && hollow(all) && !d.had("hooks") {
		d.drop("hooks")
	}
	return nil
}

// matches reports whether a group of hooks is about these tools and no others.
func matches(item *hujson.Value, matcher string) bool {
	if matcher == "" {
		return child(item, "matcher") == nil
	}
	return same(item, map[string]any{"matcher": matcher})
}

// serverFile keeps our tool server in a JSON file, at a path. What a person added to it,
// such as an environment, stays.
func serverFile(path string, e Env, at []string, entry any) file {
	return file{path: path, empty: emptyJSON, edit: func(before []byte, remove bool, was []byte) ([]byte, error) {
		d, err := parse(before)
		if err != nil {
			return nil, err
		}
		d.remember(was)
		have := &d.root
		for _, key := range at {
			if have = child(have, key); have == nil {
				break
			}
		}
		switch {
		case have == nil && remove:
			return before, nil
		case have == nil:
			parent, err := d.open("object", at[:len(at)-1]...)
			if err != nil {
				return nil, err
			}
			d.add(parent, len(at), at[len(at)-1], entry)
			return d.pack(), nil
		case !oursJSON(plain(have), "mcp"):
			if remove {
				return before, nil
			}
			return nil, fmt.Errorf("%s is another program's; rename that one first", strings.Join(at, "."))
		case remove:
			d.drop(at...)
			return d.pack(), nil
		case same(have, entry):
			return before, nil
		}
		fresh := d.value(entry, len(at))
		for _, m := range fresh.Value.(*hujson.Object).Members {
			key := m.Name.Value.(hujson.Literal).String()
			if old := child(have, key); old != nil {
				old.Value = m.Value.Value
			} else {
				d.add(have, len(at)+1, key, m.Value.Value)
			}
		}
		return d.pack(), nil
	}}
}

// tomlFile keeps our tool server in a TOML file.
func tomlFile(path string, e Env) file {
	return file{
		path:  path,
		empty: func(text []byte) bool { return len(bytes.TrimSpace(text)) == 0 },
		edit: func(before []byte, remove bool, _ []byte) ([]byte, error) {
			text, bom := bytes.CutPrefix(before, []byte("\ufeff"))
			after, err := editTOML(text, server, e.Command, e.Command.with("mcp"), remove)
			if bom && err == nil {
				after = append([]byte("\ufeff"), after...)
			}
			return after, err
		},
	}
}

// both is two parts of one file.
func both(a, b file) file {
	return file{path: a.path, empty: a.empty, edit: func(before []byte, remove bool, was []byte) ([]byte, error) {
		text, err := a.edit(before, remove, was)
		if err != nil {
			return nil, err
		}
		return b.edit(text, remove, was)
	}}
}

// emptyJSON reports whether a document holds nothing, or nothing but a version.
func emptyJSON(text []byte) bool {
	d, err := parse(text)
	if err != nil {
		return false
	}
	d.drop("version")
	return hollow(&d.root) && strings.TrimSpace(string(d.root.BeforeExtra)+string(d.root.AfterExtra)) == ""
}
