package extract

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lexical"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/memory"
)

// byRules writes what was said in so many words, and removes what the rules had written
// of words that are taken back now.
func (e *Extractor) byRules(ctx context.Context, c Conversation, turns Turns, dry bool, r *Report) error {
	kept, _, topics := heard(turns.Said)
	for _, topic := range topics {
		if err := e.forget(ctx, topic, dry, r); err != nil {
			return err
		}
	}
	if err := e.write(ctx, kept, dry, r); err != nil {
		return err
	}
	if !slices.ContainsFunc(turns.Said, func(s Said) bool { return s.Person && mayTakeBack(s.Text) }) {
		return nil
	}
	withdrawn, err := e.withdrawn(ctx, c, turns)
	if err != nil {
		return err
	}
	for _, w := range withdrawn {
		if err := e.unwrite(ctx, w, dry, r); err != nil {
			return err
		}
	}
	return nil
}

// mayTakeBack reports whether a message might take something back; it is cheap.
func mayTakeBack(text string) bool {
	return slices.ContainsFunc(sentences(text), func(s string) bool { _, back, _ := takenBack(s); return back })
}

// withdrawn returns what the turns take back, also of the messages before them, which an
// earlier run has read.
func (e *Extractor) withdrawn(ctx context.Context, c Conversation, turns Turns) ([]Candidate, error) {
	all, err := ReadTurns(ctx, c.Transcript, "", e.Store.Dir(memory.ScopePrivate), e.Store.Dir(memory.ScopeTeam))
	if err != nil {
		return nil, err
	}
	from := slices.IndexFunc(all.Said, func(s Said) bool { return s.UUID == turns.Said[0].UUID })
	for messages := 0; from > 0 && messages < maxReach; {
		if from--; all.Said[from].Person {
			messages++
		}
	}
	_, withdrawn, _ := heard(all.Said[max(from, 0):])
	return withdrawn, nil
}

// unwrite removes the memory that the rules wrote of a statement: one that nobody changed
// since, and that was said this very day. Anything else is not this statement's.
func (e *Extractor) unwrite(ctx context.Context, c Candidate, dry bool, r *Report) error {
	path, content, err := memories.Draft{Type: c.Type, Name: c.Name, Description: c.Description, Body: c.Body}.Compose()
	if err != nil {
		return nil // was never written
	}
	ref := memories.Ref{Scope: memory.ScopePrivate, Path: path}
	m, err := e.Store.Get(ctx, ref)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(m.Content, content) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.remove(ctx, m, dry, r)
}

func (e *Extractor) remove(ctx context.Context, m memories.Memory, dry bool, r *Report) error {
	if !dry {
		err := e.Store.Remove(ctx, m.Ref, memory.ETagOf(m.Content))
		if errors.Is(err, memdir.ErrChanged) || errors.Is(err, fs.ErrNotExist) {
			return nil // somebody has a hand on it
		}
		if err != nil {
			return err
		}
	}
	r.Removed = append(r.Removed, m.Ref)
	return nil
}

// about is how somebody wants forgotten what they said of something. Its first group that
// matched is of what.
var about = lazily(`(?i)^\s*(?:please |ok,? |actually,? |no,? )?(?:forget|disregard|ignore|scratch) (?:what|everything|whatever|all) i(?:'ve)? (?:just )?(?:said|told you) about (?:the |our |my )?([^,.;:!?]{2,60})[.!]*\s*$|` +
	`^\s*(?:请)?(?:忘掉|忘了|忘记|不要管|别管)(?:我)?(?:刚才|之前|以前)?(?:说过?的)?(?:关于|有关)([^，,。；：！？]{2,30}?)(?:的(?:话|事|内容|那些话?)?)?[。！!]*\s*$`)

// forgotten returns of what a sentence wants everything forgotten.
func forgotten(sentence string) (topic string, ok bool) {
	m := about().FindStringSubmatch(simplified(sentence))
	if m == nil || len(terms(m[1]+m[2])) == 0 {
		return "", false
	}
	return m[1] + m[2], true
}

// isAbout reports whether a text holds every word of a topic.
func isAbout(text, topic string) bool {
	words, theirs := terms(topic), terms(text)
	return common(words, theirs) == len(words)
}

// forget removes the memory about a topic that the rules wrote and nobody touched. Where
// several are about it, nobody knows which is meant, and all stay.
func (e *Extractor) forget(ctx context.Context, topic string, dry bool, r *Report) error {
	list, _, err := e.Store.List(ctx)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(m memories.Memory) bool {
		what, ok := untouched(&m)
		return !ok || !isAbout(what, topic)
	})
	if len(list) != 1 {
		return nil
	}
	return e.remove(ctx, list[0], dry, r)
}

