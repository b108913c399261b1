package hub

import (
	"io/fs"
	"testing"
)

// TestExposedSecrets: whose file it is decides what a group's right to read means.
func TestExposedSecrets(t *testing.T) {
	for _, c := range []struct {
		mode fs.FileMode
		own  bool
		want bool
	}{
		{0o600, true, false}, {0o400, true, false}, {0o700, true, false},
		{0o640, true, true}, {0o604, true, true}, {0o644, true, true}, {0o620, true, true},
		// A Secret's file in a pod: root's, and the pod's group may read it.
		{0o440, false, false}, {0o640, false, false}, {0o600, false, false},
		{0o444, false, true}, {0o460, false, true}, {0o450, false, true}, {0o644, false, true},
	} {
		if got := exposed(c.mode, c.own); got != c.want {
			t.Errorf("mode %04o, own %t: %t", c.mode, c.own, got)
		}
	}
}
