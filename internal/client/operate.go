package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/wire"
)

// TeamSettings is what a team's admin may set; zero numbers are the hub's defaults.
type TeamSettings struct {
	Team                  memory.Team
	WritersCreateProjects bool
	Retention             time.Duration
	MaxProjectFiles       int64
	MaxProjectBytes       int64
}

func teamFromProto(p *memsvcv1.Team) TeamSettings {
	name := p.GetName()
	if len(name) > len("teams/") {
		name = name[len("teams/"):]
	}
	return TeamSettings{
		Team: memory.Team(name), WritersCreateProjects: p.GetWritersCreateProjects(), Retention: p.GetRetention().AsDuration(),
		MaxProjectFiles: p.GetMaxProjectFiles(), MaxProjectBytes: p.GetMaxProjectBytes(),
	}
}

// TeamSettings lists the teams that the caller may see with their settings, by name.
func (c *Client) TeamSettings(ctx context.Context) ([]TeamSettings, error) {
	req := &memsvcv1.ListTeamsRequest{}
	return listAll(ctx, c, c.short(), &req.PageToken,
		func(ctx context.Context) (*memsvcv1.ListTeamsResponse, error) { return c.admin().ListTeams(ctx, req) },
		(*memsvcv1.ListTeamsResponse).GetTeams, func(t *memsvcv1.Team) (TeamSettings, error) { return teamFromProto(t), nil })
}

// CreateTeam makes a team.
func (c *Client) CreateTeam(ctx context.Context, team memory.Team) error {
	return c.attempt(ctx, c.short(), func(ctx context.Context) error {
		_, err := c.admin().CreateTeam(ctx, &memsvcv1.CreateTeamRequest{TeamId: string(team)})
		return err
	})
}

// UpdateTeam replaces a team's settings.
func (c *Client) UpdateTeam(ctx context.Context, t TeamSettings) (TeamSettings, error) {
	in := &memsvcv1.Team{
		Name: "teams/" + string(t.Team), WritersCreateProjects: t.WritersCreateProjects,
		MaxProjectFiles: t.MaxProjectFiles, MaxProjectBytes: t.MaxProjectBytes,
	}
	if t.Retention > 0 {
		in.Retention = durationpb.New(t.Retention)
	}
	var out TeamSettings
	err := c.call(ctx, c.short(), func(ctx context.Context) error {
		res, err := c.admin().UpdateTeam(ctx, &memsvcv1.UpdateTeamRequest{Team: in})
		out = teamFromProto(res.GetTeam())
		return err
	})
	return out, err
}

// Redacted says what a redaction took away and what it left. Paths may be withheld, so
// they are for a person to read.
type Redacted struct {
	Revision  memory.Revision // tells the watchers; 0: nothing but conflict texts went
	Memories  []RedactedMemory
	Remaining []RemainingText
}

// RedactedMemory counts what went at one path.
type RedactedMemory struct {
	Path                string
	Versions, Conflicts int64
}

// RemainingText is a stored text that may be meant as well and is still served.
type RemainingText struct {
	Path     string
	Revision memory.Revision // 0: the text of an open conflict
	Reason   string
}

// Redact removes a leaked text from every stored version of a memory, or those texts that
// have the given etags, and tells what became of it.
func (c *Client) Redact(ctx context.Context, key memory.ProjectKey, path memory.Path, etags []memory.ETag, reason string) (Redacted, error) {
	req := &memsvcv1.RedactMemoryRequest{Name: key.MemoryName(path), Reason: reason}
	for _, e := range etags {
		req.Etags = append(req.Etags, string(e))
	}
	var out Redacted
	err := c.attempt(ctx, c.long(), func(ctx context.Context) error {
		res, err := c.admin().RedactMemory(ctx, req)
		out = Redacted{Revision: memory.Revision(res.GetCommit().GetRevision())}
		for _, r := range res.GetRedacted() {
			out.Memories = append(out.Memories, RedactedMemory{r.GetPath(), r.GetVersions(), r.GetConflicts()})
		}
		for _, r := range res.GetRemaining() {
			out.Remaining = append(out.Remaining, RemainingText{r.GetPath(), memory.Revision(r.GetRevision()), r.GetReason()})
		}
		return err
	})
	return out, err
}

// AuditEvent is one admin act or refusal.
type AuditEvent struct {
	ID                                            int64
	Time                                          time.Time // of the first one
	Count                                         int64     // how often
	LastTime                                      time.Time // of the last one; zero while Count is 1
	Team                                          memory.Team
	Principal, Action, Subject, Detail, RequestID string
}

