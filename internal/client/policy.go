package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// GuardPolicy is what a team allows past the secret guard, and its own rules.
type GuardPolicy struct {
	Team                memory.Team
	Version             int64
	FingerprintKey      []byte
	AllowedFingerprints []string
	AllowedRules        []string
	AllowInline         bool
	RulesTOML           []byte
}

func policyFromProto(p *memsvcv1.GuardPolicy) (GuardPolicy, error) {
	team, err := wire.ParsePolicyName(p.GetName())
	if err != nil {
		return GuardPolicy{}, err
	}
	return GuardPolicy{
		Team: team, Version: p.GetVersion(), FingerprintKey: p.GetFingerprintKey(),
		AllowedFingerprints: p.GetAllowedFingerprints(), AllowedRules: p.GetAllowedRules(),
		AllowInline: p.GetAllowInline(), RulesTOML: p.GetRulesToml(),
	}, nil
}

// Policy returns the guard policy that holds for a team.
func (c *Client) Policy(ctx context.Context, team memory.Team) (GuardPolicy, error) {
	var out GuardPolicy
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.api().GetGuardPolicy(ctx, &memsvcv1.GetGuardPolicyRequest{Name: wire.PolicyName(team)})
		if err != nil {
			return err
		}
		out, err = policyFromProto(res.GetPolicy())
		return err
	})
	return out, err
}

// UpdatePolicy replaces a team's guard policy. Its Version must be the present one.
func (c *Client) UpdatePolicy(ctx context.Context, p GuardPolicy) (GuardPolicy, error) {
	req := &memsvcv1.UpdateGuardPolicyRequest{Policy: &memsvcv1.GuardPolicy{
		Name: wire.PolicyName(p.Team), Version: p.Version, AllowedFingerprints: p.AllowedFingerprints,
		AllowedRules: p.AllowedRules, AllowInline: p.AllowInline, RulesToml: p.RulesTOML,
	}}
	var out GuardPolicy
	err := c.attempt(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.admin().UpdateGuardPolicy(ctx, req)
		if err != nil {
			return err
		}
		out, err = policyFromProto(res.GetPolicy())
		return err
	})
	return out, err
}

// Conflict is an open conflict as the hub keeps it.
type Conflict struct {
	Name       string // the hub's name of it; empty before it was reported
	Path       memory.Path
	Text       []byte // the text that lost its place
	HubETag    memory.ETag
	BaseETag   memory.ETag
	Author     memory.Author
	CreateTime time.Time
}

func conflictFromProto(p *memsvcv1.Conflict) (Conflict, error) {
	out := Conflict{Name: p.GetName(), Text: p.GetTheirs(), Author: wire.AuthorFromProto(p.GetAuthor())}
	var err error
	if out.Path, err = memory.ParsePath(p.GetPath()); err != nil {
		return Conflict{}, err
	}
	if out.HubETag, err = wire.ETagFromProto("conflict.hub_etag", p.GetHubEtag()); err != nil {
		return Conflict{}, err
	}
	if out.BaseETag, err = wire.ETagFromProto("conflict.base_etag", p.GetBaseEtag()); err != nil {
		return Conflict{}, err
	}
	out.CreateTime, err = wire.TimeFromProto("conflict.create_time", p.GetCreateTime())
	return out, err
}

// ErrHubTooOld means that the hub does not know a call; a newer one does.
var ErrHubTooOld = errors.New("the hub is older than this program and does not know this call")

// maxFingerprints bounds one question of FindRedacted.
const maxFingerprints = 1000

// FindRedacted returns those of the fingerprints (memory.RedactionFingerprint under the
// team's key) that are of redacted texts. A hub that is too old to tell is an
// ErrHubTooOld.
func (c *Client) FindRedacted(ctx context.Context, key memory.ProjectKey, fingerprints []string) ([]string, error) {
	var out []string
	for ask := range slices.Chunk(fingerprints, maxFingerprints) {
		err := c.call(ctx, c.short(), func(ctx context.Context) error {
			res, err := c.api().FindRedacted(ctx, &memsvcv1.FindRedactedRequest{Parent: key.String(), Fingerprints: ask})
			if status.Code(err) == codes.Unimplemented {
				return ErrHubTooOld
			}
			out = append(out, res.GetFingerprints()...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReportConflict keeps a conflict's text on the hub, so that any writer can resolve it.
func (c *Client) ReportConflict(ctx context.Context, key memory.ProjectKey, conflict Conflict) (Conflict, error) {
	req := &memsvcv1.ReportConflictRequest{Parent: key.String(), Conflict: &memsvcv1.Conflict{
		Path: string(conflict.Path), Theirs: conflict.Text, HubEtag: string(conflict.HubETag),
		BaseEtag: string(conflict.BaseETag), Author: wire.AuthorToProto(c.opts.Author),
	}}
	var out Conflict
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.api().ReportConflict(ctx, req)
		if err != nil {
			return err
		}
		out, err = conflictFromProto(res.GetConflict())
		return err
	})
	return out, err
}

// Conflicts lists the open conflicts of a project, oldest first.
func (c *Client) Conflicts(ctx context.Context, key memory.ProjectKey) ([]Conflict, error) {
	req := &memsvcv1.ListConflictsRequest{Parent: key.String()}
	return listAll(ctx, c, c.long(), &req.PageToken,
		func(ctx context.Context) (*memsvcv1.ListConflictsResponse, error) {
			return c.api().ListConflicts(ctx, req)
		},
		(*memsvcv1.ListConflictsResponse).GetConflicts, conflictFromProto)
}

// ResolveConflict marks a conflict as resolved. One that is not open any more is a success.
func (c *Client) ResolveConflict(ctx context.Context, name string) error {
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		_, err := c.api().ResolveConflict(ctx, &memsvcv1.ResolveConflictRequest{Name: name})
		return err
	})
	if errors.Is(err, memory.ErrNotFound) {
		return nil
	}
	return err
}
