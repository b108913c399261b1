package service

import "testing"

// FuzzPageToken reads arbitrary page tokens: a position or a refusal; and a token of
// ours comes back as it was.
func FuzzPageToken(f *testing.F) {
	f.Add("")
	f.Add("e30")
	of := listOf("things", "teams/acme")
	f.Add(encodePage(of, struct{ After string }{"a.md"}))
	f.Fuzz(func(t *testing.T, token string) {
		var at struct{ After string }
		if err := (Page{Token: token}).decode(of, &at); err != nil || token == "" {
			return
		}
		var again struct{ After string }
		if err := (Page{Token: encodePage(of, at)}).decode(of, &again); err != nil || again != at {
			t.Errorf("%q: %+v, then %+v, %v", token, at, again, err)
		}
	})
}
