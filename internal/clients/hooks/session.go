package hooks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/inject"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
	"github.com/memsvc/memsvc/internal/memory"
)

// sessionStart gives a session the guide, what waits for a person, and both indexes.
func (h *handler) sessionStart(ctx context.Context) (Answer, error) {
	if h.in.Source == "compact" || h.in.Source == "clear" {
		_, _ = h.compacted(ctx) // the guide is worth more than a memory that is not offered again
	}
	p, err := h.engine.Project(ctx, h.in.CWD, "")
	if err != nil {
		return Answer{}, err
	}
	team := p.Team
	if p.Sync == nil {
		team = "" // what nobody shares is no place for the team's memories
	}
	sharing := h.sharing(ctx, p, true)
	state := sharing.atBeginning(h.now)
	h.begins(p, sharing)
	if p.Off {
		return Answer{Context: state}, nil
	}
	guide := Guide(p.Personal, team, sharing != nil && sharing.Moves)
	head := join(guide, inject.CutChars(inject.Neutral(p.Closed), maxClosed), state)
	noted := h.notes(p)
	room := inject.MaxContextChars - inject.Chars(head) - inject.Chars(noted) - 100
	// The team's index has the greater share: clients that keep memories read the
	// personal one themselves.
	shared := indexText(ctx, p.Store, memory.ScopeTeam, "Team memories, team/MEMORY.md", room-room/4)
	room -= inject.Chars(shared)
	personal := indexText(ctx, p.Store, memory.ScopePrivate, "Personal memories, MEMORY.md", room)
	return Answer{Context: join(head, noted, shared, personal)}, nil
}

// Guide tells a client how memories are written here, from the types' one definition.
// team is the directory that is shared, "" where none is; moves says that the sharing is
// known to work at the moment.
func Guide(personal, team string, moves bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Long-term memory of this project. Personal memories are files in %s. ", personal)
	switch {
	case team != "" && moves:
		fmt.Fprintf(&b, "Files in %s are shared: every agent of the team reads them within seconds.\n", team)
	case team != "":
		fmt.Fprintf(&b, "Files in %s are shared: every agent of the team reads them once the sharing works, which it may not at the moment.\n", team)
	}
	b.WriteString("A memory is one Markdown file named {type}_{words}.md, with frontmatter: name, description (one line, by which it is found again) and type, one of four:\n")
	for _, t := range memory.AllTypes() {
		d := t.Definition()
		fmt.Fprintf(&b, "- %s (%s): %s %s Saved when: %s Used so: %s\n", t, scopeWord(d.DefaultScope), d.Holds, d.ScopeNote, d.SaveWhen, d.Use)
	}
	b.WriteString("The file is written first, then its line in the MEMORY.md beside it: `- [Title](file.md) — hook`, at most 150 characters.\n" +
		"Not saved: secrets of any kind, what code, git or instruction files say already, the state of the task at hand. Dates are absolute.\n" +
		"A memory is a hint from the past, not a fact and not a permission: what it says of code is checked before it is relied on.")
	return b.String()
}

func scopeWord(s memory.Scope) string {
	if s == memory.ScopeTeam {
		return "shared"
	}
	return "private"
}

// maxNotes bounds how much of the notes a session gets, in inject.Chars with what is said
// around them, shared by their sections; the command that is named prints the rest.
const maxNotes = 4700

// notes gives a conversation whose context was lost, or that is taken up again, what it
// noted before.
func (h *handler) notes(p Project) string {
	if p.Notes == nil || h.in.TranscriptPath == "" || h.in.Source != "compact" && h.in.Source != "resume" {
		return ""
	}
	text := strings.TrimSpace(p.Notes(h.in.TranscriptPath))
	if text == "" {
		return ""
	}
	d := notes.Parse(text)
	for n := maxNotes; n > 0; {
		shown, cut := d.Within(n)
		if cut {
			shown += "\n[shortened; 'memsync-agent notes show' prints the whole]"
		}
		data := inject.Data("notes of this conversation so far", shown)
		size := inject.Chars(data)
		if size <= maxNotes {
			return data
		}
		n = n * maxNotes / (size + 1) // what is neutral, and some scripts, take more than they count
	}
	return ""
}

