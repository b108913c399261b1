package dream

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

	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wholefile"
)

// session is a conversation on disk.
type session struct {
	file string
	time time.Time // last touched
}

// sessions returns the conversations that were touched after a time, the latest first.
// Those of sub-agents and the one that asks do not count.
func (d *Dreamer) sessions(ctx context.Context, after time.Time) ([]session, error) {
	var out []session
	seen := map[string]bool{}
	for _, dir := range d.Transcripts {
		for _, dir := range []string{dir, filepath.Join(dir, "transcripts")} {
			entries, err := os.ReadDir(dir)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("dream: the conversations: %w", err)
			}
			for _, e := range entries {
				name, ok := strings.CutSuffix(e.Name(), ".jsonl")
				if !ok || !e.Type().IsRegular() || strings.HasPrefix(name, "agent-") || name == d.Session || seen[name] {
					continue
				}
				fi, err := e.Info()
				if err != nil || !fi.ModTime().After(after) {
					continue // gone meanwhile, or old
				}
				seen[name] = true
				out = append(out, session{filepath.Join(dir, e.Name()), fi.ModTime()})
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b session) int { return b.time.Compare(a.time) })
	return out, nil
}

// empty reports whether there is no directory to tidy.
func (d *Dreamer) empty() bool {
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		if dir := d.Store.Dir(scope); dir != "" {
			if fi, err := os.Stat(dir); err == nil && fi.IsDir() {
				return false
			}
		}
	}
	return true
}

// gates asks whether it is time, the cheapest question first, and notes in r what it
// learns. The lock is asked for by who takes it.
func (d *Dreamer) gates(ctx context.Context, o Options, now time.Time, r *Report) ([]session, error) {
	if d.empty() {
		r.Skipped = GateEmpty
		return nil, nil
	}
	due := d.Due.WithDefaults()
	last, err := d.last()
	if err != nil {
		return nil, err
	}
	r.Last = last
	// A time in the future is a clock that was put back; it does not hold dreams up for
	// longer than the present would.
	since := now.Sub(last)
	if since < 0 {
		since = -since
	}
	if !o.Force && !last.IsZero() && since < due.Pause {
		r.Skipped = GateTime
		return nil, nil
	}
	if looked, err := d.looked(); err != nil {
		return nil, err
	} else if since := now.Sub(looked); !o.Force && !o.DryRun && since >= 0 && since < due.LookPause {
		r.Skipped = GateLooked
		return nil, nil
	}
	list, err := d.sessions(ctx, last)
	if err != nil {
		return nil, err
	}
	r.Sessions = len(list)
	if !o.DryRun {
		if err := d.noteLook(now); err != nil {
			return nil, err
		}
	}
	if !o.Force && len(list) < due.Sessions {
		r.Skipped = GateSessions
	}
	return list, nil
}

func (d *Dreamer) lookedFile() string { return filepath.Join(d.Dir, "looked") }

// looked returns when the transcripts were looked at last; zero = never.
func (d *Dreamer) looked() (time.Time, error) {
	text, err := os.ReadFile(d.lookedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("dream: %w", err)
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	if err != nil {
		return time.Time{}, nil // it is written anew now
	}
	return at, nil
}

func (d *Dreamer) noteLook(now time.Time) error {
	err := os.MkdirAll(d.Dir, 0o700)
	if err == nil {
		err = wholefile.Replace(d.lookedFile(), []byte(now.UTC().Format(time.RFC3339Nano)+"\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("dream: %w", err)
	}
	return nil
}
