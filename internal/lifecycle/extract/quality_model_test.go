package extract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/memory"
)

// draft is a memory as a model asks for it, in a list or with the tool.
type draft struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Body        string `json:"body"`
	Team        bool   `json:"team,omitempty"`
}

// asked is what a good extractor would ask for after the talk: every memory that the
// expectation names, as of the day of the talk.
func (k labelledTalk) asked() []draft {
	out := []draft{}
	for i, w := range slices.Concat(k.wants, k.mays) {
		var facts []string
		for _, f := range w.facts {
			facts = append(facts, f[0])
		}
		what := strings.Join(facts, ", ")
		out = append(out, draft{
			Name: fmt.Sprintf("%s %d", what, i), Type: string(w.types[0]), Description: what,
			Body: "About " + what + ". Agreed on yesterday, holds from tomorrow on; 明天再看。",
		})
	}
	return out
}

// junk is what a bad one asks for beside it. None of it may be written. In a list nobody
// can ask for the team's directory.
func (k labelledTalk) junk(asList bool) []draft {
	out := []draft{
		{"Sorry", "project", "nothing", "I'm sorry, but I can't help with extracting memories.", false},
		{"Unable", "feedback", "nothing", "抱歉，我无法完成这个任务。", false},
		{"Key", "reference", "where the key is", "The staging database password is " + madeUp(k.name), false},
		{"Kind", "insight", "of no type", "Something of a type that does not exist.", false},
		{"Empty", "project", "empty", "  \n", false},
		{"", "project", "no name", "A memory without a name.", false},
	}
	if !asList {
		out = append(out,
			draft{"Person", "user", "about a person", "Is a backend engineer who likes tea.", true},
			draft{"Team", "project", "for the team", "The team decided to drink tea.", true})
	}
	return out
}

// player is a model that follows a script: with tools it reads first and writes then,
// without them it answers with a list.
type player struct {
	drafts []draft
	prose  bool // words around the list, and an element that is none
	calls  int  // how often it was asked
	round  int
}

func (p *player) Complete(_ context.Context, req model.Request) (model.Response, error) {
	p.calls++
	if len(req.Tools) == 0 {
		text, err := json.Marshal(p.drafts)
		if err != nil {
			return model.Response{}, err
		}
		answer := string(text)
		if p.prose {
			answer = "I read it all [twice]. Here you are:\n```json\n[7, {\"name\": 3}, null, " + strings.TrimPrefix(answer, "[") + "\n```\nAnything else? [y/n]"
			answer = strings.Replace(answer, ", ]", "]", 1)
		}
		return model.Response{Parts: []model.Part{{Text: answer}}, Stop: model.StopEnd}, nil
	}
	call := func(i int, name string, input any) model.Part {
		text, err := json.Marshal(input)
		if err != nil {
			panic(err) // of our own types
		}
		return model.Part{Call: &model.ToolCall{ID: fmt.Sprintf("c%d_%d", p.round, i), Name: name, Input: text}}
	}
	p.round++
	r := model.Response{Stop: model.StopTools}
	switch p.round {
	case 1:
		r.Parts = []model.Part{call(0, "list", object{"path": "memory"}), call(1, "read", object{"path": "transcript"})}
		if p.prose {
			r.Parts = append(r.Parts, call(2, "bash", object{"command": "ls"}), call(3, "delete", object{"memory": "MEMORY.md"}), call(4, "read", object{"path": "/etc/passwd"}))
		}
	case 2:
		for i, d := range p.drafts {
			r.Parts = append(r.Parts, call(i, "write", d))
		}
	default:
		p.round = 0
		r.Parts, r.Stop = []model.Part{{Text: "Done."}}, model.StopEnd
	}
	return r, nil
}

// plumbing counts what became of what a model asked for.
type plumbing struct {
	talks, asked      int
	arrived           int // in the right type
	extra             int // memories that are there and were not to be
	unindexed         int
	relative, secrets int // texts with a relative date, with a secret
	team              int // memories in the team's directory
}

