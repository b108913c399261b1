package dream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/sandbox"
	"github.com/memsvc/memsvc/internal/memory"
)

// The bounds of a model's work on each of the two stores.
const (
	modelRounds = 12
	modelTime   = 4 * time.Minute
)

// stagePattern names the copies that a model works on.
const stagePattern = "stage-*"

// errUnfit is a model's result that breaks a rule; nothing of it is taken.
var errUnfit = errors.New("the model's result is not taken")

// consult lets the model consolidate, first the personal memories and then the team's, and
// returns the tree with what it did. It works on copies. The team's it sees alone: no
// personal memory, no conversation. So whatever it writes there cannot come from them.
//
// Where it fails, is cut off or breaks a rule nothing of that part is taken, since half of
// a consolidation may be a loss; the rules then do their part on what was there.
func (d *Dreamer) consult(ctx context.Context, o Options, base *tree, touched []session, r *Report) *tree {
	// What the model carries over from an old text must not become relative to today.
	base = base.clone()
	base.absoluteDates()
	var failed []string
	for _, scope := range []memory.Scope{memory.ScopePrivate, memory.ScopeTeam} {
		if scope == memory.ScopeTeam && len(base.scope(scope)) < 2 {
			continue // nothing to bring together
		}
		next, err := d.consultOn(ctx, o, scope, base, touched, r)
		if ctx.Err() != nil {
			return base
		}
		if err != nil {
			failed = append(failed, string(scope)+" memories: "+err.Error())
			continue
		}
		base, r.By = next, "model"
	}
	r.Fallback = strings.Join(failed, "; ")
	return base
}

func (d *Dreamer) consultOn(ctx context.Context, o Options, scope memory.Scope, base *tree, touched []session, r *Report) (*tree, error) {
	dir, err := d.stageDir(o)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a copy; sweep removes what stays
	personal, team := filepath.Join(dir, "memory"), filepath.Join(dir, "memory", memdir.TeamDir)
	if scope == memory.ScopeTeam {
		personal = filepath.Join(dir, "none")
	}
	if err := stage(ctx, base, scope, personal, team); err != nil {
		return nil, err
	}
	staged := memories.New(personal, team, d.Guard)
	staged.Now = d.Now
	box := sandbox.Box{Project: d.Project, Store: staged, Secrets: d.Secrets, MaxRounds: modelRounds, Timeout: modelTime, AllowDelete: true, NoTeam: scope != memory.ScopeTeam, NoNew: scope == memory.ScopeTeam, At: d.Now(), Record: d.Record}
	first := d.orient(base, scope)
	if scope == memory.ScopePrivate {
		if told := d.gather(ctx, touched); told != "" {
			first += "\nFrom the sessions since the last time:\n" + told
		}
	}
	m, system := d.Model, instructions(scope, d.Now())
	if d.TextOnly {
		m, system = &lister{Model: d.Model}, system+listForm
		first += "\nTexts:\n" + d.texts(base, scope)
	}
	res, err := box.Run(ctx, m, system, []model.Message{model.Say(model.RoleUser, first)})
	r.Rounds, r.Usage = r.Rounds+res.Rounds, r.Usage.Add(res.Usage)
	if err != nil {
		return nil, err
	}
	if res.Cut {
		return nil, fmt.Errorf("%w: it did not come to an end within %d rounds", errUnfit, modelRounds)
	}
	for _, c := range res.Calls {
		if d.TextOnly && c.Error != "" && (scope != memory.ScopeTeam || c.Tool != "write") {
			// It cannot mend what was refused, and may have deleted what it could not write. Of the
			// team's, teamKeeps sees to that.
			return nil, fmt.Errorf("%w: %s", errUnfit, c.Error)
		}
	}
	return d.adopt(ctx, staged, scope, base)
}

// stageDir makes the directory of a copy: with our state, or for a dry run, which leaves
// no trace, among the system's temporary files.
func (d *Dreamer) stageDir(o Options) (string, error) {
	at := d.Dir
	if o.DryRun {
		at = ""
	}
	dir, err := os.MkdirTemp(at, stagePattern)
	if err != nil {
		return "", fmt.Errorf("a copy to work on: %w", err)
	}
	return dir, nil
}

// stage writes the copy of the memories that a model may see.
func stage(ctx context.Context, t *tree, scope memory.Scope, personal, team string) error {
	for of, path := range map[memory.Scope]string{memory.ScopePrivate: personal, memory.ScopeTeam: team} {
		dir, err := memdir.Create(path)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }() // every write was synced by itself
		if of == memory.ScopePrivate && scope == memory.ScopeTeam {
			continue
		}
		for _, it := range t.scope(of) {
			if it.frozen {
				continue // whatever it says, it is not to be changed
			}
			if err := dir.Write(ctx, it.Path, it.Content, memory.IfAbsent(), it.time); err != nil {
				return err
			}
		}
	}
	return nil
}

