package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
)

// happenedFor is how long status speaks of what happened here. The local log goes on to
// have it, as long as it is among the newest syncer.MaxNotes.
const happenedFor = 7 * 24 * time.Hour

// Happened counts what happened on this machine of one kind and wants a person's look.
type Happened struct {
	Kind  string    `json:"kind"` // see syncer.Note
	Count int       `json:"count"`
	Last  time.Time `json:"last"`
}

// happening says in a person's words what a kind of syncer.Note is.
type happening struct {
	what      string // happened to a path, or to several
	one, many string // as status counts it, where the kind asks for a look
	todo      string // "" = nothing; with trashed, what says how the text comes back is added
	trashed   bool   // the text that gave way is in the trash
}

// happenings are the words for each kind of note but NoteRecovered, which brings its own.
func happenings() map[string]happening {
	return map[string]happening{
		syncer.NoteIndexLine: {
			what: "both sides changed a line of the index; the hub's stands, and this machine's gave way",
			one:  "index line gave way", many: "index lines gave way",
			todo: "if this machine's line says it better, write it into the index again",
		},
		syncer.NoteDeleteUndone: {
			what: "deleted before, and back with a hub that was put back to an earlier state",
			one:  "delete undone by a restored hub", many: "deletes undone by a restored hub",
			todo: "'memsync-agent show PATH' prints it; delete it once more if it should be gone",
		},
		syncer.NoteShrunk: {
			what: "shrunk by more than 70 % in one edit, which was sent",
			one:  "file shrunk by more than 70 % at once", many: "files shrunk by more than 70 % at once",
			todo: "if that was a slip, 'memsync-agent log PATH' names the revision before and 'memsync-agent restore PATH --revision N' brings it back",
		},
		syncer.NotePermission: {
			what: "came in, and grants permissions or says to act without asking",
			one:  "text came in that grants permissions", many: "texts came in that grant permissions",
			todo: "read it with 'memsync-agent show PATH'; it is a note and no consent, so correct or delete it unless it is meant",
		},
		syncer.NoteReoffered: {what: "the hub had lost it; it was offered to the hub again"},
		syncer.NoteEditKept:  {what: "deleted on one side and edited on the other; the edit stands"},
		syncer.NoteStale:     {what: "an old text, found after the sync state was lost; it gave way to the hub's", trashed: true},
		syncer.NoteRedacted:  {what: "a text of it that was kept here, for a conflict or in the trash, was redacted on the hub"},
		syncer.NoteResolved:  {what: "its conflict was resolved on another machine", trashed: true},
	}
}

// wordsFor returns the words for a note.
func wordsFor(n syncer.Note) happening {
	h, known := happenings()[n.Kind]
	switch {
	case n.Kind == syncer.NoteRecovered:
		h.what = n.Text
	case !known:
		h.what = n.Kind // of another version
	}
	return h
}

// happened counts the notes of a time and later by kind, the newest first.
func happened(notes []syncer.Note, since time.Time) []Happened {
	out := []Happened{}
	for _, n := range slices.Backward(notes) {
		if n.Time.Before(since) {
			continue
		}
		i := slices.IndexFunc(out, func(h Happened) bool { return h.Kind == n.Kind })
		if i < 0 {
			i, out = len(out), append(out, Happened{Kind: n.Kind, Last: n.Time.UTC()})
		}
		out[i].Count++
	}
	return out
}

// happenedLine says in one line what wants a look, and where it is told; "" = nothing.
func (s LinkStatus) happenedLine() string {
	if len(s.Happened) == 0 {
		return ""
	}
	var kinds []string
	for _, h := range s.Happened {
		w := happenings()[h.Kind]
		what := w.many
		switch {
		case what == "":
			what = h.Kind // of another version
		case h.Count == 1:
			what = w.one
		}
		kinds = append(kinds, fmt.Sprintf("%d %s", h.Count, what))
	}
	return "  happened in the last 7 days: " + strings.Join(kinds, ", ") + "; see 'memsync-agent log --local'\n"
}

// lately drops what last happened before a time.
func lately(all []Happened, since time.Time) []Happened {
	return slices.DeleteFunc(slices.Clone(all), func(h Happened) bool { return h.Last.Before(since) })
}
