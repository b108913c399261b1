package agent

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/client"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
)

// The rules of the guard's own troubles, as a Violation names them.
const (
	ruleGuardFailed = "guard-failed" // no verdict could be had
)

// guard is the syncer's Guard: the rules of content that hub and agent share, and the
// secret guard under a team's policy. Scanners cache verdicts and are shared by all
// links; a policy belongs to one hub's team.
type guard struct {
	scanner *secretscan.Scanner
	policy  *policyHolder
}

// policyHolder keeps the guard policy of a team as last told by the hub.
type policyHolder struct {
	mu     sync.Mutex // guards policy
	policy secretscan.Policy
}

func (h *policyHolder) get() secretscan.Policy {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.policy
}

// set takes the hub's policy and reports whether it is another one than before.
func (h *policyHolder) set(p client.GuardPolicy) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.policy.Version == p.Version && string(h.policy.FingerprintKey) == string(p.FingerprintKey) {
		return false
	}
	h.policy = secretscan.Policy{
		Version: p.Version, FingerprintKey: p.FingerprintKey, AllowFingerprints: p.AllowedFingerprints,
		AllowRules: p.AllowedRules, AllowInline: p.AllowInline, RulesTOML: p.RulesTOML,
	}
	return true
}

// Check judges one file; see syncer.Guard.
func (g guard) Check(ctx context.Context, path memory.Path, content []byte) (syncer.Verdict, error) {
	if err := ctx.Err(); err != nil {
		return syncer.Verdict{}, err
	}
	policy := g.policy.get()
	checked := memory.CheckContent(path, content)
	v := syncer.Verdict{
		Violations: checked.Violations, Warnings: checked.Warnings, PolicyVersion: policy.Version,
	}
	if memory.IsIndex(path) {
		v.Warnings = append(v.Warnings, memory.IndexWarnings(path, content)...)
	}
	if unscannable(checked.Violations) {
		return v, nil // refused already, and not a text that could be scanned
	}
	findings, err := g.scanner.ScanWith(policy, string(path), content)
	if err != nil {
		why := "the secret guard has no verdict; the file stays here until it has"
		if errors.Is(err, secretscan.ErrRules) {
			why = "the team's guard rules cannot be used; an admin of the team must mend them"
		}
		v.Violations = append(v.Violations, memory.Violation{Path: string(path), Rule: ruleGuardFailed, Message: why})
		return v, nil
	}
	for _, f := range findings {
		if len(policy.FingerprintKey) == 0 {
			f.Fingerprint = "" // no team could let it through by this one
		}
		v.Violations = append(v.Violations, memory.Violation{
			Path: f.Path, Line: f.Line, Rule: f.Rule, Fingerprint: f.Fingerprint,
			Message: strings.TrimSuffix(f.Description, ".") + "; remove it from the file, and revoke it if it is real",
		})
	}
	return v, nil
}

func unscannable(vs []memory.Violation) bool {
	for _, v := range vs {
		switch v.Rule {
		case memory.RuleContentSize, memory.RuleContentUTF8, memory.RuleContentNUL:
			return true
		}
	}
	return false
}
