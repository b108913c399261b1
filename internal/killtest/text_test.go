//go:build linux

package killtest

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// newText returns a memory that no other call returns, between half a kilobyte and
// about twenty, which ends in a checksum of itself: a reader can tell whether it is whole.
func newText(rnd *rand.Rand, title string, number int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: %s\ndescription: text number %d of %s\ntype: project\n---\n", title, number, title)
	for i := range 8 + rnd.IntN(300) {
		fmt.Fprintf(&b, "Line %d of text %d of %s: the order of deploys is %d before %d.\n", i, number, title, rnd.IntN(1000), rnd.IntN(1000))
	}
	return seal(b.String())
}

const sealWord = "\nWhole when its sum is "

// seal adds the checksum.
func seal(body string) string {
	return body + sealWord + strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10) + ".\n"
}

// broken says why a text is not one that newText made, whole; "" = it is.
func broken(text string) string {
	i := strings.LastIndex(text, sealWord)
	if i < 0 {
		return "it has no checksum"
	}
	if seal(text[:i]) != text {
		return "its checksum is wrong"
	}
	return ""
}

// save writes a file as editors do: a temporary one beside it, then a rename.
func save(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".swp")
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