func (p plumbing) String() string {
	return fmt.Sprintf("%d talks; asked for %3d, arrived %3d; not asked for or twice %d, without an index line %d, with a relative date %d, with a secret %d, in the team's directory %d",
		p.talks, p.asked, p.arrived, p.extra, p.unindexed, p.relative, p.secrets, p.team)
}

// count looks at what a store holds after a model asked for drafts.
func (p *plumbing) count(s *stage, asked []draft) {
	s.t.Helper()
	p.talks++
	p.asked += len(asked)
	index, err := os.ReadFile(filepath.Join(s.Store.Dir(memory.ScopePrivate), memory.IndexName))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	left := slices.Clone(asked)
	for _, m := range s.list() {
		text := string(m.Content)
		typ, _ := m.Type()
		i := slices.IndexFunc(left, func(d draft) bool { return d.Name == m.Front.Name && d.Type == string(typ) })
		if i >= 0 {
			left = slices.Delete(left, i, i+1)
			p.arrived++
		} else {
			p.extra++
			s.t.Logf("  %s: not asked for: [%s] %s", s.talk.name, typ, m.Front.Name)
		}
		if m.Scope == memory.ScopeTeam {
			p.team++
		} else if !strings.Contains(string(index), "("+string(m.Path)+")") {
			p.unindexed++
		}
		if strings.Contains(text, "yesterday") || strings.Contains(text, "tomorrow") || strings.Contains(text, "明天") {
			p.relative++
		}
		if strings.Contains(text, madeUp(s.talk.name)) {
			p.secrets++
		}
	}
	for _, d := range left {
		s.t.Logf("  %s: did not arrive: [%s] %s", s.talk.name, d.Type, d.Name)
	}
}

// TestQualityOfTheModelsWay lets a scripted model, which asks for exactly what is wanted,
// and one that asks for much else, hear all labelled talks: with tools and with a list,
// several times each. It measures no model; it measures what lies between a model and the
// store.
func TestQualityOfTheModelsWay(t *testing.T) {
	guard := newRealGuard()
	for _, asList := range []bool{false, true} {
		for _, bad := range []bool{false, true} {
			name := map[bool]string{false: "with tools", true: "with a list"}[asList] + map[bool]string{false: ", good", true: ", bad"}[bad]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var sum plumbing
				for _, k := range labelledTalks(t) {
					if slices.ContainsFunc(k.items, func(i talkItem) bool { return i.kind == "wrote" }) {
						continue // the client wrote by itself; no model is asked
					}
					s := newStage(t, k, guard)
					asked := k.asked()
					if len(asked) > 4 {
						t.Fatalf("%s: more memories than a list with junk may hold", k.name)
					}
					p := &player{drafts: slices.Clone(asked), prose: bad}
					if bad {
						for _, d := range asked { // the same under another name, and the name with another text
							p.drafts = append(p.drafts, draft{"Again " + d.Name, d.Type, d.Description, d.Body, false})
						}
						p.drafts = append(p.drafts, k.junk(asList)...)
					}
					s.Model, s.JSON = p, asList
					all := len(k.items)
					first := s.hear(all, "a", "s1")
					if spoken := first.Skipped == ""; spoken && p.calls == 0 {
						t.Errorf("%s: the model was not asked", k.name)
					}
					s.hear(all, "b", "s1") // compacted: everything counts again
					if !bad {
						s.hear(all, "b", "s1") // nothing new
						s.hear(all, "c", "s2") // taken up under another name
					}
					sum.count(s, asked)
				}
				t.Logf("%-18s %s", name, sum)
				want := plumbing{talks: sum.talks, asked: sum.asked, arrived: sum.asked}
				if sum != want || sum.talks < 60 || sum.asked < 50 {
					t.Errorf("got  %s\nwant %s", sum, want)
				}
			})
		}
	}
}
