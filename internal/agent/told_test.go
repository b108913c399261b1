package agent

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// TestLogTellsEachTroubleOnce plays what can wait for a person: one warning when it
// comes, one line when it is over, nothing in between, and never what a message quotes.
func TestLogTellsEachTroubleOnce(t *testing.T) {
	held := func(path string, line int, rule string) syncer.Held {
		return syncer.Held{Path: memory.Path(path), By: syncer.HeldByGuard, Violations: []memory.Violation{{Path: path, Line: line, Rule: rule, Message: "quoted text"}}}
	}
	x := syncer.Conflict{ID: "c1", Path: "z.md", HubRevision: 4}
	halt := &syncer.Halt{Reason: "all 2 files are gone", Missing: []memory.Path{"a.md", "b.md"}, Of: 2}
	accepted := *halt
	accepted.Accepted = true
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	began := time.Now()
	note := func(after time.Duration, kind, path, text, origin string) syncer.Note {
		return syncer.Note{Time: began.Add(after), Kind: kind, Path: memory.Path(path), Text: text, Origin: origin}
	}
	notes := []syncer.Note{
		note(-time.Hour, syncer.NotePermission, "old.md", "", ""),
		note(time.Second, syncer.NoteIndexLine, "MEMORY.md", "- [A](a.md) — quoted text", "token:b"),
		note(time.Second, syncer.NoteEditKept, "x.md", "", ""),
		note(time.Second, syncer.NoteIndexLine, "MEMORY.md", "- [B](b.md) — quoted text", "token:c"),
		note(time.Second, syncer.NoteRecovered, "", "compared in full", ""),
		note(2*time.Second, syncer.NotePermission, "y.md", "", ""),
	}
	fromDisk := func(notes []syncer.Note) []syncer.Note {
		out := slices.Clone(notes)
		for i := range out {
			out[i].Time = out[i].Time.Round(0).UTC()
		}
		return out
	}
	told := told{since: began}
	for i, step := range []struct {
		st   syncer.Status
		want string
	}{
		{syncer.Status{}, ""},
		{syncer.Status{Refused: []syncer.Held{held("x.md", 8, "github-pat")}},
			`level=WARN msg="refused; it stays on this machine" path=x.md line=8 rule=github-pat`},
		{syncer.Status{Refused: []syncer.Held{held("x.md", 8, "github-pat")}}, ""},
		{syncer.Status{Refused: []syncer.Held{held("x.md", 9, "github-pat"), {Path: "y.md", By: syncer.HeldByDisk}}},
			`level=WARN msg="refused; it stays on this machine" path=x.md line=9 rule=github-pat
level=WARN msg="refused; it stays on this machine" path=y.md line=0 rule=disk`},
		{syncer.Status{Refused: []syncer.Held{{Path: "y.md", By: syncer.HeldByDisk}}}, `level=INFO msg="refused no more" path=x.md`},
		{syncer.Status{Conflicts: []syncer.Conflict{x}}, `level=INFO msg="refused no more" path=y.md
level=WARN msg="conflict; both texts are kept" id=c1 path=z.md hub_revision=4`},
		{syncer.Status{Conflicts: []syncer.Conflict{x}}, ""},
		{syncer.Status{}, `level=INFO msg="conflict resolved" id=c1 path=z.md`},
		{syncer.Status{Phase: syncer.PhaseHalted, Halt: halt},
			`level=WARN msg="halted; nothing is sent or deleted until somebody decides" reason="all 2 files are gone" missing=2 of=2`},
		{syncer.Status{Phase: syncer.PhaseHalted, Halt: halt}, ""},
		{syncer.Status{Halt: &accepted}, `level=INFO msg="goes on after the halt"`},
		{syncer.Status{Phase: syncer.PhaseNoRoot, RootDetail: "/d/team is not there"},
			`level=WARN msg="the directory cannot be used; nothing is done until it can" detail="/d/team is not there"`},
		{syncer.Status{Phase: syncer.PhaseNoRoot, RootDetail: "/d/team is not there"}, ""},
		{syncer.Status{Phase: syncer.PhaseInSync}, `level=INFO msg="the directory is back"`},
		{syncer.Status{Notes: notes[:1]}, ""}, // of before this program began
		{syncer.Status{Notes: notes[:5]},
			`level=WARN msg="both sides changed a line of the index; the hub's stands, and this machine's gave way" kind=index-line-lost count=2 paths="MEMORY.md MEMORY.md" by="token:b token:c"
level=INFO msg="deleted on one side and edited on the other; the edit stands" kind=edit-kept count=1 paths=x.md
level=INFO msg="compared in full" kind=state-rebuilt count=1`},
		{syncer.Status{Notes: notes[:5]}, ""},
		{syncer.Status{Notes: fromDisk(notes[2:])}, `level=WARN msg="came in, and grants permissions or says to act without asking" kind=permissions count=1 paths=y.md`},
		{syncer.Status{Notes: notes[5:]}, ""},
	} {
		log.Reset()
		told.changes(logger, step.st)
		if d := cmp.Diff(step.want, strings.TrimSpace(log.String())); d != "" {
			t.Errorf("step %d (-want +got):\n%s", i, d)
		}
	}
}
