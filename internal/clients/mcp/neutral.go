package mcp

import (
	"bytes"
	"errors"
	"reflect"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
)

// neutralIn makes every text that a value holds neutral: a tool's answer goes into a
// context, and anybody of the team wrote what is in it. Slices are made anew, since
// others may hold them too.
func neutralIn(v reflect.Value) {
	if !v.CanSet() {
		return // not exported: it is in no answer
	}
	switch v.Kind() { //nolint:exhaustive // no answer holds another kind of text
	case reflect.String:
		v.SetString(inject.Neutral(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			neutralIn(v.Field(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		for i := range fresh.Len() {
			neutralIn(fresh.Index(i))
		}
		v.Set(fresh)
	}
}

// neutralError is an error in neutral words; what it is stays the same.
type neutralError struct{ error }

// Error returns the words.
func (e neutralError) Error() string { return inject.Neutral(e.error.Error()) }

// Unwrap returns the error itself.
func (e neutralError) Unwrap() error { return e.error }

// asWritten gives the lines of a text that were shown in neutral form the words back that
// they have in was, so that an edit changes no line which the model left as it was.
func asWritten(was, text string) string {
	original := map[string]string{}
	shownAs(original, was)
	for at := 0; len(was) > maxPageBytes; { // it was shown in parts, each for itself
		part, next, err := page([]byte(was), at, maxPageBytes)
		if err != nil {
			break
		}
		shownAs(original, string(part))
		if at = next; at == 0 {
			break
		}
	}
	if len(original) == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if o, ok := original[l]; ok {
			lines[i] = o
		}
	}
	return strings.Join(lines, "\n")
}

// shownAs notes for the lines of a text what stands in them, by their neutral form.
func shownAs(original map[string]string, was string) {
	shown := inject.Neutral(was)
	if shown == was {
		return
	}
	from, to := strings.Split(shown, "\n"), strings.Split(was, "\n")
	if len(from) != len(to) {
		return // it holds other line ends
	}
	for i, l := range from {
		original[l] = to[i]
	}
}

var errShownNeutral = errors.New("old: that part was shown with harmless signs in the place of some; give whole lines of it, or the whole text with etag")

// partOf returns what of a memory an edit means by old: the part itself, or, as it was
// shown, its neutral form.
func partOf(content []byte, old string) (string, error) {
	for _, o := range []string{old, strings.ReplaceAll(old, "\n", "\r\n"), asWritten(string(content), old)} {
		if bytes.Contains(content, []byte(o)) {
			return o, nil
		}
	}
	if strings.Contains(inject.Neutral(string(content)), old) {
		return "", errShownNeutral
	}
	return "", errors.New("old: the text does not hold it; read the memory again")
}
