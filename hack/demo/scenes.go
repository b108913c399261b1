package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, "   "+format+"\n", args...) }

// write saves a file the way an editor does: a new file beside, then a rename.
func write(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(name), ".demo-"+filepath.Base(name)+".tmp")
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

func writeAll(dir string, files map[string]string) error {
	for name, text := range files {
		if err := write(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nil
}

func read(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(b)
}

func there(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func list(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// arrives waits until the other machine's file holds text, and says how long it took.
func (d *demo) arrives(to *machine, name, text string, since time.Time) error {
	if err := d.until(to.name+" gets "+name, func() bool { return read(filepath.Join(to.team, name)) == text }); err != nil {
		return err
	}
	d.say("✓ %s is on the %s after %d ms", name, to.name, time.Since(since).Milliseconds())
	return nil
}

func (d *demo) start() error {
	if err := d.startHub(); err != nil {
		return err
	}
	d.say("hub: gRPC %s, REST http://%s, process %d, data in one file below %s", d.grpc, d.http, d.hub.cmd.Process.Pid, d.tmp)
	var err error
	if d.laptop, err = d.newMachine("laptop"); err != nil {
		return err
	}
	if d.desktop, err = d.newMachine("desktop"); err != nil {
		return err
	}
	for _, m := range []*machine{d.laptop, d.desktop} {
		d.say("%s: %s", m.name, m.team)
	}
	return nil
}

func (d *demo) firstSync() error {
	for dir, files := range map[string]map[string]string{
		d.laptop.team: laptopTeam, d.laptop.memory: laptopPersonal, d.desktop.team: desktopTeam, d.desktop.memory: desktopPersonal,
	} {
		if err := writeAll(dir, files); err != nil {
			return err
		}
	}
	d.say("laptop's team/:  %s", strings.Join(list(d.laptop.team), "  "))
	d.say("desktop's team/: %s", strings.Join(list(d.desktop.team), "  "))
	for _, m := range []*machine{d.laptop, d.desktop} {
		if err := d.startAgent(m); err != nil {
			return err
		}
	}
	want := len(laptopTeam) + len(desktopTeam)
	if err := d.until("both have all files", func() bool {
		a, b := list(d.laptop.team), list(d.desktop.team)
		return len(a) == want && slices.Equal(a, b)
	}); err != nil {
		return err
	}
	for _, m := range []*machine{d.laptop, d.desktop} {
		if err := d.settle(m); err != nil {
			return err
		}
	}
	d.say("✓ both now: %s", strings.Join(list(d.desktop.team), "  "))
	return nil
}

func (d *demo) edit() error {
	const name = "reference_dashboards.md"
	text := laptopTeam[name] + "Queue length: the same folder, \"Queues\".\n"
	since := time.Now()
	if err := write(filepath.Join(d.laptop.team, name), text); err != nil {
		return err
	}
	d.say("on the laptop a line is added to %s", name)
	return d.arrives(d.desktop, name, text, since)
}

func (d *demo) chinese() error {
	const name = "feedback_提交说明.md"
	const text = "---\nname: 提交说明\ndescription: 提交说明写为什么，不写做了什么\ntype: feedback\n---\n提交说明先写原因。代码已经说明了做了什么。\n"
	since := time.Now()
	if err := write(filepath.Join(d.desktop.team, name), text); err != nil {
		return err
	}
	d.say("on the desktop %s is written", name)
	return d.arrives(d.laptop, name, text, since)
}

func (d *demo) rename() error {
	const from, to = "reference_bank_contacts.md", "reference_bank_support.md"
	since := time.Now()
	if err := os.Rename(filepath.Join(d.laptop.team, from), filepath.Join(d.laptop.team, to)); err != nil {
		return err
	}
	d.say("on the laptop %s is renamed to %s", from, to)
	if err := d.arrives(d.desktop, to, desktopTeam[from], since); err != nil {
		return err
	}
	if err := d.until("the old name is gone", func() bool { return !there(filepath.Join(d.desktop.team, from)) }); err != nil {
		return err
	}
	out, _, err := d.call("memsync-agent", "log", to, "--json", "--state-dir", d.desktop.state)
	if err != nil {
		return err
	}
	var commits []struct {
		Revision int64
		Changes  []struct {
			Path        string
			RenamedFrom string `json:"renamed_from"`
		}
	}
	if err := json.Unmarshal([]byte(out), &commits); err != nil {
		return err
	}
	if len(commits) < 2 || !slices.ContainsFunc(commits[0].Changes, func(c struct {
		Path        string
		RenamedFrom string `json:"renamed_from"`
	}) bool {
		return c.Path == to && c.RenamedFrom == from
	}) {
		return fmt.Errorf("%w: the log of %s goes back over the rename:\n%s", errNotSeen, to, out)
	}
	d.say("✓ its log goes back over the rename: revisions %d and %d", commits[0].Revision, commits[len(commits)-1].Revision)
	return nil
}

func (d *demo) remove() error {
	const name = "feedback_提交说明.md"
	since := time.Now()
	if err := os.Remove(filepath.Join(d.desktop.team, name)); err != nil {
		return err
	}
	d.say("on the desktop %s is deleted", name)
	if err := d.until("it is gone on the laptop", func() bool { return !there(filepath.Join(d.laptop.team, name)) }); err != nil {
		return err
	}
	d.say("✓ gone on the laptop after %d ms; the hub keeps its history", time.Since(since).Milliseconds())
	return nil
}

// both writes two texts while neither agent looks, so that neither knows of the other's,
// however long this takes.
func (d *demo) both(name, ofLaptop, ofDesktop string) error {
	for _, m := range []*machine{d.laptop, d.desktop} {
		if err := d.settle(m); err != nil {
			return err
		}
	}
	for _, m := range []*machine{d.laptop, d.desktop} {
		if err := hold(m.agent.cmd.Process); err != nil {
			return err
		}
		defer func() { _ = resume(m.agent.cmd.Process) }() // it may have ended, which others notice
	}
	if err := write(filepath.Join(d.laptop.team, name), ofLaptop); err != nil {
		return err
	}
	return write(filepath.Join(d.desktop.team, name), ofDesktop)
}

func (d *demo) merge() error {
	const name = "project_release_freeze.md"
	base := laptopTeam[name]
	ofLaptop := strings.Replace(base, "No releases of the payment service from", "No releases of the payment and refund services from", 1)
	ofDesktop := base + "Ask in #releases before the freeze if in doubt.\n"
	want := ofLaptop + "Ask in #releases before the freeze if in doubt.\n"
	if err := d.both(name, ofLaptop, ofDesktop); err != nil {
		return err
	}
	d.say("at the same moment the first line of %s is changed on the laptop, and one is added at its end on the desktop", name)
	if err := d.until("both have the merged text", func() bool {
		return read(filepath.Join(d.laptop.team, name)) == want && read(filepath.Join(d.desktop.team, name)) == want
	}); err != nil {
		return err
	}
	d.say("✓ both machines hold both changes; no conflict")
	return nil
}

func (d *demo) conflict() error {
	const name = "project_结算规则.md"
	base := laptopTeam[name]
	ofLaptop, ofDesktop := strings.Replace(base, "17:00", "16:30", 1), strings.Replace(base, "17:00", "18:00", 1)
	if err := d.both(name, ofLaptop, ofDesktop); err != nil {
		return err
	}
	d.say("at the same moment the laptop writes 16:30 and the desktop 18:00 into the same line of %s", name)
	type entry struct{ ID, Path string }
	var found entry
	var loser *machine
	if err := d.until("one of the agents reports a conflict", func() bool {
		for _, m := range []*machine{d.laptop, d.desktop} {
			out, _, err := d.call("memsync-agent", "conflicts", "list", "--json", "--state-dir", m.state)
			var all []entry
			if err == nil && json.Unmarshal([]byte(out), &all) == nil && len(all) == 1 {
				found, loser = all[0], m
				return true
			}
		}
		return false
	}); err != nil {
		return err
	}
	winner, lost, won := d.laptop, ofDesktop, ofLaptop
	if loser == d.laptop {
		winner, lost, won = d.desktop, ofLaptop, ofDesktop
	}
	if err := d.until("both have the hub's text in place", func() bool {
		return read(filepath.Join(d.laptop.team, name)) == won && read(filepath.Join(d.desktop.team, name)) == won
	}); err != nil {
		return err
	}
	list, _, err := d.call("memsync-agent", "conflicts", "list", "--state-dir", loser.state)
	if err != nil {
		return err
	}
	show, _, err := d.call("memsync-agent", "conflicts", "show", found.ID, "--state-dir", loser.state)
	if err != nil {
		return err
	}
	if !strings.Contains(show, lost) || !strings.Contains(show, won) {
		return fmt.Errorf("%w: both texts in 'conflicts show':\n%s", errNotSeen, show)
	}
	d.say("✓ the %s was first, so that text is in place; the %s's is kept. There:", winner.name, loser.name)
	d.say("  $ memsync-agent conflicts list")
	d.quote(list)
	d.say("  $ memsync-agent conflicts show %s", found.ID)
	d.quote(show)
	merged := strings.Replace(base, "17:00", "17:30", 1)
	file := filepath.Join(d.tmp, "merged.md")
	if err := os.WriteFile(file, []byte(merged), 0o600); err != nil {
		return err
	}
	if _, _, err := d.call("memsync-agent", "conflicts", "resolve", found.ID, "--merged", file, "--state-dir", loser.state); err != nil {
		return err
	}
	if err := d.until("both have the text that resolves it", func() bool {
		return read(filepath.Join(d.laptop.team, name)) == merged && read(filepath.Join(d.desktop.team, name)) == merged
	}); err != nil {
		return err
	}
	d.say("✓ the %s resolves it with a third text (17:30), and both machines have it", loser.name)
	return nil
}

func (d *demo) quote(text string) {
	for line := range strings.Lines(text) {
		d.say("    %s", strings.TrimRight(line, "\n"))
	}
}

func (d *demo) secret() error {
	const name = "reference_bank_api.md"
	// Made here from parts, so that this file holds nothing that looks like one.
	secret := "ghp_" + "Zk3vQ8mN1xR7" + "tY5wB2cJ9dL4" + "pH6sF0gA8eU1"
	text := "---\nname: Bank API\ndescription: How to call the bank's test API\ntype: reference\n---\nBase URL: https://test.bank.example\n\nToken: " + secret + "\n"
	const line = 8
	if err := write(filepath.Join(d.laptop.team, name), text); err != nil {
		return err
	}
	d.say("on the laptop %s is written, with a token in line %d", name, line)
	type finding struct {
		Path, Rule string
		Line       int
	}
	var status struct {
		Links []struct {
			Refusals []struct{ Findings []finding }
		}
	}
	var raw string
	if err := d.until("status names file, line and rule", func() bool {
		out, _, err := d.call("memsync-agent", "status", "--json", "--state-dir", d.laptop.state)
		if err != nil || json.Unmarshal([]byte(out), &status) != nil || len(status.Links) != 1 {
			return false
		}
		raw = out
		for _, r := range status.Links[0].Refusals {
			for _, f := range r.Findings {
				if f.Path == name && f.Line == line && f.Rule != "" {
					return true
				}
			}
		}
		return false
	}); err != nil {
		return err
	}
	human, _, err := d.call("memsync-agent", "status", "--state-dir", d.laptop.state)
	if err != nil {
		return err
	}
	d.say("  $ memsync-agent status")
	d.quote(human)
	for what, text := range map[string]string{"status": raw + human, "the hub's log": d.hub.log.String(), "the laptop's log": d.laptop.agent.log.String()} {
		if strings.Contains(text, secret) {
			return fmt.Errorf("the secret stands in %s", what)
		}
	}
	paths, err := d.hubPaths()
	if err != nil {
		return err
	}
	if slices.Contains(paths, name) || there(filepath.Join(d.desktop.team, name)) {
		return fmt.Errorf("%s has left the machine", name)
	}
	d.say("✓ it is neither on the hub nor on the desktop; the rest goes on")
	since := time.Now()
	clean := strings.Replace(text, secret, "see the vault, payments/bank", 1)
	if err := write(filepath.Join(d.laptop.team, name), clean); err != nil {
		return err
	}
	d.say("on the laptop the token is replaced by where it is kept")
	return d.arrives(d.desktop, name, clean, since)
}

func (d *demo) personal() error {
	const inTeam = "user_misplaced.md"
	if err := write(filepath.Join(d.laptop.team, inTeam), laptopPersonal["user_role.md"]); err != nil {
		return err
	}
	d.say("on the laptop a user memory is even copied into team/, by mistake")
	if err := d.until("it is refused", func() bool {
		out, _, err := d.call("memsync-agent", "status", "--state-dir", d.laptop.state)
		return err == nil && strings.Contains(out, inTeam) && strings.Contains(out, "type-user")
	}); err != nil {
		return err
	}
	d.say("✓ refused: a memory of type user is never shared")
	if err := os.Remove(filepath.Join(d.laptop.team, inTeam)); err != nil {
		return err
	}
	for _, m := range []*machine{d.laptop, d.desktop} {
		if err := d.settle(m); err != nil {
			return err
		}
	}
	paths, err := d.hubPaths()
	if err != nil {
		return err
	}
	for _, p := range paths {
		if strings.HasPrefix(p, "user_") {
			return fmt.Errorf("the hub has %s", p)
		}
	}
	for _, p := range append(list(d.desktop.memory), list(d.desktop.team)...) {
		if p == "user_role.md" || p == inTeam {
			return fmt.Errorf("the desktop has %s", p)
		}
	}
	// The same search must find what was shared, or it would prove nothing.
	shared, err := d.inStore("the bank's test system is closed")
	if err != nil {
		return err
	}
	private, err := d.inStore("Prefers short answers with the command")
	switch {
	case err != nil:
		return err
	case !shared:
		return fmt.Errorf("%w: a shared text in the hub's files", errNotSeen)
	case private:
		return errors.New("the laptop's user memory is in the hub's files")
	}
	d.say("✓ the hub lists: %s", strings.Join(paths, "  "))
	d.say("✓ the desktop has: %s (its own), and team/", strings.Join(list(d.desktop.memory), "  "))
	d.say("✓ no byte of the laptop's user memory is in the hub's files")
	return nil
}

// inStore searches the hub's files for a text.
func (d *demo) inStore(text string) (found bool, err error) {
	err = filepath.WalkDir(filepath.Join(d.tmp, "hub"), func(name string, e os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the database makes files and takes them away
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		found = found || bytes.Contains(b, []byte(text))
		return err
	})
	return found, err
}

// edits is how many edits are timed.
const edits = 20

// slow is what edits may not take: far above what is normal, and still "seconds later".
// The median is held against it, since a machine may stop for a while at any one of them.
const slow = 3 * time.Second

func (d *demo) times() error {
	var took []time.Duration
	for i := range edits {
		from, to := d.laptop, d.desktop
		if i%2 == 1 {
			from, to = to, from
		}
		name := "reference_dashboards.md"
		text := laptopTeam[name] + fmt.Sprintf("Edit number %d.\n", i+1)
		if err := write(filepath.Join(from.team, name), text); err != nil {
			return err
		}
		since := time.Now()
		if err := d.until(fmt.Sprintf("edit %d arrives", i+1), func() bool { return read(filepath.Join(to.team, name)) == text }); err != nil {
			return err
		}
		took = append(took, time.Since(since))
	}
	slices.Sort(took)
	median, longest := took[len(took)/2], took[len(took)-1]
	d.say("✓ %d edits, each from the save to the text on the other machine: median %d ms, longest %d ms", edits, median.Milliseconds(), longest.Milliseconds())
	d.say("  (300 ms of it is the agent waiting for you to finish saving)")
	if median > slow {
		return fmt.Errorf("half of the edits took %v and more", median)
	}
	return nil
}
