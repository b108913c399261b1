package recall_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/recall"
)

// labelledQuery is a prompt and the memories that help with it; none for one that needs
// no memory although it looks like the others.
type labelledQuery struct {
	Language string // en, zh or mixed
	Long     bool   // with code or a trace in it
	Prompt   string
	Relevant []string
}

// heldOut tells the two halves of the set apart: one is for setting weights, threshold
// and word lists, the other is looked at afterwards. The rule was fixed before anything
// was measured.
func (q labelledQuery) heldOut() bool { return sha256.Sum256([]byte(q.Prompt))[0]&1 == 1 }

// labelled reads the set: the memories as a scan would give them, and the queries.
func labelled(t testing.TB) ([]recall.Memory, []labelledQuery) {
	t.Helper()
	read := func(file, mark string) []string {
		text, err := os.ReadFile("testdata/labelled/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split("\n"+string(text), "\n"+mark+" ")[1:]
	}
	s := newShelf(t)
	written := map[string]bool{}
	for _, file := range []string{"memories_en.txt", "memories_zh.txt"} {
		for _, block := range read(file, "#") {
			lines := strings.SplitN(block, "\n", 4)
			if len(lines) < 3 || written[lines[0]] {
				t.Fatalf("%s: a memory is told in a ref of its own, a name, a description: %q", file, block)
			}
			written[lines[0]] = true
			body := ""
			if len(lines) == 4 {
				body = lines[3]
			}
			s.write(lines[0], "---\nname: "+quoted(lines[1])+"\ndescription: "+quoted(lines[2])+"\n---\n\n"+body+"\n", 0)
		}
	}
	var memories []recall.Memory
	// One directory's scan ends at its bound; the set is a little larger.
	for _, dirs := range [][2]string{{s.dir, ""}, {"", s.dir + "/team"}} {
		list, err := recall.Scan(t.Context(), dirs[0], dirs[1])
		if err != nil {
			t.Fatal(err)
		}
		memories = append(memories, list...)
	}
	if len(memories) != len(written) {
		t.Fatalf("%d memories were written, %d are found", len(written), len(memories))
	}
	for _, m := range memories {
		if m.Name == "" || m.Description == "" || m.Type == "" {
			t.Fatalf("%s has no name, description or type", m.Ref)
		}
	}
	var queries []labelledQuery
	for _, block := range read("queries.txt", "?") {
		head, prompt, _ := strings.Cut(block, "\n")
		fields := strings.Fields(head)
		language, long := strings.CutSuffix(fields[0], ",long")
		q := labelledQuery{Language: language, Long: long, Prompt: strings.TrimSuffix(prompt, "\n")}
		if fields[1] != "-" {
			q.Relevant = fields[1:]
		}
		for _, ref := range q.Relevant {
			if !written[ref] {
				t.Fatalf("the prompt %q wants %s, which is no memory of the set", prompt, ref)
			}
		}
		queries = append(queries, q)
	}
	return memories, queries
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// measure is what a way of choosing is worth on some queries.
type measure struct {
	queries, found  int // that need a memory; of these, that got a right one
	recall          float64
	chosen, right   int // memories, over all queries
	silent, nothing int // queries that need no memory; of these, that got none
}

func (m measure) recallAt5() float64 { return ratio(m.recall, m.queries) }
func (m measure) precision() float64 { return ratio(float64(m.right), m.chosen) }
func (m measure) noMatch() float64   { return ratio(float64(m.nothing), m.silent) }
func ratio(a float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return a / float64(n)
}

// chooser answers a prompt with at most five refs.
type chooser func(prompt string) []string

// judge measures a chooser on the queries that keep lets through. Recall at 5 is the
// share of a query's memories among the chosen, averaged over the queries that need any;
// precision the share of right ones among all that was chosen for any query, also for
// those that need none.
func judge(queries []labelledQuery, keep func(labelledQuery) bool, choose chooser) measure {
	var m measure
	for _, q := range queries {
		if !keep(q) {
			continue
		}
		got := choose(q.Prompt)
		m.chosen += len(got)
		if len(q.Relevant) == 0 {
			m.silent++
			if len(got) == 0 {
				m.nothing++
			}
			continue
		}
		right := 0
		for _, ref := range got {
			if slices.Contains(q.Relevant, ref) {
				right++
			}
		}
		m.queries++
		m.right += right
		m.recall += float64(right) / float64(min(len(q.Relevant), recall.DefaultLimit))
		if right > 0 {
			m.found++
		}
	}
	return m
}

func (m *measure) add(o measure) {
	m.queries += o.queries
	m.found += o.found
	m.recall += o.recall
	m.chosen += o.chosen
	m.right += o.right
	m.silent += o.silent
	m.nothing += o.nothing
}

func (m measure) String() string {
	return fmt.Sprintf("recall@5 %.2f (a right one for %d of %d), precision %.2f, silent for %d of %d (%.2f)",
		m.recallAt5(), m.found, m.queries, m.precision(), m.nothing, m.silent, m.noMatch())
}
