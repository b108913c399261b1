package secretscan_test

import (
	"slices"
	"testing"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

const (
	maxMissPercent       = 0.9 // of the planted secrets
	maxFalseAlarmPercent = 0.0 // of the harmless texts
)

// TestRates prints and enforces the guard's miss and false-alarm rates.
func TestRates(t *testing.T) {
	s := secretscan.New(secretscan.Options{})
	type count struct{ planted, missed, harmless, alarms int }
	counts := map[secretscantest.Set]*count{}
	for _, set := range secretscantest.Sets() {
		counts[set] = &count{}
	}
	for _, p := range secretscantest.Secrets() {
		n := counts[p.Set]
		n.planted++
		fs, err := s.Scan(p.Path, []byte(p.Content))
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		if !slices.ContainsFunc(fs, func(f secretscan.Finding) bool { return f.Line == p.Line }) {
			n.missed++
			t.Logf("missed %s: want line %d, got %v", p.ID, p.Line, brief(fs))
		}
	}
	for _, h := range secretscantest.Harmless() {
		n := counts[h.Set]
		n.harmless++
		fs, err := s.Scan(h.Path, []byte(h.Content))
		if err != nil {
			t.Fatalf("%s: %v", h.ID, err)
		}
		if len(fs) > 0 {
			n.alarms++
			t.Logf("false alarm %s: %v", h.ID, brief(fs))
		}
	}
	var all count
	for _, set := range secretscantest.Sets() {
		n := *counts[set]
		t.Logf("guard corpus, %s: %d of %d secrets missed (%.1f %%), %d of %d harmless texts refused (%.1f %%)", set,
			n.missed, n.planted, percent(n.missed, n.planted), n.alarms, n.harmless, percent(n.alarms, n.harmless))
		all = count{all.planted + n.planted, all.missed + n.missed, all.harmless + n.harmless, all.alarms + n.alarms}
	}
	if all.planted < 300 || all.harmless < 400 {
		t.Errorf("the corpus has %d secrets and %d harmless texts, want at least 300 and 400", all.planted, all.harmless)
	}
	if r := percent(all.missed, all.planted); r > maxMissPercent {
		t.Errorf("miss rate %.2f %%, want at most %.1f %%", r, maxMissPercent)
	}
	if r := percent(all.alarms, all.harmless); r > maxFalseAlarmPercent {
		t.Errorf("false-alarm rate %.2f %%, want at most %.1f %%", r, maxFalseAlarmPercent)
	}
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

func brief(fs []secretscan.Finding) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Rule)
	}
	return out
}
