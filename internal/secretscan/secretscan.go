package secretscan

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// MaxContentBytes bounds one scanned text, in bytes. The hub's own limit for a memory is a quarter of it; the bound here
// keeps the time of a scan bounded whoever calls.
const MaxContentBytes = 1 << 20

// maxPathBytes bounds the scanned file name, in bytes: the longest path a memory may have.
const maxPathBytes = 1024

// defaultCacheEntries is how many verdicts a Scanner keeps when Options does not say. A verdict of a clean text takes
// about 200 bytes.
const defaultCacheEntries = 8192

// maxRuleSets bounds how many compiled policies a Scanner keeps: a hub serves many teams, few of them with own rules.
const maxRuleSets = 16

// ErrTooLarge says that a text is over MaxContentBytes, or a path over 1,024 bytes, or that a text has more places to
// look at than any memory, and was not judged.
var ErrTooLarge = errors.New("text is too large for the secret guard")

// ErrNotText says that a text is not UTF-8 or holds NUL, and was not judged.
var ErrNotText = errors.New("text is not UTF-8 without NUL")

// ErrRules says that a policy's rules cannot be used; until they are mended nothing passes under that policy.
var ErrRules = errors.New("the policy's guard rules cannot be used")

// Finding is one hit of the guard. It never carries the secret.
type Finding struct {
	// Path is the path as given to Scan.
	Path string
	// Line is the 1-based line of the value in the original text; 0 means the file name.
	Line int
	// EndLine is the 1-based line where the value ends, or what line ends have cut off from it; never below Line. Line ends
	// within a token hide nothing from the guard: who leaves a value out leaves out all of Line to EndLine.
	EndLine int
	// Rule is the rule's id: one of gitleaks's, one of ours (they begin with "memsvc-"), or one of the policy's.
	Rule string
	// Description says in plain words what kind of secret it is.
	Description string
	// Fingerprint is the hex HMAC-SHA-256 of rule and value under the policy's key, or under a fixed public key when the
	// policy has none. It is equal for the same value in another file, line or encoding.
	Fingerprint string
}

// Policy is a team's allowance, held on the hub. The zero value allows nothing and uses the default rules.
type Policy struct {
	// Version is the hub's counter of this policy. It is carried for callers; verdicts depend on the content below.
	Version int64
	// FingerprintKey keys the fingerprints of findings; empty means the fixed public key.
	FingerprintKey []byte
	// AllowFingerprints lists fingerprints (under FingerprintKey) whose findings are let through.
	AllowFingerprints []string
	// AllowRules lists rule ids whose findings are let through.
	AllowRules []string
	// AllowInline lets a "gitleaks:allow" on the line of a finding count. Without it such a comment is ordinary text, so
	// that nobody allows himself.
	AllowInline bool
	// RulesTOML is a gitleaks configuration. With "[extend] useDefault = true" it extends the default rules, without it
	// replaces them; our own rules stay in both cases. Its path and commit allowances are ignored, since who writes a
	// file chooses its path.
	RulesTOML []byte
}

// Options configures a Scanner. The zero value works.
type Options struct {
	// CacheEntries bounds the verdict cache; 0 means 8,192, negative means no cache.
	CacheEntries int
}

// Scanner judges texts. It is safe for concurrent use. Make it with New.
type Scanner struct {
	verdicts *lru[verdictKey, []hit]

	mu   sync.Mutex // guards sets
	sets *lru[[sha256.Size]byte, *ruleSet]
}

// New returns a Scanner. It parses and compiles nothing until the first scan.
func New(opts Options) *Scanner {
	size := opts.CacheEntries
	if size == 0 {
		size = defaultCacheEntries
	}
	return &Scanner{
		verdicts: newLRU[verdictKey, []hit](max(size, 0)),
		sets:     newLRU[[sha256.Size]byte, *ruleSet](maxRuleSets),
	}
}

// Scan judges path and content under the default policy. See ScanWith.
func (s *Scanner) Scan(path string, content []byte) ([]Finding, error) {
	return s.ScanWith(Policy{}, path, content)
}

