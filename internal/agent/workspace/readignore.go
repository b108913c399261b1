package workspace

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/memory"
)

// readIgnore brings the ignore rules up to date. It returns false when there is a
// file whose rules cannot be known, and says so in the snapshot.
func (s *scan) readIgnore(root *os.Root) bool {
	content, err := ignoreText(root)
	var rules *Ignore
	if err == nil {
		if rules = s.w.rules; !slices.Equal(content, s.w.ignoreText) {
			rules, err = ParseIgnore(content)
		}
	}
	if err != nil {
		v := memory.Violation{Path: IgnoreName, Rule: RuleIgnore, Message: err.Error() + "; nothing is shared until it can be read"}
		var bad *IgnoreError
		if errors.As(err, &bad) {
			v.Line = bad.Line
		}
		s.snap.Refused = append(s.snap.Refused, syncer.Refusal{Name: IgnoreName, Violation: v})
		return false
	}
	s.settleRules(root, rules, content)
	return true
}

// rulesStand reports whether the ignore file still says what the rules were made of.
func (s *scan) rulesStand(root *os.Root) bool {
	content, err := ignoreText(root)
	return err == nil && slices.Equal(content, s.w.ignoreText)
}

// ignoreText returns what the ignore file says; there may be none.
func ignoreText(root *os.Root) ([]byte, error) {
	content, err := readSmall(root, IgnoreName, maxIgnoreBytes+1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// readSmall returns at most limit bytes of the regular file name of dir.
func readSmall(dir *os.Root, name string, limit int) ([]byte, error) {
	fi, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	var content []byte
	_, err = stable(dir, name, fi, func(f *os.File) error {
		content, err = readAtMost(f, make([]byte, 0, 512), limit)
		return err
	})
	return content, err
}
