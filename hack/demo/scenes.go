package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	d.say("✓ %s is on %s's machine after %d ms", name, to.name, time.Since(since).Milliseconds())
	return nil
}

func (d *demo) start() error {
	if err := d.startHub(); err != nil {
		return err
	}
	d.say("hub: gRPC %s, REST http://%s, process %d, data in one file below %s", d.grpc, d.http, d.hub.cmd.Process.Pid, d.tmp)
	var err error
	if d.anna, err = d.newMachine("anna"); err != nil {
		return err
	}
	if d.ben, err = d.newMachine("ben"); err != nil {
		return err
	}
	for _, m := range []*machine{d.anna, d.ben} {
		d.say("%s: %s", m.name, m.team)
	}
	return nil
}

func (d *demo) firstSync() error {
	for dir, files := range map[string]map[string]string{
		d.anna.team: annaTeam, d.anna.memory: annaPersonal, d.ben.team: benTeam, d.ben.memory: benPersonal,
	} {
		if err := writeAll(dir, files); err != nil {
			return err
		}
	}
	d.say("anna's team/: %s", strings.Join(list(d.anna.team), "  "))
	d.say("ben's team/:  %s", strings.Join(list(d.ben.team), "  "))
	for _, m := range []*machine{d.anna, d.ben} {
		if err := d.startAgent(m); err != nil {
			return err
		}
	}
	want := len(annaTeam) + len(benTeam)
	if err := d.until("both have all files", func() bool {
		a, b := list(d.anna.team), list(d.ben.team)
		return len(a) == want && slices.Equal(a, b)
	}); err != nil {
		return err
	}
	for _, m := range []*machine{d.anna, d.ben} {
		if err := d.settle(m); err != nil {
			return err
		}
	}
	d.say("✓ both now: %s", strings.Join(list(d.ben.team), "  "))
	return nil
}

func (d *demo) edit() error {
	const name = "reference_dashboards.md"
	text := annaTeam[name] + "Queue length: the same folder, \"Queues\".\n"
	since := time.Now()
	if err := write(filepath.Join(d.anna.team, name), text); err != nil {
		return err
	}
	d.say("anna adds a line to %s", name)
	return d.arrives(d.ben, name, text, since)
}

func (d *demo) chinese() error {
	const name = "feedback_提交说明.md"
	const text = "---\nname: 提交说明\ndescription: 提交说明写为什么，不写做了什么\ntype: feedback\n---\n提交说明先写原因。代码已经说明了做了什么。\n"
	since := time.Now()
	if err := write(filepath.Join(d.ben.team, name), text); err != nil {
		return err
	}
	d.say("ben writes %s", name)
	return d.arrives(d.anna, name, text, since)
}

func (d *demo) rename() error {
	const from, to = "reference_bank_contacts.md", "reference_bank_support.md"
	since := time.Now()
	if err := os.Rename(filepath.Join(d.anna.team, from), filepath.Join(d.anna.team, to)); err != nil {
		return err
	}
	d.say("anna renames %s to %s", from, to)
	if err := d.arrives(d.ben, to, benTeam[from], since); err != nil {
		return err
	}
	if err := d.until("the old name is gone", func() bool { return !there(filepath.Join(d.ben.team, from)) }); err != nil {
		return err
	}
	out, _, err := d.call("memsync-agent", "log", to, "--json", "--state-dir", d.ben.state)
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
	if err := os.Remove(filepath.Join(d.ben.team, name)); err != nil {
		return err
	}
	d.say("ben deletes %s", name)
	if err := d.until("it is gone on anna's machine", func() bool { return !there(filepath.Join(d.anna.team, name)) }); err != nil {
		return err
	}
	d.say("✓ gone on anna's machine after %d ms; the hub keeps its history", time.Since(since).Milliseconds())
	return nil
}

// both writes two texts at the same moment, so that neither agent knows of the other.
func (d *demo) both(name, anna, ben string) error {
	for _, m := range []*machine{d.anna, d.ben} {
		if err := d.settle(m); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(d.anna.team, name), anna); err != nil {
		return err
	}
	return write(filepath.Join(d.ben.team, name), ben)
}

func (d *demo) merge() error {
	const name = "project_release_freeze.md"
	base := annaTeam[name]
	anna := strings.Replace(base, "No releases of the payment service from", "No releases of the payment and refund services from", 1)
	ben := base + "Ask in #releases before the freeze if in doubt.\n"
	want := anna + "Ask in #releases before the freeze if in doubt.\n"
	if err := d.both(name, anna, ben); err != nil {
		return err
	}
	d.say("at the same moment anna changes the first line of %s and ben adds one at its end", name)
	if err := d.until("both have the merged text", func() bool {
		return read(filepath.Join(d.anna.team, name)) == want && read(filepath.Join(d.ben.team, name)) == want
	}); err != nil {
		return err
	}
	d.say("✓ both machines hold both changes; no conflict")
	return nil
}

