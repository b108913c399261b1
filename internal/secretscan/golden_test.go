package secretscan

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRuleList compares all rules with testdata/rules.golden, so that an update of gitleaks shows what it changes: the
// rule, and how much of a text its expression must see. Run with UPDATE_GOLDEN=1 to write it anew, and raise
// ownRulesVersion if our own part changed.
func TestRuleList(t *testing.T) {
	set, err := buildRuleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]bool{}
	for _, w := range set.words {
		for _, list := range [][]*rule{w.tokens, w.assigns, w.texts} {
			for _, r := range list {
				lines[fmt.Sprintf("%s %s", r.id, [...]string{"text", "token", "assign"}[r.shape])] = true
			}
		}
	}
	for _, r := range set.always {
		lines[r.id+" always"] = true
	}
	for _, r := range OwnRules() {
		lines[r.ID+" own"] = true
	}
	var list []string
	for l := range lines {
		list = append(list, l)
	}
	sort.Strings(list)
	got := strings.Join(list, "\n") + "\n"
	const golden = "testdata/rules.golden"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("rules changed (-golden +now):\n%s", diff)
	}
}
