package rpc

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
)

// lengths draws texts about a bound, of one byte and of three bytes a character.
func lengths(t *rapid.T, bound int, label string) string {
	n := rapid.SampledFrom([]int{0, 1, 7, bound / 3, bound - 1, bound, bound + 1}).Draw(t, label)
	if rapid.Bool().Draw(t, label+" wide") {
		return strings.Repeat("字", n)
	}
	return strings.Repeat("a", n)
}

func drawChange(t *rapid.T) *memsvcv1.Change {
	c := &memsvcv1.Change{Path: lengths(t, maxPathLen, "path")}
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
	case 1:
		c.Action = &memsvcv1.Change_Delete{Delete: &memsvcv1.DeleteAction{}}
	case 2:
		c.Action = &memsvcv1.Change_Put{}
	default:
		c.Action = &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte("text"), RenamedFrom: lengths(t, maxPathLen, "from")}}
	}
	switch rapid.IntRange(0, 3).Draw(t, "condition") {
	case 1:
		c.Precondition = &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_MustNotExist{MustNotExist: rapid.Bool().Draw(t, "absent")}}
	case 2:
		c.Precondition = &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: rapid.StringMatching(`[0-9a-f]{63,65}|[0-9a-g]{64}`).Draw(t, "etag")}}
	case 3:
		c.Precondition = &memsvcv1.Precondition{}
	}
	return c
}

// What fits says yes to, the contract's own rules accept; and the ordinary commit is
// among it.
func TestFits(t *testing.T) {
	validate, err := newValidator()
	if err != nil {
		t.Fatal(err)
	}
	yes := 0
	rapid.Check(t, func(t *rapid.T) {
		// Most fields stay ordinary, so that each bound is met alone too.
		odd := func(bound int, label string) string {
			if rapid.IntRange(0, 3).Draw(t, label+" odd") > 0 {
				return "x"
			}
			return lengths(t, bound, label)
		}
		m := &memsvcv1.CommitChangesRequest{
			Parent: odd(maxNameLen, "parent"), Message: odd(maxMessageLen, "message"),
			RequestId: odd(maxIDLen, "request id"), Epoch: odd(maxEpochLen, "epoch"),
		}
		if rapid.Bool().Draw(t, "author") {
			m.Author = &memsvcv1.Author{
				Principal: odd(maxLabelLen, "principal"), Machine: odd(maxLabelLen, "machine"),
				Client: odd(maxLabelLen, "client"), Session: odd(maxLabelLen, "session"),
			}
		}
		n := rapid.SampledFrom([]int{0, 1, 1, 1, 2, maxChanges, maxChanges + 1}).Draw(t, "changes")
		for range min(n, 3) {
			m.Changes = append(m.Changes, drawChange(t))
		}
		for len(m.Changes) < n {
			m.Changes = append(m.Changes, m.Changes[0])
		}
		if !fits(m) {
			return
		}
		yes++
		if err := validate(m); err != nil {
			t.Fatalf("fits, but the contract says: %v", err)
		}
	})
	if yes == 0 {
		t.Error("nothing ever fitted")
	}
}

// Each bound is the contract's: one less or more is refused by both, or by neither.
func TestFitsAtTheBounds(t *testing.T) {
	validate, err := newValidator()
	if err != nil {
		t.Fatal(err)
	}
	plain := func() *memsvcv1.CommitChangesRequest {
		return &memsvcv1.CommitChangesRequest{Parent: "teams/a/projects/b", Author: &memsvcv1.Author{}, Changes: []*memsvcv1.Change{{
			Path: "a.md", Action: &memsvcv1.Change_Put{Put: &memsvcv1.PutAction{Content: []byte("x")}},
			Precondition: &memsvcv1.Precondition{Condition: &memsvcv1.Precondition_Etag{Etag: strings.Repeat("0", etagLen)}},
		}}}
	}
	for name, tc := range map[string]struct {
		low, high int // what is accepted
		set       func(m *memsvcv1.CommitChangesRequest, n int)
	}{
		"parent":     {1, maxNameLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Parent = strings.Repeat("a", n) }},
		"message":    {0, maxMessageLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Message = strings.Repeat("a", n) }},
		"request id": {0, maxIDLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.RequestId = strings.Repeat("a", n) }},
		"epoch":      {0, maxEpochLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Epoch = strings.Repeat("a", n) }},
		"principal":  {0, maxLabelLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Author.Principal = strings.Repeat("a", n) }},
		"machine":    {0, maxLabelLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Author.Machine = strings.Repeat("a", n) }},
		"client":     {0, maxLabelLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Author.Client = strings.Repeat("a", n) }},
		"session":    {0, maxLabelLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Author.Session = strings.Repeat("a", n) }},
		"path":       {1, maxPathLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Changes[0].Path = strings.Repeat("a", n) }},
		"content":    {0, maxContentLen, func(m *memsvcv1.CommitChangesRequest, n int) { m.Changes[0].GetPut().Content = make([]byte, n) }},
		"renamed": {0, maxPathLen, func(m *memsvcv1.CommitChangesRequest, n int) {
			m.Changes[0].GetPut().RenamedFrom = strings.Repeat("a", n)
		}},
		"etag": {etagLen, etagLen, func(m *memsvcv1.CommitChangesRequest, n int) {
			m.Changes[0].GetPrecondition().Condition.(*memsvcv1.Precondition_Etag).Etag = strings.Repeat("f", n)
		}},
		"changes": {1, maxChanges, func(m *memsvcv1.CommitChangesRequest, n int) {
			one := m.Changes[0]
			m.Changes = nil
			for range n {
				m.Changes = append(m.Changes, one)
			}
		}},
	} {
		for _, n := range []int{tc.low - 1, tc.low, tc.high, tc.high + 1} {
			if n < 0 {
				continue
			}
			m := plain()
			tc.set(m, n)
			want := n >= tc.low && n <= tc.high
			if got := fits(m); got != want {
				t.Errorf("%s of %d: fits says %t, want %t", name, n, got, want)
			}
			if err := validate(m); (err == nil) != want {
				t.Errorf("%s of %d: the contract says %v, want accepted = %t", name, n, err, want)
			}
		}
	}
}
