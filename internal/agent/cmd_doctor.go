package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/agent/control"
	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/agent/workspace"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
)

type doctorCmd struct {
	linkFlags
	JSON bool `name:"json" help:"Print JSON; see docs/cli.md."`
}

// checkup is one thing that was looked at.
type checkup struct {
	About  string `json:"about"`  // "agent", or a link's name
	Check  string `json:"check"`  // what was looked at
	Result string `json:"result"` // ok, warning or failure
	Detail string `json:"detail"`
}

// Run looks for what stands in the way, and changes nothing. It exits 1 when it finds
// a failure.
func (x *doctorCmd) Run(c *command) error {
	d := doctor{c: c}
	d.agent()
	d.clients()
	d.here()
	links, err := c.known(x.linkFlags)
	if err != nil {
		return err
	}
	if x.Dir != "" {
		l, err := c.flagLink(x.linkFlags)
		if err != nil {
			return err
		}
		links = slices.DeleteFunc(links, func(k Link) bool { return k.ID() == l.ID() })
		links = append(links, l)
	}
	if len(links) == 0 {
		d.add("agent", "links", "warning", "nothing is linked; run 'memsync-agent link'")
	}
	if err := checkLinks(links); err != nil {
		d.add("agent", "links", "failure", oneLine(err))
	}
	for _, l := range links {
		d.link(l)
	}
	if x.JSON {
		err = printJSON(c.Stdout, d.found)
	} else {
		for _, f := range d.found {
			fmt.Fprintf(c.Stdout, "%-8s %s: %s: %s\n", f.Result, visible(f.About), f.Check, visible(f.Detail))
		}
	}
	if err == nil && d.failed {
		return exitCode(ExitTrouble)
	}
	return err
}

// mixedPersonal is what to know where two projects have one memory directory.
const mixedPersonal = "the personal memories of both projects lie in that one directory, and each one's clients read the other's"

// here says whether the memory directory of the working directory is another project's.
func (d *doctor) here() {
	p, err := d.c.place(placeFlags{})
	if err == nil && p.closed != nil {
		d.add("agent", "memory directory", "warning", p.closed.why+"; "+mixedPersonal)
	}
}

type doctor struct {
	c      *command
	found  []checkup
	failed bool
}

func (d *doctor) add(about, check, result, detail string) {
	d.found = append(d.found, checkup{about, check, result, detail})
	d.failed = d.failed || result == "failure"
}

func (d *doctor) agent() {
	c := d.c
	switch fi, err := os.Stat(string(c.state)); {
	case errors.Is(err, os.ErrNotExist):
		d.add("agent", "state directory", "ok", string(c.state)+" is made at the first run")
	case err != nil:
		d.add("agent", "state directory", "failure", err.Error())
	case fi.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		d.add("agent", "state directory", "warning", fmt.Sprintf("%s can be entered by others (%v); run chmod 700 on it", string(c.state), fi.Mode().Perm()))
	default:
		d.add("agent", "state directory", "ok", string(c.state))
	}
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	var st Status
	switch err := control.Call(ctx, string(c.state), methodStatus, nil, &st); {
	case err == nil:
		d.add("agent", "daemon", "ok", fmt.Sprintf("process %d, version %s", st.PID, st.Version))
	case errors.Is(err, control.ErrNoDaemon):
		d.add("agent", "daemon", "warning", "none is running; start it with 'memsync-agent run' or 'install service'")
	default:
		d.add("agent", "daemon", "failure", oneLine(err))
	}
	for _, limit := range []struct {
		file string
		low  int
	}{{"max_user_watches", 8192}, {"max_user_instances", 128}} {
		b, err := os.ReadFile(filepath.Join("/proc/sys/fs/inotify", limit.file))
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n < limit.low {
			d.add("agent", "inotify", "warning", fmt.Sprintf("fs.inotify.%s is %d; directories beyond it are polled", limit.file, n))
		}
	}
}

