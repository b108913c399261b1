package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/filelock"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/sandbox"
	"github.com/memsvc/memsvc/internal/memory"
)

// Extractor makes memories of the conversations of one project.
type Extractor struct {
	Store *memories.Store
	Guard memories.Guard // secrets are no memories, not even personal ones
	Model model.Model    // nil = what was said in so many words is all
	// JSON asks the model for a list in one answer, instead of letting it work with
	// tools; for models that have none.
	JSON bool
	// Secrets finds what the model is not shown, while texts are whole; nil finds none.
	Secrets model.Secrets
	Project string // directory that the model may read; "" = none
	Dir     string // where cursors are kept; made for its owner only
	Now     func() time.Time
	// Record hears of each call of a tool that the model made; nil = nobody does.
	Record func(sandbox.Call)
}

// Conversation is what is to be read.
type Conversation struct {
	Session    string
	Transcript string // file
}

// Report says what an extraction did.
type Report struct {
	Session string
	// Skipped is why nothing was looked at: nothing new, or the client wrote by itself.
	Skipped string
	By      string // "rules" or "model"
	// Fallback is why the rules did the work though there is a model.
	Fallback string
	Added    []memories.Ref // in a dry run, what would be added
	Updated  []memories.Ref
	// Removed are memories that an earlier run wrote of words that the person has taken
	// back since, or said anew.
	Removed []memories.Ref
	// Refused names candidates that were not written, each with the reason.
	Refused []string
	// Warnings are what whoever wrote the index past a cap is to know, each once; without
	// any content.
	Warnings []string
	Rounds   int
	Usage    model.Usage
	Took     time.Duration
}

