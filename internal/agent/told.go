package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// told is what the log has said of a link's troubles that wait for a person, so that it
// says each change once: one line when a trouble comes, one when it is over.
type told struct {
	refused   map[refusal]bool
	conflicts map[string]syncer.Conflict
	halt      string
	noRoot    string
	// since is when the last note that was told was taken, at first when the program began.
	since time.Time
	last  syncer.Note // the one that was told last
}

// refusal is one reason why a file stays here.
type refusal struct {
	path, rule string
	line       int
	from       string // renamed from
}

// changes logs what is other than at the last call: paths, lines and rules, no content.
func (t *told) changes(log *slog.Logger, st syncer.Status) {
	now := map[refusal]bool{}
	paths := map[string]bool{}
	for _, h := range st.Refused {
		all := []refusal{{path: string(h.Path), rule: h.By, from: string(h.RenamedFrom)}}
		if len(h.Violations) > 0 {
			all = all[:0]
		}
		for _, v := range h.Violations {
			all = append(all, refusal{path: string(h.Path), line: v.Line, rule: v.Rule, from: string(h.RenamedFrom)})
		}
		for _, r := range all {
			now[r], paths[r.path] = true, true
			if !t.refused[r] {
				args := []any{"path", r.path, "line", r.line, "rule", r.rule}
				if r.from != "" {
					args = append(args, "still_on_the_hub", r.from)
				}
				log.Warn("refused; it stays on this machine", args...)
			}
		}
	}
	gone := map[string]bool{}
	for r := range t.refused {
		gone[r.path] = !paths[r.path]
	}
	for _, p := range slices.Sorted(maps.Keys(gone)) {
		if gone[p] {
			log.Info("refused no more", "path", p)
		}
	}
	t.refused = now
	t.conflictChanges(log, st.Conflicts)
	t.happened(log, st.Notes)
	t.standing(log, st)
}

// happened logs the notes that were taken since the last call, in one line a kind.
func (t *told) happened(log *slog.Logger, notes []syncer.Note) {
	from := 0
	for i, n := range slices.Backward(notes) {
		if n.Time.Before(t.since) || sameNote(n, t.last) {
			from = i + 1
			break
		}
	}
	fresh := notes[from:]
	if len(fresh) == 0 {
		return
	}
	t.last = fresh[len(fresh)-1]
	t.since = t.last.Time
	var kinds []string
	of := map[string][]syncer.Note{}
	for _, n := range fresh {
		if of[n.Kind] == nil {
			kinds = append(kinds, n.Kind)
		}
		of[n.Kind] = append(of[n.Kind], n)
	}
	for _, k := range kinds {
		level := slog.LevelInfo
		if of[k][0].Asks() {
			level = slog.LevelWarn
		}
		var paths []memory.Path
		var origins []string
		for _, n := range of[k] {
			if n.Path != "" {
				paths = append(paths, n.Path)
			}
			if n.Origin != "" && !slices.Contains(origins, n.Origin) && len(origins) < maxToldPaths {
				origins = append(origins, n.Origin)
			}
		}
		args := []any{"kind", k, "count", len(of[k])}
		if len(paths) > 0 {
			args = append(args, "paths", some(paths))
		}
		if len(origins) > 0 {
			args = append(args, "by", strings.Join(origins, " "))
		}
		log.Log(context.Background(), level, wordsFor(of[k][0]).what, args...)
	}
}

// sameNote compares notes of which one may have been read from the disk.
func sameNote(a, b syncer.Note) bool {
	same := a.Time.Equal(b.Time)
	a.Time, b.Time = time.Time{}, time.Time{}
	return same && a == b
}

func (t *told) conflictChanges(log *slog.Logger, conflicts []syncer.Conflict) {
	open := map[string]syncer.Conflict{}
	for _, c := range conflicts {
		open[c.ID] = c
		if _, known := t.conflicts[c.ID]; !known {
			log.Warn("conflict; both texts are kept", "id", c.ID, "path", c.Path, "hub_revision", c.HubRevision)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.conflicts)) {
		if _, still := open[id]; !still {
			log.Info("conflict resolved", "id", id, "path", t.conflicts[id].Path)
		}
	}
	t.conflicts = open
}

// standing logs what makes the whole link stand still.
func (t *told) standing(log *slog.Logger, st syncer.Status) {
	halt := ""
	if st.Halt != nil && !st.Halt.Accepted {
		halt = st.Halt.Reason
		if halt != t.halt {
			log.Warn("halted; nothing is sent or deleted until somebody decides", "reason", halt, "missing", len(st.Halt.Missing), "of", st.Halt.Of)
		}
	}
	if halt == "" && t.halt != "" {
		log.Info("goes on after the halt")
	}
	t.halt = halt
	noRoot := ""
	if st.Phase == syncer.PhaseNoRoot {
		noRoot = st.RootDetail
		if noRoot != t.noRoot {
			log.Warn("the directory cannot be used; nothing is done until it can", "detail", noRoot)
		}
	}
	if noRoot == "" && t.noRoot != "" {
		log.Info("the directory is back")
	}
	t.noRoot = noRoot
}