// ScanWith judges path and content under p and returns what p does not allow, ordered by line, then rule. No findings
// and no error means clean. Errors are ErrTooLarge, ErrNotText, ErrRules, or an internal one; each means "not clean",
// and none holds a part of the text.
func (s *Scanner) ScanWith(p Policy, path string, content []byte) ([]Finding, error) {
	if len(content) > MaxContentBytes {
		return nil, fmt.Errorf("scan for secrets: %w: %d bytes, at most %d: split the file", ErrTooLarge, len(content), MaxContentBytes)
	}
	if len(path) > maxPathBytes {
		return nil, fmt.Errorf("scan for secrets: %w: path of %d bytes, at most %d: shorten it", ErrTooLarge, len(path), maxPathBytes)
	}
	if !isText(content) || !utf8.ValidString(path) {
		return nil, fmt.Errorf("scan for secrets: %w: save it as UTF-8", ErrNotText)
	}
	set, err := s.ruleSet(p.RulesTOML)
	if err != nil {
		return nil, err
	}
	key := verdictKey{content: contentHash(path, content), rules: set.version, fingerprints: sha256.Sum256(p.FingerprintKey)}
	hits, ok := s.verdicts.get(key)
	if !ok {
		hits, err = judge(set, p.FingerprintKey, path, content)
		if err != nil {
			return nil, err
		}
		s.verdicts.put(key, hits)
	}
	return p.filter(path, hits), nil
}

// RuleSetVersion names the rules that p leads to. It changes when the policy's rules, the default rules or our own
// rules change, and at no other time: what was judged under another version must be judged again.
func (s *Scanner) RuleSetVersion(p Policy) (string, error) {
	set, err := s.ruleSet(p.RulesTOML)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(set.version[:16]), nil
}

// ruleSet returns the compiled rules for a TOML, building them at first use. A failure is not kept: it is cheap to find
// again, and rare.
func (s *Scanner) ruleSet(toml []byte) (*ruleSet, error) {
	key := sha256.Sum256(toml)
	if set, ok := s.sets.get(key); ok {
		return set, nil
	}
	// Only one builder at a time: sixteen first scans must not parse the same rules sixteen times.
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, ok := s.sets.get(key); ok {
		return set, nil
	}
	set, err := buildRuleSet(toml)
	if err != nil {
		return nil, err
	}
	s.sets.put(key, set)
	return set, nil
}

// hit is a finding before allowances: what the cache keeps, so that another allowance needs no new scan.
type hit struct {
	line        int
	endLine     int
	rule        string
	description string
	fingerprint string
	inline      bool // "gitleaks:allow" stands on the line
}

// verdictKey is all that a verdict depends on.
type verdictKey struct {
	content      [sha256.Size]byte
	rules        [sha256.Size]byte
	fingerprints [sha256.Size]byte
}

func contentHash(path string, content []byte) [sha256.Size]byte {
	h := sha256.New()
	var size [2]byte
	size[0], size[1] = byte(len(path)>>8), byte(len(path))
	h.Write(size[:])
	h.Write([]byte(path))
	h.Write(content)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return sum
}

// filter drops the hits that the policy allows.
func (p Policy) filter(path string, hits []hit) []Finding {
	var out []Finding
	for _, h := range hits {
		if h.inline && p.AllowInline || slices.Contains(p.AllowRules, h.rule) || slices.Contains(p.AllowFingerprints, h.fingerprint) {
			continue
		}
		out = append(out, Finding{Path: path, Line: h.line, EndLine: h.endLine, Rule: h.rule, Description: h.description, Fingerprint: h.fingerprint})
	}
	return out
}

// publicFingerprintKey keys fingerprints where no team policy is known (a check without network). It is no secret.
const publicFingerprintKey = "memsvc public guard fingerprint v1"

func fingerprint(key []byte, rule, value string) string {
	if len(key) == 0 {
		key = []byte(publicFingerprintKey)
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(rule))
	m.Write([]byte{0})
	m.Write([]byte(value))
	return hex.EncodeToString(m.Sum(nil))
}

func isText(b []byte) bool {
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}
