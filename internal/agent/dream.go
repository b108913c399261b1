package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/reconcile"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

const (
	// dreamTime bounds a dream, and so how long uploads wait for it.
	dreamTime = 10 * time.Minute
	// recoverTime bounds the end of a change set that was cut off.
	recoverTime = time.Minute
	// holdWait bounds how long a dream waits for an upload under way.
	holdWait = 2 * time.Minute
	// settleTime is how long the last delete of a dream must lie back before its files are
	// sent. The syncer takes a file that has just gone for one that is being saved, and
	// would send the rest without the delete.
	settleTime = 300 * time.Millisecond
)

// dreamDir is where dreams of a project keep their journal and records.
func (s stateDir) dreamDir(personal string) string {
	return s.path("dream", filepath.Base(s.extractDir(personal)))
}

// dreamer returns who tidies the memories of a project.
func (s stateDir) dreamer(personal, team string, g memories.Guard, now func() time.Time) *dream.Dreamer {
	return &dream.Dreamer{
		Store: memories.New(personal, team, g), Guard: g, Dir: s.dreamDir(personal), Now: now,
		Merge: func(path memory.Path, base, ours, theirs []byte) ([]byte, bool) {
			m := reconcile.MergeTexts(path, base, true, ours, theirs)
			return m.Text, m.OK
		},
	}
}

// held runs work of a dreamer while uploads of its team directory wait, from when it
// asks for that until it is done. Where that fails, and what it left cannot be brought to
// its end now, they wait on.
func (s stateDir) held(ctx context.Context, d *dream.Dreamer, work func() error) error {
	team := d.Store.Dir(memory.ScopeTeam)
	var hold *workspace.Hold
	d.Hold = func(ctx context.Context) (func(), error) {
		keep := func() {} // until the work is known to be whole
		if hold != nil || team == "" || !isDir(team) {
			return keep, nil
		}
		ctx, cancel := context.WithTimeout(ctx, holdWait)
		defer cancel()
		var err error
		hold, err = s.holdUploads(ctx, d.Store.Dir(memory.ScopePrivate), team, d.Now())
		return keep, err
	}
	whole := false
	release := func() (err error) {
		if hold != nil {
			err, hold = hold.Release(whole), nil
		}
		return err
	}
	defer func() { _ = release() }() // of a panic, whose half somebody has to end
	err := work()
	if hold == nil {
		return err
	}
	if whole = err == nil; !whole {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoverTime)
		_, rerr := d.Recover(rctx)
		cancel()
		whole = rerr == nil
	}
	if whole {
		time.Sleep(settleTime)
	}
	return errors.Join(err, release())
}

// runDream tidies, or undoes; do is the dreamer's method. What an earlier dream left
// unfinished in the team directory is ended first, for uploads wait for it.
func (s stateDir) runDream(ctx context.Context, d *dream.Dreamer, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, dreamTime)
	defer cancel()
	if team := d.Store.Dir(memory.ScopeTeam); team != "" {
		leave, left, isLeft, err := workspace.EnterUploads(team)
		switch {
		case err == nil:
			leave()
		case isLeft:
			if err := s.endLeft(ctx, *left, team, d.Guard, d.Now); err != nil {
				return err
			}
		}
	}
	if err := s.placeDream(d.Store.Dir(memory.ScopePrivate), d.Store.Dir(memory.ScopeTeam)); err != nil {
		return err
	}
	return s.held(ctx, d, func() error { return do(ctx) })
}

