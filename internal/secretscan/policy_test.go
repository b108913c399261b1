package secretscan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documented is a fake key in a plan, as teams write them, with an inline allowance beside it.
const documented = "Use the sample key AKIA" + "Z7QJ3MNBPL2XKD5T <!-- gitleaks:allow -->\n"

func scanWith(t *testing.T, s *Scanner, p Policy, text string) []Finding {
	t.Helper()
	fs, err := s.ScanWith(p, "project_plan.md", []byte(text))
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	return fs
}

func TestPolicyAllows(t *testing.T) {
	s := New(Options{})
	found := scanWith(t, s, Policy{}, documented)
	if len(found) != 1 {
		t.Fatalf("without a policy: %v, want one finding in spite of the inline comment", found)
	}
	for name, p := range map[string]Policy{
		"inline":      {AllowInline: true},
		"rule":        {AllowRules: []string{"aws-access-token"}},
		"fingerprint": {AllowFingerprints: []string{found[0].Fingerprint}},
	} {
		if fs := scanWith(t, s, p, documented); fs != nil {
			t.Errorf("%s: %v", name, fs)
		}
	}
	for name, p := range map[string]Policy{
		"other rule":        {AllowRules: []string{"github-pat"}},
		"other fingerprint": {AllowFingerprints: []string{strings.Repeat("0", 64)}},
		"key changed":       {FingerprintKey: []byte("team key"), AllowFingerprints: []string{found[0].Fingerprint}},
		"version alone":     {Version: 7},
	} {
		if fs := scanWith(t, s, p, documented); len(fs) != 1 {
			t.Errorf("%s: %v, want one finding", name, fs)
		}
	}
	// What was allowed is found again when the allowance goes.
	if fs := scanWith(t, s, Policy{}, documented); !cmp.Equal(fs, found) {
		t.Errorf("after the allowance went: %v", fs)
	}
}

func TestInlineCountsOnItsLineOnly(t *testing.T) {
	text := "gitleaks:allow\nAKIA" + "Z7QJ3MNBPL2XKD5T\n"
	if fs := scanWith(t, New(Options{}), Policy{AllowInline: true}, text); len(fs) != 1 {
		t.Errorf("got %v, want one finding", fs)
	}
}

func TestFingerprintFollowsRuleValueAndKey(t *testing.T) {
	s := New(Options{})
	fp := func(p Policy, text string) string {
		fs := scanWith(t, s, p, text)
		if len(fs) != 1 {
			t.Fatalf("%q: %v, want one finding", text, fs)
		}
		return fs[0].Fingerprint
	}
	const key = "AKIA" + "Z7QJ3MNBPL2XKD5T"
	one := fp(Policy{}, "key "+key)
	if got := fp(Policy{}, "\n\nelsewhere, full width: "+strings.Map(func(r rune) rune { return r + 0xfee0 }, key)); got != one {
		t.Errorf("the same value has another fingerprint in another form and line")
	}
	if fp(Policy{}, "AKIA"+"Z7QJ3MNBPL2XKD5U") == one {
		t.Errorf("two values have one fingerprint")
	}
	if fp(Policy{FingerprintKey: []byte("a")}, key) == fp(Policy{FingerprintKey: []byte("b")}, key) {
		t.Errorf("two keys give one fingerprint")
	}
}

