package service

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/memsvc/memsvc/internal/memory"
)

// AgentInfo is what an agent says of itself.
type AgentInfo struct {
	ID      string
	Machine string
	Version string
}

// Agent is an agent as the hub has seen it since it was started; with replicas, as any
// of them has within a day.
type Agent struct {
	AgentInfo
	Principal string
	Team      memory.Team
	Projects  []string // watched by its newest stream
	Connected bool
	LastSeen  time.Time
}

// registry remembers who watches. It is bounded: who was seen longest ago goes.
type registry struct {
	most int

	mu   sync.Mutex // guards what follows
	seen map[agentKey]*agentEntry
}

type agentKey struct{ principal, id string }

type agentEntry struct {
	Agent
	streams int
}

func newRegistry(most int) *registry {
	return &registry{most: most, seen: map[agentKey]*agentEntry{}}
}

// enter notes an open stream and returns what notes its end.
func (r *registry) enter(p Principal, info AgentInfo, projects []string, now func() time.Time) (leave func()) {
	if info.ID == "" {
		return func() {} // curl and the like are no agents
	}
	at := agentKey{p.Name, info.ID}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.seen[at]
	if !ok {
		if len(r.seen) >= r.most {
			r.evictLocked()
		}
		e = &agentEntry{}
		r.seen[at] = e
	}
	e.Agent = Agent{AgentInfo: info, Principal: p.Name, Team: p.Team, Projects: projects, LastSeen: now()}
	e.streams++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		e.streams--
		e.LastSeen = now()
	}
}

// evictLocked drops a tenth of the entries, those seen longest ago, so that the
// search for them is seldom.
func (r *registry) evictLocked() {
	keys := make([]agentKey, 0, len(r.seen))
	for k := range r.seen {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b agentKey) int { return r.seen[a].LastSeen.Compare(r.seen[b].LastSeen) })
	for _, k := range keys[:len(keys)/10+1] {
		delete(r.seen, k)
	}
}

// list returns who belongs to the team ("" = all), last seen first.
func (r *registry) list(team memory.Team, now time.Time) []Agent {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Agent, 0, len(r.seen))
	for _, e := range r.seen {
		if team != "" && e.Team != team {
			continue
		}
		a := e.Agent
		if e.streams > 0 {
			a.Connected, a.LastSeen = true, now
		}
		out = append(out, a)
	}
	sortAgents(out)
	return out
}

// sortAgents puts who was seen last in front.
func sortAgents(all []Agent) {
	slices.SortFunc(all, func(a, b Agent) int {
		return cmp.Or(b.LastSeen.Compare(a.LastSeen), cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.ID, b.ID))
	})
}

// AgentCount says how many connected agents are alike.
type AgentCount struct {
	Team    memory.Team // "" for a credential of the whole hub
	Version string      // as the agent tells it
	Agents  int
}

// ConnectedAgents counts the agents that watch through this hub, by team and version.
// It is for metrics, so nobody is asked who they are.
func (s *Service) ConnectedAgents() []AgentCount { return s.agents.connected() }

func (r *registry) connected() []AgentCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := map[AgentCount]int{}
	for _, e := range r.seen {
		if e.streams > 0 {
			n[AgentCount{Team: e.Team, Version: e.Version}]++
		}
	}
	out := make([]AgentCount, 0, len(n))
	for c, agents := range n {
		c.Agents = agents
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b AgentCount) int {
		return cmp.Or(cmp.Compare(a.Team, b.Team), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// Agents lists the agents seen since the hub was started, by any replica, last seen
// first.
func (s *Service) Agents(ctx context.Context, c Call, team memory.Team, page Page) ([]Agent, string, error) {
	team, err := s.adminScope(c.Principal, team)
	if err != nil {
		return nil, "", s.refused(ctx, c, team, "agent.list", "agents", err)
	}
	of := listOf("agents", string(team))
	var at struct{ Skip int }
	if err := page.decode(of, &at); err != nil {
		return nil, "", err
	}
	all, err := s.allAgents(ctx, team)
	if err != nil {
		return nil, "", err
	}
	if err := s.someTeam(ctx, c, team, len(all)); err != nil {
		return nil, "", err
	}
	all = all[min(max(at.Skip, 0), len(all)):]
	n := page.size(100, 1000)
	if len(all) <= n {
		return all, "", nil
	}
	at.Skip += n
	return all[:n], encodePage(of, at), nil
}
