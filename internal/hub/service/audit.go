package service

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// maxDetailBytes bounds the detail of an audit event.
const maxDetailBytes = 2048

// Call is who asks, under which request id.
type Call struct {
	Principal Principal
	RequestID string
}

// audit writes one event. It is for what the store does not put on record together with
// the act (see store.Backend): there the event comes first, so that nothing is done off
// the record.
func (s *Service) audit(ctx context.Context, c Call, team memory.Team, action, subject, detail string) error {
	_, err := s.Backend.AppendAudit(ctx, s.event(c, team, action, subject, detail))
	return err
}

// outcome puts on record how an act went whose beginning is on record. What is done is done,
// so a record that cannot be written is told in the log and counted.
func (s *Service) outcome(ctx context.Context, c Call, team memory.Team, action, subject, detail string) {
	if err := s.audit(context.WithoutCancel(ctx), c, team, action, subject, detail); err != nil {
		s.lost(c, action, err)
		s.Observer.AuditLost(1)
	}
}

// lost tells the log of an event that could not be written.
func (s *Service) lost(c Call, action string, err error) {
	s.Logger.Error("audit: event not written", "action", action, "principal", c.Principal.Name, "request_id", c.RequestID, "error", err.Error())
}

// event is one event of the audit log. A subject or detail that holds a secret, because a
// caller put it into a name, is left out of the record.
func (s *Service) event(c Call, team memory.Team, action, subject, detail string) store.AuditEvent {
	if len(detail) > maxDetailBytes {
		detail = strings.ToValidUTF8(detail[:maxDetailBytes], "") + "…"
	}
	if s.HoldsSecret(string(team)) {
		team = "" // there is none of that name; the hub's admins see the record
	}
	return store.AuditEvent{
		Time: s.Now(), Team: team, Principal: c.Principal.Name, Action: action,
		Subject: s.discreet(subject), Detail: s.discreet(detail), RequestID: c.RequestID,
	}
}

// refused puts a refusal on record and returns err. Refusals are answers of the
// border: permission, guard, paths, content, quota. A lost precondition, an unknown
// memory and the like are ordinary.
func (s *Service) refused(ctx context.Context, c Call, team memory.Team, action, subject string, err error) error {
	var e *memory.Error
	if !errors.As(err, &e) || !isRefusal(e.Reason) {
		return err
	}
	if !c.Principal.reachesTeam(team) {
		// The stranger's act is on the record of the stranger's team, so that its
		// admins see it; the subject's team may not even exist.
		team = c.Principal.Team
	}
	s.record(ctx, c, refusal{team, c.Principal.Name, action + ".refused", cut(subject, 512), detailOf(e)}, e)
	return err
}

// RefusedCall puts on record that a known identity was refused before its call reached the
// service: past its rate, without a role, or with a token that holds no longer. method is
// the contract's name of the call.
func (s *Service) RefusedCall(ctx context.Context, c Call, method string, err error) {
	if errors.Is(err, memory.ErrRateLimited) || errors.Is(err, memory.ErrUnauthenticated) {
		var e *memory.Error
		if errors.As(err, &e) && c.Principal.Name != "" {
			s.record(ctx, c, refusal{c.Principal.Team, c.Principal.Name, "call.refused", cut(method, 128), string(e.Reason)}, e)
		}
		return
	}
	if c.Principal.Name != "" {
		_ = s.refused(ctx, c, c.Principal.Team, "call", cut(method, 128), err)
	}
}

func isRefusal(r memory.Reason) bool {
	switch r {
	case memory.ReasonPermissionDenied, memory.ReasonSecretDetected, memory.ReasonInvalidPath,
		memory.ReasonInvalidContent, memory.ReasonTypeNotShared, memory.ReasonMemoryTooLarge,
		memory.ReasonPathCollision, memory.ReasonQuotaExceeded, memory.ReasonCommitTooLarge,
		memory.ReasonRedacted, memory.ReasonNotFound:
		return true
	}
	return false
}

// detailOf names the reason, and of each violation file and line, rule and fingerprint; no
// text of the caller's.
func detailOf(e *memory.Error) string {
	parts := []string{string(e.Reason)}
	for i, v := range e.Violations {
		if i == 10 {
			parts = append(parts, "…")
			break
		}
		p := v.Rule
		if v.Line > 0 {
			p = fmt.Sprintf("%s:%d %s", cut(v.Path, 200), v.Line, p)
		} else if v.Path != "" {
			p = cut(v.Path, 200) + " " + p
		}
		if v.Fingerprint != "" {
			p += " " + v.Fingerprint
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, "; ")
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// AuditEvents lists the audit log, newest first, and the token of the next page.
// team "" is all that the caller may see.
func (s *Service) AuditEvents(ctx context.Context, c Call, team memory.Team, page Page) ([]store.AuditEvent, string, error) {
	team, err := s.adminScope(c.Principal, team)
	if err != nil {
		return nil, "", s.refused(ctx, c, team, "audit.list", "audit log", err)
	}
	of := listOf("audit", string(team))
	var at struct{ Before int64 }
	if err := page.decode(of, &at); err != nil {
		return nil, "", err
	}
	limit := page.size(100, 1000)
	s.writeCounts(ctx) // so that what is shown is as of now, of this replica
	events, err := s.Backend.AuditEvents(ctx, team, at.Before, limit)
	if err == nil {
		err = s.someTeam(ctx, c, team, len(events))
	}
	if err != nil || len(events) < limit {
		return events, "", err
	}
	at.Before = events[len(events)-1].ID
	return events, encodePage(of, at), nil
}

// adminScope returns the team whose administration the caller asks for: its own
// when it names none, or "" for a hub admin.
func (s *Service) adminScope(p Principal, team memory.Team) (memory.Team, error) {
	if team == "" {
		team = p.Team
	}
	if team == "" {
		return "", p.mayHub()
	}
	return team, p.mayTeam(team, Admin)
}
