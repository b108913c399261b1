package secretscan_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

// TestSixteenScanners uses one Scanner from sixteen goroutines, from its very first scan on, under two rule sets; all
// must agree. Run with -race.
func TestSixteenScanners(t *testing.T) {
	shared := secretscan.New(secretscan.Options{CacheEntries: 64})
	policies := []secretscan.Policy{{}, {RulesTOML: []byte("[extend]\nuseDefault = true\n"), FingerprintKey: []byte("k")}}
	secrets := secretscantest.Secrets()
	results := make([]string, 16)
	var wg sync.WaitGroup
	for n := range results {
		wg.Go(func() {
			var out strings.Builder
			for i := range secrets {
				// Every goroutine begins elsewhere, so that each rule is met first by another.
				p := secrets[(i+n*14)%len(secrets)]
				for _, policy := range policies {
					fs, err := shared.ScanWith(policy, p.Path, []byte(p.Content))
					if err != nil {
						t.Error(err)
					}
					if (i+n*14)%len(secrets) == 5 {
						fmt.Fprint(&out, fs)
					}
				}
			}
			results[n] = out.String()
		})
	}
	wg.Wait()
	for n, r := range results {
		if diff := cmp.Diff(results[0], r); diff != "" || r == "" {
			t.Errorf("scanner %d disagrees:\n%s", n, diff)
		}
	}
}

// FuzzScan: no panic, no finding outside the text, no secret in a finding, the same answer twice.
func FuzzScan(f *testing.F) {
	for _, p := range secretscantest.Secrets() {
		f.Add(p.Path, p.Content)
	}
	for i, h := range secretscantest.Harmless() {
		if i%4 == 0 {
			f.Add(h.Path, h.Content)
		}
	}
	s := secretscan.New(secretscan.Options{CacheEntries: -1})
	f.Fuzz(func(t *testing.T, path, text string) {
		fs, err := s.Scan(path, []byte(text))
		if err != nil {
			if strings.Contains(err.Error(), "failed inside") {
				t.Fatalf("%v for %q, %q", err, path, text)
			}
			return
		}
		lines := 1 + strings.Count(text, "\n")
		for _, x := range fs {
			if x.Line < 0 || x.EndLine < x.Line || x.EndLine > lines {
				t.Errorf("lines %d to %d of %d", x.Line, x.EndLine, lines)
			}
			if x.Path != path || x.Rule == "" || x.Description == "" || len(x.Fingerprint) != 64 {
				t.Errorf("finding %+v is not whole", x)
			}
		}
		again, err := s.Scan(path, []byte(text))
		if err != nil || cmp.Diff(fs, again) != "" {
			t.Errorf("two scans differ: %v, %v (%v)", fs, again, err)
		}
	})
}
