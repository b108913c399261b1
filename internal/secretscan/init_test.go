package secretscan

import (
	"crypto/sha256"
	"testing"
)

// TestNothingHappensBeforeTheFirstScan: a program that only imports the guard, or makes a Scanner, pays nothing.
func TestNothingHappensBeforeTheFirstScan(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() { New(Options{}) }); n > 20 {
		t.Errorf("New allocates %v times, want at most 20: rules are parsed at the first scan", n)
	}
	s := New(Options{})
	if s.sets.len() != 0 {
		t.Error("a new Scanner holds rules already")
	}
	if _, err := s.Scan("a.md", []byte("text")); err != nil {
		t.Fatal(err)
	}
	set, ok := s.sets.get(emptyTOML())
	if !ok {
		t.Fatal("no rules after the first scan")
	}
	for _, w := range set.words {
		for _, list := range [][]*rule{w.tokens, w.assigns, w.texts} {
			for _, r := range list {
				if r.regex != nil {
					t.Errorf("rule %s is compiled, but none of its keywords was seen", r.id)
				}
			}
		}
	}
}

func emptyTOML() [32]byte { return sha256.Sum256(nil) }
