package service

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

// Times of replicas. What one of them changes, the others have noticed after
// replicaEvery and settingsTTL together, at most.
const (
	// replicaEvery is how often a replica looks for what others have changed.
	replicaEvery = 2 * time.Second
	// replicaGone is after how long without a word a replica's agents count as not
	// connected.
	replicaGone = 15 * time.Second
	// agentsKept is how long the agents of a replica that is no more are listed.
	agentsKept = 24 * time.Hour
	// overdueEvery is how often a replica looks for judging that another one left
	// undone.
	overdueEvery = 5 * time.Minute
	// leaseFor is how long a replica that has died keeps work to itself.
	leaseFor = 10 * time.Minute
)

// exclusive runs work unless another replica is at it, or has done it within least.
// Work that takes long renews its lease through keep.
func (s *Service) exclusive(ctx context.Context, name string, least time.Duration, work func(keep func() error) error) error {
	if s.Shared == nil {
		return work(func() error { return nil })
	}
	mine, err := s.Shared.Lease(ctx, name, s.replica, leaseFor)
	if err != nil || !mine {
		return err
	}
	err = work(func() error {
		_, err := s.Shared.Lease(ctx, name, s.replica, leaseFor)
		return err
	})
	if _, lerr := s.Shared.Lease(context.WithoutCancel(ctx), name, s.replica, least); err == nil {
		err = lerr
	}
	return err
}

// followReplicas tells this replica's watchers what other replicas have changed, and
// other replicas which agents are here, until ctx ends.
func (s *Service) followReplicas(ctx context.Context) {
	ticker := time.NewTicker(replicaEvery)
	defer ticker.Stop()
	f := follower{s: s}
	for {
		if err := f.look(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("replicas: not followed, trying again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// follower is what a replica has seen of the others.
type follower struct {
	s         *Service
	published []byte
}

func (f *follower) look(ctx context.Context) error {
	epoch, err := f.s.Backend.Epoch(ctx)
	if err != nil {
		return err
	}
	f.s.noticeEpoch(epoch, false)
	for _, team := range f.s.Feed.Teams() {
		p, err := f.s.policy(ctx, team)
		if err != nil {
			return err
		}
		f.s.Feed.Announce(team, p.Version)
	}
	doc, err := json.Marshal(f.s.agents.list("", time.Time{}))
	if err != nil {
		return err
	}
	if bytes.Equal(doc, f.published) {
		return f.s.Shared.Publish(ctx, f.s.replica, nil)
	}
	if err := f.s.Shared.Publish(ctx, f.s.replica, doc); err != nil {
		return err
	}
	f.published = doc
	return nil
}

// noticeEpoch ends every watch when the epoch is not the one seen before: the hub's
// histories were replaced or added to. changed says that it is known to be another one.
func (s *Service) noticeEpoch(epoch memory.Epoch, changed bool) {
	s.epochMu.Lock()
	old := s.epoch
	changed = changed && old != epoch || old != "" && old != epoch
	s.epoch = epoch
	s.epochMu.Unlock()
	if !changed {
		return
	}
	s.Logger.Warn("the hub has a new epoch: histories were replaced or imported; agents compare everything", "old_epoch", old, "new_epoch", epoch)
	s.settings.clear()
	s.Feed.Fail(func(memory.ProjectKey) bool { return true }, &memory.Error{
		Reason: memory.ReasonEpochChanged, Message: "histories were imported into the hub; compare everything",
	})
}

// allAgents lists the agents of all replicas, last seen first. An agent that was seen
// by several is where it was seen last.
func (s *Service) allAgents(ctx context.Context, team memory.Team) ([]Agent, error) {
	now := s.Now()
	here := s.agents.list(team, now)
	if s.Shared == nil {
		return here, nil
	}
	told, err := s.Shared.Published(ctx, agentsKept)
	if err != nil {
		return nil, err
	}
	newest := make(map[agentKey]Agent, len(here))
	take := func(a Agent) {
		at := agentKey{a.Principal, a.ID}
		if have, ok := newest[at]; !ok || a.Connected && !have.Connected || a.Connected == have.Connected && a.LastSeen.After(have.LastSeen) {
			newest[at] = a
		}
	}
	for _, a := range here {
		take(a)
	}
	for _, p := range told {
		for _, a := range agentsOf(p, now) {
			if p.Holder != s.replica && (team == "" || a.Team == team) {
				take(a)
			}
		}
	}
	out := make([]Agent, 0, len(newest))
	for _, a := range newest {
		out = append(out, a)
	}
	sortAgents(out)
	return out, nil
}

// agentsOf reads what a replica told. What another version wrote and this one cannot
// read is left out.
func agentsOf(p store.Published, now time.Time) []Agent {
	var all []Agent
	if len(p.Doc) == 0 || json.Unmarshal(p.Doc, &all) != nil {
		return nil
	}
	for i := range all {
		if a := &all[i]; a.Connected {
			a.LastSeen = now.Add(-p.Age)
			a.Connected = p.Age < replicaGone
		}
	}
	return all
}
