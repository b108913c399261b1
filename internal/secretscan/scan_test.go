package secretscan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// rules lists "line:rule" of the findings in a text under the default policy.
func rules(t *testing.T, path, text string) []string {
	t.Helper()
	fs, err := New(Options{}).Scan(path, []byte(text))
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	var out []string
	for _, f := range fs {
		out = append(out, string(rune('0'+f.Line))+":"+f.Rule)
	}
	return out
}

func TestFindsAndNamesTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"token":        {"one\nkey: AKIA" + "Z7QJ3MNBPL2XKD5T\n", "2:aws-access-token"},
		"url":          {"postgres://app:" + "Xk9mPq2vLw@db.prod:5432/x", "1:memsvc-url-credentials"},
		"prose":        {"\n\nthe staging password is `Tr0ub4" + "dor&3x`", "3:memsvc-password"},
		"chinese":      {"密码是 Gh7kL" + "9pQ2x", "1:memsvc-password"},
		"zero width":   {"a\npass\u200bword = Zx81k" + "q9PPw", "2:memsvc-password"},
		"split token":  {"ghp_16C7e42F292c6912\nE7710c838347Ae178B4a", "1:github-pat"},
		"table column": {"| User | Password |\n|---|---|\n| admin | `Hg6!" + "kPw0` |", "3:memsvc-password"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(rules(t, "a.md", c.text), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNamesTheLinesOfTheWholeValue: who leaves out what a finding names leaves no half of the value.
func TestNamesTheLinesOfTheWholeValue(t *testing.T) {
	const rest = "E7710c838347Ae178B4a"
	key := "-----BEGIN RSA " + "PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEAr8pX0mJq3Yw7k2cVb5nT9uLzQeHs1fGd4RjKxWvA6oPiMyNC\n", 3)
	for text, want := range map[string]string{
		"password = Zx81k" + "q9PPw\nand more":                            "1-1",
		"x ghp_\n16C7e42F292c6912" + rest:                                 "1-2",
		"x ghp_16C7e42F292c6912\n" + rest + "\nThis is prose.":            "1-2",
		"x ghp_16C7e42F\n292c6912\n" + rest + " is it":                    "1-3",
		"aws_secret_access_key = wJalrXUtnFEMIK7MDENG\\\nbPxRfiCYzz8KEYk": "1-2",
		"token: ghp_16C7e42F292c6912" + rest + "\nREGION=eu-west-1":       "1-1",
		"token: ghp_16C7e42F292c6912" + rest + "\nhttps://a.example/b1":   "1-1",
		"token: ghp_16C7e42F292c6912" + rest + " (old)\nA1B2C3":           "1-1",
		"\u200bcut: ghp_16C7e42F292c6912\n" + rest:                        "1-2",
		key + "-----END RSA " + "PRIVATE KEY-----\nover":                  "1-5",
		"> " + strings.ReplaceAll(key, "\n", "\n> ") + "cut off here":     "1-4",
	} {
		fs, err := New(Options{}).Scan("a.md", []byte(text))
		if err != nil || len(fs) == 0 {
			t.Errorf("%q: %v, %v", text, fs, err)
			continue
		}
		end := 0
		for _, f := range fs {
			end = max(end, f.EndLine)
			if f.EndLine < f.Line {
				t.Errorf("%q: %+v ends before it begins", text, f)
			}
		}
		if got := fmt.Sprintf("%d-%d", fs[0].Line, end); got != want {
			t.Errorf("%q: got lines %s, want %s", text, got, want)
		}
	}
}

// TestReportedFalseAlarms replays what users of secret scanners reported as false alarms.
func TestReportedFalseAlarms(t *testing.T) {
	for _, text := range []string{
		"Log in with a username/password combination.",
		"token: 550e8400-e29b-41d4-a716-446655440000",
		"key: ctrl+shift+down",
	} {
		if got := rules(t, "a.md", text); got != nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestFailsClosed(t *testing.T) {
	s := New(Options{})
	for name, c := range map[string]struct {
		policy  Policy
		path    string
		content []byte
		want    error
	}{
		"too large":     {Policy{}, "a.md", make([]byte, MaxContentBytes+1), ErrTooLarge},
		"long path":     {Policy{}, strings.Repeat("a", 1025), nil, ErrTooLarge},
		"not UTF-8":     {Policy{}, "a.md", []byte("a\xff"), ErrNotText},
		"NUL":           {Policy{}, "a.md", []byte("a\x00b"), ErrNotText},
		"bad TOML":      {Policy{RulesTOML: []byte("rules = [")}, "a.md", nil, ErrRules},
		"bad regex":     {Policy{RulesTOML: []byte("[[rules]]\nid='x'\nregex='('")}, "a.md", nil, ErrRules},
		"unknown key":   {Policy{RulesTOML: []byte("[[rules]]\nid='x'\nregexp='a'")}, "a.md", nil, ErrRules},
		"empty rule":    {Policy{RulesTOML: []byte("[[rules]]\nid='x'")}, "a.md", nil, ErrRules},
		"extend a file": {Policy{RulesTOML: []byte("[extend]\npath='/etc/rules'")}, "a.md", nil, ErrRules},
		"composite":     {Policy{RulesTOML: []byte("[[rules]]\nid='x'\nregex='a'\n[[rules.required]]\nid='y'")}, "a.md", nil, ErrRules},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.ScanWith(c.policy, c.path, c.content); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestPanicInsideIsAnError(t *testing.T) {
	set, err := buildRuleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := *set
	broken.always = []*rule{nil}
	hits, err := judge(&broken, nil, "a.md", []byte("text"))
	if err == nil || hits != nil {
		t.Errorf("got %v, %v; want an error", hits, err)
	}
}
