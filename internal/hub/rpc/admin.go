package rpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// adminServer serves memsvc.v1.AdminService.
type adminServer struct {
	memsvcv1.UnsafeAdminServiceServer
	svc *service.Service
}

func invalid(message string) error {
	return &memory.Error{Reason: memory.ReasonInvalidArgument, Message: message}
}

// parseTeamName reads teams/{team}.
func parseTeamName(name string) (memory.Team, error) {
	const prefix = "teams/"
	if len(name) <= len(prefix) || name[:len(prefix)] != prefix {
		return "", invalid("team name: want teams/{team}")
	}
	return memory.ParseTeam(name[len(prefix):])
}

// optionalTeam reads a team's id; empty is none.
func optionalTeam(id string) (memory.Team, error) {
	if id == "" {
		return "", nil
	}
	return memory.ParseTeam(id)
}

func teamToProto(t service.Team) *memsvcv1.Team {
	out := &memsvcv1.Team{
		Name: "teams/" + string(t.ID), WritersCreateProjects: t.Settings.WritersCreateProjects,
		MaxProjectFiles: t.Settings.MaxProjectFiles, MaxProjectBytes: t.Settings.MaxProjectBytes,
	}
	if t.Settings.Retention > 0 {
		out.Retention = durationpb.New(t.Settings.Retention)
	}
	return out
}

// durationFrom checks that d is a duration and not negative; nil is 0.
func durationFrom(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.CheckValid() != nil || d.AsDuration() < 0 || !durationFits(d) {
		return 0, invalid(field + ": want a duration from 0 to 290 years")
	}
	return d.AsDuration(), nil
}

// durationFits reports whether d is below what time.Duration can hold.
func durationFits(d *durationpb.Duration) bool { return d.GetSeconds() < 290*365*24*3600 }

// CreateTeam makes a team.
func (s *adminServer) CreateTeam(ctx context.Context, req *memsvcv1.CreateTeamRequest) (*memsvcv1.CreateTeamResponse, error) {
	id, err := memory.ParseTeam(req.GetTeamId())
	if err != nil {
		return nil, err
	}
	t, err := s.svc.CreateTeam(ctx, call(ctx), id)
	if err != nil {
		return nil, err
	}
	return &memsvcv1.CreateTeamResponse{Team: teamToProto(t)}, nil
}

