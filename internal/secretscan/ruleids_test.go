package secretscan

import "testing"

// TestHasRule asks for rules of each origin.
func TestHasRule(t *testing.T) {
	own := []byte("[[rules]]\nid = \"acme-key\"\nregex = '''acme-[0-9]{6}'''\n")
	extended := append([]byte("[extend]\nuseDefault = true\ndisabledRules = [\"github-pat\"]\n"), own...)
	s := New(Options{})
	for _, tc := range []struct {
		name string
		toml []byte
		id   string
		want bool
	}{
		{"default", nil, "github-pat", true},
		{"ours", nil, "memsvc-password", true},
		{"nobody's", nil, "nonsense", false},
		{"empty", nil, "", false},
		{"the policy's", extended, "acme-key", true},
		{"default beside the policy's", extended, "generic-api-key", true},
		{"disabled", extended, "github-pat", false},
		{"replaced", own, "generic-api-key", false},
		{"ours beside replaced ones", own, "memsvc-token", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := s.HasRule(Policy{RulesTOML: tc.toml}, tc.id); err != nil || got != tc.want {
				t.Errorf("HasRule(%q) = %t, %v", tc.id, got, err)
			}
		})
	}
	if _, err := s.HasRule(Policy{RulesTOML: []byte("[")}, "github-pat"); err == nil {
		t.Error("rules that cannot be read were taken")
	}
}
