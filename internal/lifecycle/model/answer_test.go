package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		answer, brackets string
		want             []string
	}{
		{"", "[", nil},
		{"no list", "[{", nil},
		{`Here [1]: {"a":[2]} and [`, "[", []string{"[1]", "[2]"}},
		{`Here [1]: {"a":[2]} and [`, "{", []string{`{"a":[2]}`}},
		{`Here [1]: {"a":[2]} and [`, "[{", []string{"[1]", `{"a":[2]}`, "[2]"}},
		{"```json\n[\"日\"]\n```", "[", []string{`["日"]`}},
		{`[broken, ["a"]]`, "[", []string{`["a"]`}},
	} {
		var got []string
		for v := range Values(c.answer, c.brackets) {
			got = append(got, string(v))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.answer, diff)
		}
	}
	first := slices.Collect(func(yield func(json.RawMessage) bool) {
		for v := range Values("[1][2]", "[") {
			yield(v)
			break
		}
	})
	if len(first) != 1 {
		t.Errorf("%s", first)
	}
}

// TestValuesLooksAtAnAnswerAFewTimes: whatever an answer is made of, four times of it are
// four times the work.
func TestValuesLooksAtAnAnswerAFewTimes(t *testing.T) {
	for _, piece := range []string{"[", "[1,", `["`, `{"a":`, `[{"a":[`, "[]", "x[", "{["} {
		for _, end := range []string{"", strings.Repeat("]", 4000)} {
			work := func(n int) int {
				text := strings.Repeat(piece, n/len(piece)) + end
				looked := values(text, "[{", func(json.RawMessage) bool { return true })
				if looked > (valuesFactor+1)*len(text)+2*valuesExtra {
					t.Errorf("%q: %d bytes are looked at for %d", piece, looked, len(text))
				}
				return looked
			}
			if small, large := work(128<<10), work(512<<10); large > 5*small {
				t.Errorf("%q: four times of it are %d times the work", piece, large/small)
			}
		}
	}
}
