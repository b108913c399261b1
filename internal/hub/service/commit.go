package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// CommitRequest is a commit as it was asked for.
type CommitRequest struct {
	Project      memory.ProjectKey
	Changes      []memory.Change // their contents become the store's; do not change them afterwards
	Message      string
	RequestID    string // makes a retry harmless; "" = none
	ValidateOnly bool
	Author       memory.Author // labels only
	Epoch        memory.Epoch  // "" = not compared
	// SkipWarnings spares the work for a caller that has judged its texts by itself.
	SkipWarnings bool
}

// Committed is what became of a commit or a restore.
type Committed struct {
	store.CommitResult
	// Warnings are what is to be told of the texts written (ruling 13.9), unless they
	// were not wanted.
	Warnings []memory.Violation
}

// Commit applies the changes as one revision, all or nothing.
func (s *Service) Commit(ctx context.Context, c Call, req CommitRequest) (Committed, error) {
	res, err := s.commit(ctx, c, req)
	outcome := "created"
	var e *memory.Error
	switch {
	case errors.As(err, &e):
		outcome = string(e.Reason)
		for _, v := range e.Violations {
			s.Observer.Refused(v.Rule)
		}
	case err != nil:
		outcome = string(memory.ReasonInternal)
	case req.ValidateOnly:
		outcome = "valid"
	case !res.Created:
		outcome = "unchanged"
	}
	s.Observer.Commit(outcome)
	if err != nil {
		return Committed{CommitResult: res}, s.refused(ctx, c, req.Project.Team, "commit", req.Project.String(), err)
	}
	return Committed{CommitResult: res, Warnings: req.warnings()}, nil
}

// warnings returns what is to be told of what the commit writes.
func (r CommitRequest) warnings() (out []memory.Violation) {
	if r.SkipWarnings {
		return nil
	}
	for i := range r.Changes {
		if ch := &r.Changes[i]; ch.Kind == memory.Put {
			out = append(out, memory.Warnings(ch.Path, ch.Content)...)
		}
	}
	return out
}

func (s *Service) commit(ctx context.Context, c Call, req CommitRequest) (store.CommitResult, error) {
	key := req.Project
	if err := c.Principal.mayProject(key, Writer); err != nil {
		return store.CommitResult{}, err
	}
	team, err := s.admit(ctx, req)
	if err != nil {
		return store.CommitResult{}, err
	}
	author := req.Author
	author.Principal = c.Principal.Name
	sreq := store.CommitRequest{
		Project: key, Author: author, Now: s.Now(), Message: req.Message, Changes: req.Changes,
		RequestID: req.RequestID, Quota: s.quota(team), ValidateOnly: req.ValidateOnly, HandedOver: true,
	}
	res, err := s.Backend.Commit(ctx, sreq)
	if errors.Is(err, memory.ErrNotFound) {
		if err := s.createByCommit(ctx, c, key, team, req.ValidateOnly); err != nil {
			return store.CommitResult{}, err
		}
		res, err = s.Backend.Commit(ctx, sreq)
	}
	return res, hide(key, err)
}

// admit does all of a commit that comes before the store, and returns its team's
// settings.
func (s *Service) admit(ctx context.Context, req CommitRequest) (TeamSettings, error) {
	if err := checkSize(req.Changes); err != nil {
		return TeamSettings{}, err
	}
	if req.Epoch != "" {
		if err := s.checkEpoch(ctx, req.Project, req.Epoch); err != nil {
			return TeamSettings{}, err
		}
	}
	team, err := s.teamSettings(ctx, req.Project.Team)
	if err != nil {
		return TeamSettings{}, err
	}
	labels := append(authorLabels(req.Author), label{"message", req.Message})
	if err := s.judgeLabels(ctx, req.Project.Team, labels...); err != nil {
		return TeamSettings{}, err
	}
	return team, s.judge(ctx, req.Project, team, req.Changes)
}

// createByCommit makes the project that a commit names, where a team's writer may
// (ruling 13.3).
func (s *Service) createByCommit(ctx context.Context, c Call, key memory.ProjectKey, team TeamSettings, validateOnly bool) error {
	p := c.Principal
	if p.Team == "" || p.Project != "" || !team.WritersCreateProjects || validateOnly {
		return noProject(key)
	}
	if err := s.createProject(ctx, c, key); err != nil && !errors.Is(err, memory.ErrAlreadyExists) {
		return err
	}
	return nil
}

