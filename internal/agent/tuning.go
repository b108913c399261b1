package agent

import (
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/watcher"
	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

// watchFlags say when a directory that changed is looked at (SPEC 3.2).
type watchFlags struct {
	Debounce    time.Duration `help:"How quiet a directory must be before it is looked at." default:"300ms"`
	DebounceMax time.Duration `help:"How long a directory that never is quiet waits at most." default:"2s"`
	FullScan    time.Duration `help:"How often a directory is looked at in full whatever happens." default:"5m"`
}

func (f watchFlags) options() (watcher.Options, error) {
	for flag, d := range map[string]time.Duration{"debounce": f.Debounce, "debounce-max": f.DebounceMax, "full-scan": f.FullScan} {
		if d <= 0 {
			return watcher.Options{}, notPositive(flag, d)
		}
	}
	if f.DebounceMax < f.Debounce {
		return watcher.Options{}, usage("--debounce-max %s is less than --debounce %s", f.DebounceMax, f.Debounce)
	}
	return watcher.Options{Quiet: f.Debounce, Ceiling: f.DebounceMax, FullScan: f.FullScan}, nil
}

// trashFlags say how long what was taken from the disk or given up is kept, and how much.
type trashFlags struct {
	TrashAge time.Duration `help:"How long what was taken from the disk or given up is kept." default:"720h"`
	TrashMiB int64         `name:"trash-mib" help:"How many MiB of it a link keeps together; what the hub's history has too goes first, then the oldest." default:"64"`
}

// maxTrashMiB is a tebibyte, more than any trash can use.
const maxTrashMiB = 1 << 20

// limits returns the flags as the syncer takes them.
func (f trashFlags) limits() trashLimits {
	return trashLimits{age: f.TrashAge, bytes: f.TrashMiB << 20}
}

// trashLimits bound a link's trash; zero fields take the syncer's defaults.
type trashLimits struct {
	age   time.Duration
	bytes int64
}

func (l trashLimits) options() syncer.Options {
	return syncer.Options{TrashFor: l.age, TrashBytes: l.bytes}
}

func (f trashFlags) check() error {
	if f.TrashAge <= 0 {
		return notPositive("trash-age", f.TrashAge)
	}
	if f.TrashMiB <= 0 || f.TrashMiB > maxTrashMiB {
		return usage("--trash-mib %d: want 1 to %d", f.TrashMiB, maxTrashMiB)
	}
	return nil
}

// notesFlags say when notes of a conversation are written (SPEC 8).
type notesFlags struct {
	Notes      bool `help:"Keep notes of long conversations." default:"true" negatable:""`
	NotesFirst int  `help:"After how many tokens the notes of a conversation begin." default:"10000"`
	NotesEvery int  `help:"After how many tokens more they are renewed." default:"5000"`
	NotesCalls int  `help:"And after how many calls of tools, or a turn without any." default:"3"`
}

func (f notesFlags) due() (notes.Due, error) {
	for flag, n := range map[string]int{"notes-first": f.NotesFirst, "notes-every": f.NotesEvery, "notes-calls": f.NotesCalls} {
		if n <= 0 {
			return notes.Due{}, notPositive(flag, n)
		}
	}
	return notes.Due{FirstAt: f.NotesFirst, Every: f.NotesEvery, CallsSince: f.NotesCalls}, nil
}

// dreamFlags say when memories are tidied (SPEC 9).
type dreamFlags struct {
	DreamEvery    time.Duration `help:"How long after a dream the next is due." default:"24h"`
	DreamLook     time.Duration `name:"dream-look-every" help:"How often conversations are counted for a dream that is due." default:"10m"`
	DreamSessions int           `help:"How many other conversations there must have been since the last dream." default:"5"`
}

func (f dreamFlags) due() (dream.Due, error) {
	switch {
	case f.DreamEvery <= 0:
		return dream.Due{}, notPositive("dream-every", f.DreamEvery)
	case f.DreamLook <= 0:
		return dream.Due{}, notPositive("dream-look-every", f.DreamLook)
	case f.DreamSessions <= 0:
		return dream.Due{}, notPositive("dream-sessions", f.DreamSessions)
	}
	return dream.Due{Pause: f.DreamEvery, LookPause: f.DreamLook, Sessions: f.DreamSessions}, nil
}

func notPositive(flag string, v any) error {
	return usage("--%s %v: must be more than nothing", flag, v)
}
