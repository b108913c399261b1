package rpc

import (
	"context"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

func roleFromProto(r memsvcv1.Role) (service.Role, error) {
	switch r {
	case memsvcv1.Role_ROLE_READER:
		return service.Reader, nil
	case memsvcv1.Role_ROLE_WRITER:
		return service.Writer, nil
	case memsvcv1.Role_ROLE_ADMIN:
		return service.Admin, nil
	}
	return service.NoRole, invalid("role: use reader, writer or admin")
}

func roleToProto(name string) memsvcv1.Role {
	switch name {
	case service.Reader.String():
		return memsvcv1.Role_ROLE_READER
	case service.Writer.String():
		return memsvcv1.Role_ROLE_WRITER
	case service.Admin.String():
		return memsvcv1.Role_ROLE_ADMIN
	}
	return memsvcv1.Role_ROLE_UNSPECIFIED
}

func tokenToProto(t service.Token) *memsvcv1.Token {
	return &memsvcv1.Token{
		TokenId: t.ID, DisplayName: t.Name, TeamId: string(t.Team), ProjectId: string(t.Project), Role: roleToProto(t.Role),
		CreateTime: wire.TimeToProto(t.CreateTime), ExpireTime: wire.TimeToProto(t.ExpireTime), RevokeTime: wire.TimeToProto(t.RevokeTime),
	}
}

// CreateToken makes a token and shows it this once.
func (s *adminServer) CreateToken(ctx context.Context, req *memsvcv1.CreateTokenRequest) (*memsvcv1.CreateTokenResponse, error) {
	n := service.NewToken{Name: req.GetDisplayName()}
	var err error
	if n.Team, err = optionalTeam(req.GetTeamId()); err != nil {
		return nil, err
	}
	if req.GetProjectId() != "" {
		if n.Project, err = memory.ParseProject(req.GetProjectId()); err != nil {
			return nil, err
		}
	}
	if n.Role, err = roleFromProto(req.GetRole()); err != nil {
		return nil, err
	}
	if n.TTL, err = durationFrom("ttl", req.GetTtl()); err != nil {
		return nil, err
	}
	t, secret, err := s.svc.CreateToken(ctx, call(ctx), n)
	if err != nil {
		return nil, err
	}
	return &memsvcv1.CreateTokenResponse{Token: tokenToProto(t), Secret: secret}, nil
}

// ListTokens lists tokens, without their secrets.
func (s *adminServer) ListTokens(ctx context.Context, req *memsvcv1.ListTokensRequest) (*memsvcv1.ListTokensResponse, error) {
	team, err := optionalTeam(req.GetTeamId())
	if err != nil {
		return nil, err
	}
	tokens, next, err := s.svc.Tokens(ctx, call(ctx), team, page(req.GetPageSize(), req.GetPageToken()))
	if err != nil {
		return nil, err
	}
	out := &memsvcv1.ListTokensResponse{NextPageToken: next}
	for _, t := range tokens {
		out.Tokens = append(out.Tokens, tokenToProto(t))
	}
	return out, nil
}

// RevokeToken ends a token at once.
func (s *adminServer) RevokeToken(ctx context.Context, req *memsvcv1.RevokeTokenRequest) (*memsvcv1.RevokeTokenResponse, error) {
	if err := s.svc.RevokeToken(ctx, call(ctx), req.GetTokenId()); err != nil {
		return nil, err
	}
	return &memsvcv1.RevokeTokenResponse{}, nil
}