func (s *Service) checkEpoch(ctx context.Context, key memory.ProjectKey, seen memory.Epoch) error {
	epoch, err := s.Backend.Epoch(ctx)
	if err != nil || epoch == seen {
		return err
	}
	_, err = s.Feed.Check(ctx, key, memory.Cursor{Epoch: seen})
	return hide(key, err)
}

// checkSize bounds a commit before anything is spent on it (ruling 13.10).
func checkSize(changes []memory.Change) error {
	var bytes int64
	for i := range changes {
		bytes += int64(len(changes[i].Content))
	}
	switch {
	case len(changes) == 0:
		return invalid("commit: no changes; send 1 to %d", memory.MaxCommitChanges)
	case len(changes) > memory.MaxCommitChanges:
		return &memory.Error{Reason: memory.ReasonCommitTooLarge, Message: fmt.Sprintf("commit: %d changes, the limit is %d; send several commits", len(changes), memory.MaxCommitChanges)}
	case bytes > memory.MaxCommitBytes:
		return &memory.Error{Reason: memory.ReasonCommitTooLarge, Message: fmt.Sprintf("commit: %d bytes of content, the limit is %d; send several commits", bytes, memory.MaxCommitBytes)}
	}
	return nil
}

// judge applies the rules of content and the secret guard to what the changes
// write, and the guard to the names of what they delete: one that is there or was may
// go, whatever it is called, and go again, but answers repeat names. A rename deletes its source. All
// violations come together, so that a person mends them in one go.
func (s *Service) judge(ctx context.Context, key memory.ProjectKey, settings TeamSettings, changes []memory.Change) error {
	team := key.Team
	var broken []memory.Violation
	var first *memory.Error
	collect := func(err error) {
		var e *memory.Error
		if errors.As(err, &e) {
			broken = append(broken, e.Violations...)
			if first == nil {
				first = e
			}
		}
	}
	var policy *Policy
	for i := range changes {
		ch := &changes[i]
		if _, err := memory.ParsePath(string(ch.Path)); err != nil {
			collect(err)
			continue
		}
		if ch.Kind == memory.Put {
			if err := memory.CheckRules(ch.Path, ch.Content); err != nil {
				collect(err)
				continue
			}
		}
		if policy == nil {
			p, err := s.policy(ctx, team)
			if err != nil {
				return err
			}
			policy = &p
		}
		if settings.Redactions && ch.Kind == memory.Put {
			if err := s.checkRedacted(ctx, team, *policy, ch.Path, ch.Content); err != nil {
				return err
			}
		}
		err := s.scan(*policy, ch.Path, ch.Content)
		var known *memory.Error
		if err != nil && !errors.As(err, &known) {
			return err
		}
		if err != nil && ch.Kind == memory.Delete {
			was, err := s.Backend.List(ctx, key, store.ListOptions{Paths: []memory.Path{ch.Path}, Deleted: true})
			if err != nil && !errors.Is(err, memory.ErrNotFound) {
				return err
			}
			if len(was) > 0 {
				continue
			}
		}
		collect(err)
	}
	if first == nil {
		return nil
	}
	return s.withholdNames(ctx, team, &memory.Error{Reason: first.Reason, Message: "commit refused", Violations: broken})
}

// scan asks the guard about one text. What the guard cannot judge is refused.
func (s *Service) scan(p Policy, path memory.Path, content []byte) error {
	found, err := s.Guard.Scan(p, string(path), content)
	if err != nil {
		return fmt.Errorf("guard: a memory was not judged: %w", err) // its name may be a secret too
	}
	if len(found) == 0 {
		return nil
	}
	e := &memory.Error{Reason: memory.ReasonSecretDetected, Message: "commit refused"}
	for _, f := range found {
		e.Violations = append(e.Violations, violationOf(f))
	}
	return e
}

// RestoreRequest asks for what was there at a revision.
type RestoreRequest struct {
	Project      memory.ProjectKey
	Revision     memory.Revision
	Paths        []memory.Path // none = the whole project
	RequestID    string
	ValidateOnly bool
	Author       memory.Author
}

