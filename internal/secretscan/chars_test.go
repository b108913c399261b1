package secretscan

import (
	"strings"
	"testing"
)

func TestCharacterSets(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for name, c := range map[string]struct {
		is   func(byte) bool
		want string
	}{
		"alnum":    {isAlnum, letters},
		"base64":   {isBase64, letters + "+/-_"},
		"token":    {isToken, letters + "_-+/=.~:@%"},
		"assigned": {isAssigned, letters + "_.=+/:%-"},
	} {
		for b := range 256 {
			if got, want := c.is(byte(b)), strings.IndexByte(c.want, byte(b)) >= 0; got != want {
				t.Errorf("%s: %q is %v, want %v", name, rune(b), got, want)
			}
		}
	}
}
