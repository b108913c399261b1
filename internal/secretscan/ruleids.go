package secretscan

import "slices"

// HasRule reports whether a rule of that id judges texts under p: one of the default
// rules as far as p's TOML keeps them, one of that TOML, or one of our own. It reads
// the rules anew, so it is for administration, not for scans. An error is ErrRules.
func (s *Scanner) HasRule(p Policy, id string) (bool, error) {
	if ownDescription(id) != "" {
		return true, nil
	}
	if _, err := s.ruleSet(p.RulesTOML); err != nil {
		return false, err
	}
	rules, _, err := parseRules(p.RulesTOML)
	return slices.ContainsFunc(rules, func(r *rule) bool { return r.id == id }), err
}