// endLeft sees to what a dream that died left in a team directory.
func (s stateDir) endLeft(ctx context.Context, left workspace.Holder, team string, g memories.Guard, now func() time.Time) error {
	if left.StateDir != realDir(string(s)) {
		return otherDream(left)
	}
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	d := s.dreamer(left.Personal, team, g, now)
	err := s.held(ctx, d, func() error {
		if _, err := d.Hold(ctx); err != nil {
			return err
		}
		if !isDir(d.Dir) {
			return nil // nobody dreamt there; the name comes from a file that others can write
		}
		_, err := d.Recover(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("a dream was cut off, and what it began cannot be brought to its end: %w", err)
	}
	return nil
}

// otherDream says how to end what only another state directory knows.
func otherDream(left workspace.Holder) error {
	return fmt.Errorf("a dream with another state directory was cut off; 'memsync-agent dream --state-dir %s --memory-dir %s' ends it; if that is gone, look at the files and remove %s there",
		visible(left.StateDir), visible(left.Personal), workspace.UploadsName)
}

// holdUploads holds the uploads of a team directory for a dream of this state directory.
// It refuses where another one's dream was cut off.
func (s stateDir) holdUploads(ctx context.Context, personal, team string, now time.Time) (*workspace.Hold, error) {
	if err := s.create(); err != nil {
		return nil, err
	}
	who := workspace.Holder{PID: os.Getpid(), Since: now.UTC(), StateDir: realDir(string(s)), Personal: personal}
	hold, left, err := workspace.HoldUploads(ctx, team, who)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("files of %s are being sent for long; try again later", team)
	case err != nil:
		return nil, err
	case left == nil || left.StateDir == who.StateDir && left.Personal == personal:
		return hold, nil
	}
	return nil, errors.Join(otherDream(*left), hold.Release(false))
}

// DreamStatus is what `status` tells of the last dream of a project.
type DreamStatus struct {
	Memory string    `json:"memory_dir"` // the personal directory
	Time   time.Time `json:"time"`
	By     string    `json:"by,omitempty"` // rules or model
	// Changes is how many files it changed, Deleted how many of these it deleted.
	Changes int    `json:"changes"`
	Deleted int    `json:"deleted"`
	Error   string `json:"error,omitempty"` // why it failed; nothing was changed then
	ID      string `json:"id,omitempty"`    // as 'dream log' lists it; "" = nothing was changed
	// Undone is when it was taken back.
	Undone *time.Time `json:"undone,omitempty"`
}

// dreamStatusSuffix is what the file of a DreamStatus has beside the project's dreamDir.
const dreamStatusSuffix = ".status.json"

// noteDream keeps what became of a dream, for status. A dream that did not pass its gates
// is none.
func (s stateDir) noteDream(personal string, r dream.Report, failed error, now time.Time) error {
	if failed == nil && r.Skipped != "" || r.DryRun {
		return nil
	}
	st := DreamStatus{Memory: personal, Time: now.UTC(), By: r.By, ID: r.ID}
	if failed != nil {
		st.Error = oneLine(failed)
	} else {
		st.Changes, st.Deleted = counted(r.Changes)
	}
	return writeJSON(s.dreamDir(personal)+dreamStatusSuffix, st)
}

// noteUndone keeps for status that the last dream was taken back, if that is the one.
func (s stateDir) noteUndone(personal, id string, now time.Time) error {
	file := s.dreamDir(personal) + dreamStatusSuffix
	var st DreamStatus
	err := readJSON(file, &st)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (st.ID != id || id == ""):
		return nil
	case err != nil:
		return err
	}
	now = now.UTC()
	st.Undone = &now
	return writeJSON(file, st)
}

// counted counts the changes that were made, and the deletes among them.
func counted(changes []dream.Change) (made, deleted int) {
	for _, c := range changes {
		if c.Skipped != "" {
			continue
		}
		made++
		if c.Kind == dream.Delete {
			deleted++
		}
	}
	return made, deleted
}

// dreams returns the last dream of each project, in order of their directories.
func (s stateDir) dreams() []DreamStatus {
	entries, err := os.ReadDir(s.path("dream"))
	if err != nil {
		return nil // nobody dreamt here
	}
	var out []DreamStatus
	for _, e := range entries {
		var st DreamStatus
		if strings.HasSuffix(e.Name(), dreamStatusSuffix) && readJSON(s.path("dream", e.Name()), &st) == nil { // status has more to tell than a damaged one
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b DreamStatus) int { return strings.Compare(a.Memory, b.Memory) })
	return out
}

// line is what status says of it.
func (d DreamStatus) line(now time.Time) string {
	if d.Error != "" {
		return fmt.Sprintf("dream of %s failed %s ago: %s\n", visible(d.Memory), age(now, d.Time), visible(d.Error))
	}
	undone := ""
	if d.Undone != nil {
		undone = fmt.Sprintf("; undone %s ago", age(now, *d.Undone))
	}
	return fmt.Sprintf("dream of %s %s ago, by %s: %s, %d deleted%s\n", visible(d.Memory), age(now, d.Time), d.By, count(d.Changes, "change"), d.Deleted, undone)
}
