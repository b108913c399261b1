package memories

import "strings"

// SaidOn stands between a statement and the day it was said on, where a memory is made of
// a person's words.
const SaidOn = "\n\nSaid on "

// Words is what the bodies of two memories are compared by: their words, without the day
// they were said on. Two bodies with the same words say the same.
func Words(body string) string {
	if i := strings.LastIndex(body, SaidOn); i >= 0 {
		body = body[:i]
	}
	return strings.ToLower(strings.Join(strings.Fields(body), " "))
}
