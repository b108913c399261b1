package secretscan

// automaton finds all keywords of a rule set in one pass over a text (Aho-Corasick, as a dense table over the byte
// classes that occur in keywords). Letters match without regard to ASCII case.
type automaton struct {
	class [256]uint8 // byte → column; 0 for bytes in no keyword
	width int
	next  []uint16   // state*width + column → state
	out   [][]uint16 // state → keyword numbers that end here
}

// newAutomaton builds the table for lower-case, non-empty words.
func newAutomaton(words []string) *automaton {
	a := &automaton{width: 1}
	for _, w := range words {
		for i := range len(w) {
			if a.class[w[i]] == 0 {
				a.class[w[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	for c := 'A'; c <= 'Z'; c++ {
		a.class[c] = a.class[c+'a'-'A']
	}
	a.grow()
	for n, w := range words {
		s := 0
		for i := range len(w) {
			at := s*a.width + int(a.class[w[i]])
			if a.next[at] == 0 {
				a.next[at] = uint16(a.grow())
			}
			s = int(a.next[at])
		}
		a.out[s] = append(a.out[s], uint16(n))
	}
	a.link()
	return a
}

func (a *automaton) grow() int {
	a.next = append(a.next, make([]uint16, a.width)...)
	a.out = append(a.out, nil)
	return len(a.out) - 1
}

// link turns the trie into a complete automaton: every missing edge goes where the longest proper suffix would go.
func (a *automaton) link() {
	fail := make([]int, len(a.out))
	var queue []int
	for c := range a.width {
		if s := int(a.next[c]); s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		a.out[s] = append(a.out[s], a.out[fail[s]]...)
		for c := range a.width {
			at := s*a.width + c
			over := int(a.next[fail[s]*a.width+c])
			if t := int(a.next[at]); t != 0 {
				fail[t] = over
				queue = append(queue, t)
			} else {
				a.next[at] = uint16(over)
			}
		}
	}
}

// found is one keyword in a text: number and end offset.
type found struct {
	word uint16
	end  int32
}

// find appends all occurrences in s to dst, by ascending end.
func (a *automaton) find(dst []found, s string) []found {
	state := 0
	for i := range len(s) {
		state = int(a.next[state*a.width+int(a.class[s[i]])])
		if out := a.out[state]; out != nil {
			for _, w := range out {
				dst = append(dst, found{w, int32(i + 1)})
			}
		}
	}
	return dst
}
