package rpc

import (
	"context"
	"strings"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry"
	"github.com/memsvc/memsvc/internal/wire"
)

// memoryServer serves memsvc.v1.MemoryService.
type memoryServer struct {
	memsvcv1.UnsafeMemoryServiceServer
	svc     *service.Service
	now     func() time.Time
	tracing *telemetry.Tracing // nil: off
}

func page(size int32, token string) service.Page { return service.Page{Size: int(size), Token: token} }

func projectToProto(p service.ProjectStatus) *memsvcv1.Project {
	return &memsvcv1.Project{
		Name: p.Key.String(), Head: wire.CursorToProto(p.Head), OldestRevision: int64(p.Oldest),
		MemoryCount: p.Files, TotalBytes: p.Bytes, CreateTime: wire.TimeToProto(p.CreateTime),
		PolicyVersion: p.PolicyVersion,
	}
}

func memoriesToProto(key memory.ProjectKey, ms []memory.Memory) []*memsvcv1.Memory {
	out := make([]*memsvcv1.Memory, 0, len(ms))
	for _, m := range ms {
		out = append(out, wire.MemoryToProto(key, m))
	}
	return out
}

func parsePaths(texts []string) ([]memory.Path, error) {
	out := make([]memory.Path, 0, len(texts))
	for _, text := range texts {
		path, err := memory.ParsePath(text)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// GetProject returns where a project stands.
func (s *memoryServer) GetProject(ctx context.Context, req *memsvcv1.GetProjectRequest) (*memsvcv1.GetProjectResponse, error) {
	key, err := memory.ParseProjectKey(req.GetName())
	if err != nil {
		return nil, err
	}
	cursor, err := wire.CursorFromProto(req.GetCursor())
	if err != nil {
		return nil, err
	}
	p, err := s.svc.Project(ctx, call(ctx), key, cursor)
	if err != nil {
		return nil, err
	}
	return &memsvcv1.GetProjectResponse{Project: projectToProto(p)}, nil
}

// ListMemories lists memories in path order.
func (s *memoryServer) ListMemories(ctx context.Context, req *memsvcv1.ListMemoriesRequest) (*memsvcv1.ListMemoriesResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	content, err := wire.ContentWanted(req.GetView(), false)
	if err != nil {
		return nil, err
	}
	l, err := s.svc.List(ctx, call(ctx), key, service.ListQuery{
		Page: page(req.GetPageSize(), req.GetPageToken()), Content: content, Deleted: req.GetShowDeleted(),
		EarlierETags: req.GetIncludeEarlierEtags(), ChangedAfter: memory.Revision(req.GetChangedAfterRevision()),
	})
	if err != nil {
		return nil, err
	}
	return &memsvcv1.ListMemoriesResponse{
		Memories: memoriesToProto(key, l.Memories), NextPageToken: l.Next,
		Head: wire.CursorToProto(l.Head), NotModified: l.NotModified,
	}, nil
}

// GetMemory returns one memory.
func (s *memoryServer) GetMemory(ctx context.Context, req *memsvcv1.GetMemoryRequest) (*memsvcv1.GetMemoryResponse, error) {
	key, path, err := memory.ParseMemoryName(req.GetName())
	if err != nil {
		return nil, err
	}
	m, err := s.svc.Get(ctx, call(ctx), key, path, memory.Revision(req.GetRevision()))
	if err != nil {
		return nil, err
	}
	return &memsvcv1.GetMemoryResponse{Memory: wire.MemoryToProto(key, m)}, nil
}

// BatchGetMemories returns several memories by path.
func (s *memoryServer) BatchGetMemories(ctx context.Context, req *memsvcv1.BatchGetMemoriesRequest) (*memsvcv1.BatchGetMemoriesResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	paths, err := parsePaths(req.GetPaths())
	if err != nil {
		return nil, err
	}
	b, err := s.svc.BatchGet(ctx, call(ctx), key, paths, memory.Revision(req.GetRevision()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.BatchGetMemoriesResponse{Memories: memoriesToProto(key, b.Memories), Head: wire.CursorToProto(b.Head)}
	for _, path := range b.Remaining {
		out.RemainingPaths = append(out.RemainingPaths, string(path))
	}
	return out, nil
}

// author is who the caller says it is. A caller whose call belongs to a trace and that
// names no session, as REST's do, gives its commit the trace, so that delivery and
// application become part of it.
func author(ctx context.Context, in *memsvcv1.Author) memory.Author {
	a := wire.AuthorFromProto(in)
	if a.Session == "" {
		if parent := traceParent(ctx); telemetry.IsTraceContext(parent) {
			a.Session = parent
		}
	}
	return a
}

// CommitChanges applies changes as one revision.
func (s *memoryServer) CommitChanges(ctx context.Context, req *memsvcv1.CommitChangesRequest) (*memsvcv1.CommitChangesResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	changes, err := changesFromProto(req.GetChanges())
	if err != nil {
		return nil, s.svc.Refused(ctx, call(ctx), key, err)
	}
	res, err := s.svc.Commit(ctx, call(ctx), service.CommitRequest{
		Project: key, Changes: changes, Message: req.GetMessage(), RequestID: req.GetRequestId(),
		ValidateOnly: req.GetValidateOnly(), Author: author(ctx, req.GetAuthor()),
		Epoch: memory.Epoch(req.GetEpoch()), SkipWarnings: req.GetSkipWarnings(),
	})
	if err != nil {
		return nil, err
	}
	return &memsvcv1.CommitChangesResponse{
		Commit: wire.CommitToProto(res.Commit), Created: res.Created, Head: wire.CursorToProto(res.Head),
		Warnings: wire.ViolationsToProto(res.Warnings),
	}, nil
}

// changesFromProto reads every change, so that all bad paths are told together.
func changesFromProto(in []*memsvcv1.Change) ([]memory.Change, error) {
	out := make([]memory.Change, 0, len(in))
	var bad *memory.Error
	for _, c := range in {
		change, err := wire.ChangeFromProto(c)
		if err == nil {
			out = append(out, change)
			continue
		}
		e, ok := err.(*memory.Error) //nolint:errorlint // wire returns it bare
		if !ok || e.Reason != memory.ReasonInvalidPath {
			return nil, err
		}
		if bad == nil {
			bad = &memory.Error{Reason: e.Reason, Message: "commit refused"}
		}
		bad.Violations = append(bad.Violations, e.Violations...)
	}
	if bad != nil {
		return nil, bad
	}
	return out, nil
}

// ListCommits lists commits, newest first.
func (s *memoryServer) ListCommits(ctx context.Context, req *memsvcv1.ListCommitsRequest) (*memsvcv1.ListCommitsResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	var path memory.Path
	if req.GetPath() != "" {
		if path, err = memory.ParsePath(req.GetPath()); err != nil {
			return nil, err
		}
	}
	commits, next, err := s.svc.Commits(ctx, call(ctx), key, path, page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListCommitsResponse{NextPageToken: next}
	for _, c := range commits {
		out.Commits = append(out.Commits, wire.CommitToProto(c))
	}
	return out, nil
}

// RestoreMemories brings paths back to a revision.
func (s *memoryServer) RestoreMemories(ctx context.Context, req *memsvcv1.RestoreMemoriesRequest) (*memsvcv1.RestoreMemoriesResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	paths, err := parsePaths(req.GetPaths())
	if err != nil {
		return nil, err
	}
	res, err := s.svc.Restore(ctx, call(ctx), service.RestoreRequest{
		Project: key, Revision: memory.Revision(req.GetRevision()), Paths: paths, RequestID: req.GetRequestId(),
		ValidateOnly: req.GetValidateOnly(), Author: author(ctx, req.GetAuthor()),
	})
	if err != nil {
		return nil, err
	}
	return &memsvcv1.RestoreMemoriesResponse{
		Commit: wire.CommitToProto(res.Commit), Created: res.Created, Head: wire.CursorToProto(res.Head),
		Warnings: wire.ViolationsToProto(res.Warnings),
	}, nil
}

// SearchMemories finds memories by their words.
func (s *memoryServer) SearchMemories(ctx context.Context, req *memsvcv1.SearchMemoriesRequest) (*memsvcv1.SearchMemoriesResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	found, err := s.svc.Search(ctx, call(ctx), key, req.GetQuery(), int(req.GetPageSize()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.SearchMemoriesResponse{}
	for _, f := range found {
		out.Hits = append(out.Hits, &memsvcv1.SearchHit{Memory: wire.MemoryToProto(key, f.Memory), Score: f.Score, Snippet: f.Snippet})
	}
	return out, nil
}

// GetGuardPolicy returns the policy of a team.
func (s *memoryServer) GetGuardPolicy(ctx context.Context, req *memsvcv1.GetGuardPolicyRequest) (*memsvcv1.GetGuardPolicyResponse, error) {
	team, err := wire.ParsePolicyName(req.GetName())
	if err != nil {
		return nil, err
	}
	p, err := s.svc.GuardPolicy(ctx, call(ctx), team)
	if err != nil {
		return nil, err
	}
	return &memsvcv1.GetGuardPolicyResponse{Policy: policyToProto(team, p)}, nil
}

func policyToProto(team memory.Team, p service.Policy) *memsvcv1.GuardPolicy {
	return &memsvcv1.GuardPolicy{
		Name: wire.PolicyName(team), Version: p.Version, FingerprintKey: p.FingerprintKey,
		AllowedFingerprints: p.AllowFingerprints, AllowedRules: p.AllowRules, AllowInline: p.AllowInline, RulesToml: p.RulesTOML,
	}
}

func conflictName(key memory.ProjectKey, id string) string { return key.String() + "/conflicts/" + id }

func conflictToProto(key memory.ProjectKey, c service.Conflict) *memsvcv1.Conflict {
	return &memsvcv1.Conflict{
		Name: conflictName(key, c.ID), Path: string(c.Path), Theirs: c.Theirs, HubEtag: string(c.HubETag),
		BaseEtag: string(c.BaseETag), Author: wire.AuthorToProto(c.Author), CreateTime: wire.TimeToProto(c.CreateTime),
	}
}

// ReportConflict keeps a conflict on the hub.
func (s *memoryServer) ReportConflict(ctx context.Context, req *memsvcv1.ReportConflictRequest) (*memsvcv1.ReportConflictResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	in := req.GetConflict()
	n := service.Conflict{Theirs: in.GetTheirs(), Author: wire.AuthorFromProto(in.GetAuthor())}
	if n.Path, err = memory.ParsePath(in.GetPath()); err != nil {
		return nil, err
	}
	if n.HubETag, err = wire.ETagFromProto("conflict.hub_etag", in.GetHubEtag()); err != nil {
		return nil, err
	}
	if n.BaseETag, err = wire.ETagFromProto("conflict.base_etag", in.GetBaseEtag()); err != nil {
		return nil, err
	}
	kept, err := s.svc.ReportConflict(ctx, call(ctx), key, n)
	if err != nil {
		return nil, err
	}
	return &memsvcv1.ReportConflictResponse{Conflict: conflictToProto(key, kept)}, nil
}

// ListConflicts lists the open conflicts.
func (s *memoryServer) ListConflicts(ctx context.Context, req *memsvcv1.ListConflictsRequest) (*memsvcv1.ListConflictsResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	list, next, err := s.svc.Conflicts(ctx, call(ctx), key, page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListConflictsResponse{NextPageToken: next}
	for _, c := range list {
		out.Conflicts = append(out.Conflicts, conflictToProto(key, c))
	}
	return out, nil
}

// ResolveConflict closes a conflict.
func (s *memoryServer) ResolveConflict(ctx context.Context, req *memsvcv1.ResolveConflictRequest) (*memsvcv1.ResolveConflictResponse, error) {
	project, id, ok := strings.Cut(req.GetName(), "/conflicts/")
	key, err := memory.ParseProjectKey(project)
	if err != nil {
		return nil, err
	}
	if !ok || id == "" {
		return nil, &memory.Error{Reason: memory.ReasonInvalidArgument, Message: "conflict name: want teams/{team}/projects/{project}/conflicts/{conflict}"}
	}
	if err := s.svc.ResolveConflict(ctx, call(ctx), key, id); err != nil {
		return nil, err
	}
	return &memsvcv1.ResolveConflictResponse{}, nil
}

// FindRedacted tells which texts were redacted.
func (s *memoryServer) FindRedacted(ctx context.Context, req *memsvcv1.FindRedactedRequest) (*memsvcv1.FindRedactedResponse, error) {
	key, err := memory.ParseProjectKey(req.GetParent())
	if err != nil {
		return nil, err
	}
	found, err := s.svc.FindRedacted(ctx, call(ctx), key, req.GetFingerprints())
	if err != nil {
		return nil, err
	}
	return &memsvcv1.FindRedactedResponse{Fingerprints: found}, nil
}
