package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// NewToken asks for a credential.
type NewToken struct {
	Name    string // what it is for
	Team    memory.Team
	Project memory.Project // "" = the whole team
	Role    Role
	TTL     time.Duration // 0 = for ever
}

// CreateToken makes a token and returns its text, this once. A team or project that
// is new is created with it. An admin of the hub may make any token, an admin of a
// team those of the team, an admin of a project those of the project.
func (s *Service) CreateToken(ctx context.Context, c Call, n NewToken) (store.Token, string, error) {
	subject := memory.ProjectKey{Team: n.Team, Project: n.Project}
	if err := s.mayMint(c.Principal, subject); err != nil {
		return store.Token{}, "", s.refused(ctx, c, n.Team, "token.create", tokenScope(n.Team, n.Project), err)
	}
	switch {
	case n.Name == "":
		return store.Token{}, "", invalid("token: give it a name")
	case n.Role < Reader || n.Role > Admin:
		return store.Token{}, "", invalid("token: give it a role: reader, writer or admin")
	case n.Team == "" && n.Project != "":
		return store.Token{}, "", invalid("token: a project needs its team")
	case n.TTL < 0:
		return store.Token{}, "", invalid("token: the time to live is negative")
	}
	// The name is in every record and log of what the token does. It is judged before a
	// team or project is made for it; a team that is not there yet has no policy.
	known, err := s.teams(ctx)
	if err != nil {
		return store.Token{}, "", err
	}
	judge := n.Team
	if !slices.Contains(known, n.Team) {
		judge = ""
	}
	if err := s.judgeLabels(ctx, judge, label{"display_name", n.Name}); err != nil {
		return store.Token{}, "", s.refused(ctx, c, judge, "token.create", tokenScope(n.Team, n.Project), err)
	}
	if err := s.ensureScope(ctx, c, known, subject); err != nil {
		return store.Token{}, "", s.refused(ctx, c, c.Principal.Team, "token.create", tokenScope(n.Team, n.Project), err)
	}
	text, id, hash, err := s.MintToken()
	if err != nil {
		return store.Token{}, "", fmt.Errorf("mint a token: %w", err)
	}
	now := s.Now()
	t := store.Token{ID: id, Name: n.Name, Hash: hash, Team: n.Team, Project: n.Project, Role: n.Role.String(), CreateTime: now}
	if n.TTL > 0 {
		t.ExpireTime = now.Add(n.TTL)
	}
	detail := fmt.Sprintf("%s %s for %s", n.Role, id, tokenScope(n.Team, n.Project))
	if err := s.Backend.PutToken(ctx, t, s.event(c, n.Team, "token.create", "tokens/"+id, detail)); err != nil {
		return store.Token{}, "", err
	}
	return t, text, nil
}

func tokenScope(team memory.Team, project memory.Project) string {
	switch {
	case team == "":
		return "the hub"
	case project == "":
		return "teams/" + string(team)
	}
	return memory.ProjectKey{Team: team, Project: project}.String()
}

func (s *Service) mayMint(p Principal, scope memory.ProjectKey) error {
	switch {
	case scope.Team == "":
		return p.mayHub()
	case scope.Project == "":
		return p.mayTeam(scope.Team, Admin)
	}
	return p.mayProject(scope, Admin)
}

// ensureScope makes the team, unless it is known, and project of a token where they are new.
func (s *Service) ensureScope(ctx context.Context, c Call, known []memory.Team, scope memory.ProjectKey) error {
	if scope.Team == "" {
		return nil
	}
	if !slices.Contains(known, scope.Team) {
		if err := s.createTeam(ctx, c, scope.Team); err != nil {
			return err
		}
	}
	if scope.Project == "" {
		return nil
	}
	_, err := s.Backend.Project(ctx, scope)
	if errors.Is(err, memory.ErrNotFound) {
		err = s.createProject(ctx, c, scope)
		if errors.Is(err, memory.ErrAlreadyExists) {
			err = nil
		}
	}
	return err
}

// Tokens lists tokens by id, without secrets. A project's admin sees the project's.
func (s *Service) Tokens(ctx context.Context, c Call, team memory.Team, page Page) ([]store.Token, string, error) {
	p := c.Principal
	if team == "" {
		team = p.Team
	}
	if err := s.mayMint(p, memory.ProjectKey{Team: team, Project: p.Project}); err != nil {
		return nil, "", s.refused(ctx, c, team, "token.list", tokenScope(team, p.Project), err)
	}
	all, err := s.Backend.Tokens(ctx, team)
	if err != nil {
		return nil, "", err
	}
	if err := s.someTeam(ctx, c, team, len(all)); err != nil {
		return nil, "", err
	}
	if p.Project != "" {
		all = slices.DeleteFunc(all, func(t store.Token) bool { return t.Project != p.Project })
	}
	slices.SortFunc(all, func(a, b store.Token) int { return cmp.Compare(a.ID, b.ID) })
	return pageOf(listOf("tokens", string(team), p.Project), all, page, func(t store.Token) string { return t.ID })
}

// RevokeToken ends a token at once. A token outside the caller's reach and one that
// does not exist are the same.
func (s *Service) RevokeToken(ctx context.Context, c Call, id string) error {
	p := c.Principal
	unknown := &memory.Error{Reason: memory.ReasonNotFound, Message: "tokens/" + cut(id, 64) + ": not found, or not yours to see; see token list"}
	if p.Role < Admin {
		return s.refused(ctx, c, p.Team, "token.revoke", "tokens", denied(p, Admin, "tokens"))
	}
	all, err := s.Backend.Tokens(ctx, p.Team)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t store.Token) bool { return t.ID == id })
	if i < 0 || s.mayMint(p, memory.ProjectKey{Team: all[i].Team, Project: all[i].Project}) != nil {
		return s.refused(ctx, c, p.Team, "token.revoke", "tokens/"+cut(id, 64), unknown)
	}
	if err := s.Backend.RevokeToken(ctx, id, s.Now(), s.event(c, all[i].Team, "token.revoke", "tokens/"+id, "")); err != nil {
		return err
	}
	s.Revoked(id)
	return nil
}

// HasTokens reports whether any token was ever made.
func (s *Service) HasTokens(ctx context.Context) (bool, error) {
	have, err := s.Backend.Tokens(ctx, "")
	return len(have) > 0, err
}

// Bootstrap puts the hub's first admin token on record, of which the caller has the
// text and gives the hash.
func (s *Service) Bootstrap(ctx context.Context, hash string) error {
	system := Call{Principal: Principal{Name: "hub", Role: Admin}}
	return s.Backend.PutToken(ctx, store.Token{ID: "admin", Name: "admin", Hash: hash, Role: Admin.String(), CreateTime: s.Now()},
		s.event(system, "", "token.create", "tokens/admin", "first start"))
}
