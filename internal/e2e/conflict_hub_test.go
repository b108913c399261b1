package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestConflictResolvedByAnother lets a machine that has nothing to do with a conflict
// see it on the hub, look at both texts, and end it in each of the three ways.
func TestConflictResolvedByAnother(t *testing.T) {
	secret := "the token is " + "ghp_" + "Zk3vQ8mN1xR7tY5wB2cJ9dL4pH6sF0gA8eU1\n"
	for _, how := range []string{"ours", "theirs", "merged"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			h, ms := team(t, 2)
			a, b := ms[0], ms[1]
			a.write("project_x.md", note("x", "base"))
			inStep(t, a, b)
			apart(t, h, func() {
				a.write("project_x.md", note("x", "A"))
				b.write("project_x.md", note("x", "B"))
			}, a, b)
			hist := historyOf(t, h)
			kept := func() []client.Conflict {
				all, err := hist.c.Conflicts(t.Context(), project)
				must(t, err)
				return all
			}
			hubtest.Eventually(t, patience, "the hub knows of the conflict", func() bool { return len(kept()) == 1 })
			ours, theirs := string(kept()[0].Text), hist.files()["project_x.md"]

			// Another machine, where nothing is linked.
			dir := t.TempDir()
			flags := func(args ...string) []string {
				return append(append([]string{"conflicts"}, args...), "--hub", h.GRPCAddr, "--token-file", a.link.TokenFile,
					"--team", a.link.Team, "--project", a.link.Project, "--state-dir", filepath.Join(dir, "state"))
			}
			list := command(t, "memsync-agent", flags("list", "--all")...)
			id, _, _ := strings.Cut(list, " ")
			if !strings.Contains(list, "acme/pay  project_x.md  text of token:") {
				t.Errorf("list: %s", list)
			}
			var entries []struct{ ID, Path, Principal string }
			must(t, json.Unmarshal([]byte(command(t, "memsync-agent", flags("list", "--all", "--json")...)), &entries))
			if len(entries) != 1 || entries[0].ID != id || entries[0].Path != "project_x.md" {
				t.Errorf("list --json: %+v", entries)
			}
			if show := command(t, "memsync-agent", flags("show", id)...); !strings.Contains(show, ours) || !strings.Contains(show, theirs) {
				t.Errorf("show: %s", show)
			}
			var texts struct{ Ours, Theirs string }
			must(t, json.Unmarshal([]byte(command(t, "memsync-agent", flags("show", "project_x.md", "--json")...)), &texts))
			if texts.Ours != ours || texts.Theirs != theirs {
				t.Errorf("show --json: %+v", texts)
			}

			// What is refused changes nothing.
			bad := filepath.Join(dir, "bad.md")
			must(t, os.WriteFile(bad, []byte(secret), 0o600))
			if out, err := agentWith("", flags("resolve", id, "--merged", bad)...); err == nil || !strings.Contains(out, "github-pat") || strings.Contains(out, "ghp_") {
				t.Errorf("a secret: %v\n%s", err, out)
			}
			reader := flags("resolve", id, "--ours")
			for i, f := range reader {
				if f == a.link.TokenFile {
					reader[i] = h.TokenFile("acme", "pay", "reader")
				}
			}
			if out, err := agentWith("", reader...); err == nil || !strings.Contains(out, "needs the role writer") {
				t.Errorf("a reader: %v\n%s", err, out)
			}
			if out, err := agentWith("", flags("resolve", "nonsense", "--ours")...); err == nil || !strings.Contains(out, "no open conflict is called nonsense") {
				t.Errorf("an unknown one: %v\n%s", err, out)
			}
			if len(kept()) != 1 || hist.files()["project_x.md"] != theirs {
				t.Fatal("a refused resolution changed something")
			}

			want, args := ours, []string{"resolve", id, "--" + how}
			switch how {
			case "theirs":
				want = theirs
			case "merged":
				want = note("x", "A and B")
				good := filepath.Join(dir, "good.md")
				must(t, os.WriteFile(good, []byte(want), 0o600))
				args = append(args, good)
			}
			if out := command(t, "memsync-agent", flags(args...)...); !strings.Contains(out, "resolved "+id+" with "+how) {
				t.Errorf("resolve: %s", out)
			}
			if len(kept()) != 0 {
				t.Error("the hub still keeps it")
			}
			a.has("project_x.md", want)
			b.has("project_x.md", want)
			if list := command(t, "memsync-agent", flags("list", "--all")...); !strings.Contains(list, "no open conflicts") {
				t.Errorf("list: %s", list)
			}
			// The machine on which it arose learns of it by itself, and keeps the text.
			for _, m := range ms {
				m.eventually("its note of the conflict is gone", func(s agent.LinkStatus) bool { return len(s.Conflicts) == 0 })
			}
			trash := ""
			for _, m := range ms {
				m.stop()
				trash += command(t, "memsync-agent", "trash", "list", "--state-dir", m.state)
				m.start()
			}
			if !strings.Contains(trash, "the conflict was resolved on another machine") {
				t.Errorf("trash: %s", trash)
			}
			inStep(t, a, b)
			same(t, a, b)
			a.has("project_x.md", want)
		})
	}
}
