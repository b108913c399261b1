package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
	"github.com/memsvc/memsvc/internal/lifecycle/memdir"
	"github.com/memsvc/memsvc/internal/lifecycle/memories"
	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/memory"
)

const (
	keptShare = 0.3 // of a text must stay, else it counts as deleted (SPEC 3.6)
	smallText = 200 // bytes; below that any edit is an edit
	longLine  = 40  // bytes of a line by which a personal text is known again
)

var (
	errTeam    = said("the team's memories may not be changed here")
	errNew     = said("no memory may be added here; change one that is there, or leave it")
	errUnread  = said("read the memory first; only a text that you have seen can be replaced or deleted")
	errChanged = said("somebody changed it meanwhile; read it again")
	errIndex   = said("the index is kept by itself; change the memories")
	errEmpty   = said("the new text is empty")
	errShrinks = said("this would take most of the text; nothing may be deleted here")
	errDeletes = said("no more may be deleted in this run")
	errWrites  = said(fmt.Sprintf("more than %d memories in one run; stop writing", maxWrites))
	errRefusal = said("these are the words of somebody who declines, and no memory; write nothing instead")
	errPrivate = said("a line of it stands in a personal memory; only the person may share that")
)

func (r *run) write(ctx context.Context, input []byte) (string, string, error) {
	var in struct {
		Type, Name, Description, Body string
		Team                          bool
	}
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	if r.NoNew {
		return "", "", errNew
	}
	typ, ok := memory.ParseType(in.Type)
	if !ok {
		return "", "", said(fmt.Sprintf("type: use one of %s", memory.TypeNames()))
	}
	if model.Declines(in.Body) {
		return "", "", errRefusal
	}
	if model.HoldsMark(in.Name + "\n" + in.Description + "\n" + in.Body) {
		return "", "", errMark
	}
	d := memories.Draft{Type: typ, Name: in.Name, Description: dates.Absolute(in.Description, r.At), Body: dates.Absolute(in.Body, r.At), Scope: memory.ScopePrivate}
	if in.Team {
		d.Scope = memory.ScopeTeam
	}
	path, content, err := d.Compose()
	if err != nil {
		return "", "", err
	}
	ref := memories.Ref{Scope: d.Scope, Path: path}
	if err := r.mayWrite(ctx, ref, nil, content); err != nil {
		return "", ref.String(), err
	}
	if err := r.fresh(ctx, d); err != nil {
		return "", ref.String(), err
	}
	w, err := r.Store.Add(ctx, d)
	if errors.Is(err, fs.ErrExist) {
		err = said("a memory of this type and name is there; read it and use edit")
	}
	return r.written(w, err, ref)
}

// fresh refuses a text that a memory holds already, whatever that is called.
func (r *run) fresh(ctx context.Context, d memories.Draft) error {
	all, _, err := r.Store.List(ctx)
	if err != nil {
		return err
	}
	words := memories.Words(d.Body)
	for _, m := range all {
		if memories.Words(string(m.Body())) == words {
			return said(fmt.Sprintf("%s says this already; there is nothing to add", m.Ref))
		}
	}
	return nil
}

func (r *run) edit(ctx context.Context, input []byte) (string, string, error) {
	var in struct{ Memory, Old, New, Body string }
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	ref, err := r.refOf(in.Memory)
	if err != nil {
		return "", "", err
	}
	m, err := r.Store.Get(ctx, ref)
	if errors.Is(err, fs.ErrNotExist) {
		err = errNone
	}
	if err != nil {
		return "", ref.String(), err
	}
	old := memory.ETagOf(m.Content)
	if model.Declines(in.Body) {
		return "", ref.String(), errRefusal
	}
	next, err := r.edited(&m, in.Old, in.New, in.Body)
	switch {
	case err != nil:
		return "", ref.String(), err
	case in.Body != "" && r.seen[ref] == "":
		return "", ref.String(), errUnread
	case in.Body != "" && r.seen[ref] != old:
		return "", ref.String(), errChanged
	}
	if err := stillMemory(&m, next); err != nil {
		return "", ref.String(), err
	}
	if err := r.mayWrite(ctx, ref, m.Content, next); err != nil {
		return "", ref.String(), err
	}
	if _, ok := r.first[ref]; !ok {
		r.first[ref] = len(m.Content)
	}
	if err := r.mayShrink(ctx, ref, len(next)); err != nil {
		return "", ref.String(), err
	}
	w, err := r.Store.Replace(ctx, ref, next, old)
	if errors.Is(err, memdir.ErrChanged) {
		err = errChanged
	}
	return r.written(w, err, ref)
}

// edited returns the text that an edit asks for, in the words of what the model is shown.
func (r *run) edited(m *memories.Memory, old, with, body string) ([]byte, error) {
	v := viewOf(m.Content, r.Secrets)
	switch {
	case body != "" && old != "":
		return nil, said("give old and new, or body, not both")
	case body != "":
		body, err := v.whole(body, r.At)
		if err != nil {
			return nil, err
		}
		head := m.Content[:len(m.Content)-len(m.Body())]
		if len(head) > 0 {
			body = "\n" + strings.TrimLeft(body, "\n")
		}
		body = strings.TrimRight(body, "\n") + "\n"
		if bytes.Contains(head, []byte("\r\n")) {
			body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\n", "\r\n")
		}
		return append(bytes.Clone(head), body...), nil
	case old == "":
		return nil, said("old: say which part is to be replaced")
	}
	next, err := v.replaced(old, with, r.At)
	return []byte(next), err
}

