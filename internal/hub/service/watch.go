package service

import (
	"context"

	"github.com/memsvc/memsvc/internal/hub/changefeed"
	"github.com/memsvc/memsvc/internal/memory"
)

// Event is what a watch tells; see package changefeed.
type Event = changefeed.Event

// The kinds of event.
const (
	EventCommit   = changefeed.KindCommit
	EventBookmark = changefeed.KindBookmark
	EventStatus   = changefeed.KindStatus
	EventPolicy   = changefeed.KindPolicy
)

// The encoded forms that a shared commit may have.
const (
	FullForm = changefeed.Full
	MetaForm = changefeed.Meta
)

// WatchedProject is one project of a watch and where it starts.
type WatchedProject struct {
	Project memory.ProjectKey
	Cursor  memory.Cursor
	Head    bool
}

// Watch is an open watch. Only one goroutine may use it; Close gives it back.
type Watch struct {
	*changefeed.Watcher
	leave func()
}

// Close ends the watch.
func (w *Watch) Close() {
	w.Watcher.Close()
	w.leave()
}

// Watch opens a stream over several projects. A project that cannot be followed
// gets a status of its own and the others go on (ruling 13.12); one that the caller
// may not see gets the same as one that does not exist.
func (s *Service) Watch(ctx context.Context, c Call, projects []WatchedProject, agent AgentInfo) (*Watch, error) {
	if most := s.Limits.Watchers; most > 0 && s.Feed.Watchers() >= most {
		return nil, &memory.Error{Reason: memory.ReasonRateLimited, Message: "watch: the hub has as many watchers as it can bear; try again later"}
	}
	starts := make([]changefeed.Start, len(projects))
	names := make([]string, 0, len(projects))
	seen := make(map[memory.ProjectKey]bool, len(projects))
	for i, p := range projects {
		if seen[p.Project] {
			return nil, invalid("watch: %s is named twice", p.Project)
		}
		seen[p.Project] = true
		starts[i] = changefeed.Start{Project: p.Project, After: p.Cursor, Head: p.Head}
		if err := c.Principal.mayProject(p.Project, Reader); err != nil {
			starts[i].Err = s.refused(ctx, c, p.Project.Team, "watch", p.Project.String(), err)
			continue
		}
		names = append(names, p.Project.String())
		policy, err := s.policy(ctx, p.Project.Team)
		if err != nil {
			return nil, err
		}
		starts[i].Policy = policy.Version
	}
	w, err := s.Feed.Open(ctx, starts)
	if err != nil {
		return nil, err
	}
	// A secret in them is no reason not to read; it is not shown to anybody.
	agent = AgentInfo{ID: s.discreet(agent.ID), Machine: s.discreet(agent.Machine), Version: s.discreet(agent.Version)}
	leave := s.agents.enter(c.Principal, agent, names, s.Now)
	return &Watch{Watcher: w, leave: leave}, nil
}

// ForCaller returns the error of a status event as the caller may see it.
func ForCaller(ev Event) error { return hide(ev.Project, ev.Err) }