// ListTeams lists the teams that the caller may see.
func (s *adminServer) ListTeams(ctx context.Context, req *memsvcv1.ListTeamsRequest) (*memsvcv1.ListTeamsResponse, error) {
	teams, next, err := s.svc.Teams(ctx, call(ctx), page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListTeamsResponse{NextPageToken: next}
	for _, t := range teams {
		out.Teams = append(out.Teams, teamToProto(t))
	}
	return out, nil
}

// UpdateTeam replaces a team's settings.
func (s *adminServer) UpdateTeam(ctx context.Context, req *memsvcv1.UpdateTeamRequest) (*memsvcv1.UpdateTeamResponse, error) {
	in := req.GetTeam()
	id, err := parseTeamName(in.GetName())
	if err != nil {
		return nil, err
	}
	keep, err := durationFrom("team.retention", in.GetRetention())
	if err != nil {
		return nil, err
	}
	t, err := s.svc.UpdateTeam(ctx, call(ctx), service.Team{ID: id, Settings: service.TeamSettings{
		WritersCreateProjects: in.GetWritersCreateProjects(), Retention: keep,
		MaxProjectFiles: in.GetMaxProjectFiles(), MaxProjectBytes: in.GetMaxProjectBytes(),
	}})
	if err != nil {
		return nil, err
	}
	return &memsvcv1.UpdateTeamResponse{Team: teamToProto(t)}, nil
}

// CreateProject makes a project.
func (s *adminServer) CreateProject(ctx context.Context, req *memsvcv1.CreateProjectRequest) (*memsvcv1.CreateProjectResponse, error) {
	team, err := parseTeamName(req.GetParent())
	if err != nil {
		return nil, err
	}
	project, err := memory.ParseProject(req.GetProjectId())
	if err != nil {
		return nil, err
	}
	p, err := s.svc.CreateProject(ctx, call(ctx), memory.ProjectKey{Team: team, Project: project})
	if err != nil {
		return nil, err
	}
	return &memsvcv1.CreateProjectResponse{Project: projectToProto(p)}, nil
}

// ListProjects lists the projects that the caller may see.
func (s *adminServer) ListProjects(ctx context.Context, req *memsvcv1.ListProjectsRequest) (*memsvcv1.ListProjectsResponse, error) {
	team, err := parseTeamName(req.GetParent())
	if err != nil {
		return nil, err
	}
	projects, next, err := s.svc.Projects(ctx, call(ctx), team, page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListProjectsResponse{NextPageToken: next}
	for _, p := range projects {
		out.Projects = append(out.Projects, projectToProto(p))
	}
	return out, nil
}

// PurgeProject removes a project for ever.
func (s *adminServer) PurgeProject(ctx context.Context, req *memsvcv1.PurgeProjectRequest) (*memsvcv1.PurgeProjectResponse, error) {
	key, err := memory.ParseProjectKey(req.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.svc.PurgeProject(ctx, call(ctx), key); err != nil {
		return nil, err
	}
	return &memsvcv1.PurgeProjectResponse{}, nil
}

// ListAgents lists the agents seen.
func (s *adminServer) ListAgents(ctx context.Context, req *memsvcv1.ListAgentsRequest) (*memsvcv1.ListAgentsResponse, error) {
	team, err := optionalTeam(req.GetTeamId())
	if err != nil {
		return nil, err
	}
	agents, next, err := s.svc.Agents(ctx, call(ctx), team, page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListAgentsResponse{NextPageToken: next}
	for _, a := range agents {
		out.Agents = append(out.Agents, &memsvcv1.Agent{
			Info:      &memsvcv1.AgentInfo{AgentId: a.ID, Machine: a.Machine, Version: a.Version},
			Principal: a.Principal, Projects: a.Projects, Connected: a.Connected, LastSeenTime: wire.TimeToProto(a.LastSeen),
		})
	}
	return out, nil
}

// ListAuditEvents lists the audit log, newest first.
func (s *adminServer) ListAuditEvents(ctx context.Context, req *memsvcv1.ListAuditEventsRequest) (*memsvcv1.ListAuditEventsResponse, error) {
	team, err := optionalTeam(req.GetTeamId())
	if err != nil {
		return nil, err
	}
	events, next, err := s.svc.AuditEvents(ctx, call(ctx), team, page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListAuditEventsResponse{NextPageToken: next}
	for _, e := range events {
		out.Events = append(out.Events, &memsvcv1.AuditEvent{
			Count: e.Count, LastEventTime: wire.TimeToProto(e.LastTime), EventId: e.ID, EventTime: wire.TimeToProto(e.Time), TeamId: string(e.Team), Principal: e.Principal,
			Action: e.Action, Subject: e.Subject, Detail: e.Detail, RequestId: e.RequestID,
		})
	}
	return out, nil
}

// UpdateGuardPolicy replaces a team's policy.
func (s *adminServer) UpdateGuardPolicy(ctx context.Context, req *memsvcv1.UpdateGuardPolicyRequest) (*memsvcv1.UpdateGuardPolicyResponse, error) {
	in := req.GetPolicy()
	team, err := wire.ParsePolicyName(in.GetName())
	if err != nil {
		return nil, err
	}
	p, err := s.svc.UpdateGuardPolicy(ctx, call(ctx), team, service.Policy{
		Version: in.GetVersion(), AllowFingerprints: in.GetAllowedFingerprints(), AllowRules: in.GetAllowedRules(),
		AllowInline: in.GetAllowInline(), RulesTOML: in.GetRulesToml(),
	})
	if err != nil {
		return nil, err
	}
	return &memsvcv1.UpdateGuardPolicyResponse{Policy: policyToProto(team, p)}, nil
}

// RedactMemory removes a leaked text.
func (s *adminServer) RedactMemory(ctx context.Context, req *memsvcv1.RedactMemoryRequest) (*memsvcv1.RedactMemoryResponse, error) {
	key, path, err := memory.ParseMemoryName(req.GetName())
	if err != nil {
		return nil, err
	}
	etags := make([]memory.ETag, 0, len(req.GetEtags()))
	for _, text := range req.GetEtags() {
		etag, err := wire.ETagFromProto("etags", text)
		if err != nil {
			return nil, err
		}
		etags = append(etags, etag)
	}
	res, err := s.svc.Redact(ctx, call(ctx), key, path, etags, req.GetReason())
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.RedactMemoryResponse{Commit: wire.CommitToProto(res.Commit)}
	for _, r := range res.Rewritten {
		out.Redacted = append(out.Redacted, &memsvcv1.RedactedMemory{Path: string(r.Path), Versions: int64(r.Versions), Conflicts: int64(r.Conflicts)})
	}
	for _, r := range res.Remaining {
		out.Remaining = append(out.Remaining, &memsvcv1.RemainingText{Path: string(r.Path), Revision: int64(r.Revision), Reason: r.Why})
	}
	return out, nil
}