// stillMemory refuses an edit that leaves no memory: a head that cannot be read any
// more, or without its name or type, or no body.
func stillMemory(was *memories.Memory, next []byte) error {
	fm, body, err := memory.ParseFrontmatter(next)
	_, typed := was.Type()
	_, types := memory.TypeOf(was.Path, fm)
	switch {
	case err != nil && was.Unreadable == nil, fm.Present != was.Front.Present,
		fm.Name == "" && was.Front.Name != "", typed && !types, len(fm.Fields) < len(was.Front.Fields):
		return said("the frontmatter must stay one, with all its fields")
	case len(bytes.TrimSpace(body)) == 0:
		return errEmpty
	}
	return nil
}

func (r *run) remove(ctx context.Context, input []byte) (string, string, error) {
	var in struct{ Memory string }
	if err := decode(input, &in); err != nil {
		return "", "", err
	}
	ref, err := r.refOf(in.Memory)
	if err != nil {
		return "", "", err
	}
	if r.seen[ref] == "" {
		return "", ref.String(), errUnread
	}
	if r.partly[ref] {
		return "", ref.String(), errLeftOut
	}
	if err := r.mayDelete(ctx); err != nil {
		return "", ref.String(), err
	}
	switch err := r.Store.Remove(ctx, ref, r.seen[ref]); {
	case errors.Is(err, memdir.ErrChanged):
		return "", ref.String(), errChanged
	case errors.Is(err, fs.ErrNotExist):
		return "", ref.String(), errNone
	case err != nil:
		return "", ref.String(), err
	}
	r.deletes--
	r.res.Deleted = append(r.res.Deleted, ref)
	r.res.Written = slices.DeleteFunc(r.res.Written, func(w memories.Ref) bool { return w == ref })
	delete(r.seen, ref)
	return "deleted " + ref.String(), ref.String(), nil
}

// refOf reads the name of a memory that is to be changed.
func (r *run) refOf(name string) (memories.Ref, error) {
	p, err := r.placeOf(name)
	if err != nil || p.in != inMemory {
		return memories.Ref{}, said("memory: only memories can be changed; give file.md or team/file.md")
	}
	ref, err := memories.ParseRef(p.rel)
	switch {
	case err != nil:
		return memories.Ref{}, fmt.Errorf("memory: %w: %w", errName, err)
	case memory.IsIndex(ref.Path):
		return memories.Ref{}, errIndex
	case ref.Scope == memory.ScopeTeam && r.NoTeam:
		return memories.Ref{}, errTeam
	}
	return ref, nil
}

// mayWrite refuses what a model may not write by itself: too many memories, secrets, and
// for the team what a personal memory says.
func (r *run) mayWrite(ctx context.Context, ref memories.Ref, old, next []byte) error {
	if len(r.res.Written) >= maxWrites && !slices.Contains(r.res.Written, ref) {
		return errWrites
	}
	if ref.Scope == memory.ScopeTeam && r.NoTeam {
		return errTeam
	}
	if err := r.Store.Vet(ctx, ref, next); err != nil {
		return err
	}
	if ref.Scope != memory.ScopeTeam {
		return nil
	}
	all, _, err := r.Store.List(ctx)
	if err != nil {
		return err
	}
	known := longLines(old)
	fresh := longLines(next)
	for _, m := range all {
		if m.Scope == memory.ScopeTeam {
			continue
		}
		for l := range longLines(m.Body()) {
			if fresh[l] && !known[l] {
				return errPrivate
			}
		}
	}
	return nil
}

// longLines returns the lines that are long enough to be known again.
func longLines(text []byte) map[string]bool {
	out := map[string]bool{}
	for l := range strings.Lines(string(text)) {
		if l = strings.ToLower(strings.Join(strings.Fields(strings.TrimLeft(l, " \t-*>#")), " ")); len(l) >= longLine {
			out[l] = true
		}
	}
	return out
}

// mayShrink counts an edit that leaves little of a text, compared with what it was
// before the run, as a delete.
func (r *run) mayShrink(ctx context.Context, ref memories.Ref, size int) error {
	was := r.first[ref]
	if was < smallText || float64(size) >= keptShare*float64(was) || r.shrunk[ref] {
		return nil
	}
	if !r.AllowDelete {
		return errShrinks
	}
	if err := r.mayDelete(ctx); err != nil {
		return err
	}
	r.deletes--
	r.shrunk[ref] = true
	return nil
}

// mayDelete counts, before the first delete, how many the store can bear.
func (r *run) mayDelete(ctx context.Context) error {
	if r.deletes < 0 {
		all, _, err := r.Store.List(ctx)
		if err != nil {
			return err
		}
		r.deletes = max(maxDeletes, (len(all)-len(r.res.Written))/5)
	}
	if r.deletes == 0 {
		return errDeletes
	}
	return nil
}

// written notes a write that was done, and tells the model what it should know of it.
func (r *run) written(w memories.Written, err error, ref memories.Ref) (string, string, error) {
	if err != nil {
		return "", ref.String(), err
	}
	r.saw(ref, w.Content)
	if _, ok := r.first[ref]; !ok {
		r.first[ref] = len(w.Content)
	}
	if !slices.Contains(r.res.Written, ref) {
		r.res.Written = append(r.res.Written, ref)
	}
	r.res.Told = w.Told
	text := "written: " + ref.String()
	for _, v := range w.Told {
		text += "\nwarning: " + v.Message
	}
	return text, ref.String(), nil
}
