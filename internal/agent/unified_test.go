package agent

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDiffLinesRebuildsBothTexts checks the law of a diff on random texts.
func TestDiffLinesRebuildsBothTexts(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "last"})
	text := rapid.Custom(func(t *rapid.T) []byte { return []byte(strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "lines"), "")) })
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var gotA, gotB []byte
		for _, op := range diffLines(splitLines(a), splitLines(b)) {
			if op.kind != '+' {
				gotA = append(gotA, op.text...)
			}
			if op.kind != '-' {
				gotB = append(gotB, op.text...)
			}
		}
		if !bytes.Equal(gotA, a) || !bytes.Equal(gotB, b) {
			t.Fatalf("%q and %q came back as %q and %q", a, b, gotA, gotB)
		}
	})
}

func TestUnified(t *testing.T) {
	for _, tc := range []struct {
		name, old, new   string
		hasOld, hasNew   bool
		wantHead, wantIn string
	}{
		{"change", "1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n", true, true, "--- x.md (hub)\n+++ x.md (here)\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"new", "", "a\nb", false, true, "--- /dev/null\n+++ x.md (here)\n", "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"},
		{"gone", "a\n", "", true, false, "--- x.md (hub)\n+++ /dev/null\n", "@@ -1,1 +0,0 @@\n-a\n"},
		{"two hunks", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ntwelve\n", true, true, "", "@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+twelve\n"},
	} {
		var out strings.Builder
		unified(&out, "x.md", "hub", "here", []byte(tc.old), []byte(tc.new), tc.hasOld, tc.hasNew)
		if !strings.HasPrefix(out.String(), tc.wantHead) || !strings.HasSuffix(out.String(), tc.wantIn) {
			t.Errorf("%s:\n%s", tc.name, out.String())
		}
	}
}