// Run reads what a conversation said since its cursor and writes memories. Runs of one
// project wait for one another, also in other processes. The cursor advances only when
// all went well; a dry run writes nothing and leaves it. Where the model fails, the rules
// do the work, and that is well: the turns are not kept for the model, since reading them
// over and over would bring back what a person deleted meanwhile, and double in other
// words what the rules wrote.
func (e *Extractor) Run(ctx context.Context, c Conversation, dry bool) (Report, error) {
	began := e.Now()
	r := Report{Session: c.Session}
	if err := os.MkdirAll(e.Dir, 0o700); err != nil {
		return r, fmt.Errorf("extract: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(e.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return r, fmt.Errorf("extract: %w", err)
	}
	defer func() { _ = filelock.Release(lock) }()
	if err := filelock.Lock(ctx, lock); err != nil && !errors.Is(err, filelock.ErrUnsupported) {
		return r, fmt.Errorf("extract: %w", err)
	}
	cursor, err := e.cursor(c)
	if err != nil {
		return r, err
	}
	turns, err := ReadTurns(ctx, c.Transcript, cursor, e.Store.Dir(memory.ScopePrivate), e.Store.Dir(memory.ScopeTeam))
	if err != nil {
		return r, err
	}
	switch {
	case turns.Last == "":
		r.Skipped = "nothing new was said"
		return r, nil
	case turns.Wrote:
		r.Skipped = "the client wrote memories by itself"
	case e.Model == nil:
		r.By = "rules"
		err = e.byRules(ctx, c, turns, dry, &r)
	default:
		r.By = "model"
		err = e.ask(ctx, c, turns, dry, &r)
		if err != nil && ctx.Err() == nil {
			r.By, r.Fallback = "rules", oneLine(err)
			err = e.byRules(ctx, c, turns, dry, &r)
		}
	}
	r.Took = e.Now().Sub(began)
	if err != nil || dry {
		return r, err
	}
	return r, e.advance(c, turns.Last)
}

// maxWarnings bounds how many places of an index a report names.
const maxWarnings = 10

// tell keeps what the last write had to say: it looked at the whole index.
func (r *Report) tell(told []memory.Violation) {
	r.Warnings = nil
	for i, v := range told {
		if i == maxWarnings {
			r.Warnings = append(r.Warnings, fmt.Sprintf("and %d more", len(told)-i))
			break
		}
		where := v.Path
		if v.Line > 0 {
			where = fmt.Sprintf("%s:%d", v.Path, v.Line)
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %s (%s)", where, v.Message, v.Rule))
	}
}

// write adds the candidates, or updates what says the same.
func (e *Extractor) write(ctx context.Context, candidates []Candidate, dry bool, r *Report) error {
	if len(candidates) == 0 {
		return nil
	}
	list, _, err := e.Store.List(ctx)
	if err != nil {
		return err
	}
	var byModel []memories.Ref // what a model wrote before it failed
	if r.Fallback != "" {
		byModel = slices.Concat(r.Added, r.Updated)
	}
	before := len(r.Added) + len(r.Updated)
	for _, c := range candidates {
		old := revised(list, c)
		if c.onlyIf {
			if len(old) == 0 {
				continue
			}
			c.Type, _ = old[0].Type()
		}
		d := memories.Draft{Type: c.Type, Name: c.Name, Description: c.Description, Body: c.Body, Scope: memory.ScopePrivate}
		path, content, err := d.Compose()
		if err != nil {
			r.Refused = append(r.Refused, err.Error())
			continue
		}
		why, err := e.unfit(ctx, path, content, c.Body)
		if err != nil {
			return err
		}
		if why != "" {
			r.Refused = append(r.Refused, why)
			continue
		}
		ref := memories.Ref{Scope: memory.ScopePrivate, Path: path}
		if _, same := twinOf(list, c, path); !same && len(r.Added)+len(r.Updated)-before == maxWritten && !holds(list, byModel, c) {
			r.Refused = append(r.Refused, fmt.Sprintf("more than %d statements at once; what matters of the rest has to be said again", maxWritten))
			continue
		}
		for _, old := range old {
			if err := e.remove(ctx, old, dry, r); err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(m memories.Memory) bool { return m.Ref == old.Ref })
		}
		twin, same := twinOf(list, c, path)
		switch {
		case same, holds(list, byModel, c):
			continue // known already
		case twin != nil && r.By == "model" && e.Secrets.Masked(string(twin.Content)) != string(twin.Content):
			r.Refused = append(r.Refused, fmt.Sprintf("%s: the model was not shown all of it, so it is not written anew", twin.Ref))
		case dry && twin == nil:
			r.Added = append(r.Added, ref)
		case dry:
			r.Updated = append(r.Updated, twin.Ref)
		case twin == nil:
			w, err := e.Store.Add(ctx, d)
			if err != nil {
				return err
			}
			r.tell(w.Told)
			r.Added = append(r.Added, ref)
			list = append(list, memories.Memory{Ref: ref, Content: content})
			list[len(list)-1].Front, _, _ = memory.ParseFrontmatter(content)
		default:
			text := withBody(twin, c.Body)
			w, err := e.Store.Replace(ctx, twin.Ref, text, memory.ETagOf(twin.Content))
			if err != nil {
				return err
			}
			r.tell(w.Told)
			r.Updated = append(r.Updated, twin.Ref)
			twin.Content = w.Content
			twin.Front, _, _ = memory.ParseFrontmatter(w.Content)
		}
	}
	return nil
}

// unfit says why a candidate is no memory: a secret, or words of a model that refuses.
func (e *Extractor) unfit(ctx context.Context, path memory.Path, content []byte, body string) (why string, err error) {
	switch {
	case model.Declines(body):
		return "a refusal is no memory", nil
	case model.HoldsMark(string(content)):
		return "what stands for a secret is no memory", nil
	}
	violations, _, err := e.Guard.Check(ctx, path, content)
	switch {
	case ctx.Err() != nil: // nobody was asked in earnest: what was said is kept for the next time
		return "", ctx.Err()
	case err != nil:
		return "the guard has no verdict", nil
	}
	for _, v := range violations {
		if v.Rule != memory.RuleTypeUser { // a person's own may be personal
			return "the guard refuses it: " + v.Rule, nil
		}
	}
	return "", nil
}

// twinOf finds the memory that a candidate would double: same text (same is true: there
// is nothing to do), or same name and type. The team's count too, but are not changed.
func twinOf(list []memories.Memory, c Candidate, path memory.Path) (twin *memories.Memory, same bool) {
	want := memories.Words(c.Body)
	for i := range list {
		m := &list[i]
		if memories.Words(string(m.Body())) == want {
			return m, true
		}
	}
	for i := range list {
		m := &list[i]
		typ, _ := m.Type()
		if m.Scope == memory.ScopePrivate && (m.Path == path || typ == c.Type && strings.EqualFold(m.Front.Name, c.Name)) {
			return m, false
		}
	}
	return nil, false
}

// holds reports whether one of the memories refs holds nearly all words of a candidate.
func holds(list []memories.Memory, refs []memories.Ref, c Candidate) bool {
	words := terms(memories.Words(c.Body))
	return slices.ContainsFunc(list, func(m memories.Memory) bool {
		return slices.Contains(refs, m.Ref) && float64(common(words, terms(string(m.Content)))) >= heldShare*float64(len(words))
	})
}

// heldShare of a candidate's words say that a memory holds it.
const heldShare = 0.75

// withBody gives a memory another body; its frontmatter keeps every byte.
func withBody(m *memories.Memory, body string) []byte {
	var b bytes.Buffer
	if m.Front.Present {
		b.Write(m.Content[:m.Front.BodyStart])
		b.WriteByte('\n')
	}
	b.WriteString(strings.TrimRight(body, "\n") + "\n")
	return b.Bytes()
}
