package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/tailscale/hujson"
)

// document is a JSON file with whatever comments, commas and spaces it has.
type document struct {
	bom  bool
	nl   string // the line end that the file uses
	unit string // one step of indentation
	root hujson.Value
	was  *hujson.Value // what the file held before our part came into it; nil = not known
}

// remember takes the text from before our part came into the file.
func (d *document) remember(was []byte) {
	if was == nil {
		return
	}
	if old, err := parse(was); err == nil {
		d.was = &old.root
	}
}

// had reports whether something was at a path before our part came into the file.
func (d *document) had(path ...string) bool {
	v := d.was
	for _, key := range path {
		if v == nil {
			return false
		}
		v = child(v, key)
	}
	return v != nil
}

var position = regexp.MustCompile(`line (\d+), column (\d+)`)

// parse reads a document; an empty text is an empty object.
func parse(text []byte) (*document, error) {
	d := &document{nl: "\n", unit: "  "}
	text, d.bom = bytes.CutPrefix(text, []byte("\ufeff"))
	if bytes.Contains(text, []byte("\r\n")) {
		d.nl = "\r\n"
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + d.nl)
	}
	var err error
	if d.root, err = hujson.Parse(text); err != nil {
		// The parser's own message repeats what stands in the file, which may be a secret.
		if p := position.FindStringSubmatch(err.Error()); p != nil {
			return nil, fmt.Errorf("line %s, column %s: not valid JSON; correct it first", p[1], p[2])
		}
		return nil, errors.New("not valid JSON; correct it first")
	}
	o, ok := d.root.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("line 1: want an object")
	}
	if len(o.Members) > 0 {
		lead := string(o.Members[0].Name.BeforeExtra)
		if i := strings.LastIndexByte(lead, '\n'); i >= 0 && strings.Trim(lead[i+1:], " \t") == "" && lead[i+1:] != "" {
			d.unit = lead[i+1:]
		}
	}
	return d, nil
}

// pack returns the text.
func (d *document) pack() []byte {
	text := d.root.Pack()
	if d.bom {
		text = append([]byte("\ufeff"), text...)
	}
	return text
}

// child returns the value of a key; the last of several, as clients take it.
func child(v *hujson.Value, key string) *hujson.Value {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil
	}
	for i := len(o.Members) - 1; i >= 0; i-- {
		if name, ok := o.Members[i].Name.Value.(hujson.Literal); ok && name.String() == key {
			return &o.Members[i].Value
		}
	}
	return nil
}

// open returns the object or array at a path, made where it is missing; of gives it
// anew. Depth is how deep its items stand.
func (d *document) open(kind string, path ...string) (*hujson.Value, error) {
	v := &d.root
	for i, key := range path {
		next := child(v, key)
		if next == nil {
			var empty any = map[string]any{}
			if i == len(path)-1 && kind == "array" {
				empty = []any{}
			}
			d.add(v, i+1, key, empty)
			next = child(v, key)
		}
		v = next
		_, object := v.Value.(*hujson.Object)
		_, array := v.Value.(*hujson.Array)
		if want := i < len(path)-1 || kind == "object"; want && !object || !want && !array {
			return nil, fmt.Errorf("%s: want an %s", strings.Join(path[:i+1], "."), kind)
		}
	}
	return v, nil
}

// items gives objects and arrays one face: leads and tails are what stands before an
// item and after it.
type items struct {
	o *hujson.Object
	a *hujson.Array
}

func itemsOf(v *hujson.Value) items {
	o, _ := v.Value.(*hujson.Object)
	a, _ := v.Value.(*hujson.Array)
	return items{o, a}
}

func (l items) len() int {
	switch {
	case l.o != nil:
		return len(l.o.Members)
	case l.a != nil:
		return len(l.a.Elements)
	}
	return 0
}

func (l items) lead(i int) *hujson.Extra {
	if l.o != nil {
		return &l.o.Members[i].Name.BeforeExtra
	}
	return &l.a.Elements[i].BeforeExtra
}

func (l items) value(i int) *hujson.Value {
	if l.o != nil {
		return &l.o.Members[i].Value
	}
	return &l.a.Elements[i]
}

func (l items) end() *hujson.Extra {
	if l.o != nil {
		return &l.o.AfterExtra
	}
	return &l.a.AfterExtra
}

