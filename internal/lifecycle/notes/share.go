package notes

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Within returns the notes in at most n characters, for a place that has no room for
// all of them. Empty sections and hints go first. What is still too long is cut so that
// every section that has something keeps a part: each gets an equal share, and what a short
// one leaves of its share goes to the longer ones. Of a section both ends stay: lists of
// files begin with those that matter most, lists of what happened end with the newest. cut
// is whether something other than hints is missing.
func (d Document) Within(n int) (text string, cut bool) {
	if whole := strings.TrimSpace(d.String()); utf8.RuneCountInString(whole) <= n {
		return whole, false
	}
	type piece struct{ heading, body string }
	var pieces []piece
	var bodies []int
	room := n
	for _, p := range append([]part{{body: d.head}}, d.parts...) {
		if body := strings.TrimSpace(p.body); body != "" {
			heading := p.fixed[:strings.IndexByte(p.fixed, '\n')+1]
			pieces = append(pieces, piece{heading, body})
			bodies = append(bodies, utf8.RuneCountInString(body))
			room -= utf8.RuneCountInString(heading) + len("\n\n")
		}
	}
	share := evenly(bodies, room)
	var b strings.Builder
	for i, p := range pieces {
		body := p.body
		if bodies[i] > share {
			body, cut = bothEnds(body, share), true
		}
		if body == "" {
			continue // room for headings alone would tell nothing
		}
		b.WriteString(p.heading + body + "\n\n")
	}
	return strings.TrimSpace(b.String()), cut
}

// evenly returns the most that each of these lengths may have, so that all of them
// together fit into room.
func evenly(lengths []int, room int) int {
	for i, l := range slices.Sorted(slices.Values(lengths)) {
		if share := room / (len(lengths) - i); l > share {
			return max(share, 0)
		}
		room -= l
	}
	return math.MaxInt
}

const middleMark = "[lines were left out here]"

// bothEnds returns the two ends of a text in n characters, of whole lines where they are
// within reach, and says that something is missing.
func bothEnds(text string, n int) string {
	n -= utf8.RuneCountInString(middleMark) + len("\n\n")
	if n <= 0 {
		return ""
	}
	r := []rune(text)
	head, tail := string(r[:n/2]), string(r[len(r)-(n-n/2):])
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		head = head[:i]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)-1 {
		tail = tail[i+1:]
	}
	return head + "\n" + middleMark + "\n" + tail
}
