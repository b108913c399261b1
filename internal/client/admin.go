package client

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// CreateProject makes an empty project; one that exists is an ErrAlreadyExists.
func (c *Client) CreateProject(ctx context.Context, key memory.ProjectKey) (ProjectInfo, error) {
	var out ProjectInfo
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.admin().CreateProject(ctx, &memsvcv1.CreateProjectRequest{Parent: "teams/" + string(key.Team), ProjectId: string(key.Project)})
		if err != nil {
			return err
		}
		out, err = projectFromProto(res.GetProject())
		return err
	})
	return out, err
}

// Projects lists the projects of a team that the caller may see, by name.
func (c *Client) Projects(ctx context.Context, team memory.Team) ([]ProjectInfo, error) {
	req := &memsvcv1.ListProjectsRequest{Parent: "teams/" + string(team)}
	return listAll(ctx, c, c.short(), &req.PageToken,
		func(ctx context.Context) (*memsvcv1.ListProjectsResponse, error) {
			return c.admin().ListProjects(ctx, req)
		},
		(*memsvcv1.ListProjectsResponse).GetProjects, projectFromProto)
}

// PurgeProject removes a project with its whole history, for ever.
func (c *Client) PurgeProject(ctx context.Context, key memory.ProjectKey) error {
	return c.attempt(ctx, c.long(), func(ctx context.Context) error {
		_, err := c.admin().PurgeProject(ctx, &memsvcv1.PurgeProjectRequest{Name: key.String()})
		return err
	})
}

// The roles of a token.
const (
	RoleReader = "reader"
	RoleWriter = "writer"
	RoleAdmin  = "admin"
)

// Token is a credential's record, without its secret.
type Token struct {
	ID         string
	Name       string
	Team       memory.Team    // "" reaches the whole hub
	Project    memory.Project // "" reaches the whole team
	Role       string
	CreateTime time.Time
	ExpireTime time.Time // zero = never
	RevokeTime time.Time // zero = it was not
}

func roleToProto(role string) (memsvcv1.Role, error) {
	switch role {
	case RoleReader:
		return memsvcv1.Role_ROLE_READER, nil
	case RoleWriter:
		return memsvcv1.Role_ROLE_WRITER, nil
	case RoleAdmin:
		return memsvcv1.Role_ROLE_ADMIN, nil
	}
	return 0, invalid("role %q: want reader, writer or admin", cut(role))
}

func tokenFromProto(p *memsvcv1.Token) (Token, error) {
	out := Token{ID: p.GetTokenId(), Name: p.GetDisplayName(), Team: memory.Team(p.GetTeamId()), Project: memory.Project(p.GetProjectId())}
	switch p.GetRole() {
	case memsvcv1.Role_ROLE_READER:
		out.Role = RoleReader
	case memsvcv1.Role_ROLE_WRITER:
		out.Role = RoleWriter
	case memsvcv1.Role_ROLE_ADMIN:
		out.Role = RoleAdmin
	default:
		return Token{}, invalid("token %s: unknown role %d", cut(out.ID), p.GetRole())
	}
	var err error
	if out.CreateTime, err = wire.TimeFromProto("token.create_time", p.GetCreateTime()); err != nil {
		return Token{}, err
	}
	if out.ExpireTime, err = wire.TimeFromProto("token.expire_time", p.GetExpireTime()); err != nil {
		return Token{}, err
	}
	out.RevokeTime, err = wire.TimeFromProto("token.revoke_time", p.GetRevokeTime())
	return out, err
}

// NewToken says what a token is for. TTL 0 is for ever.
type NewToken struct {
	Name    string
	Team    memory.Team
	Project memory.Project
	Role    string
	TTL     time.Duration
}

// CreateToken makes a token and returns its record and, this once, its secret. It is
// not retried: an answer that was lost would leave a token behind whose secret
// nobody has.
func (c *Client) CreateToken(ctx context.Context, t NewToken) (Token, string, error) {
	role, err := roleToProto(t.Role)
	if err != nil {
		return Token{}, "", err
	}
	req := &memsvcv1.CreateTokenRequest{DisplayName: t.Name, TeamId: string(t.Team), ProjectId: string(t.Project), Role: role}
	if t.TTL > 0 {
		req.Ttl = durationpb.New(t.TTL)
	}
	var out Token
	var secret string
	err = c.attempt(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.admin().CreateToken(ctx, req)
		if err != nil {
			return err
		}
		secret = res.GetSecret()
		out, err = tokenFromProto(res.GetToken())
		return err
	})
	return out, secret, err
}

// Tokens lists the tokens of a team ("" = every one the caller may see), by id.
func (c *Client) Tokens(ctx context.Context, team memory.Team) ([]Token, error) {
	req := &memsvcv1.ListTokensRequest{TeamId: string(team)}
	return listAll(ctx, c, c.short(), &req.PageToken,
		func(ctx context.Context) (*memsvcv1.ListTokensResponse, error) { return c.admin().ListTokens(ctx, req) },
		(*memsvcv1.ListTokensResponse).GetTokens, tokenFromProto)
}

// RevokeToken revokes a token at once.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, c.short(), func(ctx context.Context) error {
		_, err := c.admin().RevokeToken(ctx, &memsvcv1.RevokeTokenRequest{TokenId: id})
		return err
	})
}

// Teams lists the teams that the caller may see, by name.
func (c *Client) Teams(ctx context.Context) ([]memory.Team, error) {
	req := &memsvcv1.ListTeamsRequest{}
	return listAll(ctx, c, c.short(), &req.PageToken,
		func(ctx context.Context) (*memsvcv1.ListTeamsResponse, error) { return c.admin().ListTeams(ctx, req) },
		(*memsvcv1.ListTeamsResponse).GetTeams, func(t *memsvcv1.Team) (memory.Team, error) {
			return memory.ParseTeam(strings.TrimPrefix(t.GetName(), "teams/"))
		})
}
