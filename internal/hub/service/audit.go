package service

import (
	"context"
	"errors"
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
	return s.Backend.AppendAudit(ctx, s.event(c, team, action, subject, detail))
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
	if werr := s.audit(context.WithoutCancel(ctx), c, team, action+".refused", cut(subject, 512), detailOf(e)); werr != nil {
		s.Observer.AuditLost()
		s.Logger.Error("audit: event not written", "action", action+".refused", "reason", string(e.Reason), "request_id", c.RequestID, "error", werr.Error())
	}
	return err
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

// detailOf names reason, rules and fingerprints; no text of the caller's.
func detailOf(e *memory.Error) string {
	parts := []string{string(e.Reason)}
	for i, v := range e.Violations {
		if i == 10 {
			parts = append(parts, "…")
			break
		}
		p := v.Rule
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