func (d *doctor) link(l Link) {
	name := l.Name()
	if err := d.c.state.check(l); err != nil {
		d.add(name, "link", "failure", oneLine(err))
		return
	}
	d.dir(l)
	d.uploads(l)
	if why := personalContent(realDir(l.Dir)); why != "" {
		d.add(name, "directory", "warning", l.Dir+" "+why+"; if the team put that there, all is well, else unlink this directory")
	}
	file := d.c.state.tokenFileOf(l)
	if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) && l.tokenOptional() {
		d.add(name, "token", "ok", "none; the client certificate "+l.CertFile+" says who calls")
		d.hub(l)
		return
	}
	if _, err := client.ReadTokenFile(file); err != nil {
		d.add(name, "token", "failure", oneLine(err))
		return
	}
	if fi, err := os.Stat(file); err == nil && fi.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		d.add(name, "token", "warning", fmt.Sprintf("%s can be read by others (%v); run chmod 600 on it", file, fi.Mode().Perm()))
	} else {
		d.add(name, "token", "ok", file)
	}
	d.hub(l)
}

// uploads says why files of a link may not be sent, if so. It ends nothing itself.
func (d *doctor) uploads(l Link) {
	leave, holder, left, err := workspace.EnterUploads(l.Dir)
	switch {
	case err == nil:
		leave()
	case left && holder.StateDir != realDir(string(d.c.state)):
		d.add(l.Name(), "uploads", "failure", oneLine(otherDream(*holder)))
	case left:
		d.add(l.Name(), "uploads", "warning", "a dream was cut off; it is ended before the next file is sent")
	default:
		d.add(l.Name(), "uploads", "warning", "they wait: "+oneLine(err))
	}
}

func (d *doctor) dir(l Link) {
	name := l.Name()
	ws, err := workspace.New(l.Dir, workspace.Options{Now: d.c.Now, Project: l.Key()})
	if err != nil {
		d.add(name, "directory", "failure", err.Error())
		return
	}
	snap, err := ws.Scan(d.c.ctx)
	switch {
	case err != nil:
		d.add(name, "directory", "failure", err.Error())
	case snap.Root != syncer.RootOK:
		d.add(name, "directory", "failure", snap.Detail)
	default:
		detail := fmt.Sprintf("%s, %s", l.Dir, count(len(snap.Files), "memory file"))
		if state, err := d.c.peek(l); err == nil && len(state.Baseline) != len(snap.Files) {
			detail += fmt.Sprintf(" on disk, %d agreed with the hub; 'memsync-agent status' says what the others wait for", len(state.Baseline))
		}
		d.add(name, "directory", "ok", detail)
		if len(snap.Unreadable) > 0 {
			d.add(name, "directory", "warning", fmt.Sprintf("%s cannot be read and are left alone", count(len(snap.Unreadable), "path")))
		}
		for _, r := range snap.Refused {
			d.add(name, "names", "warning", r.Violation.String())
		}
	}
	d.claimed(l)
}

// cleanupDays is after how long old versions of one client sweep files out of
// subfolders of its memory directory (SPEC 2.6).
const cleanupDays = 30

// claimed says what else may lay its hands on the directory (SPEC 2.6). Only the place
// tells: a client that syncs a team folder of its own uses the one inside its memory
// directory, and so does the sweep of old versions.
func (d *doctor) claimed(l Link) {
	parent := filepath.Dir(realDir(l.Dir))
	if !isClientMemory(parent) {
		return
	}
	d.add(l.Name(), "directory", "warning", fmt.Sprintf("%s belongs to a coding client; if that client has a team sync of its own turned on, turn one of the two off, or link another folder", parent))
	old := 0
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() && d.c.Now().Sub(fi.ModTime()) > cleanupDays*24*time.Hour {
			old++
		}
	}
	if old > 0 {
		d.add(l.Name(), "directory", "warning", fmt.Sprintf("%s older than %d days; old versions of one client delete such files, and a few at a time go to the hub as deletes, which 'memsync-agent restore' takes back: update the client, or link another folder", count(old, "file"), cleanupDays))
	}
}

func (d *doctor) hub(l Link) {
	name := l.Name()
	cl, err := d.c.dial(l)
	if err != nil {
		d.add(name, "hub", "failure", oneLine(err))
		return
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(d.c.ctx, 10*time.Second)
	defer cancel()
	info, err := cl.Project(ctx, l.Key(), memory.Cursor{})
	switch {
	case errors.Is(err, memory.ErrNotFound):
		d.add(name, "hub", "failure", "the hub knows no such project that this token may see; make it with 'memsync-agent link --create', or check team and project")
	case err != nil:
		d.add(name, "hub", "failure", oneLine(err))
	default:
		d.add(name, "hub", "ok", fmt.Sprintf("%s, revision %d, %s", l.Hub, info.Head.Revision, count(int(info.Files), "memory file")))
	}
}
