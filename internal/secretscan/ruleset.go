package secretscan

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/zricethezav/gitleaks/v8/config"
)

// ownRulesVersion counts changes of what the code of this package finds: its own rules, its normalisation and decoding.
// Raise it with every such change, so that stored memories are scanned again.
const ownRulesVersion = 7

// maxKeywordBytes bounds the keywords of a rule set together, so that states fit the automaton's 16 bits.
const maxKeywordBytes = 60_000

// ruleSet is everything a scan needs, ready to share between goroutines. It never changes once built.
type ruleSet struct {
	version [sha256.Size]byte
	allow   []*allowlist // for all rules of the configuration
	auto    *automaton
	words   []wordUse // by keyword number
	always  []*rule   // rules without keyword
}

// wordUse is what a keyword sets in motion.
type wordUse struct {
	len      int
	own      ownKind // which of our own rules looks here
	tokens   []*rule
	minToken int // no token rule of this word matches in a shorter run
	assigns  []*rule
	texts    []*rule
}

// buildRuleSet parses a policy's rules. All its errors are ErrRules.
func buildRuleSet(toml []byte) (*ruleSet, error) {
	rules, global, err := parseRules(toml)
	if err != nil {
		return nil, fmt.Errorf("read guard rules: %w: %w", ErrRules, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d\x00%s\x00", ownRulesVersion, config.DefaultConfig)
	h.Write(toml)
	set := &ruleSet{allow: global}
	h.Sum(set.version[:0])

	number := map[string]int{}
	var words []string
	word := func(w string) *wordUse {
		n, ok := number[w]
		if !ok {
			n = len(words)
			number[w] = n
			words = append(words, w)
			set.words = append(set.words, wordUse{len: len(w)})
		}
		return &set.words[n]
	}
	for _, whole := range rules {
		for _, r := range whole.split() {
			r.analyse()
			if len(r.keywords) == 0 {
				set.always = append(set.always, r)
			}
			slices.Sort(r.keywords)
			for _, k := range slices.Compact(r.keywords) {
				w := word(k)
				switch r.shape {
				case shapeToken:
					// A match may have one edge character that is not part of the run, at each end.
					need := max(r.minLen-2, 1)
					if len(w.tokens) == 0 || need < w.minToken {
						w.minToken = need
					}
					w.tokens = append(w.tokens, r)
				case shapeAssign:
					w.assigns = append(w.assigns, r)
				default:
					w.texts = append(w.texts, r)
				}
			}
		}
	}
	for kind, list := range ownWords() {
		for _, w := range list {
			word(w).own |= kind
		}
	}
	total := 0
	for _, w := range words {
		total += len(w)
	}
	if total > maxKeywordBytes {
		return nil, fmt.Errorf("read guard rules: %w: keywords of %d bytes together, at most %d", ErrRules, total, maxKeywordBytes)
	}
	set.auto = newAutomaton(words)
	return set, nil
}
