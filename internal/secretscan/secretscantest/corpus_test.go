package secretscantest_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

func TestCorpusIsWellFormedAndStable(t *testing.T) {
	secrets := secretscantest.Secrets()
	if diff := cmp.Diff(secrets, secretscantest.Secrets()); diff != "" {
		t.Errorf("two readings differ:\n%s", diff)
	}
	ids := map[string]bool{}
	for _, p := range secrets {
		if ids[p.ID] {
			t.Errorf("%s: id used twice", p.ID)
		}
		ids[p.ID] = true
		where := p.Path
		if p.Line > 0 {
			where = strings.Join(strings.Split(p.Content, "\n")[p.Line-1:], "\n")
		}
		if !strings.Contains(where, p.Written) || p.Secret == "" {
			t.Errorf("%s: secret is not at line %d", p.ID, p.Line)
		}
		if !utf8.ValidString(p.Content) || strings.Contains(p.Content, "{{") && strings.Contains(p.Content, "|<") {
			t.Errorf("%s: template left over in %q", p.ID, p.Content)
		}
	}
	for _, h := range secretscantest.Harmless() {
		if ids[h.ID] {
			t.Errorf("%s: id used twice", h.ID)
		}
		ids[h.ID] = true
	}
}
