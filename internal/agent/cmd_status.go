package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/syncstate"
	"github.com/memsvc/memsvc/internal/buildinfo"
)

type statusCmd struct {
	JSON    bool          `name:"json" help:"Print JSON; see docs/cli.md."`
	Wait    bool          `help:"Look at the directories now and wait until all is in step. Exit 3: something waits for a person."`
	Timeout time.Duration `help:"How long to wait." default:"30s"`
}

// Run shows how the links are: as the daemon tells, else as their state on disk does.
func (s *statusCmd) Run(c *command) error {
	if s.Timeout < 0 {
		return negativeTimeout(s.Timeout)
	}
	st, err := s.read(c)
	if err != nil {
		return err
	}
	st = c.withEngine(st)
	if p, err := c.place(placeFlags{}); err == nil && p.closed != nil {
		st.Here = p.closed.why
	}
	if s.JSON {
		err = printJSON(c.Stdout, st)
	} else {
		err = st.print(c.Stdout, c.Now())
	}
	if err != nil || !s.Wait {
		return err
	}
	if code := st.exit(); code != ExitOK {
		return exitCode(code)
	}
	return nil
}

func (s *statusCmd) read(c *command) (Status, error) {
	var st Status
	method, timeout := methodStatus, defaultTimeout
	if s.Wait {
		method, timeout = methodSettle, s.Timeout
	}
	ctx, cancel := context.WithTimeout(c.ctx, timeout)
	defer cancel()
	err := control.Call(ctx, string(c.state), method, nil, &st)
	switch {
	case errors.Is(err, control.ErrNoDaemon):
		return c.storedStatus()
	case s.Wait && c.ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, &control.Error{Code: control.CodeDeadline})):
		// Time is up: say how things stand all the same.
		ctx, cancel := context.WithTimeout(c.ctx, defaultTimeout)
		defer cancel()
		err = control.Call(ctx, string(c.state), methodStatus, nil, &st)
	}
	if err != nil {
		return st, err
	}
	return c.withUnserved(st)
}

// withUnserved adds what is linked and not served by the daemon: it could not be
// started, or the settings file is another one.
func (c *command) withUnserved(st Status) (Status, error) {
	var served []Link
	for _, l := range st.Links {
		served = append(served, l.Link)
	}
	all, err := c.withLinked(served, linkFlags{})
	if err != nil {
		return st, err
	}
	for _, l := range all[len(served):] {
		s := c.stored(l)
		s.Todo = "the running daemon does not serve it: its log says why, or it was started with another settings file"
		st.Links, st.InStep = append(st.Links, s), false
	}
	return st, nil
}

// stored tells what a link's state on disk says.
func (c *command) stored(l Link) LinkStatus {
	state, err := c.peek(l)
	if err != nil {
		s := newLinkStatus(l)
		s.Phase, s.LastError = PhaseNotRunning, errorInfo(err, c.Now())
		return s
	}
	return storedStatus(l, state, c.Now())
}

// storedStatus reads what the links' states say, without a daemon, and writes nothing.
func (c *command) storedStatus() (Status, error) {
	st := Status{Version: buildinfo.Read().Version, StateDir: string(c.state), Hubs: []HubStatus{}, Links: []LinkStatus{}}
	links, err := c.known(linkFlags{})
	if err != nil {
		return st, err
	}
	linked, err := c.withLinked(nil, linkFlags{})
	if err != nil {
		return st, err
	}
	for _, l := range links {
		s := c.stored(l)
		if s.Todo == todoStart && !slices.ContainsFunc(linked, func(k Link) bool { return k.ID() == l.ID() }) {
			s.Todo = "only flags named it, so 'memsync-agent run' alone does not serve it: give run or sync these flags again, or tie it with 'memsync-agent link' and the same flags"
		}
		st.Links = append(st.Links, s)
	}
	return st, nil
}

// peek reads a link's state, also while a daemon writes it, and writes nothing.
func (c *command) peek(l Link) (syncer.LinkState, error) {
	s, err := syncstate.OpenReadOnly(string(c.state), l.ID(), syncstate.Options{Now: c.Now})
	if err != nil {
		return syncer.LinkState{}, err
	}
	st, err := s.Load(c.ctx)
	return st, errors.Join(err, s.Close())
}

// exit is the exit code that a status amounts to.
func (s Status) exit() int {
	code := ExitOK
	for _, l := range s.Links {
		switch {
		case l.InStep:
		case l.Phase == PhaseOffline, l.Phase == PhaseFailing, l.Phase == PhaseStopped:
			code = ExitTrouble
		case l.Halt != nil, l.stuck(), len(l.Refusals) > 0, len(l.Conflicts) > 0, len(l.Unreadable) > 0, l.Phase == Phase(syncer.PhaseNoRoot):
			if code == ExitOK {
				code = ExitPerson
			}
		default:
			code = ExitTrouble
		}
	}
	if !s.Running {
		code = ExitTrouble
	}
	return code
}

func printJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(escaped(b), '\n'))
	return err
}

