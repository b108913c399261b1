package config

import (
	"bytes"
	"testing"
)

// FuzzFile reads arbitrary settings files: an answer or an error, never a panic.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{"", "a: 1\n", "a: [1, 2]\n", "links:\n- dir: /x\n", "a: &x 1\nb: *x\n", "---\n", "? [a]\n: b\n", "\x00", "a: !!binary x\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var links []struct{ Dir string }
		r, err := readFile(bytes.NewReader(data), "settings file", map[string]any{"links": &links})
		if err == nil && r == nil {
			t.Error("neither a file nor an error")
		}
	})
}
