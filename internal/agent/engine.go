package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/extract"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/notes"
)

// engineTuning says what the engine does, and when.
type engineTuning struct {
	extract, notes, dream bool // dream: tidy when a project's gates let it
	notesDue              notes.Due
	dreamDue              dream.Due
	// drain bounds how long a daemon that is asked to stop waits for work that is under way.
	drain time.Duration
}

// everything is the default of run's flags (SPEC 7).
func everything() engineTuning {
	return engineTuning{extract: true, notes: true, dream: true, drain: 60 * time.Second}
}

// workTime bounds what is done for one finished turn, lest one bad conversation stop a
// project's; cutOffWait how long work that was cut off may take to notice.
const (
	workTime   = 10 * time.Minute
	cutOffWait = 5 * time.Second
)

// extractParams hand a finished turn over to the daemon. The caller found the
// directories, since its environment decides them, not the daemon's.
type extractParams struct {
	Personal   string `json:"personal"`
	Team       string `json:"team"`
	Project    string `json:"project"` // directory
	Hub        string `json:"hub"`     // whose policy judges; "" = none
	TeamName   string `json:"team_name"`
	Session    string `json:"session"`
	Transcript string `json:"transcript"`
	Config     string `json:"config"` // the client's configuration directory
	CWD        string `json:"cwd"`
	// Compacting says that the conversation's context is about to be lost.
	Compacting bool `json:"compacting,omitempty"`
	// Mixed says that another project has the same memory directory: it is not tidied.
	Mixed bool `json:"mixed,omitempty"`
}

func (p extractParams) check() error {
	for _, dir := range []string{p.Personal, p.Transcript} {
		if !filepath.IsAbs(dir) {
			return errors.New("extract: the directories and the transcript must be absolute")
		}
	}
	return nil
}

// engine does the work of the memory engine beside the clients, one piece at a time for
// each project; what comes in while it works is done in one more run.
type engine struct {
	state stateDir
	log   *slog.Logger
	now   func() time.Time
	live  *liveModel // works on what was said; nil or without a model, rules do
	m     *metrics   // nil where nobody asks
	engineTuning

	ctx    context.Context //nolint:containedctx // of the work in the background; it ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	waiting map[string]map[string]extractParams
	closed  bool
}

func newEngine(state stateDir, log *slog.Logger, now func() time.Time) *engine {
	ctx, cancel := context.WithCancel(context.Background())
	return &engine{state: state, log: log, now: now, engineTuning: everything(), ctx: ctx, cancel: cancel, waiting: map[string]map[string]extractParams{}}
}

// take accepts a finished turn and returns at once.
func (e *engine) take(p extractParams) error {
	if err := p.check(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errors.New("extract: the daemon is stopping")
	}
	if p.Compacting && e.notes {
		// The notes are wanted as soon as the client has compacted, whatever waits here.
		now := p
		e.wg.Go(func() { e.protected(func() { e.notesNow(now) }) })
	}
	p.Compacting = false
	queue, working := e.waiting[p.Personal]
	if !working {
		queue = map[string]extractParams{}
		e.waiting[p.Personal] = queue
		e.wg.Go(func() { e.work(p.Personal) })
	}
	queue[p.Transcript] = p
	return nil
}

// work does everything that waits for a project, tidies it then if that is due, and ends
// when nothing waits.
func (e *engine) work(project string) {
	var last extractParams // of those done, whose project is still to be tidied
	for {
		e.mu.Lock()
		var next extractParams
		queue := e.waiting[project]
		for key, p := range queue {
			next = p
			delete(queue, key)
			break
		}
		if next.Transcript == "" && last.Transcript == "" {
			delete(e.waiting, project)
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		if next.Transcript == "" { // everything that was said is taken
			e.protected(func() { e.tidy(last) })
			last = extractParams{}
			continue
		}
		last = next
		ctx, cancel := context.WithTimeout(e.ctx, workTime)
		m, textOnly := e.live.open()
		if e.extract {
			e.protected(func() { e.remember(ctx, next, m, textOnly) })
		}
		if e.notes {
			e.protected(func() { e.keepNotes(ctx, next, m) })
		}
		cancel()
	}
}

// protected does a piece of work. If it panics, over a text that nobody thought of, the
// daemon goes on.
func (e *engine) protected(work func()) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error("a piece of work panicked; the rest goes on", "panic", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
		}
	}()
	work()
}

