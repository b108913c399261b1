package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/dream"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
)

type dreamCmd struct {
	What string `arg:"" optional:"" default:"tidy" enum:"tidy,log" help:"tidy, or log: list the dreams that are still recorded, the newest first."`
	placeFlags
	dreamFlags
	DryRun bool `cmdline:"" help:"Show what would be changed, and why; change nothing." xor:"what"`
	Force  bool `cmdline:"" help:"Now, whenever the last dream was and however little was done since." xor:"when"`
	Undo   bool `cmdline:"" help:"Take the last dream back." xor:"what,when"`
	JSON   bool `name:"json" help:"Print JSON; see docs/lifecycle.md."`
}

// dreamEntry is a report as --json prints it.
type dreamEntry struct {
	DryRun   bool          `json:"dry_run"`
	Skipped  string        `json:"skipped,omitempty"` // the gate that it did not pass
	ID       string        `json:"id,omitempty"`
	By       string        `json:"by,omitempty"`       // rules or model
	Fallback string        `json:"fallback,omitempty"` // why rules alone were followed
	Last     *time.Time    `json:"last,omitempty"`     // the dream before
	Sessions int           `json:"sessions"`           // others touched since
	Changes  []tidiedEntry `json:"changes"`
	Left     []leftEntry   `json:"left"`
	Rounds   int           `json:"rounds"`
	Tokens   int           `json:"tokens"`
	MS       int64         `json:"ms"`
}

// tidiedEntry is what a dream did, or would do, to one file.
type tidiedEntry struct {
	Ref     string   `json:"ref"`
	Kind    string   `json:"kind"` // create, edit or delete
	Reasons []string `json:"reasons"`
	Into    string   `json:"into,omitempty"` // the memory that says what this one said
	// Superseded are lines of it that went, since a newer memory says otherwise.
	Superseded []string `json:"superseded,omitempty"`
	Skipped    string   `json:"skipped,omitempty"` // why it was not done after all
	Diff       string   `json:"diff,omitempty"`    // of a dry run, in the unified form
}

// leftEntry is what a dream left as it is.
type leftEntry struct {
	Ref string `json:"ref,omitempty"`
	Why string `json:"why"`
}

// pastDream is a record as `dream log --json` prints it.
type pastDream struct {
	ID      string        `json:"id"`
	Time    time.Time     `json:"time"`
	By      string        `json:"by"`
	Undone  *time.Time    `json:"undone,omitempty"`
	Changes []tidiedEntry `json:"changes"`
	Left    []leftEntry   `json:"left"`
}

func dreamEntryOf(r dream.Report) dreamEntry {
	e := dreamEntry{
		DryRun: r.DryRun, Skipped: string(r.Skipped), ID: r.ID, By: r.By, Fallback: r.Fallback, Sessions: r.Sessions,
		Changes: tidiedEntries(r.Changes, r.DryRun), Left: leftEntries(r.Left), Rounds: r.Rounds, Tokens: r.Usage.Input + r.Usage.Output, MS: r.Took.Milliseconds(),
	}
	if !r.Last.IsZero() {
		last := r.Last.UTC()
		e.Last = &last
	}
	return e
}

func tidiedEntries(changes []dream.Change, withDiff bool) []tidiedEntry {
	out := []tidiedEntry{}
	for _, c := range changes {
		e := tidiedEntry{Ref: c.Ref.String(), Kind: string(c.Kind), Reasons: append([]string{}, c.Reasons...), Skipped: c.Skipped}
		if c.Skipped == "" {
			e.Superseded = c.Superseded
		}
		if c.Into != (memories.Ref{}) {
			e.Into = c.Into.String()
		}
		if withDiff {
			var b bytes.Buffer
			unified(&b, e.Ref, "now", "then", c.Old, c.New, c.Kind != dream.Create, c.Kind != dream.Delete)
			e.Diff = b.String()
		}
		out = append(out, e)
	}
	return out
}

func leftEntries(left []dream.Left) []leftEntry {
	out := []leftEntry{}
	for _, l := range left {
		out = append(out, leftEntry(l))
	}
	return out
}

// Run tidies, shows what tidying would do, takes the last dream back, or lists them.
func (x *dreamCmd) Run(c *command) error {
	p, err := c.place(x.placeFlags)
	if err != nil {
		return err
	}
	if x.What == "log" {
		if x.DryRun || x.Force || x.Undo {
			return usage("dream log takes none of --dry-run, --force and --undo: it changes nothing")
		}
		return x.log(c, p)
	}
	if p.closed != nil {
		return usage("no dream here, for it would tidy what two projects wrote into one directory: %v", p.closed)
	}
	d := c.state.dreamer(p.Dir, p.team, c.guardOf(p), c.Now)
	if d.Due, err = x.due(); err != nil {
		return err
	}
	d.Model, d.TextOnly, d.Project = c.modelOrNone(), c.models.textOnly(), p.Root
	d.Secrets = c.secrets
	d.Record = c.state.audit(workDream, p.Dir, "", c.Now, c.unrecorded)
	if d.Transcripts, err = c.transcriptDirs(false); err != nil {
		return err
	}
	var r dream.Report
	do := func(ctx context.Context) (err error) {
		if x.Undo {
			r, err = d.Undo(ctx)
		} else {
			r, err = d.Run(ctx, dream.Options{DryRun: x.DryRun, Force: x.Force})
		}
		return err
	}
	stop := c.elapsed("dreaming")
	if x.DryRun {
		err = do(c.ctx) // nothing is written, so nobody has to wait
	} else {
		err = c.state.runDream(c.ctx, d, do)
	}
	stop()
	if x.Undo && err == nil {
		err = c.state.noteUndone(p.Dir, r.ID, c.Now())
	}
	if !x.Undo {
		if nerr := c.state.noteDream(p.Dir, r, err, c.Now()); nerr != nil {
			err = errors.Join(err, nerr)
		}
	}
	if err != nil {
		return err
	}
	if x.JSON {
		return printJSON(c.Stdout, dreamEntryOf(r))
	}
	return x.print(c.Stdout, r, d.Due, c.Now())
}

