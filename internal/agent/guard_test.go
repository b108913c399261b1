package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

func newGuard() guard {
	return guard{scanner: secretscan.New(secretscan.Options{}), policy: &policyHolder{}}
}

func rules(vs []memory.Violation) string {
	var out []string
	for _, v := range vs {
		out = append(out, v.Rule)
	}
	return strings.Join(out, " ")
}

func TestGuard(t *testing.T) {
	token := "ghp_" + "Zk3vQ8mN1xR7tY5wB2cJ9dL4pH6sF0gA8eU1"
	for _, tc := range []struct{ name, path, text, refused, warned string }{
		{"clean", "project_x.md", "---\nname: x\ntype: project\n---\nfine\n", "", ""},
		{"secret", "project_x.md", "---\nname: x\ntype: project\n---\n" + token + "\n", "github-pat", ""},
		{"secret and user", "x.md", "---\nname: x\ntype: user\n---\n" + token + "\n", "type-user github-pat", ""},
		{"no type", "x.md", "fine\n", "", "type-missing"},
		{"not UTF-8", "project_x.md", "\xff" + token, "content-utf8", ""},
		{"large", "project_x.md", strings.Repeat("x", memory.MaxMemoryBytes+1), "content-size", ""},
		{"index is exempt from the type rule", "MEMORY.md", "- [x](project_x.md) — x\n", "", ""},
	} {
		v, err := newGuard().Check(t.Context(), memory.Path(tc.path), []byte(tc.text))
		if err != nil || rules(v.Violations) != tc.refused || rules(v.Warnings) != tc.warned {
			t.Errorf("%s: refused for %q, warned of %q, %v; want %q and %q", tc.name, rules(v.Violations), rules(v.Warnings), err, tc.refused, tc.warned)
		}
		for _, x := range v.Violations {
			if strings.Contains(x.Message, token) {
				t.Errorf("%s: the message holds the secret", tc.name)
			}
		}
	}
}

// TestSecretsInIndexLinesAndNames refuses an index for any part of a line that holds a
// secret, and a memory for any part of its name.
func TestSecretsInIndexLinesAndNames(t *testing.T) {
	token := "ghp_" + "Zk3vQ8mN1xR7tY5wB2cJ9dL4pH6sF0gA8eU1"
	plain := "---\nname: x\ntype: project\n---\nfine\n"
	index := "# Index\n\n- [A](project_a.md) — what a is for\n%s\n- [C](project_c.md) — what c is for\n"
	for _, tc := range []struct{ name, path, line, rule string }{
		{"hook", "MEMORY.md", "- [B](project_b.md) — clone with " + token, "github-pat"},
		{"hook with a password", "MEMORY.md", "- [Grafana](reference_g.md) — admin, password: Harbour@2024", "memsvc-password"},
		{"hook in Chinese", "MEMORY.md", "- [堡垒机](reference_j.md) — 密码：Harbour@2024", "memsvc-password"},
		{"hook with wifi", "MEMORY.md", "- [Office](reference_o.md) — wifi: Acme-Guest / Harbour@2024", "memsvc-password"},
		{"title", "MEMORY.md", "- [" + token + "](project_b.md) — the bot", "github-pat"},
		{"target", "MEMORY.md", "- [B](" + token + ".md) — the bot", "github-pat"},
		{"target, escaped", "MEMORY.md", "- [B](" + strings.Replace(token, "_", "%5F", 1) + ".md) — the bot", "github-pat"},
		{"date", "MEMORY.md", "- [B](project_b.md) — the bot (project, " + token + ")", "github-pat"},
		{"comment", "MEMORY.md", "<!-- " + token + " -->", "github-pat"},
		{"index of a directory", "ops/MEMORY.md", "- [B](b.md) — " + token, "github-pat"},

		{"file name", token + ".md", "", "github-pat"},
		{"file name, with a type", "reference_" + token + ".md", "", "github-pat"},
		{"directory", token + "/a.md", "", "github-pat"},
		{"deep directory", "a/b-" + token + "/c/d.md", "", "github-pat"},
		{"file name, wider letters", strings.Replace(token, "ghp", "\uff47\uff48\uff50", 1) + ".md", "", "github-pat"},
	} {
		text := plain
		if tc.line != "" {
			text = strings.Replace(index, "%s", tc.line, 1)
		}
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n")} {
			v, err := newGuard().Check(t.Context(), memory.Path(tc.path), []byte(text))
			if err != nil || !strings.Contains(" "+rules(v.Violations)+" ", " "+tc.rule+" ") {
				t.Errorf("%s: refused for %q, %v; want %q", tc.name, rules(v.Violations), err, tc.rule)
				continue
			}
			for _, x := range v.Violations {
				if want := 4; tc.line != "" && x.Line != want || tc.line == "" && x.Line != 0 {
					t.Errorf("%s: line %d", tc.name, x.Line)
				}
				if strings.Contains(x.Message, token) || strings.Contains(x.Message, "Harbour") {
					t.Errorf("%s: the message holds the secret", tc.name)
				}
			}
		}
	}
	v, err := newGuard().Check(t.Context(), "MEMORY.md", []byte(strings.Replace(index, "%s", "- [Wifi](reference_w.md) — the password is on the card at the desk", 1)))
	if err != nil || len(v.Violations) > 0 {
		t.Errorf("a harmless index is refused for %q, %v", rules(v.Violations), err)
	}
}

func TestGuardFollowsThePolicy(t *testing.T) {
	g := newGuard()
	text := []byte("---\nname: x\ntype: project\n---\nghp_" + "Zk3vQ8mN1xR7tY5wB2cJ9dL4pH6sF0gA8eU1\n")
	check := func() (int, int64) {
		v, err := g.Check(t.Context(), "project_x.md", text)
		if err != nil {
			t.Fatal(err)
		}
		return len(v.Violations), v.PolicyVersion
	}
	if n, version := check(); n == 0 || version != 0 {
		t.Fatalf("%d violations under policy %d", n, version)
	}
	if !g.policy.set(client.GuardPolicy{Team: "acme", Version: 3, AllowedRules: []string{"github-pat"}}) {
		t.Error("a new policy is not seen as one")
	}
	if n, version := check(); n != 0 || version != 3 {
		t.Errorf("%d violations under policy %d, want none under 3", n, version)
	}
	if g.policy.set(client.GuardPolicy{Team: "acme", Version: 3}) {
		t.Error("the same version counts as new")
	}
	// Rules that cannot be used let nothing through.
	g.policy.set(client.GuardPolicy{Team: "acme", Version: 4, RulesTOML: []byte("[[rules]\n")})
	v, err := g.Check(t.Context(), "project_x.md", []byte("fine"))
	if err != nil || rules(v.Violations) != ruleGuardFailed {
		t.Errorf("broken rules: %q, %v", rules(v.Violations), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Check(ctx, "project_x.md", text); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
