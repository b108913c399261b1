package dream

// Bounds of the comparing, in steps: a word or a term that is looked at, or a part of what
// it costs to take a line apart. They are far above what a store needs that people wrote,
// and a dream that comes to them ends within seconds.
const (
	dreamSteps = 100_000_000 // of a dream
	pairSteps  = 8_000_000   // of two memories: several hundred lines that all differ
	lineSteps  = 4           // a byte of a line that is brought into normal form
)

// effort is what comparing may still cost. What was not compared to its end is taken for
// different: no text goes because of it.
type effort struct {
	dream int  // steps that are left for the dream
	pair  int  // steps that are left for the pair under way
	spent bool // the pair under way was not compared to its end
}

func newEffort() *effort { return &effort{dream: dreamSteps, pair: pairSteps} }

// next begins with another pair.
func (e *effort) next() {
	e.pair, e.spent = pairSteps, false
}

// over reports whether the dream may compare nothing more.
func (e *effort) over() bool { return e.dream <= 0 }

// spend takes steps; false is that there are none left. No effort at all is without bound.
func (e *effort) spend(steps int) bool {
	if e == nil {
		return true
	}
	if e.spent || e.pair < steps || e.dream < steps {
		if e.dream < steps {
			e.dream = 0 // one long text must not let ever shorter ones through
		}
		e.spent = true
		return false
	}
	e.pair -= steps
	e.dream -= steps
	return true
}
