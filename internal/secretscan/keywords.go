package secretscan

// automaton finds all keywords of a rule set in one pass over a text (Aho-Corasick, as a dense table over the byte
// classes that occur in keywords). Letters match without regard to ASCII case.
type automaton struct {
	class   [256]uint8 // byte → column; 0 for bytes in no keyword
	width   uint32
	longest int // keyword, in bytes
	// rows holds a row for each state, width columns each: twice where the next state's row begins, plus 1 if keywords
	// end in that state. So a step is one addition and one load, and looks nowhere else.
	rows []uint32
	out  [][]uint16 // state → keyword numbers that end here
}

// newAutomaton builds the table for lower-case, non-empty words.
func newAutomaton(words []string) *automaton {
	a := &automaton{width: 1}
	for _, w := range words {
		a.longest = max(a.longest, len(w))
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
		s := uint32(0)
		for i := range len(w) {
			at := s*a.width + uint32(a.class[w[i]])
			if a.rows[at] == 0 {
				next := a.grow() // which moves rows
				a.rows[at] = next
			}
			s = a.rows[at]
		}
		a.out[s] = append(a.out[s], uint16(n))
	}
	a.link()
	for at, s := range a.rows {
		a.rows[at] = s * a.width * 2
		if len(a.out[s]) > 0 {
			a.rows[at]++
		}
	}
	return a
}

func (a *automaton) grow() uint32 {
	a.rows = append(a.rows, make([]uint32, a.width)...)
	a.out = append(a.out, nil)
	return uint32(len(a.out) - 1)
}

// link turns the trie into a complete automaton: every missing edge goes where the longest proper suffix would go. Rows
// hold the numbers of states until then.
func (a *automaton) link() {
	fail := make([]uint32, len(a.out))
	var queue []uint32
	for c := range a.width {
		if s := a.rows[c]; s != 0 {
			queue = append(queue, s)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		a.out[s] = append(a.out[s], a.out[fail[s]]...)
		for c := range a.width {
			at := s*a.width + c
			over := a.rows[fail[s]*a.width+c]
			if t := a.rows[at]; t != 0 {
				fail[t] = over
				queue = append(queue, t)
			} else {
				a.rows[at] = over
			}
		}
	}
}

// found is one keyword in a text: number and end offset.
type found struct {
	word uint16
	end  int32
}

// minLane is the shortest text worth walking through in lanes, in bytes.
const minLane = 256

// find appends all occurrences in s to dst, by ascending end. Each step waits for the table entry of the one before,
// so two lanes at a time, one a half of the text, take hardly longer than one.
func (a *automaton) find(dst []found, s string) []found {
	if len(s) < minLane {
		return a.walk(dst, s, 0, 0)
	}
	half := len(s) / 2
	first, second := s[:half], s[half:]
	// The second lane begins in the state that the bytes before it lead to.
	one, two := uint32(0), a.state(s[max(0, half-a.longest):half])
	rows := a.rows
	var late []found // of the second lane
	i := 0
	for ; i < len(first); i++ {
		x, y := rows[one+uint32(a.class[first[i]])], rows[two+uint32(a.class[second[i]])]
		one, two = x>>1, y>>1
		if (x|y)&1 == 0 {
			continue
		}
		if x&1 != 0 {
			dst = a.hits(dst, one, i+1)
		}
		if y&1 != 0 {
			late = a.hits(late, two, half+i+1)
		}
	}
	return a.walk(append(dst, late...), second[i:], half+i, two)
}

// walk appends the occurrences that end in s, which stands at offset from of the text and is met in state at.
func (a *automaton) walk(dst []found, s string, from int, at uint32) []found {
	for i := range len(s) {
		next := a.rows[at+uint32(a.class[s[i]])]
		at = next >> 1
		if next&1 != 0 {
			dst = a.hits(dst, at, from+i+1)
		}
	}
	return dst
}

// state is where s leads to from the start.
func (a *automaton) state(s string) (at uint32) {
	for i := range len(s) {
		at = a.rows[at+uint32(a.class[s[i]])] >> 1
	}
	return at
}

// hits appends the keywords that end in the state with the row at.
func (a *automaton) hits(dst []found, at uint32, end int) []found {
	for _, w := range a.out[at/a.width] {
		dst = append(dst, found{w, int32(end)})
	}
	return dst
}