// add puts an item at the end of an object or array whose items stand at a depth; key
// is for objects. What is written looks like what is there.
func (d *document) add(v *hujson.Value, depth int, key string, value any) {
	l := itemsOf(v)
	n := l.len()
	before, after := cutComments(string(*l.end()))
	lead := before + d.nl + strings.Repeat(d.unit, depth)
	switch {
	case n == 0:
		if !strings.Contains(after, "\n") {
			after = d.nl + strings.Repeat(d.unit, depth-1)
		}
	case !strings.Contains(string(*l.lead(n - 1)), "\n") && before == "":
		lead = " " // all in one line
	}
	trailing := n > 0 && l.value(n-1).AfterExtra != nil
	item := d.value(value, depth)
	if lead == " " {
		item.Minimize()
	}
	if trailing {
		item.AfterExtra = hujson.Extra{}
	}
	*l.end() = hujson.Extra(after)
	if l.o != nil {
		item.BeforeExtra = hujson.Extra(" ")
		l.o.Members = append(l.o.Members, hujson.ObjectMember{Name: hujson.Value{BeforeExtra: hujson.Extra(lead), Value: hujson.String(key)}, Value: item})
		return
	}
	item.BeforeExtra = hujson.Extra(lead)
	l.a.Elements = append(l.a.Elements, item)
}

// remove takes an item away; comments before it stay.
func (d *document) remove(v *hujson.Value, i int) {
	l := itemsOf(v)
	comments, _ := cutComments(string(*l.lead(i)))
	if last := i == l.len()-1; last {
		*l.end() = hujson.Extra(comments + string(*l.end()))
		if i > 0 { // the last item says whether a comma stands at the end
			switch trailing := l.value(i).AfterExtra != nil; {
			case !trailing:
				l.value(i - 1).AfterExtra = nil
			case l.value(i-1).AfterExtra == nil:
				l.value(i - 1).AfterExtra = hujson.Extra{}
			}
		}
	} else {
		*l.lead(i + 1) = hujson.Extra(comments + string(*l.lead(i + 1)))
	}
	if l.o != nil {
		l.o.Members = append(l.o.Members[:i], l.o.Members[i+1:]...)
	} else {
		l.a.Elements = append(l.a.Elements[:i], l.a.Elements[i+1:]...)
	}
	if l.len() == 0 && strings.TrimSpace(string(*l.end())) == "" {
		*l.end() = nil
	}
}

// drop removes a key from the object at a path, and then the objects and arrays on the
// path that became empty by it, but those that were there before our part.
func (d *document) drop(path ...string) {
	v := &d.root
	for _, key := range path[:len(path)-1] {
		if v = child(v, key); v == nil {
			return
		}
	}
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return
	}
	for i := len(o.Members) - 1; i >= 0; i-- {
		if name, ok := o.Members[i].Name.Value.(hujson.Literal); ok && name.String() == path[len(path)-1] {
			d.remove(v, i)
		}
	}
	if len(path) > 1 && hollow(v) && !d.had(path[:len(path)-1]...) {
		d.drop(path[:len(path)-1]...)
	}
}

// hollow reports whether an object or array holds nothing, not even a comment.
func hollow(v *hujson.Value) bool {
	l := itemsOf(v)
	return (l.o != nil || l.a != nil) && l.len() == 0 && strings.TrimSpace(string(*l.end())) == ""
}

// value renders a value so that its inner lines stand below a depth.
func (d *document) value(value any, depth int) hujson.Value {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(strings.Repeat(d.unit, depth), d.unit)
	if err := enc.Encode(value); err != nil {
		panic(fmt.Sprintf("install: a value that is no JSON: %v", err)) // a defect of ours
	}
	v, err := hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(b.Bytes()), []byte("\n"), []byte(d.nl)))
	if err != nil {
		panic(fmt.Sprintf("install: a value that is no JSON: %v", err))
	}
	return v
}

// plain returns a value as strict JSON.
func plain(v *hujson.Value) []byte {
	c := v.Clone()
	c.Minimize()
	return c.Pack()
}

// same reports whether a value holds all that want does, and where it is an array the
// same elements; keys beside them do not matter.
func same(v *hujson.Value, want any) bool {
	text, err := json.Marshal(want)
	var have, wanted any
	if err != nil || json.Unmarshal(text, &wanted) != nil || json.Unmarshal(plain(v), &have) != nil {
		return false
	}
	return covers(have, wanted)
}

func covers(have, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	h, ok := have.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range w {
		if !covers(h[k], v) {
			return false
		}
	}
	return true
}

// cutComments splits what stands between two items after its last comment.
func cutComments(extra string) (comments, rest string) {
	comments = strings.TrimRight(extra, " \t\r\n")
	return comments, extra[len(comments):]
}