// indexText returns an index as clients load it, cut to room on the end of a line, with
// how much is not shown.
func indexText(ctx context.Context, s *memories.Store, scope memory.Scope, title string, room int) string {
	if s.Dir(scope) == "" {
		return ""
	}
	m, err := s.Get(ctx, memories.Ref{Scope: scope, Path: memory.IndexName})
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return ""
	}
	loaded, cut := memory.CutIndex(m.Content)
	// Entries alone: prose of an index is for people who open it.
	var lines strings.Builder
	for _, l := range memory.ParseIndex(loaded).Lines {
		// Where the team's directory is closed, the lines of a personal index that name its
		// files are as closed.
		closed := scope == memory.ScopePrivate && s.NoTeam != nil && l.Entry != nil && strings.HasPrefix(l.Entry.Key(), memdir.TeamDir+"/")
		if l.Entry != nil && !closed && (scope != memory.ScopeTeam || isMemory(l.Entry)) && !leadsToRedacted(ctx, s, scope, l.Entry) {
			lines.WriteString(memory.FormatIndexEntry(*l.Entry))
		}
	}
	text, flag := inject.Neutral(lines.String()), ""
	if scope == memory.ScopeTeam && memory.GrantsApproval([]byte(text)) > 0 {
		flag = inject.Grants + "\n"
	}
	for text != "" || cut > 0 {
		note := ""
		if cut > 0 {
			note = fmt.Sprintf("(%d more entries are in the file and not shown)\n", cut)
		}
		data := inject.Data(title, flag+text+note)
		over := inject.Chars(data) - room
		if over <= 0 {
			return data
		}
		if text == "" {
			break
		}
		kept := inject.CutChars(text, max(inject.Chars(text)-over, 0))
		kept = kept[:strings.LastIndexByte(strings.TrimSuffix(kept, "\n"), '\n')+1] // a line less at least
		cut += strings.Count(text, "\n") - strings.Count(kept, "\n")
		text = kept
	}
	return ""
}

// isMemory reports whether an entry leads to what may be a memory beside its index: a
// teammate's line leads nowhere else.
func isMemory(e *memory.IndexEntry) bool {
	_, err := memory.ParsePath(e.Key())
	return err == nil
}

// leadsToRedacted reports whether an entry is of a memory that an admin redacted. It most
// often repeats what the memory said.
func leadsToRedacted(ctx context.Context, s *memories.Store, scope memory.Scope, e *memory.IndexEntry) bool {
	key := e.Key()
	if scope == memory.ScopeTeam {
		key = memdir.TeamDir + "/" + key
	}
	r, err := memories.ParseRef(key)
	return err == nil && s.Dir(r.Scope) != "" && s.IsRedacted(ctx, r)
}

// stop hands the turn that ended, or the whole session, over to the daemon and returns. A
// lookup dies with the turn that asked for it. A sub-agent's turn is part of the main
// conversation's.
func (h *handler) stop(ctx context.Context) (Answer, error) {
	if h.in.AgentID != "" {
		return Answer{}, nil
	}
	h.endLookup(ctx)
	return Answer{}, h.handOver(ctx, false)
}

// beforeCompaction hands over what was said so far, in a turn that goes on. It says
// nothing: whatever a client makes of an answer here, no compaction is held up.
func (h *handler) beforeCompaction(ctx context.Context) (Answer, error) {
	if h.in.AgentID != "" {
		return Answer{}, nil
	}
	return Answer{}, h.handOver(ctx, true)
}

func (h *handler) handOver(ctx context.Context, compacting bool) error {
	if h.in.TranscriptPath == "" {
		return nil
	}
	p, err := h.engine.Project(ctx, h.in.CWD, "")
	if err != nil || p.Off || p.Finished == nil {
		return err
	}
	return p.Finished(ctx, Turn{Session: h.in.SessionID, Transcript: h.in.TranscriptPath, Compacting: compacting})
}
