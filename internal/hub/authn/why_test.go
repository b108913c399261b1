package authn

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// TestWhys holds the words of the metric against the table in the documentation, and
// expects each to be a word and to have a text of its own.
func TestWhys(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "<!-- why -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	var documented, told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, m[1])
	}
	seen := map[string]why{}
	for _, w := range whys() {
		told = append(told, string(w))
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(string(w)) {
			t.Errorf("%q is no word of lower-case letters and underscores", w)
		}
		if was, twice := seen[w.text()]; twice && w != whyNoKeys && w != whyNoRule {
			t.Errorf("%s has the text of %s: %s", w, was, w.text())
		}
		seen[w.text()] = w
	}
	if d := cmp.Diff(documented, told); d != "" {
		t.Errorf("documented (-), told (+):\n%s", d)
	}
	// Nothing but these becomes a label.
	reg := prometheus.NewRegistry()
	newOtherMetrics(reg)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); f.GetName() == "memsvc_foreign_credentials_refused_total" && n != len(told) {
			t.Errorf("%d series from the beginning, want %d", n, len(told))
		}
	}
}
