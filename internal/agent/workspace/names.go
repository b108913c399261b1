package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// Names of our temporary files: hidden, short whatever the target's name, and unlike
// anybody else's.
const (
	tempPrefix = ".msync-"
	tempSuffix = ".tmp"
	tempHex    = 16
)

func newTempName() string {
	var b [tempHex / 2]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return tempPrefix + hex.EncodeToString(b[:]) + tempSuffix
}

// isTempName reports whether name is one that newTempName makes.
func isTempName(name string) bool {
	mid, ok := strings.CutPrefix(name, tempPrefix)
	if !ok {
		return false
	}
	mid, ok = strings.CutSuffix(mid, tempSuffix)
	if !ok || len(mid) != tempHex {
		return false
	}
	return strings.Trim(mid, "0123456789abcdef") == ""
}

func isHidden(name string) bool { return strings.HasPrefix(name, ".") }

// isMemoryName reports whether a visible file of this name may be a memory. What
// editors leave behind (x.md~, #x.md#, 4913, x.md.bak, sedXXXXXX) never ends in .md.
func isMemoryName(name string) bool { return strings.HasSuffix(name, ".md") }

// isNearMiss reports whether name was most likely meant to be a memory and cannot be
// one: .md in other letters, or blanks and dots behind it. Such a file is refused with
// the rule it breaks instead of being passed over.
func isNearMiss(name string) bool {
	trimmed := strings.TrimRightFunc(name, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	return !isMemoryName(name) && len(trimmed) > len(".md") && strings.EqualFold(trimmed[len(trimmed)-len(".md"):], ".md")
}

// unnameable reports whether a disk refused a name as such: disks allow fewer and shorter
// names than memory paths may be (SMB and FAT no "?", encrypting ones no 255 bytes). It
// looks at the steps that name something alone, since other ones have these errors too.
func unnameable(err error) bool {
	if !errors.Is(err, syscall.ENAMETOOLONG) && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.EILSEQ) {
		return false
	}
	var op string
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		op = at.Op
	} else if at := (*os.LinkError)(nil); errors.As(err, &at) {
		op = at.Op
	}
	op = strings.TrimSuffix(op, "at")
	return op == "link" || op == "rename" || op == "mkdir" || op == "open" || op == "lstat" || op == "fstat" || op == "stat"
}

// plain returns name as text for a person: quoted unless it is plain.
func plain(name string) string {
	if utf8.ValidString(name) && strings.TrimSpace(name) == name {
		if q := strconv.QuoteToGraphic(name); q[1:len(q)-1] == name {
			return name
		}
	}
	return strconv.QuoteToASCII(name)
}