// remember makes memories of what was said.
func (e *engine) remember(ctx context.Context, p extractParams, m model.Model, textOnly bool) {
	r, err := e.extractor(p, m, textOnly).Run(ctx, extract.Conversation{Session: p.Session, Transcript: p.Transcript}, false)
	switch {
	case err != nil:
		e.log.Warn("extract", "session", p.Session, "error", err)
	case r.Skipped != "":
		e.log.Debug("extract", "session", p.Session, "skipped", r.Skipped)
	default:
		e.log.Info("extract", "session", p.Session, "by", r.By, "added", len(r.Added), "updated", len(r.Updated), "removed", len(r.Removed), "refused", len(r.Refused), "warnings", r.Warnings, "fallback", r.Fallback, "rounds", r.Rounds,
			"input_tokens", r.Usage.Input, "output_tokens", r.Usage.Output, "took", r.Took)
	}
}

// notesNow brings the notes of a conversation up to date that is being compacted. Where
// there are none yet, rules fill them before a model does it better: the conversation goes on
// with what is there.
func (e *engine) notesNow(p extractParams) {
	ctx, cancel := context.WithTimeout(e.ctx, workTime)
	defer cancel()
	m, _ := e.live.open()
	if m != nil && !exists(notes.Path(p.Transcript)) {
		e.keepNotes(ctx, p, nil)
	}
	e.keepNotes(ctx, p, m)
}

// keepNotes brings the notes of a conversation up to date, if enough was said.
func (e *engine) keepNotes(ctx context.Context, p extractParams, m model.Model) {
	due := e.notesDue
	due.Compacting = p.Compacting
	r, err := notes.Keeper{Model: m, Config: p.Config, Secrets: e.live.strict(), Due: due}.Update(ctx, p.Transcript, p.CWD, false)
	switch {
	case err != nil:
		e.log.Warn("notes", "session", p.Session, "error", err)
	case r.Skipped == "":
		e.log.Info("notes", "session", p.Session, "by", r.By, "fallback", r.Fallback, "input_tokens", r.Usage.Input, "output_tokens", r.Usage.Output)
	}
}

// tidy dreams, if the gates let it (SPEC 9).
func (e *engine) tidy(p extractParams) {
	if !e.dream || p.Mixed {
		return
	}
	d := e.state.dreamer(p.Personal, p.Team, e.state.guardFor(p.Hub, p.TeamName), e.now)
	d.Due = e.dreamDue
	d.Model, d.TextOnly = e.live.open()
	d.Secrets = e.live.strict()
	d.Project, d.Session, d.Transcripts = p.Project, p.Session, []string{filepath.Dir(p.Transcript)}
	d.Record = e.state.audit(workDream, p.Personal, "", e.now, e.unrecorded)
	var r dream.Report
	err := e.state.runDream(e.ctx, d, func(ctx context.Context) (err error) {
		r, err = d.Run(ctx, dream.Options{})
		return err
	})
	if nerr := e.state.noteDream(p.Personal, r, err, e.now()); nerr != nil {
		e.log.Warn("dream: what became of it is not noted for status", "error", nerr)
	}
	switch {
	case err != nil:
		e.log.Warn("dream", "error", err)
	case r.Skipped != "":
		e.log.Debug("dream", "skipped", r.Skipped)
		return
	default:
		made, deleted := counted(r.Changes)
		e.log.Info("dream", "id", r.ID, "by", r.By, "changes", made, "deleted", deleted, "left", len(r.Left), "fallback", r.Fallback != "", "rounds", r.Rounds,
			"input_tokens", r.Usage.Input, "output_tokens", r.Usage.Output, "took", r.Took)
	}
	e.m.dreamt(r, err)
}

// unrecorded says that the audit record lacks something.
func (e *engine) unrecorded(err error) { e.log.Warn("audit", "error", err) }

func (e *engine) extractor(p extractParams, m model.Model, textOnly bool) *extract.Extractor {
	g := e.state.guardFor(p.Hub, p.TeamName)
	s := memories.New(p.Personal, p.Team, g)
	s.Now = e.now
	return &extract.Extractor{
		Model: m, Secrets: e.live.strict(), JSON: textOnly, Record: e.state.audit(workExtract, p.Personal, p.Session, e.now, e.unrecorded),
		Store: s, Guard: g, Project: p.Project, Dir: e.state.extractDir(p.Personal), Now: e.now,
	}
}

// close waits for the work under way, at most drain, and takes no more.
func (e *engine) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() { e.wg.Wait(); close(done) }()
	t := time.NewTimer(e.drain)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		e.log.Warn("work of the memory engine is cut off; it is done again after the next turn")
	}
	e.cancel()
	select {
	case <-done:
	case <-time.After(cutOffWait):
	}
}