// adopt takes over what the model made of the copy, if it breaks no rule.
func (d *Dreamer) adopt(ctx context.Context, staged *memories.Store, scope memory.Scope, base *tree) (*tree, error) {
	list, skipped, err := staged.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(skipped) > 0 {
		return nil, fmt.Errorf("%w: a file of it cannot be read", errUnfit)
	}
	t := base.clone()
	is := map[memories.Ref]bool{}
	var written []*item
	for _, m := range list {
		if m.Scope != scope {
			continue
		}
		is[m.Ref] = true
		it := t.at[m.Ref]
		switch {
		case it == nil && scope == memory.ScopeTeam:
			return nil, fmt.Errorf("%w: it adds %s to the team's", errUnfit, m.Ref)
		case it == nil:
			it = &item{Memory: memories.Memory{Ref: m.Ref}}
			t.put(it)
		case bytes.Equal(it.Content, m.Content):
			continue
		}
		if err := d.fit(ctx, it, m.Content); err != nil {
			return nil, err
		}
		if !t.mayTouch(it) {
			return nil, fmt.Errorf("%w: it is more than one commit holds", errUnfit)
		}
		if shrinks(it.Content, m.Content) {
			t.deletes--
		}
		it.parse(bytes.Clone(m.Content))
		it.fresh, it.ModTime, it.clocks = true, t.now, clocksOf(t.now, t.now)
		it.because(reasonModel)
		written = append(written, it)
	}
	for _, it := range t.items {
		if it.Scope != scope || it.gone || it.frozen || is[it.Ref] {
			continue
		}
		if !t.mayTouch(it) {
			return nil, fmt.Errorf("%w: it is more than one commit holds", errUnfit)
		}
		it.gone, it.needs, it.whyGone = true, written, reasonModelPrune
		t.deletes--
	}
	if t.deletes < 0 {
		return nil, fmt.Errorf("%w: it deletes more than a dream may", errUnfit)
	}
	if scope == memory.ScopeTeam {
		if err := teamKeeps(base, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// keptShare of a text must stay, else an edit counts as a delete (SPEC 3.6); below
// smallText bytes an edit is an edit.
const (
	keptShare = 0.3
	smallText = 200
)

func shrinks(from, to []byte) bool {
	return len(from) >= smallText && float64(len(to)) < keptShare*float64(len(from))
}

// fit refuses a text of a model that no program may write by itself: what the guard
// refuses, and what grants permissions.
func (d *Dreamer) fit(ctx context.Context, it *item, content []byte) error {
	if err := d.Store.Vet(ctx, it.Ref, content); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	if memory.GrantsApproval(content) > 0 && memory.GrantsApproval(it.Content) == 0 {
		return fmt.Errorf("%w: %s would grant permissions", errUnfit, it.Ref)
	}
	return nil
}

// privateLine is how many bytes a line has at least that is known again.
const privateLine = 20

// teamKeeps refuses a result that prunes the team's memories by more than doubles: every
// line of one that is deleted, or that loses most of its text, still stands somewhere. And
// it refuses one with a line of a personal memory that was not the team's before.
func teamKeeps(base, t *tree) error {
	after, before, private := knownOf(base.effort), knownOf(base.effort), knownOf(base.effort)
	for _, it := range t.scope(memory.ScopeTeam) {
		for _, u := range unitsOf(string(it.Body())) {
			after.add(u)
		}
	}
	for _, it := range base.items {
		into := before
		if it.Scope == memory.ScopePrivate {
			into = private
		}
		for _, u := range unitsOf(string(it.Body())) {
			into.add(u)
		}
	}
	for _, it := range t.items {
		was := base.at[it.Ref]
		if it.Scope != memory.ScopeTeam || was == nil {
			continue
		}
		base.effort.next()
		if (it.gone && !was.gone || len(it.Content) < len(was.Content)*7/10) && !after.coversAll(string(was.Body())) {
			return fmt.Errorf("%w: it drops what %s alone says", errUnfit, it.Ref)
		}
		if it.gone || bytes.Equal(it.Content, was.Content) {
			continue
		}
		for line := range strings.Lines(string(it.Body())) {
			if n := normal(line); len(n) >= privateLine && private.normals[n] && !before.normals[n] {
				return fmt.Errorf("%w: a line of it stands in a personal memory", errUnfit)
			}
		}
	}
	return nil
}
