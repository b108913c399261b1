package secretscan_test

import (
	"testing"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

const (
	maxMissPercent       = 2.0 // of the planted secrets
	maxFalseAlarmPercent = 1.0 // of the harmless texts
)

// TestRates prints and enforces the guard's miss and false-alarm rates.
func TestRates(t *testing.T) {
	s := secretscan.New(secretscan.Options{})
	var planted, missed, harmless, alarms [2]int
	for _, p := range secretscantest.Secrets() {
		half := part(p.HeldBack)
		planted[half]++
		fs, err := s.Scan(p.Path, []byte(p.Content))
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		hit := false
		for _, f := range fs {
			hit = hit || f.Line == p.Line
		}
		if !hit {
			missed[half]++
			t.Logf("missed %s: want line %d, got %v", p.ID, p.Line, brief(fs))
		}
	}
	for _, h := range secretscantest.Harmless() {
		half := part(h.HeldBack)
		harmless[half]++
		fs, err := s.Scan(h.Path, []byte(h.Content))
		if err != nil {
			t.Fatalf("%s: %v", h.ID, err)
		}
		if len(fs) > 0 {
			alarms[half]++
			t.Logf("false alarm %s: %v", h.ID, brief(fs))
		}
	}
	for half, name := range []string{"at hand", "held back"} {
		t.Logf("guard corpus, %s: %d of %d secrets missed (%.1f %%), %d of %d harmless texts refused (%.1f %%)", name,
			missed[half], planted[half], percent(missed[half], planted[half]), alarms[half], harmless[half], percent(alarms[half], harmless[half]))
	}
	if planted[0]+planted[1] < 150 || harmless[0]+harmless[1] < 300 {
		t.Errorf("the corpus has %v secrets and %v harmless texts, want at least 150 and 300", planted, harmless)
	}
	if r := percent(missed[0]+missed[1], planted[0]+planted[1]); r > maxMissPercent {
		t.Errorf("miss rate %.2f %%, want at most %.0f %%", r, maxMissPercent)
	}
	if r := percent(alarms[0]+alarms[1], harmless[0]+harmless[1]); r > maxFalseAlarmPercent {
		t.Errorf("false-alarm rate %.2f %%, want at most %.0f %%", r, maxFalseAlarmPercent)
	}
}

func part(heldBack bool) int {
	if heldBack {
		return 1
	}
	return 0
}

func percent(n, of int) float64 { return 100 * float64(n) / float64(of) }

func brief(fs []secretscan.Finding) []string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Rule)
	}
	return out
}
