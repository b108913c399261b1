package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// client runs the agent's program on a machine as a coding client there would, or a
// person beside it, and returns what it printed.
func (d *demo) client(m *machine, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(d.ctx, d.program("memsync-agent"), append(args, "--state-dir", m.state)...)
	cmd.Dir = filepath.Dir(m.memory)
	cmd.Env = append(environment(), "HOME="+cmd.Dir, "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE="+m.memory)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("memsync-agent %s: %w: %s", args[0], err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}

// remember lets a person say something in a conversation, and share what became of it.
func (d *demo) remember() error {
	const said = "Remember that the bank's test system answers only between 06:00 and 22:00 UTC."
	talk := filepath.Join(filepath.Dir(d.laptop.memory), "conversation.jsonl")
	line, err := json.Marshal(map[string]any{
		"type": "user", "uuid": "5f0c1d5e-6a3b-4a57-9d38-5a1a4a0b7c11", "sessionId": "a-day-at-work", "cwd": filepath.Dir(d.laptop.memory),
		"timestamp": time.Now().UTC().Format(time.RFC3339Nano), "message": map[string]any{"role": "user", "content": said},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(talk, append(line, '\n'), 0o600); err != nil {
		return err
	}
	event, err := json.Marshal(map[string]any{"hook_event_name": "Stop", "session_id": "a-day-at-work", "transcript_path": talk, "cwd": filepath.Dir(d.laptop.memory)})
	if err != nil {
		return err
	}
	d.say("on the laptop, in a conversation: %q", said)
	before := list(d.laptop.memory)
	name := ""
	var ended time.Time
	var failed error
	if err := d.until("the daemon makes a memory of it", func() bool {
		// A hook waits half a second for the daemon, and not longer. What it could not
		// hand over, the end of the next turn does.
		if time.Since(ended) > 5*time.Second {
			_, failed = d.client(d.laptop, string(event), "hook", "Stop")
			ended = time.Now()
		}
		for _, n := range list(d.laptop.memory) {
			if !slices.Contains(before, n) && strings.Contains(read(filepath.Join(d.laptop.memory, n)), "between 06:00 and 22:00 UTC") {
				name = n
			}
		}
		return name != "" || failed != nil
	}); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	d.say("✓ the turn's end is handed to the daemon, which makes a personal memory: %s", name)
	text, since := read(filepath.Join(d.laptop.memory, name)), time.Now()
	if _, err := d.client(d.laptop, "", "memory", "share", name, "--yes"); err != nil {
		return err
	}
	d.say("the person shares it: memsync-agent memory share %s", name)
	return d.arrives(d.desktop, name, text, since)
}

// dream lets two memories that say the same be tidied.
func (d *demo) dream() error {
	const kept, copied = "project_certificate.md", "project_certificate_copy.md"
	head := "---\nname: %s\ndescription: The bank has a new certificate\ntype: project\n---\n"
	const body = "The bank switched to its new certificate yesterday; old clients fail the handshake."
	if err := writeAll(d.laptop.team, map[string]string{
		kept:   fmt.Sprintf(head, "Certificate") + body + "\n",
		copied: fmt.Sprintf(head, "Certificate copy") + strings.TrimSuffix(body, ".") + "\n",
	}); err != nil {
		return err
	}
	d.say("the laptop's team/ has two memories that say the same, with \"yesterday\" in them, and no index lines for them")
	for _, m := range []*machine{d.laptop, d.desktop} {
		if err := d.until("both are on the "+m.name, func() bool { return there(filepath.Join(m.team, kept)) && there(filepath.Join(m.team, copied)) }); err != nil {
			return err
		}
		if err := d.settle(m); err != nil {
			return err
		}
	}
	before, err := d.head()
	if err != nil {
		return err
	}
	out, err := d.client(d.laptop, "", "dream", "--force")
	if err != nil {
		return err
	}
	d.say("  $ memsync-agent dream --force")
	d.quote(out)
	var text string
	if err := d.until("the desktop has the tidy state", func() bool {
		one := kept
		if !there(filepath.Join(d.desktop.team, kept)) {
			one = copied
		}
		text = read(filepath.Join(d.desktop.team, one))
		both := there(filepath.Join(d.desktop.team, kept)) && there(filepath.Join(d.desktop.team, copied))
		return !both && text != "" && !strings.Contains(text, "yesterday") && strings.Contains(read(filepath.Join(d.desktop.team, "MEMORY.md")), one)
	}); err != nil {
		return err
	}
	after, err := d.head()
	if err != nil {
		return err
	}
	if after.Revision != before.Revision+1 || after.Changes < 3 {
		return fmt.Errorf("%w: one commit with the whole dream: revision %d became %d, the last with %d changes", errNotSeen, before.Revision, after.Revision, after.Changes)
	}
	d.say("✓ it came to the desktop as one commit, revision %d with %d changes: %q", after.Revision, after.Changes, strings.TrimSpace(text[strings.LastIndex(text, "---\n")+4:]))
	return nil
}

// commit is the newest one of the project.
type commit struct {
	Revision int64
	Changes  int
}

func (d *demo) head() (commit, error) {
	out, _, err := d.call("memsync-agent", "log", "--limit", "1", "--json", "--state-dir", d.desktop.state)
	if err != nil {
		return commit{}, err
	}
	var log []struct {
		Revision int64
		Changes  []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(out), &log); err != nil || len(log) != 1 {
		return commit{}, fmt.Errorf("%w: the newest commit: %s", errNotSeen, out)
	}
	return commit{log[0].Revision, len(log[0].Changes)}, nil
}
