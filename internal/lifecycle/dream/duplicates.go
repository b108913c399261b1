package dream

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/memsvc/memsvc/internal/memory"
)

// duplicates makes one of memories that say the same. In the team's directory these are
// exact duplicates alone.
func (t *tree) duplicates(ctx context.Context) error {
	if err := t.restating(ctx); err != nil {
		return err
	}
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		t.exact(scope)
	}
	if err := t.contained(ctx); err != nil {
		return err
	}
	t.sameName()
	if err := t.similar(ctx); err != nil {
		return err
	}
	t.redirect()
	return nil
}

// byAge returns the memories of a scope that may be changed, the newest first; among equals
// the shorter name, since copies have longer ones.
func (t *tree) byAge(scope memory.Scope) []*item {
	return t.sorted(scope, func(it *item) time.Time { return it.Age() })
}

// alike is byAge for choices that every machine of a team must make alike, though it may
// not know of the others' as yet: files have not quite the same times everywhere, so only
// what a memory says of itself counts. Else two machines could each let go what the other
// one keeps.
func (t *tree) alike(scope memory.Scope) []*item {
	return t.sorted(scope, func(it *item) time.Time { return it.Front.Modified })
}

func (t *tree) sorted(scope memory.Scope, age func(*item) time.Time) []*item {
	out := slices.DeleteFunc(t.scope(scope), func(it *item) bool { return it.frozen })
	slices.SortStableFunc(out, func(a, b *item) int {
		return cmp.Or(age(b).Compare(age(a)), cmp.Compare(len(a.Path), len(b.Path)), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// maxCandidates bounds how many memories that begin alike are compared with one.
const maxCandidates = 64

// kindOf is the type as far as it is known.
func kindOf(it *item) string {
	if typ, ok := it.Type(); ok {
		return string(typ)
	}
	return it.Front.Type
}

// shortBody is how many words (or characters, of Chinese and the like) a body has at
// least that means something without its name.
const shortBody = 6

// selfContained reports whether a body says what it is about.
func selfContained(body string) bool {
	n := 0
	for _, w := range strings.Fields(body) {
		n++
		for _, r := range w {
			if r > 0x2e80 {
				n++
			}
		}
	}
	return n >= shortBody
}

// sameSubject reports whether a memory whose text another has, too, is about the same: its
// text says so by itself, or the other is called so.
func sameSubject(keep, it *item) bool {
	return selfContained(string(it.Body())) || plainName(keep.Front.Name) == plainName(it.Front.Name) ||
		len(termsOf(it.Front.Name)) > 0 && mentions(keep, it)
}

// restating deletes personal memories that say nothing but what one of the team's says.
// Nothing of them moves there.
func (t *tree) restating(ctx context.Context) error {
	team := t.scope(memory.ScopeTeam)
	if len(team) == 0 {
		return nil
	}
	at := map[string][]*item{}
	facts := map[*item]*known{}
	for _, it := range team {
		k := knownOf(t.effort, string(it.Body()), it.Front.Description)
		facts[it] = k
		for g := range k.gists {
			if len(at[g]) < maxCandidates {
				at[g] = append(at[g], it)
			}
		}
	}
	for _, p := range t.byAge(memory.ScopePrivate) {
		if err := ctx.Err(); err != nil {
			return err
		}
		body := string(p.Body())
		for _, it := range at[p.begins()] {
			t.effort.next()
			if kindOf(p) == kindOf(it) && facts[it].coversAll(body) && sameSubject(it, p) && mentions(it, p) && len(extras(p, it)) == 0 && !clash(p, it) && !otherHook(it, p) && t.drop(p, it, reasonRestates) {
				break
			}
			if t.effort.spent {
				t.unequal(it, p)
				break
			}
		}
	}
	return nil
}

// firstGist is the gist of a body's first fact, by which those that may say it are found.
func firstGist(body string) string {
	for _, u := range unitsOf(body) {
		if u.kind != blankUnit && u.kind != headUnit && !isFence(strings.TrimSpace(u.raw)) {
			for line := range strings.Lines(u.raw) {
				return gist(sentences(strings.TrimSpace(line))[0])
			}
		}
	}
	return ""
}

// exact makes one of memories whose bodies are the same.
func (t *tree) exact(scope memory.Scope) {
	first := map[string]*item{}
	list := t.byAge(scope)
	if scope == memory.ScopeTeam {
		list = t.alike(scope)
	}
	for _, it := range list {
		body := plainBody(it.Body())
		if body == "" {
			continue
		}
		key := body
		if kindOf(it) == string(memory.TypeUser) {
			key = "user\n" + body // what is about a person stays apart
		}
		keep := first[key]
		if keep == nil {
			first[key] = it
			continue
		}
		if !sameSubject(keep, it) {
			continue // it is about what its name says, and that differs
		}
		// A field that cannot move, such as a nested pin, stays where it is.
		if clash(it, keep) && !clash(keep, it) {
			keep, it = it, keep
		}
		if t.absorb(keep, it, reasonDuplicate) {
			first[key] = keep
		}
	}
}

// contained deletes personal memories all of which another one says among other things.
func (t *tree) contained(ctx context.Context) error {
	at := map[string][]*item{}
	facts := map[*item]*known{}
	list := t.byAge(memory.ScopePrivate)
	for _, it := range list {
		k := knownOf(t.effort, string(it.Body()))
		facts[it] = k
		for g := range k.gists {
			if len(at[g]) < maxCandidates {
				at[g] = append(at[g], it)
			}
		}
	}
	for _, small := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		body := string(small.Body())
		g := small.begins()
		if g == "" {
			continue
		}
		for _, big := range at[g] {
			if big == small || big.gone || kindOf(big) != kindOf(small) || len(big.Body()) < len(small.Body()) || apart(big, small) {
				continue
			}
			t.effort.next()
			if facts[big].coversAll(body) && sameSubject(big, small) && t.absorb(big, small, reasonDuplicate) {
				break
			}
			if t.effort.spent {
				t.unequal(big, small)
				break
			}
		}
	}
	return nil
}

// sameName merges personal memories of one directory that have the same name and type.
func (t *tree) sameName() {
	first := map[string]*item{}
	for _, it := range t.byAge(memory.ScopePrivate) {
		name := plainName(it.Front.Name)
		if name == "" {
			continue
		}
		key := kindOf(it) + "\n" + it.Path.Dir() + "\n" + name
		if keep := first[key]; keep != nil {
			t.absorb(keep, it, reasonInto)
		} else {
			first[key] = it
		}
	}
}

// plainName is a name in the form by which two are the same.
func plainName(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(norm.NFKC.String(name)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), " ")
}

// absorb makes one of two memories of a scope: keep says then what both said, and old is
// gone. It does nothing, and says so, where a fact would be lost or a cap passed.
func (t *tree) absorb(keep, old *item, reason string) bool {
	if clash(old, keep) {
		return false
	}
	if t.sealed[old.Scope] || t.vain[vain{keep, old, keep.version, old.version}] {
		return false
	}
	t.effort.next()
	e := t.effort
	if reason == reasonInto && (contradicts(old.statements(), keep.statements(), e) || contradicts(keep.statements(), old.statements(), e)) {
		t.vain[vain{keep, old, keep.version, old.version}] = true
		t.contest(keep, old, "")
		return false
	}
	if t.deletes <= 0 && !e.spent {
		return t.drop(old, keep, reason) // says that more could go
	}
	body, superseded := mergeBodies(string(keep.Body()), string(old.Body()), e)
	if e.spent {
		t.vain[vain{keep, old, keep.version, old.version}] = true
		t.unequal(keep, old)
		return false
	}
	if otherHook(keep, old) && aside(keep, old) == "" {
		superseded = append(superseded, old.Front.Description)
	}
	if len(superseded) > 0 && !keep.clocks.newer(old.clocks) {
		t.vain[vain{keep, old, keep.version, old.version}] = true
		t.contest(keep, old, whyWhichIsNewer)
		return false
	}
	next := &item{Memory: keep.Memory}
	next.parse(keep.withBody(body))
	if also := aside(next, old); also != "" {
		next.parse(next.withBody(withLine(string(next.Body()), also)))
	}
	if text := withFields(next, extras(old, keep)); text != nil {
		next.parse(text)
	}
	if len(next.Content) > memory.MaxMemoryBytes || !t.drop(old, keep, reason) {
		return false
	}
	t.set(keep, next.Content, reasonMerged)
	keep.clocks = keep.clocks.with(old.clocks)
	if old.asOld.After(keep.asOld) {
		keep.asOld = old.asOld
	}
	if len(superseded) > 0 {
		old.superseded, old.whyGone = append(old.superseded, superseded...), reasonSuperseded
	}
	return true
}

// whyWhichIsNewer is why a memory stays that another one says otherwise than.
const whyWhichIsNewer = " of the same thing, and which is newer cannot be told, by their own times and by their files'"

// contest says, once, that two memories stay because they say otherwise.
func (t *tree) contest(keep, old *item, why string) {
	if old.contested {
		return
	}
	old.contested = true
	t.say(Left{Ref: old.Ref.String(), Why: "it is nearly " + keep.Ref.String() + ", and says otherwise" + why + "; a person or a model has to say which holds"})
}

// otherHook reports whether the descriptions of two memories say otherwise in nearly the
// same words.
func otherHook(keep, old *item) bool {
	return compare(old.Front.Description, keep.Front.Description) == contrary
}

// vain is a pair of texts of which no one can be made.
type vain struct {
	keep, old         *item
	keepText, oldText int
}

// unequal says that two memories were not compared to their end.
func (t *tree) unequal(keep, old *item) {
	switch {
	case t.effort.over():
		t.say(Left{Why: whyTooMany})
	case !old.unequal:
		old.unequal = true
		t.say(Left{Ref: old.Ref.String(), Why: "it and " + keep.Ref.String() + " are too long and too different to be compared line by line; both stay as they are"})
	}
}

// withLine adds a paragraph at the end of a body.
func withLine(body, line string) string {
	end := "\n"
	if strings.Contains(body, "\r\n") {
		end = "\r\n"
	}
	return strings.TrimRight(body, "\r\n") + end + end + line + end
}

// mentions reports whether a memory has the words of another's name and, mostly, of its
// description.
func mentions(it, other *item) bool { return aside(it, other) == "" }

// aside returns the line that keeps what the name and the description of a memory say and
// the text of another does not; "" = nothing.
func aside(keep, old *item) string {
	have := termsOf(keep.Front.Name + "\n" + keep.Front.Description + "\n" + string(keep.Body()))
	name, description := old.Front.Name, old.Front.Description
	for term := range termsOf(name) {
		if !have[term] && !isCopyMark(term) {
			if missing(have, description) {
				return "Also noted as: " + name + " — " + description
			}
			return "Also noted as: " + name
		}
	}
	if missing(have, description) {
		return description
	}
	return ""
}

// isCopyMark knows what is put after a name so that a second file can have it.
func isCopyMark(term string) bool {
	return term == "copy" || term == "副本" || len(term) <= 2 && strings.Trim(term, "0123456789") == ""
}

// missing reports whether a description says more than a text does: a number that the
// text has not, or a good part of other words.
func missing(have map[string]bool, description string) bool {
	terms := termsOf(description)
	lacks := 0
	for term := range terms {
		if have[term] {
			continue
		}
		if strings.ContainsAny(term, "0123456789") {
			return true
		}
		lacks++
	}
	return 5*lacks > 2*len(terms)
}

// ordinary are the fields of a head that say nothing of their own, or that the merged
// memory has in its own right.
func ordinary(key string) bool {
	switch key {
	case "name", "title", "description", "type", "date", "modified", "node_type", "originSessionId",
		"metadata", "metadata.type", "metadata.node_type", "metadata.originSessionId", "metadata.modified":
		return true
	}
	return false
}

// extras returns the fields of a head that another lacks, as they stand.
func extras(of, in *item) (out [][]byte) {
	for _, f := range of.Front.Fields {
		if f.Key == "" && len(bytes.TrimSpace(f.Raw)) == 0 || ordinary(f.Key) {
			continue
		}
		if has, ok := in.Front.Field(f.Key); ok && bytes.Equal(bytes.TrimSpace(has.Raw), bytes.TrimSpace(f.Raw)) {
			continue
		}
		out = append(out, f.Raw)
	}
	return out
}

// clash reports whether the heads of two memories hold fields that no one head can hold:
// the same key with different values, comments, nested fields.
func clash(of, in *item) bool {
	for _, f := range of.Front.Fields {
		if f.Key == "" && len(bytes.TrimSpace(f.Raw)) == 0 || ordinary(f.Key) {
			continue
		}
		has, ok := in.Front.Field(f.Key)
		switch {
		case ok && bytes.Equal(bytes.TrimSpace(has.Raw), bytes.TrimSpace(f.Raw)):
		case ok, f.Key == "", strings.HasPrefix(f.Key, "metadata."), !in.Front.Present:
			return true
		}
	}
	return false
}

// withFields returns the text with fields added at the end of the head; nil = there are
// none to add.
func withFields(it *item, fields [][]byte) []byte {
	if len(fields) == 0 {
		return nil
	}
	crlf := bytes.Contains(it.head(), []byte("\r\n"))
	text := bytes.Clone(it.Content[:it.Front.YAMLEnd])
	for _, f := range fields {
		f = append(bytes.TrimRight(bytes.ReplaceAll(f, []byte("\r\n"), []byte("\n")), "\n"), '\n')
		if crlf {
			f = bytes.ReplaceAll(f, []byte("\n"), []byte("\r\n"))
		}
		text = append(text, f...)
	}
	return append(text, it.Content[it.Front.YAMLEnd:]...)
}
