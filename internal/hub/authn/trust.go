package authn

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// Bounds and defaults of what is believed of others.
const (
	defaultSkew     = time.Minute
	maxSkew         = 5 * time.Minute
	defaultLifetime = 24 * time.Hour
	maxIssuers      = 32
	maxRules        = 1000 // an issuer
)

// Words is one word or a list of them in the file.
type Words []string

// UnmarshalYAML reads either form.
func (w *Words) UnmarshalYAML(read func(any) error) error {
	var one string
	if read(&one) == nil {
		*w = Words{one}
		return nil
	}
	var many []string
	if err := read(&many); err != nil {
		return err
	}
	*w = many
	return nil
}

// Trust says which credentials of others the hub believes, and what they may do. The
// tags are the keys of the identity file.
type Trust struct {
	Issuers            []Issuer      `yaml:"issuers"`
	ClientCertificates *Certificates `yaml:"client-certificates"`
}

// Issuer is an OIDC issuer whose JWTs are believed.
type Issuer struct {
	Name              string        `yaml:"name"`               // short; part of the authors' names
	URL               string        `yaml:"issuer"`             // the claim iss, to the byte
	Audience          Words         `yaml:"audience"`           // one of them must be in aud
	AuthorizedParties Words         `yaml:"authorized-parties"` // if given, azp must be one of them
	JWKSURL           string        `yaml:"jwks-url"`           // "": found by discovery
	CAFile            string        `yaml:"ca-file"`            // "": the system's authorities
	BearerFile        string        `yaml:"bearer-file"`        // sent when keys are fetched; "": nothing is
	ClockSkew         time.Duration `yaml:"clock-skew"`         // 0: a minute
	MaxLifetime       time.Duration `yaml:"max-lifetime"`       // from iat to exp; 0: a day
	Rules             []Rule        `yaml:"rules"`
}

// Certificates says what client certificates stand for, where no token comes with them.
type Certificates struct {
	Rules []Rule `yaml:"rules"`
}

// Rule gives a role to whom all its conditions meet. The first rule that does so
// decides.
type Rule struct {
	// When has, for each claim, patterns of which one must match: * stands for any
	// text without / and :, ** for any text. A key that begins with / is a JSON
	// pointer into the claims. Of a list, one element must match.
	When map[string]Words `yaml:"when"`
	Team string           `yaml:"team"`
	// Project may hold one {claim}; its text is lower-cased and / becomes ~, as in the
	// ids that agents derive from git remotes. "" is the whole team.
	Project string `yaml:"project"`
	// WholeHub stands instead of a team.
	WholeHub bool   `yaml:"whole-hub"`
	Role     string `yaml:"role"`
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

// certClaims are the claims of a client certificate.
var certClaims = map[string]bool{"uri": true, "email": true, "dns": true, "cn": true, "ou": true, "o": true}

// rulebook is a Trust that has been checked.
type rulebook struct {
	issuers map[string]*issuer // by URL
	certs   []*rule
}

// Check finds every setting that cannot work. It touches no file and no network.
func (t Trust) Check() error {
	_, err := t.compile()
	return err
}

func (t Trust) compile() (*rulebook, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	book := &rulebook{issuers: map[string]*issuer{}}
	names := map[string]bool{}
	if len(t.Issuers) > maxIssuers {
		bad("issuers: at most %d", maxIssuers)
	}
	if len(t.Issuers) == 0 && t.ClientCertificates == nil {
		bad("neither issuers nor client-certificates: nothing would be believed; leave the file out")
	}
	for n, s := range t.Issuers {
		where := fmt.Sprintf("issuers[%d]", n)
		switch {
		case !namePattern.MatchString(s.Name):
			bad("%s: name %.40q: use 1 to 32 of a-z, 0-9, '.', '_', '-'", where, s.Name)
		case names[s.Name]:
			bad("%s: name %q stands there twice", where, s.Name)
		default:
			where = "issuer " + s.Name
		}
		names[s.Name] = true
		if book.issuers[s.URL] != nil {
			bad("%s: issuer %q stands there twice; put its rules together", where, s.URL)
		}
		i, err := s.compile(where)
		errs = append(errs, err)
		book.issuers[s.URL] = i
	}
	if c := t.ClientCertificates; c != nil {
		rules, err := compileRules("client-certificates", c.Rules)
		errs = append(errs, err)
		for _, r := range rules {
			for _, key := range r.keys() {
				if !certClaims[key] {
					bad("client-certificates: %q is nothing that a certificate says; use uri, email, dns, cn, ou or o", key)
				}
			}
		}
		book.certs = rules
	}
	return book, errors.Join(errs...)
}

func (s Issuer) compile(where string) (*issuer, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(where+": "+format, args...)) }
	if err := checkURL(s.URL); err != nil {
		bad("issuer: %w", err)
	}
	if s.JWKSURL != "" {
		if err := checkURL(s.JWKSURL); err != nil {
			bad("jwks-url: %w", err)
		}
	}
	if len(s.Audience) == 0 {
		bad("audience: name at least one, made for this hub: without it a token meant for another service would do here")
	}
	for _, w := range append(append(Words{}, s.Audience...), s.AuthorizedParties...) {
		if w == "" {
			bad("audience, authorized-parties: a word is empty")
		}
	}
	if s.ClockSkew == 0 {
		s.ClockSkew = defaultSkew
	}
	if s.ClockSkew < 0 || s.ClockSkew > maxSkew {
		bad("clock-skew: from 1s to %v; 0 or nothing is %v", maxSkew, defaultSkew)
	}
	if s.MaxLifetime == 0 {
		s.MaxLifetime = defaultLifetime
	}
	if s.MaxLifetime < time.Minute {
		bad("max-lifetime: at least 1m")
	}
	rules, err := compileRules(where, s.Rules)
	return &issuer{Issuer: s, rules: rules}, errors.Join(append(errs, err)...)
}

// checkURL wants https, and takes http on loopback only: keys that anyone on the way
// could exchange prove nothing.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return fmt.Errorf("%.200q: want https://host/…", text)
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http":
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return nil
		}
	}
	return fmt.Errorf("%.200q: want https; http is taken on loopback only", text)
}

func compileRules(where string, in []Rule) ([]*rule, error) {
	var errs []error
	if len(in) == 0 || len(in) > maxRules {
		errs = append(errs, fmt.Errorf("%s: rules: from 1 to %d; a credential that no rule meets may do nothing", where, maxRules))
	}
	var out []*rule
	for n, r := range in {
		c, err := r.compile()
		if err != nil {
			errs = append(errs, Within(fmt.Sprintf("%s: rules[%d]", where, n), err))
			continue
		}
		out = append(out, c)
	}
	return out, errors.Join(errs...)
}

// Within says of each of joined errors where it was found, so that every line tells.
func Within(where string, err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, Within(where, e))
		}
		return errors.Join(out...)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", where, err)
}

// grant is what a rule gives.
type grant struct {
	team    memory.Team
	project memory.Project
	role    string
}