// print writes the status for a person.
func (s Status) print(w io.Writer, now time.Time) error {
	var b strings.Builder
	switch {
	case !s.Running:
		fmt.Fprintf(&b, "no daemon is running for %s\n", s.StateDir)
	default:
		fmt.Fprintf(&b, "memsync-agent %s, process %d, state in %s\n", s.Version, s.PID, s.StateDir)
	}
	for _, h := range s.Hubs {
		if h.Connected {
			fmt.Fprintf(&b, "hub %s: connected for %s, its clock %+d ms from ours\n", h.Addr, age(now, h.Since), h.OffsetMS)
		} else if h.Error != "" {
			fmt.Fprintf(&b, "hub %s: not connected for %s: %s\n", h.Addr, age(now, h.Since), h.Error)
		} else {
			fmt.Fprintf(&b, "hub %s: connecting\n", h.Addr)
		}
	}
	if s.Model != nil {
		b.WriteString(s.Model.line())
	}
	for _, d := range s.Dreams {
		b.WriteString(d.line(now))
	}
	if s.Here != "" {
		fmt.Fprintf(&b, "here: %s\n", s.Here)
	}
	if len(s.Links) == 0 {
		fmt.Fprintln(&b, "nothing is linked")
	}
	if _, err := io.WriteString(w, visibleText(b.String())); err != nil {
		return err
	}
	return s.printLinks(w, now)
}

func (s Status) printLinks(w io.Writer, now time.Time) error {
	var b strings.Builder
	for _, l := range s.Links {
		l.print(&b, now)
	}
	_, err := io.WriteString(w, visibleText(b.String()))
	return err
}

func (s LinkStatus) print(b *strings.Builder, now time.Time) {
	fmt.Fprintf(b, "\n%s  %s\n", s.Name(), s.Dir)
	fmt.Fprintf(b, "  %s, revision %d", s.Phase, s.Revision)
	if s.HubRevision > s.Revision {
		fmt.Fprintf(b, " of %d", s.HubRevision)
	}
	fmt.Fprintf(b, ", %s", count(s.Files, "file"))
	if s.Pending > 0 {
		fmt.Fprintf(b, ", %d pending", s.Pending)
	}
	if s.LastSuccess != nil {
		fmt.Fprintf(b, ", last in touch %s ago", age(now, *s.LastSuccess))
	}
	fmt.Fprintln(b)
	switch s.Watching.How {
	case "polling":
		fmt.Fprintf(b, "  watched by polling: %s\n", s.Watching.Reason)
	case "missing":
		fmt.Fprintf(b, "  not watched: %s\n", s.Watching.Reason)
	}
	if w := s.UploadsWait; w != nil {
		fmt.Fprintf(b, "  uploads wait since %s: %s\n", age(now, w.Since), w.Why)
	}
	if s.RootDetail != "" {
		fmt.Fprintf(b, "  directory: %s\n", s.RootDetail)
	}
	if h := s.Halt; h != nil {
		fmt.Fprintf(b, "  halted %s ago: %s\n", age(now, h.Since), h.Reason)
		for i, p := range h.Missing {
			if i == 10 {
				fmt.Fprintf(b, "    and %d more\n", len(h.Missing)-i)
				break
			}
			fmt.Fprintf(b, "    missing: %s\n", p)
		}
	}
	for _, r := range s.Refusals {
		if len(r.Findings) == 0 {
			fmt.Fprintf(b, "  refused: %s (by %s)\n", r.Path, r.By)
		}
		for _, f := range r.Findings {
			fmt.Fprintf(b, "  refused: %s\n", f)
		}
		if r.RenamedFrom != "" {
			fmt.Fprintf(b, "    renamed from %s: the hub has it there until %s is sent\n", r.RenamedFrom, r.Path)
		}
	}
	for _, c := range s.Conflicts {
		fmt.Fprintf(b, "  conflict %s: %s, %s, open for %s%s\n", c.ID, c.Path, c.hub(), age(now, c.Since), c.alone())
	}
	for _, p := range s.Unreadable {
		fmt.Fprintf(b, "  cannot be read, left alone: %s\n", p)
	}
	b.WriteString(s.warningLines(len(s.Warnings)))
	b.WriteString(s.happenedLine())
	if e := s.LastError; e != nil {
		fmt.Fprintf(b, "  error %s ago: %s\n", age(now, e.Time), strings.ReplaceAll(e.Message, "\n", "; "))
	}
	if s.Todo != "" {
		fmt.Fprintf(b, "  to do: %s\n", s.Todo)
	}
}

// warningLines returns what was said of shared files, a line each, the newest at most.
func (s LinkStatus) warningLines(most int) string {
	var b strings.Builder
	more := max(0, len(s.Warnings)-most)
	for _, f := range s.Warnings[more:] {
		fmt.Fprintf(&b, "  warning: %s\n", f)
	}
	if more > 0 {
		fmt.Fprintf(&b, "  and %s before\n", count(more, "warning"))
	}
	return b.String()
}

// String returns path:line: message (rule), and of a secret by which fingerprint a team
// can let it through.
func (f Finding) String() string {
	where := f.Path
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d", f.Path, f.Line)
	}
	return fmt.Sprintf("%s: %s (%s%s)", where, f.Message, f.Rule, f.allowedBy(", "))
}

// allowedBy names the fingerprint, if there is one, after sep.
func (f Finding) allowedBy(sep string) string {
	if f.Fingerprint == "" {
		return ""
	}
	return sep + "fingerprint " + f.Fingerprint
}

// age says how long ago t was, as a person would.
func age(now, t time.Time) string {
	d := max(0, now.Sub(t))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