// Audit returns the newest events of the audit log, newest first, at most limit.
func (c *Client) Audit(ctx context.Context, team memory.Team, limit int) ([]AuditEvent, error) {
	req := &memsvcv1.ListAuditEventsRequest{TeamId: string(team)}
	var out []AuditEvent
	var pages Pages
	for len(out) < limit {
		req.PageSize = int32(min(limit-len(out), 1000))
		var res *memsvcv1.ListAuditEventsResponse
		err := c.call(ctx, c.short(), func(ctx context.Context) (err error) {
			res, err = c.admin().ListAuditEvents(ctx, req)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, e := range res.GetEvents() {
			at, err := wire.TimeFromProto("event_time", e.GetEventTime())
			if err != nil {
				return nil, err
			}
			last, err := wire.TimeFromProto("last_event_time", e.GetLastEventTime())
			if err != nil {
				return nil, err
			}
			out = append(out, AuditEvent{
				ID: e.GetEventId(), Time: at, Count: max(e.GetCount(), 1), LastTime: last, Team: memory.Team(e.GetTeamId()), Principal: e.GetPrincipal(),
				Action: e.GetAction(), Subject: e.GetSubject(), Detail: e.GetDetail(), RequestID: e.GetRequestId(),
			})
		}
		if req.PageToken, err = pages.Next(res.GetNextPageToken(), len(res.GetEvents())); err != nil {
			return nil, err
		}
		if req.PageToken == "" {
			break
		}
	}
	return out, nil
}

// SeenAgent is an agent as the hub has seen it.
type SeenAgent struct {
	AgentInfo
	Principal string
	Projects  []string
	Connected bool
	LastSeen  time.Time
}

// Agents lists the agents seen, last seen first.
func (c *Client) Agents(ctx context.Context, team memory.Team) ([]SeenAgent, error) {
	req := &memsvcv1.ListAgentsRequest{TeamId: string(team)}
	return listAll(ctx, c, c.short(), &req.PageToken,
		func(ctx context.Context) (*memsvcv1.ListAgentsResponse, error) { return c.admin().ListAgents(ctx, req) },
		(*memsvcv1.ListAgentsResponse).GetAgents, agentFromProto)
}

func agentFromProto(a *memsvcv1.Agent) (SeenAgent, error) {
	at, err := wire.TimeFromProto("last_seen_time", a.GetLastSeenTime())
	return SeenAgent{
		AgentInfo: AgentInfo{ID: a.GetInfo().GetAgentId(), Machine: a.GetInfo().GetMachine(), Version: a.GetInfo().GetVersion()},
		Principal: a.GetPrincipal(), Projects: a.GetProjects(), Connected: a.GetConnected(), LastSeen: at,
	}, err
}

// Backup writes a consistent copy of the running hub's embedded store to w.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	stream, err := c.admin().Backup(ctx, &memsvcv1.BackupRequest{})
	if err != nil {
		return c.domain(ctx, err)
	}
	return c.receive(ctx, w, func() ([]byte, error) {
		m, err := stream.Recv()
		return m.GetChunk(), err
	})
}

// Export writes an archive of a scope: "" for the hub, teams/{team}, or a project's
// resource name.
func (c *Client) Export(ctx context.Context, scope string, w io.Writer) error {
	stream, err := c.admin().ExportArchive(ctx, &memsvcv1.ExportArchiveRequest{Scope: scope})
	if err != nil {
		return c.domain(ctx, err)
	}
	return c.receive(ctx, w, func() ([]byte, error) {
		m, err := stream.Recv()
		return m.GetChunk(), err
	})
}

func (c *Client) receive(ctx context.Context, w io.Writer, next func() ([]byte, error)) error {
	for {
		chunk, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.domain(ctx, err)
		}
		if _, err := w.Write(chunk); err != nil {
			return err
		}
	}
}

// Imported counts what an import did.
type Imported struct {
	Projects, Commits, Skipped, Tokens int64
}

// importChunk is the size of a piece that Import sends.
const importChunk = 1 << 20

// Import sends an archive to the hub.
func (c *Client) Import(ctx context.Context, r io.Reader) (Imported, error) {
	stream, err := c.admin().ImportArchive(ctx)
	if err != nil {
		return Imported{}, c.domain(ctx, err)
	}
	in := bufio.NewReaderSize(r, importChunk)
	for {
		chunk := make([]byte, importChunk)
		n, rerr := io.ReadFull(in, chunk)
		if n > 0 {
			if err := stream.Send(&memsvcv1.ImportArchiveRequest{Chunk: chunk[:n]}); err != nil {
				break // CloseAndRecv says why
			}
		}
		if errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF) {
			break
		}
		if rerr != nil {
			return Imported{}, rerr // the stream ends with ctx
		}
	}
	res, err := stream.CloseAndRecv()
	if err != nil {
		return Imported{}, c.domain(ctx, err)
	}
	return Imported{res.GetProjects(), res.GetCommits(), res.GetSkippedCommits(), res.GetTokens()}, nil
}