// Restore makes a new commit that brings paths back to what they were at a
// revision. The texts pass the rules and the guard of today.
func (s *Service) Restore(ctx context.Context, c Call, req RestoreRequest) (Committed, error) {
	key := req.Project
	if err := c.Principal.mayProject(key, Writer); err != nil {
		return Committed{}, s.refused(ctx, c, key.Team, "commit", key.String(), err)
	}
	info, err := s.Backend.Project(ctx, key)
	if err != nil {
		return Committed{}, hide(key, err)
	}
	if req.Revision > info.Head.Revision {
		return Committed{}, invalid("restore: revision %d is beyond the head, %d", req.Revision, info.Head.Revision)
	}
	now, err := s.changedSince(ctx, key, req)
	if err != nil {
		return Committed{}, err
	}
	var changes []memory.Change
	for _, m := range now {
		change, ok, err := s.restoring(ctx, key, m, req.Revision)
		if err != nil {
			return Committed{}, err
		}
		if ok {
			changes = append(changes, change)
		}
	}
	if len(changes) == 0 {
		res, err := s.headResult(ctx, key, info.Head)
		return Committed{CommitResult: res}, err
	}
	if len(changes) > memory.MaxCommitChanges {
		return Committed{}, &memory.Error{Reason: memory.ReasonCommitTooLarge, Message: fmt.Sprintf("restore: %d memories differ, a commit holds %d; name paths and restore in several steps", len(changes), memory.MaxCommitChanges)}
	}
	return s.Commit(ctx, c, CommitRequest{
		Project: key, Changes: changes, Message: fmt.Sprintf("restore to revision %d", req.Revision),
		RequestID: req.RequestID, ValidateOnly: req.ValidateOnly, Author: req.Author,
	})
}

// changedSince returns how the memories that may differ from the revision stand now.
func (s *Service) changedSince(ctx context.Context, key memory.ProjectKey, req RestoreRequest) ([]memory.Memory, error) {
	found, err := s.Backend.List(ctx, key, store.ListOptions{Deleted: true, ChangedAfter: req.Revision})
	if err != nil || len(req.Paths) == 0 {
		return found, hide(key, err)
	}
	byPath := make(map[memory.Path]memory.Memory, len(found))
	for _, m := range found {
		byPath[m.Path] = m
	}
	var out []memory.Memory
	for _, path := range req.Paths {
		if m, ok := byPath[path]; ok {
			out = append(out, m)
			continue
		}
		// Unchanged since then; but a path that never was is a mistake to tell.
		if _, err := s.Backend.Get(ctx, key, path, req.Revision); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// restoring returns the change that brings one memory back; ok is false when there
// is nothing to do.
func (s *Service) restoring(ctx context.Context, key memory.ProjectKey, now memory.Memory, at memory.Revision) (ch memory.Change, ok bool, err error) {
	ch = memory.Change{Path: now.Path, Kind: memory.Delete, Precondition: memory.IfMatch(now.ETag)}
	if now.Deleted {
		ch.Precondition = memory.IfAbsent()
	}
	old := memory.Memory{}
	if at > 0 { // revision 0 is the empty project; Get takes 0 for "now"
		old, err = s.Backend.Get(ctx, key, now.Path, at)
		if err != nil && !errors.Is(err, memory.ErrNotFound) {
			return ch, false, err
		}
	}
	switch {
	case old.ETag == now.ETag:
		return ch, false, nil
	case old.ETag == "":
		return ch, true, nil
	}
	if memory.IsRedactionMarker(old.Content) {
		return ch, false, nil // what was redacted stays away
	}
	ch.Kind, ch.Content, ch.ModTime = memory.Put, old.Content, old.ModTime
	return ch, true, nil
}

// headResult is the answer of a commit that changes nothing.
func (s *Service) headResult(ctx context.Context, key memory.ProjectKey, head memory.Cursor) (store.CommitResult, error) {
	res := store.CommitResult{Head: head}
	if head.Revision == 0 {
		return res, nil
	}
	commits, err := s.commitsBetween(ctx, key, head.Revision, head.Revision+1)
	if err != nil {
		return res, err
	}
	if len(commits) > 0 {
		res.Commit = commits[0]
	}
	return res, nil
}
