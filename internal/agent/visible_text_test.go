package agent

import (
	"bytes"
	"strings"
	"testing"
)

// A teammate's text of a conflict moves no cursor.
func TestConflictTextsArePrintedVisibly(t *testing.T) {
	var out bytes.Buffer
	c := &command{App: App{Stdout: &out}}
	var texts conflictTexts
	texts.ID, texts.Path, texts.HubRevision = "1", "x\x1b.md", 2
	texts.Ours, texts.Theirs = "a\x1b[2J\r\nb", "a\x1b]0;t\x07\u009b\nb\n"
	texts.print(c, "ours")
	if got := out.String(); strings.ContainsAny(got, "\x1b\x07\r\u009b") || !strings.Contains(got, "a·[2J\nb\n") {
		t.Errorf("printed: %q", got)
	}
}