func (d *demo) conflict() error {
	const name = "project_结算规则.md"
	base := annaTeam[name]
	anna, ben := strings.Replace(base, "17:00", "16:30", 1), strings.Replace(base, "17:00", "18:00", 1)
	if err := d.both(name, anna, ben); err != nil {
		return err
	}
	d.say("at the same moment anna writes 16:30 and ben 18:00 into the same line of %s", name)
	type entry struct{ ID, Path string }
	var found entry
	var loser *machine
	if err := d.until("one of the agents reports a conflict", func() bool {
		for _, m := range []*machine{d.anna, d.ben} {
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
	winner, lost, won := d.anna, ben, anna
	if loser == d.anna {
		winner, lost, won = d.ben, anna, ben
	}
	if err := d.until("both have the hub's text in place", func() bool {
		return read(filepath.Join(d.anna.team, name)) == won && read(filepath.Join(d.ben.team, name)) == won
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
	d.say("✓ %s was first, so that text is in place; %s's is kept. On %s's machine:", winner.name, loser.name, loser.name)
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
		return read(filepath.Join(d.anna.team, name)) == merged && read(filepath.Join(d.ben.team, name)) == merged
	}); err != nil {
		return err
	}
	d.say("✓ %s resolves it with a third text (17:30), and both machines have it", loser.name)
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
	if err := write(filepath.Join(d.anna.team, name), text); err != nil {
		return err
	}
	d.say("anna writes %s with a token in line %d", name, line)
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
		out, _, err := d.call("memsync-agent", "status", "--json", "--state-dir", d.anna.state)
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
	human, _, err := d.call("memsync-agent", "status", "--state-dir", d.anna.state)
	if err != nil {
		return err
	}
	d.say("  $ memsync-agent status")
	d.quote(human)
	for what, text := range map[string]string{"status": raw + human, "the hub's log": d.hub.log.String(), "anna's log": d.anna.agent.log.String()} {
		if strings.Contains(text, secret) {
			return fmt.Errorf("the secret stands in %s", what)
		}
	}
	paths, err := d.hubPaths()
	if err != nil {
		return err
	}
	if slices.Contains(paths, name) || there(filepath.Join(d.ben.team, name)) {
		return fmt.Errorf("%s has left the machine", name)
	}
	d.say("✓ it is neither on the hub nor on ben's machine; the rest goes on")
	since := time.Now()
	clean := strings.Replace(text, secret, "see the vault, payments/bank", 1)
	if err := write(filepath.Join(d.anna.team, name), clean); err != nil {
		return err
	}
	d.say("anna replaces the token by where it is kept")
	return d.arrives(d.ben, name, clean, since)
}

func (d *demo) personal() error {
	const inTeam = "user_misplaced.md"
	if err := write(filepath.Join(d.anna.team, inTeam), annaPersonal["user_role.md"]); err != nil {
		return err
	}
	d.say("anna even copies her user memory into team/, by mistake")
	if err := d.until("it is refused", func() bool {
		out, _, err := d.call("memsync-agent", "status", "--state-dir", d.anna.state)
		return err == nil && strings.Contains(out, inTeam) && strings.Contains(out, "type-user")
	}); err != nil {
		return err
	}
	d.say("✓ refused: a memory of type user is never shared")
	if err := os.Remove(filepath.Join(d.anna.team, inTeam)); err != nil {
		return err
	}
	for _, m := range []*machine{d.anna, d.ben} {
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
	for _, p := range append(list(d.ben.memory), list(d.ben.team)...) {
		if p == "user_role.md" || p == inTeam {
			return fmt.Errorf("ben's machine has %s", p)
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
		return errors.New("anna's user memory is in the hub's files")
	}
	d.say("✓ the hub lists: %s", strings.Join(paths, "  "))
	d.say("✓ ben's machine has: %s (his own), and team/", strings.Join(list(d.ben.memory), "  "))
	d.say("✓ no byte of anna's user memory is in the hub's files")
	return nil
}

// inStore searches the hub's files for a text.
func (d *demo) inStore(text string) (found bool, err error) {
	err = filepath.WalkDir(filepath.Join(d.tmp, "hub"), func(name string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		found = found || bytes.Contains(b, []byte(text))
		return err
	})
	return found, err
}

// edits is how many edits are timed.
const edits = 20

// slow is what no edit may take: far above what is normal, and still "seconds later".
const slow = 3 * time.Second

func (d *demo) times() error {
	var took []time.Duration
	for i := range edits {
		from, to := d.anna, d.ben
		if i%2 == 1 {
			from, to = to, from
		}
		name := "reference_dashboards.md"
		text := annaTeam[name] + fmt.Sprintf("Edit number %d.\n", i+1)
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
	if longest > slow {
		return fmt.Errorf("an edit took %v", longest)
	}
	return nil
}