func TestRulesExtendAndReplace(t *testing.T) {
	s := New(Options{})
	const ticket = "[[rules]]\nid = 'acme-ticket'\ndescription = 'a ticket of acme'\nregex = '''acme-[0-9]{8}'''\nkeywords = ['acme-']\n"
	extend := Policy{RulesTOML: []byte("[extend]\nuseDefault = true\n" + ticket)}
	replace := Policy{RulesTOML: []byte(ticket)}
	disable := Policy{RulesTOML: []byte("[extend]\nuseDefault = true\ndisabledRules = ['aws-access-token']\n")}
	override := Policy{RulesTOML: []byte("[extend]\nuseDefault = true\n[[rules]]\nid = 'aws-access-token'\n[[rules.allowlists]]\nregexes = ['KD5T$']\n")}
	text := "acme-12345678\n" + documented + "password: Zx81k" + "q9PPw\n"
	for name, c := range map[string]struct {
		p    Policy
		want []string
	}{
		"default":  {Policy{}, []string{"aws-access-token", rulePassword}},
		"extend":   {extend, []string{"acme-ticket", "aws-access-token", rulePassword}},
		"replace":  {replace, []string{"acme-ticket", rulePassword}},
		"disable":  {disable, []string{rulePassword}},
		"override": {override, []string{rulePassword}},
	} {
		var got []string
		for _, f := range scanWith(t, s, c.p, text) {
			got = append(got, f.Rule)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPathAllowancesAreIgnored: who writes a file chooses its path, so a path allows nothing.
func TestPathAllowancesAreIgnored(t *testing.T) {
	s := New(Options{})
	p := Policy{RulesTOML: []byte("[extend]\nuseDefault = true\n[[allowlists]]\npaths = ['''.*''']\n[[allowlists]]\ncondition = 'AND'\npaths = ['''.*''']\nregexes = ['''.*''']\n")}
	if fs := scanWith(t, s, p, documented); len(fs) != 1 {
		t.Errorf("got %v, want one finding", fs)
	}
	if fs, err := s.Scan("node_modules/readme.md", []byte(documented)); err != nil || len(fs) != 1 {
		t.Errorf("below node_modules: %v, %v; want one finding", fs, err)
	}
}

// TestLineAllowancesOfTheDefaultsAreIgnored: what stands elsewhere on the line is the client's to write.
func TestLineAllowancesOfTheDefaultsAreIgnored(t *testing.T) {
	fs := scanWith(t, New(Options{}), Policy{}, `--mount=type=secret, deploy_key = "`+"q8Zr3vXn5Lw1"+`Tb7Ky2Hd"`)
	if len(fs) != 1 {
		t.Errorf("got %v, want one finding", fs)
	}
}

func TestRuleSetVersion(t *testing.T) {
	s := New(Options{})
	version := func(p Policy) string {
		v, err := s.RuleSetVersion(p)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	base := version(Policy{})
	if base != version(Policy{Version: 3, AllowRules: []string{"x"}, FingerprintKey: []byte("k")}) {
		t.Errorf("allowances change the version; they need no new scan")
	}
	if base == version(Policy{RulesTOML: []byte("[extend]\nuseDefault = true\n")}) {
		t.Errorf("other rules have the same version")
	}
	if _, err := s.RuleSetVersion(Policy{RulesTOML: []byte("[")}); err == nil {
		t.Errorf("broken rules have a version")
	}
}

func TestVerdictsAreCachedByAllTheyDependOn(t *testing.T) {
	s := New(Options{CacheEntries: 2})
	scan := func(p Policy, path, text string) {
		t.Helper()
		if _, err := s.ScanWith(p, path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	entries := func(want int, why string) {
		t.Helper()
		if got := s.verdicts.len(); got != want {
			t.Errorf("%s: %d verdicts kept, want %d", why, got, want)
		}
	}
	scan(Policy{}, "a.md", "text")
	scan(Policy{}, "a.md", "text")
	scan(Policy{Version: 2, AllowInline: true}, "a.md", "text")
	entries(1, "same text, rules and key")
	scan(Policy{}, "b.md", "text")
	entries(2, "another path")
	scan(Policy{RulesTOML: []byte("[extend]\nuseDefault = true\n")}, "a.md", "text")
	entries(2, "over the bound")
	if _, ok := s.verdicts.get(verdictKey{}); ok {
		t.Error("a verdict for what was never scanned")
	}
	none := New(Options{CacheEntries: -1})
	if _, err := none.Scan("a.md", []byte("text")); err != nil || none.verdicts.len() != 0 {
		t.Errorf("cache switched off keeps %d verdicts (%v)", none.verdicts.len(), err)
	}
	// A cached verdict answers as a fresh one.
	for range 2 {
		if fs := scanWith(t, s, Policy{}, documented); len(fs) != 1 || fs[0].Path != "project_plan.md" {
			t.Errorf("got %v", fs)
		}
	}
}

func TestOwnRulesAreListed(t *testing.T) {
	var ids []string
	for _, r := range OwnRules() {
		ids = append(ids, r.ID)
		if r.Description == "" || !strings.HasPrefix(r.ID, "memsvc-") {
			t.Errorf("rule %+v is not described", r)
		}
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 10 {
		t.Errorf("got %v, want ten rules", ids)
	}
}
