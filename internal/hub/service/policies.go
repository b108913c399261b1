package service

import (
	"context"
	"fmt"
	"slices"

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
	detail := fmt.Sprintf("allow_inline=%t rules=%q fingerprints=%q own rules: %d bytes", p.AllowInline, p.AllowRules, p.AllowFingerprints, len(p.RulesTOML))
	if err := s.audit(ctx, c, team, "policy.update", subject, detail); err != nil {
		return Policy{}, err
	}
	if err := save(ctx, s.settings, string(team), settingPolicy, p, p.Version); err != nil {
		return Policy{}, err
	}
	p.Version++
	s.Feed.Announce(team, p.Version)
	s.requestRescan(team)
	return p, nil
}
