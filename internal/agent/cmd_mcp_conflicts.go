package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/memsvc/memsvc/internal/agent/syncer"
	"github.com/memsvc/memsvc/internal/clients/mcp"
)

// othersWait bounds how long the status of a link waits for its hub, which knows the
// conflicts of other machines.
const othersWait = 3 * time.Second

// with returns the command for a call that has a context of its own.
func (c *command) with(ctx context.Context) *command {
	d := *c
	d.ctx = ctx
	return &d
}

// status is how the link is, from the daemon or the state on disk.
func (s sharedLink) status() (LinkStatus, error) {
	st, err := (&statusCmd{}).read(s.c)
	for _, l := range st.Links {
		if l.ID == s.l.ID() {
			return l, err
		}
	}
	return LinkStatus{Link: s.l, ID: s.l.ID(), Phase: PhaseNotRunning}, err
}

// Status says how the link is, with the conflicts of other machines that the hub keeps.
func (s sharedLink) Status(ctx context.Context) (mcp.Status, error) {
	// The hub first: a conflict of this machine that it knows of is then known here too.
	within, cancel := context.WithTimeout(ctx, othersWait)
	defer cancel()
	kept, kerr := s.c.with(within).keptOf([]Link{s.l})
	l, err := s.status()
	if err != nil {
		return mcp.Status{}, err
	}
	out := mcp.Status{Name: l.Name(), Phase: string(l.Phase), InStep: l.InStep, Todo: l.Todo, Refused: syncOf(standing{Status: l}).Refused}
	if out.Todo == todoConflicts {
		out.Todo = todoConflictsByTools
	}
	own := ownConflicts{}
	own.add(l)
	for _, k := range l.Conflicts {
		out.Conflicts = append(out.Conflicts, mcp.OpenRef{ID: k.ID, Path: k.Path})
	}
	if kerr != nil {
		out.Unknown = "conflicts of other machines: " + oneLine(kerr)
	}
	for _, k := range kept {
		if _, mine := own.at(k); !mine {
			out.Conflicts = append(out.Conflicts, mcp.OpenRef{ID: k.id(), Path: string(k.Path), Of: whose(k.Author.Principal, k.Author.Machine)})
		}
	}
	return out, nil
}

// kept finds a conflict that the hub keeps for another machine; false for one of this
// machine's own.
func (s sharedLink) kept(ctx context.Context, id string) (keptConflict, bool, error) {
	l, err := s.status()
	if err != nil {
		return keptConflict{}, false, err
	}
	for _, e := range l.Conflicts {
		if e.ID == id || e.Path == id {
			return keptConflict{}, false, nil
		}
	}
	all, err := s.c.with(ctx).keptOf([]Link{s.l})
	if err != nil {
		return keptConflict{}, false, fmt.Errorf("this machine has no open conflict that is called %s, and the hub was not to be asked: %w", visible(id), err)
	}
	if l, err = s.status(); err != nil { // of after the hub's answer
		return keptConflict{}, false, err
	}
	own := ownConflicts{}
	own.add(l)
	k, found, err := findKept(all, own, id)
	if err == nil && !found {
		err = usage("no open conflict is called %s; sync_status names them", visible(id))
	}
	return k, found, err
}

// Conflict returns the texts of an open conflict, of this machine or of another.
func (s sharedLink) Conflict(ctx context.Context, id string) (mcp.ConflictTexts, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	k, others, err := s.kept(ctx, id)
	if err != nil {
		return mcp.ConflictTexts{}, err
	}
	var t conflictTexts
	if others {
		t, err = k.texts(s.c.with(ctx))
	} else {
		err = s.c.act(s.l, methodTexts, textsParams{Link: s.l.ID(), ID: id}, &t, func(ctx context.Context, one *syncer.Syncer) (err error) {
			t, err = textsParams{ID: id}.do(ctx, one)
			return err
		})
	}
	return mcp.ConflictTexts{ID: t.ID, Path: t.Path, Ours: t.Ours, Theirs: t.Theirs}, err
}

// Resolve ends a conflict of this machine or of another.
func (s sharedLink) Resolve(ctx context.Context, id, how, merged string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	p := resolveParams{Link: s.l.ID(), ID: id, How: how, Merged: []byte(merged)}
	k, others, err := s.kept(ctx, id)
	done, warning := "what was given up is in the trash", ""
	switch {
	case err != nil:
		return "", err
	case others:
		done, warning, err = k.resolve(s.c.with(ctx), p)
	default:
		warning = s.c.with(ctx).warningOf(s.l, p)
		err = s.c.act(s.l, methodResolve, p, nil, p.do)
	}
	if warning != "" {
		done += "; " + warning
	}
	return done, err
}
