package authn

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds of a rule.
const (
	maxConditions   = 16
	maxPatternBytes = 512
)

// rule is a Rule ready to be asked.
type rule struct {
	conditions []condition
	grant      grant
	before     string // of the project, around the claim
	claim      string // "": the project is what it is
	after      string
}

type condition struct {
	key      string
	patterns []*regexp.Regexp
}

func (r *rule) keys() []string {
	var out []string
	for _, c := range r.conditions {
		out = append(out, c.key)
	}
	if r.claim != "" {
		out = append(out, r.claim)
	}
	return out
}

func (r Rule) compile() (*rule, error) {
	out := &rule{}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(r.When) == 0 || len(r.When) > maxConditions {
		bad("when: from 1 to %d claims; without one the rule would meet everybody", maxConditions)
	}
	for key, patterns := range r.When {
		c := condition{key: key}
		if key == "" || len(patterns) == 0 {
			bad("when: a claim's name or its patterns are empty")
		}
		for _, p := range patterns {
			if p == "" || len(p) > maxPatternBytes || !utf8.ValidString(p) {
				bad("when: %.60s: a pattern has from 1 to %d bytes of UTF-8", key, maxPatternBytes)
				continue
			}
			c.patterns = append(c.patterns, pattern(p))
		}
		out.conditions = append(out.conditions, c)
	}
	var err error
	switch {
	case r.WholeHub && (r.Team != "" || r.Project != ""):
		bad("whole-hub: leave team and project out")
	case r.WholeHub:
	case r.Team == "":
		bad("team: name one, or say whole-hub: true")
	default:
		if out.grant.team, err = memory.ParseTeam(r.Team); err != nil {
			errs = append(errs, err)
		}
		errs = append(errs, out.setProject(r.Project))
	}
	if !slices.Contains([]string{"reader", "writer", "admin"}, r.Role) {
		bad("role %.20q: use reader, writer or admin", r.Role)
	}
	out.grant.role = r.Role
	return out, errors.Join(errs...)
}

// setProject reads a project's id, or one with a {claim} in it.
func (r *rule) setProject(text string) error {
	if text == "" {
		return nil
	}
	var found bool
	if r.before, r.claim, found = strings.Cut(text, "{"); !found {
		r.claim = ""
		var err error
		r.grant.project, err = memory.ParseProject(text)
		return err
	}
	if r.claim, r.after, found = strings.Cut(r.claim, "}"); !found || r.claim == "" || strings.ContainsAny(r.after, "{}") {
		return fmt.Errorf("project %.200q: want an id, with at most one {claim} in it", text)
	}
	// What stands around the claim must be able to make an id.
	_, err := memory.ParseProject(r.before + "x" + r.after)
	return err
}

// pattern makes an anchored expression of a pattern; it runs in linear time.
func pattern(p string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for p != "" {
		switch {
		case strings.HasPrefix(p, "**"):
			b.WriteString(`.*`)
			p = p[2:]
		case p[0] == '*':
			b.WriteString(`[^/:]*`)
			p = p[1:]
		default:
			n := strings.IndexByte(p, '*')
			if n < 0 {
				n = len(p)
			}
			b.WriteString(regexp.QuoteMeta(p[:n]))
			p = p[n:]
		}
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// claims are what a credential says, as JSON holds it.
type claims map[string]any

// texts returns the values of a claim as texts; of a list, those of its elements.
func (c claims) texts(key string) []string {
	v, ok := c.lookup(key)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, e := range list {
		switch e := e.(type) {
		case string:
			out = append(out, e)
		case bool:
			out = append(out, fmt.Sprint(e))
		case json.Number:
			out = append(out, e.String())
		}
	}
	return out
}

// lookup follows a name, or a JSON pointer (RFC 6901) when it begins with /.
func (c claims) lookup(key string) (any, bool) {
	if !strings.HasPrefix(key, "/") {
		v, ok := c[key]
		return v, ok
	}
	var at any = map[string]any(c)
	for step := range strings.SplitSeq(key[1:], "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		if at, ok = m[step]; !ok {
			return nil, false
		}
	}
	return at, true
}

// decide returns what the first rule that the claims meet gives.
func decide(rules []*rule, c claims) (grant, bool) {
	for _, r := range rules {
		if g, ok := r.apply(c); ok {
			return g, true
		}
	}
	return grant{}, false
}

func (r *rule) apply(c claims) (grant, bool) {
	for _, cond := range r.conditions {
		if !slices.ContainsFunc(c.texts(cond.key), cond.matches) {
			return grant{}, false
		}
	}
	g := r.grant
	if r.claim == "" {
		return g, true
	}
	v, _ := c.lookup(r.claim)
	text, ok := v.(string)
	// A ~ in the claim could pass for a / in another project's name.
	if !ok || text == "" || strings.Contains(text, "~") {
		return grant{}, false
	}
	var err error
	g.project, err = memory.ParseProject(r.before + strings.ReplaceAll(strings.ToLower(text), "/", "~") + r.after)
	return g, err == nil
}

func (c condition) matches(text string) bool {
	return slices.ContainsFunc(c.patterns, func(p *regexp.Regexp) bool { return p.MatchString(text) })
}