// untouched returns the statement of a memory that the rules wrote and nobody touched.
func untouched(m *memories.Memory) (what string, ok bool) {
	what, day, ok := strings.Cut(strings.TrimSpace(string(m.Body())), memories.SaidOn)
	return what, ok && m.Scope == memory.ScopePrivate && len(day) == len("2006-01-02.") && m.Front.Description == short(what, descriptionChars)
}

// alike is the share of words that a statement has in common with the one it revises.
const alike = 0.6

// revised returns the memory, written by the rules and left as it was, that c changes,
// which the person announced as a change: the one that says nearly the same. Where two
// do so equally, nobody knows which is meant, and both stay.
func revised(list []memories.Memory, c Candidate) []memories.Memory {
	if !c.revises {
		return nil
	}
	var best []memories.Memory
	most := 0.0
	for _, m := range list {
		what, ok := untouched(&m)
		if typ, _ := m.Type(); !ok || !c.onlyIf && typ != c.Type && typ != memory.TypeProject && c.Type != memory.TypeFeedback {
			continue
		}
		if memories.Words(string(m.Body())) == memories.Words(c.Body) {
			continue // the change itself, heard again
		}
		switch s := sameMatter(statement(c.Body), what); {
		case s < alike || s < most:
		case s > most:
			best, most = []memories.Memory{m}, s
		default:
			best = append(best, m)
		}
	}
	if len(best) > 1 {
		return nil
	}
	return best
}

// statement is a body without the day it was said on.
func statement(body string) string {
	what, _, _ := strings.Cut(body, memories.SaidOn)
	return what
}

var (
	// values are what a change of plan changes: days, times, numbers, versions.
	values = lazily(`(?i)\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\b(?:january|february|march|april|june|july|august|september|october|november|december)\b|v?\d[\d.:-]*|(?:周|星期|礼拜)[一二三四五六日天]|[上下]午|[一二三四五六七八九十]+[点号日月]`)
	// light are words that say nothing of what a statement is about.
	light = lazily(`(?i)\b(?:always|never|from now on|now|please|going forward|we|you|i|it|must|should|will|only|just|go|goes|out|happens?|takes? place|is|are|be|on|at|in|to|for|every|each|the|an?|not|don'?t|do|instead)\b|以后|今后|一律|都|要|每|是|在|改为|改成|改到`)
	// verbs are what many rules begin with; alone they make no two speak of the same.
	verbs = lazily(`(?i)\b(?:use|run|write|make|put|keep|add|set)\b|使用|用|写|跑`)
	// instead is what a change names as no longer so.
	instead = lazily(`(?i)(?:,\s*(?:and )?not|\binstead of|\brather than|\bno longer|而不是|不再用?|不用)\s+(?:the |on |at |in )?([^,.;，。]+)`)
)

// sameMatter is how much of what two statements are about is the same, from 0 to 1: of
// their words without values and words that say nothing. 0 is that they share none but a
// common verb.
func sameMatter(now, before string) float64 {
	gone := ""
	if m := instead().FindStringSubmatchIndex(now); m != nil {
		gone, now = now[m[2]:m[3]], now[:m[0]]+now[m[1]:]
	}
	ours, theirs := matter(now), matter(before)
	// What is named as no longer so stood in the one that is changed.
	for t := range matter(gone) {
		if !theirs[t] {
			return 0
		}
		ours[t] = true
	}
	both := common(ours, theirs)
	telling := common(matter(verbs().ReplaceAllString(now+" "+gone, " ")), theirs)
	if both == 0 || telling == 0 {
		return 0
	}
	of := max(len(ours), len(theirs))
	if len(matter(gone)) > 0 {
		of = len(theirs) // it names what it changes; what takes its place is new
	}
	return float64(both) / float64(of)
}

// matter are the words of what a statement is about.
func matter(text string) map[string]bool {
	return terms(light().ReplaceAllString(values().ReplaceAllString(text, " "), " "))
}

func terms(text string) map[string]bool {
	out := map[string]bool{}
	for t := range lexical.Tokens(text) {
		out[t.Term] = true
	}
	return out
}

// common counts the terms that two texts have in common.
func common(a, b map[string]bool) int {
	n := 0
	for t := range a {
		if b[t] {
			n++
		}
	}
	return n
}
