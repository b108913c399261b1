package memory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// TestWithModified: the own time of a memory is set in the form that it has, and no other
// byte changes; what is no time, or cannot be read, stays.
func TestWithModified(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 5, 7, 890_000_000, time.FixedZone("", 3600))
	for name, test := range map[string]struct{ head, old, want string }{
		"nested":            {"name: A\nmetadata: \n  type: project\n  modified: OLD\n  originSessionId: x\n", "2026-01-01T08:00:00.123Z", "2026-11-30T08:05:07.890Z"},
		"flat":              {"name: A\nmodified: OLD\ntype: project\n", "2026-01-01T08:00:00Z", "2026-11-30T08:05:07.890Z"},
		"with a zone":       {"modified: OLD\n", "2026-01-01T08:00:00+02:00", "2026-11-30T08:05:07.890Z"},
		"quoted":            {"modified: \"OLD\" # by hand\n", "2026-01-01 08:00", "2026-11-30 08:05"},
		"a date":            {"title: A\ndate: OLD\n", "2026-01-01", "2026-11-30"},
		"CRLF":              {"date: 'OLD'\r\ntype: project\r\n", "2026-01-01 08:00:00", "2026-11-30 08:05:07"},
		"on one line":       {"name: A\nmetadata: {type: project, modified: OLD, pinned: true}\n", "2026-01-01T08:00:00Z", "2026-11-30T08:05:07.890Z"},
		"two of them":       {"date: 2020-01-01\nmetadata:\n  modified: OLD\n", "2026-01-01T08:00:00Z", "2026-11-30T08:05:07.890Z"},
		"like its key":      {"name: 2026-01-01\ndate: OLD\n", "2026-01-01", "2026-11-30"},
		"no time":           {"modified: OLD\n", "last week", "last week"},
		"no time in front":  {"metadata:\n  modified: OLD\ndate: 2026-01-01\n", "last week", "last week"},
		"none":              {"name: A\ntype: project\n", "", ""},
		"unreadable":        {"name: [A\nmodified: OLD\n", "2026-01-01", "2026-01-01"},
		"in a nested field": {"other:\n  modified: OLD\n", "2026-01-01", "2026-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			text := func(value string) string {
				return "---\n" + strings.ReplaceAll(test.head, "OLD", value) + "---\n\nBody of 2026-01-01.\n"
			}
			got, ok := memory.WithModified([]byte(text(test.old)), at)
			if string(got) != text(test.want) || ok != (test.want != test.old) {
				t.Errorf("got %q, %v", got, ok)
			}
		})
	}
}
