package secretscan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

// BenchmarkAgainstGitleaks reports the median of how many times as fast as gitleaks's DetectString the guard scans the
// Markdown corpus, both in turn in one run, without the verdict cache.
func BenchmarkAgainstGitleaks(b *testing.B) {
	texts := markdownCorpus()
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		b.Fatal(err)
	}
	s := secretscan.New(secretscan.Options{CacheEntries: -1})
	guard := func() {
		for _, t := range texts {
			if _, err := s.Scan("a.md", []byte(t)); err != nil {
				b.Fatal(err)
			}
		}
	}
	guard() // rules are parsed and compiled once in a process
	var ratios []float64
	for b.Loop() {
		begin := time.Now()
		guard()
		ours := time.Since(begin)
		begin = time.Now()
		for _, t := range texts {
			d.DetectString(t)
		}
		ratios = append(ratios, float64(time.Since(begin))/float64(ours))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-gitleaks")
}

// BenchmarkRates reports the guard's error rates on the corpus and on the evasion matrix.
func BenchmarkRates(b *testing.B) {
	s := secretscan.New(secretscan.Options{CacheEntries: -1})
	missed := func(all []secretscantest.Planted) float64 {
		n := 0
		for _, p := range all {
			fs, err := s.Scan(p.Path, []byte(p.Content))
			if err != nil {
				b.Fatal(err)
			}
			if !slices.ContainsFunc(fs, func(f secretscan.Finding) bool { return f.Line == p.Line }) {
				n++
			}
		}
		return percent(n, len(all))
	}
	var miss, evaded, alarm float64
	for b.Loop() {
		miss, evaded = missed(secretscantest.Secrets()), missed(secretscantest.Matrix())
		texts, n := secretscantest.Harmless(), 0
		for _, h := range texts {
			fs, err := s.Scan(h.Path, []byte(h.Content))
			if err != nil {
				b.Fatal(err)
			}
			if len(fs) > 0 {
				n++
			}
		}
		alarm = percent(n, len(texts))
	}
	b.ReportMetric(miss, "miss-%")
	b.ReportMetric(evaded, "evasion-miss-%")
	b.ReportMetric(alarm, "false-alarm-%")
}
