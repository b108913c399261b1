package archive

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// spy notes what it was asked about.
type spy struct{ names, labels, settings []string }

func (s *spy) Name(text string) error {
	s.names = append(s.names, text)
	return nil
}

func (s *spy) Label(text string) string {
	s.labels = append(s.labels, text)
	return "clean"
}

func (s *spy) Setting(_, _ string, doc []byte) ([]byte, error) {
	s.settings = append(s.settings, string(doc))
	return []byte("clean"), nil
}

// fill puts a text of its own into every text below v and returns them.
func fill(t *testing.T, v reflect.Value, path string, out map[string]string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		text := "text-of-" + path
		v.SetString(text)
		out[path] = text
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), path, out)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("text-of-" + path))
			out[path] = "text-of-" + path
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), path, out)
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), path+"."+v.Type().Field(i).Name, out)
		}
	}
}

// TestEveryTextOfAnArchiveIsJudged fills every text of every kind of frame, and expects
// each to be asked about; contents of memories alone are not. What the judge replaces
// does not pass. A field that is new fails until somebody judges it.
func TestEveryTextOfAnArchiveIsJudged(t *testing.T) {
	kinds := reflect.TypeFor[frame]()
	for i := range kinds.NumField() {
		var fr frame
		texts := map[string]string{}
		fill(t, reflect.ValueOf(&fr).Elem().Field(i), kinds.Field(i).Name, texts)
		delete(texts, "Commit.Changes.Content")
		var j spy
		var got frame
		err := judged(&j, func(_ context.Context, fr frame) error { got = fr; return nil })(t.Context(), fr)
		if err != nil {
			t.Fatal(err)
		}
		asked := slices.Concat(j.names, j.labels, j.settings)
		for path, text := range texts {
			if !slices.Contains(asked, text) {
				t.Errorf("%s: nobody judges it", path)
			}
		}
		if len(asked) != len(texts) {
			t.Errorf("%s: %d texts judged, %d are there: %v", kinds.Field(i).Name, len(asked), len(texts), slices.Sorted(maps.Keys(texts)))
		}
		passed := map[string]string{}
		collect(reflect.ValueOf(got), "", passed)
		for path, text := range passed {
			if slices.Contains(j.labels, text) || slices.Contains(j.settings, text) {
				t.Errorf("%s: a label passed as it was: %q", path, text)
			}
		}
	}
}

// collect finds every text below v.
func collect(v reflect.Value, path string, out map[string]string) {
	switch v.Kind() {
	case reflect.String:
		out[path] = v.String()
	case reflect.Pointer:
		if !v.IsNil() {
			collect(v.Elem(), path, out)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			out[path] = string(v.Bytes())
			return
		}
		for i := range v.Len() {
			collect(v.Index(i), path, out)
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			collect(v.Field(i), path+"."+v.Type().Field(i).Name, out)
		}
	}
}

// TestJudgeRefuses stops at the first name that must not be stored, and leaves out the
// settings that the judge leaves out.
func TestJudgeRefuses(t *testing.T) {
	bad := errors.New("no")
	f := judged(strict{bad}, func(context.Context, frame) error { t.Error("passed"); return nil })
	for _, fr := range []frame{
		{Project: &projectFrame{Team: "bad"}}, {Project: &projectFrame{Spans: []store.Span{{Epoch: "bad"}}}}, {Token: &store.Token{ID: "bad"}},
		{Redact: &redactFrame{Fingerprints: []string{"bad"}}}, {Commit: &commitFrame{Changes: []changeFrame{{Path: memory.Path("bad")}}}},
		{Setting: &settingFrame{Name: "bad"}}, {Header: &header{Epoch: "bad"}},
	} {
		if err := f(t.Context(), fr); !errors.Is(err, bad) {
			t.Errorf("%+v: %v", fr, err)
		}
	}
	if err := f(t.Context(), frame{Setting: &settingFrame{Name: "left out"}}); err != nil {
		t.Error(err)
	}
}

type strict struct{ err error }

func (s strict) Name(text string) error {
	if strings.Contains(text, "bad") {
		return s.err
	}
	return nil
}
func (strict) Label(text string) string                       { return text }
func (strict) Setting(string, string, []byte) ([]byte, error) { return nil, nil }
