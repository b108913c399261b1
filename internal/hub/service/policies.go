package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/memory"
)

// GuardPolicy returns the policy that holds for a team. Members see it whole: their
// agents must judge as the hub does.
func (s *Service) GuardPolicy(ctx context.Context, c Call, team memory.Team) (Policy, error) {
	if !c.Principal.reachesTeam(team) {
		return Policy{}, s.refused(ctx, c, team, "policy.get", "teams/"+string(team), noTeam(team))
	}
	if known, err := s.teams(ctx); err != nil {
		return Policy{}, err
	} else if !slices.Contains(known, team) {
		return Policy{}, noTeam(team)
	}
	return s.policy(ctx, team)
}

// UpdateGuardPolicy replaces a team's policy. p.Version must be the present one; the
// fingerprint key is kept. Rules that cannot be used are refused. The watchers are
// told, and what is stored is judged again.
func (s *Service) UpdateGuardPolicy(ctx context.Context, c Call, team memory.Team, p Policy) (Policy, error) {
	subject := "teams/" + string(team) + "/guardPolicy"
	if err := c.Principal.mayTeam(team, Admin); err != nil {
		return Policy{}, s.refused(ctx, c, team, "policy.update", subject, err)
	}
	old, err := s.GuardPolicy(ctx, c, team)
	if err != nil {
		return Policy{}, err
	}
	p.FingerprintKey = old.FingerprintKey
	if _, err := s.Guard.RulesVersion(p); err != nil {
		return Policy{}, invalid("%s: the rules cannot be used: %v", subject, err)
	}
	if err := s.checkAllowances(subject, old, p); err != nil {
		return Policy{}, err
	}
	// Every member sees the team's own rules, and their agents keep them.
	if err := s.judgeLabels(ctx, team, label{"policy.rules_toml", string(p.RulesTOML)}); err != nil {
		return Policy{}, s.refused(ctx, c, team, "policy.update", subject, err)
	}
	detail := fmt.Sprintf("allow_inline=%t rules=%q fingerprints=%q own rules: %d bytes", p.AllowInline, p.AllowRules, p.AllowFingerprints, len(p.RulesTOML))
	if err := save(ctx, s.settings, string(team), settingPolicy, p, p.Version, s.event(c, team, "policy.update", subject, detail)); err != nil {
		return Policy{}, err
	}
	p.Version++
	s.Feed.Announce(team, p.Version)
	s.requestRescan(team)
	return p, nil
}

// RuleKnower is what a Guard is asked for beside judging, if it can tell.
type RuleKnower interface {
	// KnowsRule reports whether p leads to a rule of that id.
	KnowsRule(p Policy, rule string) (bool, error)
}

// isFingerprint reports whether f can be a finding's: SHA-256 in lower-case hex.
func isFingerprint(f string) bool {
	return len(f) == 64 && strings.Trim(f, "0123456789abcdef") == ""
}

// checkAllowances refuses what the policy newly allows and nothing can ever match: it
// is a slip, and its author would take the finding for allowed. What was there before
// stays; the rule of an own TOML may have gone since.
func (s *Service) checkAllowances(subject string, old, p Policy) error {
	for _, f := range p.AllowFingerprints {
		if !slices.Contains(old.AllowFingerprints, f) && !isFingerprint(f) {
			return invalid("%s: fingerprint %q: want 64 digits of lower-case hex, as a finding shows it", subject, cut(f, 80))
		}
	}
	rules, ok := s.Guard.(RuleKnower)
	for _, r := range p.AllowRules {
		if !ok || slices.Contains(old.AllowRules, r) {
			continue
		}
		switch known, err := rules.KnowsRule(p, r); {
		case err != nil:
			return err
		case !known:
			return invalid("%s: rule %q: no such rule; a finding shows the rule's name, like memsvc-password or github-pat", subject, cut(r, 80))
		}
	}
	return nil
}
