package secretscan

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"

	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

// missing lists what gitleaks finds in text and the guard does not, but for what the guard names harmless on purpose.
func missing(t *testing.T, s *Scanner, d *detect.Detector, text string) []report.Finding {
	t.Helper()
	fs, err := s.Scan("memory.md", []byte(text))
	if err != nil {
		t.Fatalf("scan: %v", err)
	}
	var out []report.Finding
	for _, f := range d.DetectString(text) {
		// gitleaks counts lines from 0, and a match may begin with the newline before it.
		from, to := f.StartLine+1, f.EndLine+1+strings.Count(f.Match, "\n")
		generic := f.RuleID == "generic-api-key"
		if generic && harmlessAssigned(f.Secret, f.Line) {
			continue
		}
		ok := false
		for _, o := range fs {
			// A specific finding of ours stands for a generic one on the same line.
			ok = ok || (o.Rule == f.RuleID || generic) && from <= o.Line && o.Line <= to
		}
		if !ok {
			out = append(out, f)
		}
	}
	return out
}

// TestFindsWhatGitleaksFinds compares with gitleaks's own detector on the corpus, alone and among other text, and on
// shuffled and cut mixtures of it.
func TestFindsWhatGitleaksFinds(t *testing.T) {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	d.IgnoreGitleaksAllow = true
	s := New(Options{CacheEntries: -1})
	var texts []string
	for _, p := range secretscantest.Secrets() {
		texts = append(texts, p.Content)
	}
	for _, p := range secretscantest.Matrix() {
		texts = append(texts, p.Content)
	}
	for _, h := range secretscantest.Harmless() {
		texts = append(texts, h.Content)
	}
	if Slow > 1 {
		texts = texts[:len(texts)/Slow] // races are TestSixteenScanners's business
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 / Slow {
		var mix strings.Builder
		for range 1 + r.IntN(6) {
			text := texts[r.IntN(len(texts))]
			cut := r.IntN(len(text) + 1)
			mix.WriteString([]string{text, text[:cut], text[cut:], strings.ToUpper(text), strings.ReplaceAll(text, " ", "_")}[r.IntN(5)])
			mix.WriteString([]string{"", " ", "\n", ",", "=", "\t"}[r.IntN(6)])
		}
		texts = append(texts, strings.ToValidUTF8(mix.String(), "?"))
	}
	found := 0
	for _, text := range texts {
		found += len(d.DetectString(text))
		for _, f := range missing(t, s, d, text) {
			t.Errorf("gitleaks finds %s on line %d of %q, the guard does not", f.RuleID, f.StartLine+1, text)
		}
	}
	t.Logf("gitleaks has %d findings in %d texts; the guard has them all", found, len(texts))
	if found < 300/(2*Slow) {
		t.Errorf("only %d findings compared", found)
	}
}
