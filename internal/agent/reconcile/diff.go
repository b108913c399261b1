package reconcile

// hunk says that a[aLo:aHi] was replaced by b[bLo:bHi]. Hunks of one comparison
// ascend and have at least one common line between them.
type hunk struct{ aLo, aHi, bLo, bHi int }

// maxDistance bounds the number of inserted and deleted lines up to which two texts
// are compared; the time grows with it times the number of lines, the memory with
// its square (12 MiB here). Texts further apart are not merged but kept as a conflict.
const maxDistance = 1700

// diff compares two texts given as line numbers of a common table, by Myers' greedy
// algorithm: the shortest script, deterministic. ok is false beyond maxDistance.
func diff(a, b []int32) (hunks []hunk, ok bool) {
	pre := 0
	for pre < len(a) && pre < len(b) && a[pre] == b[pre] {
		pre++
	}
	post := 0
	for post < len(a)-pre && post < len(b)-pre && a[len(a)-1-post] == b[len(b)-1-post] {
		post++
	}
	a, b = a[pre:len(a)-post], b[pre:len(b)-post]
	switch {
	case len(a) == 0 && len(b) == 0:
		return nil, true
	case len(a) == 0 || len(b) == 0:
		return []hunk{{pre, pre + len(a), pre, pre + len(b)}}, true
	}
	trace, ok := myers(a, b)
	if !ok {
		return nil, false
	}
	return backtrack(a, b, trace, pre), true
}

// myers returns, for each distance d, how far each diagonal -d..d could be followed.
// trace[d] holds the diagonals of the round before, at offset d.
func myers(a, b []int32) (trace [][]int32, ok bool) {
	n, m := len(a), len(b)
	limit := min(n+m, maxDistance)
	v := make([]int32, 2*limit+3)
	mid := limit + 1
	for d := 0; d <= limit; d++ {
		// Only -d..d can have been written so far.
		trace = append(trace, append([]int32(nil), v[mid-d:mid+d+1]...))
		for k := -d; k <= d; k += 2 {
			var x int
			if k == -d || k != d && v[mid+k-1] < v[mid+k+1] {
				x = int(v[mid+k+1]) // a line of b was inserted
			} else {
				x = int(v[mid+k-1]) + 1 // a line of a was deleted
			}
			y := x - k
			for x < n && y < m && a[x] == b[y] {
				x, y = x+1, y+1
			}
			v[mid+k] = int32(x)
			if x >= n && y >= m {
				return trace, true
			}
		}
	}
	return nil, false
}

// backtrack walks the trace from the end and joins neighbouring edits to hunks.
func backtrack(a, b []int32, trace [][]int32, shift int) []hunk {
	x, y := len(a), len(b)
	var edits []hunk // single lines, last first
	for d := len(trace) - 1; d > 0; d-- {
		at := func(k int) int {
			if k < -d || k > d {
				return -1
			}
			return int(trace[d][k+d])
		}
		k := x - y
		var fromK int
		if k == -d || k != d && at(k-1) < at(k+1) {
			fromK = k + 1
		} else {
			fromK = k - 1
		}
		fromX := at(fromK)
		fromY := fromX - fromK
		if fromK == k+1 {
			edits = append(edits, hunk{fromX, fromX, fromY, fromY + 1})
		} else {
			edits = append(edits, hunk{fromX, fromX + 1, fromY, fromY})
		}
		x, y = fromX, fromY
	}
	var hunks []hunk
	for i := len(edits) - 1; i >= 0; i-- {
		e := edits[i]
		e = hunk{e.aLo + shift, e.aHi + shift, e.bLo + shift, e.bHi + shift}
		if n := len(hunks); n > 0 && hunks[n-1].aHi == e.aLo && hunks[n-1].bHi == e.bLo {
			hunks[n-1].aHi, hunks[n-1].bHi = e.aHi, e.bHi
			continue
		}
		hunks = append(hunks, e)
	}
	return hunks
}
