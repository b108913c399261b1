package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/memory"
)

func TestBlame(t *testing.T) {
	v := func(rev int, who, text string) version {
		return version{memory.Commit{Revision: memory.Revision(rev), Author: memory.Author{Principal: who}}, []byte(text)}
	}
	got := blame([]version{
		v(1, "laptop", "one\ntwo\nthree\n"),
		v(4, "desktop", "one\nTWO\nthree\n"),
		v(7, "laptop", "zero\none\nTWO\nthree"),
	})
	want := []blameLine{
		{Line: 1, Text: "zero", Revision: 7, Principal: "laptop"},
		{Line: 2, Text: "one", Revision: 1, Principal: "laptop"},
		{Line: 3, Text: "TWO", Revision: 4, Principal: "desktop"},
		{Line: 4, Text: "three", Revision: 7, Principal: "laptop"}, // its line break went
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got := blame(nil); got == nil || len(got) != 0 {
		t.Errorf("no history: %v", got)
	}
}
