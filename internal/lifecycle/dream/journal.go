package dream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wholefile"
)

// journal is a change set that is being applied. It is durable before the first file is
// touched and gone after the last record is written.
type journal struct {
	Record
	Undoes string // id of the dream that this takes back; "" = it is a dream
}

func (d *Dreamer) journalFile() string { return filepath.Join(d.Dir, "journal.json") }

// keptRecords is how many dreams can be undone.
const keptRecords = 20

// commit makes a change set durable, applies it and records it. Killed at any point,
// Recover ends it.
func (d *Dreamer) commit(ctx context.Context, j *journal) error {
	if err := d.write(d.journalFile(), j); err != nil {
		return err
	}
	return d.finish(ctx, j)
}

// finish applies what the journal holds, as far as that is not done yet.
func (d *Dreamer) finish(ctx context.Context, j *journal) error {
	if err := d.at("journal"); err != nil {
		return err
	}
	if err := d.apply(ctx, j.Changes); err != nil {
		return err
	}
	if err := d.at("applied"); err != nil {
		return err
	}
	if j.Undoes == "" {
		if err := d.write(d.recordFile(j.ID), &j.Record); err != nil {
			return err
		}
		if err := d.forget(); err != nil {
			return err
		}
	} else if err := d.markUndone(j.Undoes, j.Time); err != nil {
		return err
	}
	if err := d.at("recorded"); err != nil {
		return err
	}
	if err := remove(d.journalFile()); err != nil {
		return err
	}
	if err := wholefile.SyncDir(d.Dir); err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	return nil
}

func (d *Dreamer) write(file string, what any) error {
	text, err := json.Marshal(what)
	if err == nil {
		err = wholefile.Replace(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	return nil
}

// pending reads the journal of a change set that was interrupted; nil = there is none.
func (d *Dreamer) pending() (*journal, error) {
	text, err := os.ReadFile(d.journalFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	var j journal
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("dream: %s cannot be read; it was not written by this program, move it away", d.journalFile())
	}
	return &j, nil
}

func (d *Dreamer) recordFile(id string) string { return filepath.Join(d.Dir, "dreams", id+".json") }

// ids returns the recorded dreams, the newest first.
func (d *Dreamer) ids() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.Dir, "dreams"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	var out []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && !strings.HasPrefix(id, ".") {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return out, nil
}

// newID returns an id that sorts behind all others.
func (d *Dreamer) newID(now time.Time) (string, error) {
	ids, err := d.ids()
	if err != nil {
		return "", err
	}
	id := now.UTC().Format("20060102T150405.000000000Z")
	if len(ids) > 0 && ids[0] >= id { // the clock was put back, or stands
		id = ids[0] + "+"
	}
	return id, nil
}

func (d *Dreamer) record(id string) (Record, error) {
	text, err := os.ReadFile(d.recordFile(id))
	if err != nil {
		return Record{}, fmt.Errorf("dream: %w", err)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("dream: %s cannot be read; move it away", d.recordFile(id))
	}
	return r, nil
}

// forget removes the oldest records beyond keptRecords.
func (d *Dreamer) forget() error {
	ids, err := d.ids()
	if err != nil {
		return err
	}
	for _, id := range ids[min(keptRecords, len(ids)):] {
		if err := remove(d.recordFile(id)); err != nil {
			return err
		}
		if err := os.RemoveAll(d.keptDir(id)); err != nil {
			return fmt.Errorf("dream: %w", err)
		}
	}
	return nil
}

func (d *Dreamer) markUndone(id string, at time.Time) error {
	r, err := d.record(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // forgotten meanwhile
	}
	if err != nil {
		return err
	}
	r.Undone = at
	return d.write(d.recordFile(id), &r)
}

// Log returns the dreams that are still recorded, the newest first.
func (d *Dreamer) Log(ctx context.Context) ([]Record, error) {
	ids, err := d.ids()
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := d.record(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Recover ends a change set that was interrupted, and reports whether there was one. While
// another dream is at work it cannot be told what was interrupted: that is ErrBusy.
func (d *Dreamer) Recover(ctx context.Context) (bool, error) {
	if !d.interrupted() {
		return false, nil
	}
	release, err := d.exclusive()
	if err != nil {
		return false, err
	}
	defer release()
	return d.recover(ctx)
}

func (d *Dreamer) interrupted() bool {
	for _, file := range []string{d.journalFile(), d.takenFile()} {
		if _, err := os.Lstat(file); err == nil {
			return true
		}
	}
	return false
}

// recover is Recover under our own lock.
func (d *Dreamer) recover(ctx context.Context) (bool, error) {
	d.sweep()
	j, err := d.pending()
	if err != nil {
		return false, err
	}
	if j != nil {
		free, err := d.hold(ctx)
		if err != nil {
			return false, err
		}
		defer free()
		if err := d.finish(ctx, j); err != nil {
			return false, err
		}
	}
	if j == nil || j.Undoes != "" {
		return j != nil, d.settle(false)
	}
	if err := d.settle(true); err != nil {
		return true, err
	}
	return true, d.cameToAnEnd(j.Time)
}

// cameToAnEnd lets the lock tell of a dream that failed at first and was ended later.
func (d *Dreamer) cameToAnEnd(at time.Time) error {
	last, err := d.last()
	if err != nil || !last.Before(at) {
		return err
	}
	if held, err := d.held(); err != nil || held {
		return err // whoever dreams now says when
	}
	return d.writeLock("", at)
}

// sweep removes the copies that a killed dream worked on.
func (d *Dreamer) sweep() {
	left, _ := filepath.Glob(filepath.Join(d.Dir, stagePattern))
	for _, dir := range left {
		_ = os.RemoveAll(dir) // a copy; the next dream tries again
	}
}

// sweepTemps removes the files that killed writers left, here and beside the memories.
func (d *Dreamer) sweepTemps(ctx context.Context) {
	for _, dir := range []string{d.Dir, filepath.Join(d.Dir, "dreams")} {
		wholefile.Sweep(dir)
	}
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		if d.Store.Dir(scope) == "" {
			continue
		}
		if dir, err := memdir.Open(d.Store.Dir(scope)); err == nil {
			_ = dir.Sweep(ctx) // what stays is hidden and harmless
			_ = dir.Close()    // nothing of it is needed
		}
	}
}

func (d *Dreamer) hold(ctx context.Context) (func(), error) {
	if d.Hold == nil {
		return func() {}, nil
	}
	free, err := d.Hold(ctx)
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	return free, nil
}

// at is where a test stops a change set.
func (d *Dreamer) at(step string) error {
	if d.step == nil {
		return nil
	}
	return d.step(step)
}
