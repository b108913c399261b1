package hub_test

import (
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestCheckFindsWhatWasDoneByHand changes rows below a hub that runs, one thing at a time.
func TestCheckFindsWhatWasDoneByHand(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	for _, c := range []struct{ sql, says string }{
		{"", "no fault"},
		{"DELETE FROM memsvc.commits WHERE rev=2", "after revision 1 comes 3"},
		{"DELETE FROM memsvc.versions WHERE rev=2 AND path='b.md'", "after revision 1 comes 3"},
		{"DELETE FROM memsvc.versions WHERE rev=1 AND path='c.md'", "revision 4: c.md was changed from a version that is not the one before"},
		{"DELETE FROM memsvc.versions WHERE rev=4", "the history ends at revision 3 and not with the head, 4"},
		{"DELETE FROM memsvc.heads WHERE path='a.md'", "a.md is missing, which revision 3 made"},
		{"UPDATE memsvc.heads SET rev=1 WHERE path='a.md'", "a.md is not as revision 3 left it"},
		{"UPDATE memsvc.versions SET content='x' WHERE rev=3", "the text of a.md is not the one of its etag"},
		{"UPDATE memsvc.projects SET head=3", "not with the head, 3"},
		{"UPDATE memsvc.projects SET files=7", "the head counts 7 memories"},
		{"DELETE FROM memsvc.projects", "table projects: it lacks the rows of 1 project whose commits are there"},
	} {
		url := server.Database()
		h := hubtest.Start(t, hubtest.Options{DatabaseURL: url})
		w := as(t, h, h.Token("acme", "app", "writer"))
		w.mustCommit(t, put("a.md", "one"), put("c.md", "one"))
		w.mustCommit(t, put("b.md", "one"))
		w.mustCommit(t, put("a.md", "two"))
		w.mustCommit(t, put("c.md", "two"))
		if c.sql != "" {
			if err := (&pgtest.Server{URL: url}).Exec(t.Context(), c.sql); err != nil {
				t.Fatal(err)
			}
		}
		stdout, stderr, code := program(t, "check", "--database-url", url)
		if (code == 1) != (c.sql != "") || !strings.Contains(stdout, c.says) {
			t.Errorf("%s: code %d, %q, %q, want it to say %q", c.sql, code, stdout, stderr, c.says)
		}
		if code == 1 && !strings.Contains(stderr, "found faults") {
			t.Errorf("%s: %q", c.sql, stderr)
		}
	}
}
