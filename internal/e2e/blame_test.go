package e2e

import (
	"encoding/json"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestBlameOfARedaction: the marker came with the redaction that put it there, not with
// whoever wrote the text that is gone, also the second time and below a marker.
func TestBlameOfARedaction(t *testing.T) {
	h, ms := team(t, 1)
	a := ms[0]
	hist := historyOf(t, h)
	blame := func() (revisions []int64, principals []string) {
		t.Helper()
		out, code := run(t, "blame", "--json", "--state-dir", a.state, "project_x.md")
		var lines []struct {
			Revision  int64  `json:"revision"`
			Principal string `json:"principal"`
		}
		if err := json.Unmarshal([]byte(out), &lines); code != agent.ExitOK || err != nil {
			t.Fatalf("blame: exit %d, %v, %s", code, err, out)
		}
		for _, l := range lines {
			revisions, principals = append(revisions, l.Revision), append(principals, l.Principal)
		}
		return revisions, principals
	}
	redact := func() int64 {
		t.Helper()
		res, err := hist.c.Redact(t.Context(), project, "project_x.md", nil, "it leaked")
		must(t, err)
		a.has("project_x.md", memory.RedactionMarker)
		return int64(res.Revision)
	}
	const writer = "token:acme-pay-writer"
	a.write("project_x.md", note("x", "one"))
	inStep(t, a)
	a.write("project_x.md", note("x", "two"))
	inStep(t, a)
	at := redact()
	if revs, who := blame(); len(revs) != 1 || revs[0] != at || who[0] == writer {
		t.Errorf("the marker came with %v of %v, want %d of the admin", revs, who, at)
	}
	a.write("project_x.md", memory.RedactionMarker+"below\n")
	inStep(t, a)
	if revs, who := blame(); len(revs) != 2 || revs[0] != at || revs[1] <= at || who[1] != writer {
		t.Errorf("marker and line came with %v of %v", revs, who)
	}
	if again := redact(); again <= at {
		t.Errorf("the second redaction is revision %d", again)
	} else if revs, _ := blame(); len(revs) != 1 || revs[0] != again {
		t.Errorf("the second marker came with %v, want %d", revs, again)
	}
}
