package secretscan

import (
	"bytes"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/zricethezav/gitleaks/v8/config"
)

// tomlConfig is the part of a gitleaks configuration that the guard understands; anything else in it is an error, so
// that a misspelt key cannot weaken the guard in silence.
type tomlConfig struct {
	Title       string
	Description string
	MinVersion  string `toml:"minVersion"`
	Extend      struct {
		Path          string
		URL           string
		UseDefault    bool     `toml:"useDefault"`
		DisabledRules []string `toml:"disabledRules"`
	}
	Rules      []tomlRule
	AllowList  *tomlAllow  `toml:"allowlist"`
	AllowLists []tomlAllow `toml:"allowlists"`
}

type tomlRule struct {
	ID          string
	Description string
	Path        string
	Regex       string
	SecretGroup int `toml:"secretGroup"`
	Entropy     float64
	Keywords    []string
	Tags        []string
	AllowList   *tomlAllow  `toml:"allowlist"`
	AllowLists  []tomlAllow `toml:"allowlists"`
}

type tomlAllow struct {
	Description string
	Condition   string
	Commits     []string
	Paths       []string
	RegexTarget string `toml:"regexTarget"`
	Regexes     []string
	StopWords   []string `toml:"stopwords"`
	TargetRules []string `toml:"targetRules"`
}

// parseRules reads the default rules, a policy's rules, or both merged, as gitleaks would.
func parseRules(policy []byte) ([]*rule, []*allowlist, error) {
	if len(bytes.TrimSpace(policy)) == 0 {
		return parseOne([]byte(config.DefaultConfig), nil)
	}
	var c tomlConfig
	dec := toml.NewDecoder(bytes.NewReader(policy))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return nil, nil, fmt.Errorf("parse TOML: %w", tomlPosition(err))
	}
	if c.Extend.Path != "" || c.Extend.URL != "" {
		return nil, nil, fmt.Errorf("extend.path and extend.url are not followed: put the rules into the policy, or use extend.useDefault")
	}
	if !c.Extend.UseDefault {
		return translate(&c, nil)
	}
	base, baseAllow, err := parseOne([]byte(config.DefaultConfig), c.Extend.DisabledRules)
	if err != nil {
		return nil, nil, err
	}
	own, ownAllow, err := translate(&c, base)
	if err != nil {
		return nil, nil, err
	}
	return own, append(baseAllow, ownAllow...), nil
}

// tomlPosition keeps where a TOML error is and what it is, without the excerpt of the text.
func tomlPosition(err error) error {
	var decode *toml.DecodeError
	var strict *toml.StrictMissingError
	switch {
	case errors.As(err, &decode):
		row, col := decode.Position()
		return fmt.Errorf("line %d, column %d: %s", row, col, decode.Error())
	case errors.As(err, &strict) && len(strict.Errors) > 0:
		row, _ := strict.Errors[0].Position()
		return fmt.Errorf("line %d: key %q is not known", row, strings.Join(strict.Errors[0].Key(), "."))
	}
	return err
}

func parseOne(text []byte, disabled []string) ([]*rule, []*allowlist, error) {
	var c tomlConfig
	if err := toml.Unmarshal(text, &c); err != nil {
		return nil, nil, fmt.Errorf("parse TOML: %w", tomlPosition(err))
	}
	c.Rules = slices.DeleteFunc(c.Rules, func(r tomlRule) bool { return slices.Contains(disabled, r.ID) })
	rules, global, err := translate(&c, nil)
	if err != nil {
		return nil, nil, err
	}
	// The default rules are public: a word elsewhere on the line that lets a key through is one that a client can write.
	for _, r := range rules {
		r.allow = slices.DeleteFunc(r.allow, func(a *allowlist) bool { return a.target == "line" })
	}
	global = slices.DeleteFunc(global, func(a *allowlist) bool { return a.target == "line" })
	return rules, global, nil
}

// translate turns parsed rules into ours, merged over base: a rule whose id base has overrides it field by field and
// adds its keywords and allowances.
func translate(c *tomlConfig, base []*rule) ([]*rule, []*allowlist, error) {
	rules := slices.Clone(base)
	byID := map[string]int{}
	for i, r := range rules {
		byID[r.id] = i
	}
	for i := range c.Rules {
		t := &c.Rules[i]
		if strings.TrimSpace(t.ID) == "" {
			return nil, nil, fmt.Errorf("rule %d has no id", i+1)
		}
		r := &rule{id: t.ID, description: t.Description, source: t.Regex, group: t.SecretGroup, entropy: t.Entropy, path: t.Path}
		allows := t.AllowLists
		if t.AllowList != nil {
			allows = append(allows, *t.AllowList)
		}
		for _, a := range allows {
			al, err := newAllowlist(a)
			if err != nil {
				return nil, nil, fmt.Errorf("rule %s: %w", t.ID, err)
			}
			r.allow = append(r.allow, al)
		}
		for _, k := range t.Keywords {
			if k != "" {
				r.keywords = append(r.keywords, strings.ToLower(k))
			}
		}
		at, known := byID[t.ID]
		if known {
			r = mergeRule(rules[at], r)
		}
		if err := r.check(); err != nil {
			return nil, nil, fmt.Errorf("rule %s: %w", t.ID, err)
		}
		if known {
			rules[at] = r
		} else {
			byID[t.ID] = len(rules)
			rules = append(rules, r)
		}
	}
	var global []*allowlist
	allows := c.AllowLists
	if c.AllowList != nil {
		allows = append(allows, *c.AllowList)
	}
	for _, a := range allows {
		al, err := newAllowlist(a)
		if err != nil {
			return nil, nil, fmt.Errorf("allowlist: %w", err)
		}
		if len(a.TargetRules) == 0 {
			global = append(global, al)
			continue
		}
		for _, id := range a.TargetRules {
			at, ok := byID[id]
			if !ok {
				return nil, nil, fmt.Errorf("allowlist: target rule %q does not exist", id)
			}
			r := rules[at].clone()
			r.allow = append(r.allow, al)
			rules[at] = r
		}
	}
	return rules, global, nil
}

func mergeRule(base, over *rule) *rule {
	r := base.clone()
	if over.description != "" {
		r.description = over.description
	}
	if over.entropy != 0 {
		r.entropy = over.entropy
	}
	if over.group != 0 {
		r.group = over.group
	}
	if over.source != "" {
		r.source = over.source
	}
	if over.path != "" {
		r.path = over.path
	}
	r.keywords = append(r.keywords, over.keywords...)
	r.allow = append(r.allow, over.allow...)
	return r
}

// check parses the rule's expressions, so that nothing can fail later, in a scan.
func (r *rule) check() error {
	if r.source == "" && r.path == "" {
		return fmt.Errorf("has neither regex nor path")
	}
	if r.path != "" {
		if _, err := syntax.Parse(r.path, syntax.Perl); err != nil {
			return fmt.Errorf("path: %w", err)
		}
	}
	if r.source == "" {
		return nil
	}
	re, err := syntax.Parse(r.source, syntax.Perl)
	if err != nil {
		return fmt.Errorf("regex: %w", err)
	}
	if r.group < 0 || r.group > re.MaxCap() {
		return fmt.Errorf("secretGroup %d, but the regex has %d groups", r.group, re.MaxCap())
	}
	r.tree = re
	return nil
}