// print tells a person what was done, or would be.
func (x *dreamCmd) print(w io.Writer, r dream.Report, due dream.Due, now time.Time) error {
	var b strings.Builder
	e := dreamEntryOf(r)
	if r.Skipped != "" {
		fmt.Fprintf(&b, "nothing to do: %s\n", gateText(r, due, now))
	}
	for _, ch := range e.Changes {
		b.WriteString(ch.line(x.DryRun))
		b.WriteString(ch.Diff)
	}
	for _, l := range e.Left {
		where := ""
		if l.Ref != "" {
			where = visible(l.Ref) + ": "
		}
		fmt.Fprintf(&b, "left as it is: %s%s\n", where, visible(l.Why))
	}
	if r.Fallback != "" {
		fmt.Fprintf(&b, "without the model: %s\n", visible(r.Fallback))
	}
	switch {
	case r.Skipped != "":
	case len(e.Changes) == 0:
		b.WriteString("everything is tidy\n")
	case r.ID != "" && !x.Undo:
		fmt.Fprintf(&b, "dream %s; 'memsync-agent dream --undo' takes it back\n", r.ID)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// line is one change as a person reads it.
func (c tidiedEntry) line(would bool) string {
	did := map[string]string{"create": "created", "edit": "edited", "delete": "deleted"}[c.Kind]
	switch {
	case c.Skipped != "":
		return fmt.Sprintf("not %s: %s: %s\n", did, visible(c.Ref), visible(c.Skipped))
	case would:
		did = "would " + c.Kind
	}
	text := did + " " + visible(c.Ref)
	if len(c.Reasons) > 0 {
		text += ": " + visible(strings.Join(c.Reasons, "; "))
	}
	if c.Into != "" {
		text += ", now in " + visible(c.Into)
	}
	for _, line := range c.Superseded {
		text += "\n  superseded: " + visible(line)
	}
	return text + "\n"
}

// gateText says why it is not time for a dream.
func gateText(r dream.Report, due dream.Due, now time.Time) string {
	force := "--force dreams now"
	if r.DryRun {
		force = "--force shows what it would do"
	}
	switch r.Skipped {
	case dream.GateEmpty:
		return "there are no memories"
	case dream.GateTime:
		return fmt.Sprintf("the last dream was %s ago, and %s should lie between; %s", age(now, r.Last), age(now, now.Add(-due.Pause)), force)
	case dream.GateLooked:
		return fmt.Sprintf("somebody looked less than %s ago; %s", age(now, now.Add(-due.LookPause)), force)
	case dream.GateSessions:
		return fmt.Sprintf("%s since the last dream, and %d make it worth while; %s", count(r.Sessions, "other session"), due.Sessions, force)
	case dream.GateLock:
		return "somebody else is dreaming, or a client tidies by itself"
	}
	return string(r.Skipped)
}

// elapsed shows a person at a terminal that work goes on.
func (c *command) elapsed(what string) (stop func()) {
	if !c.terminal() {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		began := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				fmt.Fprint(c.Stderr, "\r\x1b[K")
				return
			case <-tick.C:
				fmt.Fprintf(c.Stderr, "\r\x1b[K%s, %d s", what, int(time.Since(began).Seconds()))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// log lists past dreams.
func (x *dreamCmd) log(c *command, p place) error {
	records, err := c.state.dreamer(p.Dir, p.team, c.guardOf(p), c.Now).Log(c.ctx)
	if err != nil {
		return err
	}
	entries := []pastDream{}
	for _, r := range records {
		entries = append(entries, pastDreamOf(r))
	}
	if x.JSON {
		return printJSON(c.Stdout, entries)
	}
	for _, e := range entries {
		undone := ""
		if e.Undone != nil {
			undone = ", taken back"
		}
		fmt.Fprintf(c.Stdout, "%s  %s ago, by %s: %s%s\n", e.ID, age(c.Now(), e.Time), e.By, count(len(e.Changes), "change"), undone)
		for _, ch := range e.Changes {
			fmt.Fprint(c.Stdout, "  "+strings.ReplaceAll(ch.line(false), "\n  ", "\n    "))
		}
	}
	if len(entries) == 0 {
		fmt.Fprintln(c.Stdout, "no dreams yet")
	}
	return nil
}

func pastDreamOf(r dream.Record) pastDream {
	e := pastDream{ID: r.ID, Time: r.Time.UTC(), By: r.By, Changes: tidiedEntries(r.Changes, false), Left: leftEntries(r.Left)}
	if !r.Undone.IsZero() {
		t := r.Undone.UTC()
		e.Undone = &t
	}
	return e
}
