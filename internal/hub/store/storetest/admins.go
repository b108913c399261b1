package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func epochPromises() []promise {
	return []promise{
		{"EpochStays", epochStays},
		{"NewEpochRewinds", newEpochRewinds},
		{"NewEpochKnown", newEpochKnown},
		{"CursorsCarryTheEpoch", cursorsCarryEpoch},
		{"SpansOfCommits", spansOfCommits},
	}
}

func adminPromises() []promise {
	return []promise{
		{"DirectoryOrder", directoryOrder},
		{"PurgeProject", purgeProject},
		{"Totals", totals},
		{"Settings", settings},
		{"Tokens", tokens},
		{"RevokeToken", revokeToken},
		{"AuditNewestFirst", audit},
	}
}

func epochStays(_ *testing.T, e *env) {
	first, err := e.b.Epoch(ctx)
	e.must(err)
	e.commit(put("a.md", "one"))
	e.reopen()
	again, err := e.b.Epoch(ctx)
	e.must(err)
	e.equal("epoch", again, first)
}

func (e *env) rewind(seen memory.Epoch) (memory.Revision, bool) {
	e.t.Helper()
	at, ok, err := e.b.Rewind(ctx, e.key, seen)
	e.must(err)
	return at, ok
}

func newEpochRewinds(_ *testing.T, e *env) {
	first, err := e.b.Epoch(ctx)
	e.must(err)
	e.commit(put("a.md", "one"))
	e.commit(put("a.md", "two"))
	e.must(e.b.NewEpoch(ctx, "second", e.tick()))
	e.commit(put("a.md", "three"))
	e.must(e.b.NewEpoch(ctx, "third", e.tick()))
	e.commit(put("a.md", "four"))
	young := memory.ProjectKey{Team: "acme", Project: "young"}
	e.must(e.b.CreateProject(ctx, young, e.now))
	for range 2 {
		for seen, want := range map[memory.Epoch]memory.Revision{first: 2, "second": 3, "third": 4} {
			at, ok := e.rewind(seen)
			if !ok || at != want {
				e.t.Fatalf("rewind from %s: got %d, %v, want %d", seen, at, ok, want)
			}
		}
		if at, ok := e.rewind("never"); ok || at != 0 {
			e.t.Fatalf("rewind from an unknown epoch: got %d, %v, want 0, false", at, ok)
		}
		at, ok, err := e.b.Rewind(ctx, young, first)
		e.must(err)
		if !ok || at != 0 {
			e.t.Fatalf("rewind of a younger project: got %d, %v, want 0, true", at, ok)
		}
		e.reopen()
	}
}

func newEpochKnown(_ *testing.T, e *env) {
	first, err := e.b.Epoch(ctx)
	e.must(err)
	e.must(e.b.NewEpoch(ctx, "second", e.tick()))
	e.wants(e.b.NewEpoch(ctx, first, e.tick()), memory.ErrAlreadyExists)
	e.wants(e.b.NewEpoch(ctx, "second", e.tick()), memory.ErrAlreadyExists)
	e.wants(e.b.NewEpoch(ctx, "", e.tick()), memory.ErrInvalidArgument)
	now, err := e.b.Epoch(ctx)
	e.must(err)
	e.equal("epoch", now, memory.Epoch("second"))
}

func cursorsCarryEpoch(_ *testing.T, e *env) {
	e.commit(put("a.md", "one"))
	before := e.info(e.key).Head
	e.must(e.b.NewEpoch(ctx, "second", e.tick()))
	want := before
	want.Epoch = "second"
	e.equal("head", e.info(e.key).Head, want)
	res := e.commit(put("a.md", "two"))
	e.equal("after a commit", res.Head.Epoch, memory.Epoch("second"))
	c := e.changes(1)[0]
	e.equal("the id covers the epoch", c.ID, memory.NextCommitID(before.CommitID, "second", &c))
}

func spansOfCommits(_ *testing.T, e *env) {
	first, err := e.b.Epoch(ctx)
	e.must(err)
	e.commit(put("a.md", "one"))
	e.must(e.b.NewEpoch(ctx, "second", e.tick()))
	e.must(e.b.NewEpoch(ctx, "third", e.tick()))
	e.commit(put("a.md", "two"))
	got, err := e.b.Spans(ctx, e.key)
	e.must(err)
	e.equal("spans", got, []store.Span{{Epoch: first, Through: 1}, {Epoch: "second", Through: 1}, {Epoch: "third", Through: 2}})
}

func directoryOrder(_ *testing.T, e *env) {
	for _, name := range []string{"teams/zeta/projects/a", "teams/acme/projects/web", "teams/beta/projects/x", "teams/acme/projects/api"} {
		key, err := memory.ParseProjectKey(name)
		e.must(err)
		e.must(e.b.CreateProject(ctx, key, e.now))
	}
	e.reopen()
	teams, err := e.b.Teams(ctx)
	e.must(err)
	e.equal("teams", teams, []memory.Team{"acme", "beta", "zeta"})
	names := func(team memory.Team) (out []string) {
		keys, err := e.b.Projects(ctx, team)
		e.must(err)
		for _, k := range keys {
			out = append(out, string(k.Team)+"/"+string(k.Project))
		}
		return out
	}
	e.equal("all", names(""), []string{"acme/api", "acme/payments", "acme/web", "beta/x", "zeta/a"})
	e.equal("of a team", names("acme"), []string{"acme/api", "acme/payments", "acme/web"})
	e.equal("of none", names("nobody"), []string(nil))
}

func totals(t *testing.T, e *env) {
	counter, ok := e.b.(store.Totaler)
	if !ok {
		t.Skip("the backend counts no totals, which is optional")
	}
	want := func(projects, revisions int64) {
		t.Helper()
		got, err := counter.Totals(ctx)
		e.must(err)
		e.equal("totals", got, store.Totals{Projects: projects, Revisions: revisions})
	}
	want(1, 0)
	e.commit(put("a.md", "one"))
	e.commit(put("a.md", "two"))
	other := memory.ProjectKey{Team: "acme", Project: "web"}
	e.must(e.b.CreateProject(ctx, other, e.now))
	req := e.request(put("a.md", "three"))
	req.Project = other
	e.send(req)
	want(2, 3)
	e.compact(e.now.Add(time.Hour))
	want(2, 3)
	e.must(e.b.PurgeProject(ctx, e.key))
	want(1, 1)
	e.must(e.b.Close())
	_, err := counter.Totals(ctx)
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

func purgeProject(_ *testing.T, e *env) {
	other := memory.ProjectKey{Team: "acme", Project: "web"}
	e.must(e.b.CreateProject(ctx, other, e.now))
	there := e.request(put("a.md", "stays"))
	there.Project = other
	e.send(there)
	req := e.withID("r1", put("a.md", "one"))
	e.send(req)
	e.must(e.b.PutSetting(ctx, e.key.String(), "quota", []byte(`1`), 0))
	e.must(e.b.PutSetting(ctx, other.String(), "quota", []byte(`2`), 0))
	e.must(e.b.PurgeProject(ctx, e.key))
	_, err := e.b.Project(ctx, e.key)
	e.wants(err, memory.ErrNotFound)
	_, err = e.b.Commit(ctx, e.request(put("a.md", "x")))
	e.wants(err, memory.ErrNotFound)
	e.reopen()
	_, err = e.b.Get(ctx, e.key, "a.md", 0)
	e.wants(err, memory.ErrNotFound)
	e.must(e.b.CreateProject(ctx, e.key, e.tick()))
	e.equal("begins anew", e.send(req).Head.Revision, memory.Revision(1))
	_, version, err := e.b.Setting(ctx, e.key.String(), "quota")
	e.must(err)
	e.equal("settings of the purged one", version, int64(0))
	_, version, err = e.b.Setting(ctx, other.String(), "quota")
	e.must(err)
	e.equal("settings of others", version, int64(1))
	m, err := e.b.Get(ctx, other, "a.md", 0)
	e.must(err)
	e.equal("memories of others", string(m.Content), "stays")
}

func settings(_ *testing.T, e *env) {
	read := func(scope, name string) (string, int64) {
		doc, v, err := e.b.Setting(ctx, scope, name)
		e.must(err)
		return string(doc), v
	}
	if doc, v := read("acme", "policy"); doc != "" || v != 0 {
		e.t.Fatalf("got %q at %d, want none", doc, v)
	}
	doc := []byte(`{"a":1}`)
	e.must(e.b.PutSetting(ctx, "acme", "policy", doc, 0))
	copy(doc, "scribble")
	e.wants(e.b.PutSetting(ctx, "acme", "policy", []byte(`{}`), 0), memory.ErrETagMismatch)
	e.wants(e.b.PutSetting(ctx, "acme", "policy", []byte(`{}`), 2), memory.ErrETagMismatch)
	e.wants(e.b.PutSetting(ctx, "acme", "other", []byte(`{}`), 1), memory.ErrETagMismatch)
	if doc, v := read("acme", "policy"); doc != `{"a":1}` || v != 1 {
		e.t.Fatalf("got %q at %d, want the first at 1", doc, v)
	}
	e.must(e.b.PutSetting(ctx, "acme", "policy", []byte(`{"a":2}`), 1))
	e.must(e.b.PutSetting(ctx, "acme", "guard", []byte(`{}`), 0))
	e.must(e.b.PutSetting(ctx, "", "policy", []byte(`{"hub":true}`), 0))
	e.reopen()
	if doc, v := read("acme", "policy"); doc != `{"a":2}` || v != 2 {
		e.t.Fatalf("got %q at %d, want the second at 2", doc, v)
	}
	if doc, _ := read("", "policy"); doc != `{"hub":true}` {
		e.t.Fatalf("got %q, want the hub's", doc)
	}
	names, err := e.b.SettingNames(ctx, "acme")
	e.must(err)
	e.equal("names", names, []string{"guard", "policy"})
}

func tokens(_ *testing.T, e *env) {
	all := []store.Token{
		{ID: "t1", Name: "ann", Hash: "h1", Team: "acme", Role: "writer", CreateTime: day0},
		{ID: "t3", Name: "ci", Hash: "h3", Team: "beta", Project: "x", Role: "reader", CreateTime: day0.Add(time.Hour), ExpireTime: day0.Add(48 * time.Hour)},
		{ID: "t2", Name: "root", Hash: "h2", Role: "admin", CreateTime: day0.Add(2 * time.Hour)},
	}
	for _, i := range []int{2, 0, 1} {
		e.must(e.b.PutToken(ctx, all[i]))
	}
	e.wants(e.b.PutToken(ctx, store.Token{ID: "t1", Hash: "h9", CreateTime: day0}), memory.ErrAlreadyExists)
	e.wants(e.b.PutToken(ctx, store.Token{ID: "t9", Hash: "h1", CreateTime: day0}), memory.ErrAlreadyExists)
	e.reopen()
	got, err := e.b.Tokens(ctx, "")
	e.must(err)
	e.equal("all, oldest first", got, all)
	got, err = e.b.Tokens(ctx, "beta")
	e.must(err)
	e.equal("of a team", got, all[1:2])
	one, err := e.b.TokenByHash(ctx, "h3")
	e.must(err)
	e.equal("by hash", one, all[1])
	for _, hash := range []string{"h9", "", "H3"} {
		_, err = e.b.TokenByHash(ctx, hash)
		e.wants(err, memory.ErrNotFound)
	}
}

func revokeToken(_ *testing.T, e *env) {
	e.wants(e.b.RevokeToken(ctx, "t1", day0), memory.ErrNotFound)
	e.must(e.b.PutToken(ctx, store.Token{ID: "t1", Hash: "h1", CreateTime: day0}))
	e.must(e.b.RevokeToken(ctx, "t1", day0.Add(time.Hour)))
	e.must(e.b.RevokeToken(ctx, "t1", day0.Add(2*time.Hour)))
	e.reopen()
	got, err := e.b.TokenByHash(ctx, "h1")
	e.must(err)
	e.equal("the first revocation", got.RevokeTime, day0.Add(time.Hour))
}

func audit(_ *testing.T, e *env) {
	for i := range 10 {
		team := memory.Team("acme")
		if i%3 == 0 {
			team = "beta"
		}
		e.must1(e.b.AppendAudit(ctx, store.AuditEvent{Time: day0.Add(time.Duration(i) * time.Minute), Team: team, Principal: "token:ann",
			Action: "commit.refused", Subject: e.key.String(), Detail: fmt.Sprintf("rule-%d", i), RequestID: "q"}))
	}
	e.reopen()
	read := func(team memory.Team, before int64, limit int) (out []string) {
		last := int64(1 << 62)
		evs, err := e.b.AuditEvents(ctx, team, before, limit)
		e.must(err)
		for _, ev := range evs {
			if ev.ID >= last || ev.ID <= 0 {
				e.t.Fatalf("id %d after %d, want descending and positive", ev.ID, last)
			}
			last = ev.ID
			out = append(out, ev.Detail)
		}
		return out
	}
	e.equal("newest first", read("", 0, 3), []string{"rule-9", "rule-8", "rule-7"})
	e.equal("all", len(read("", 0, 0)), 10)
	e.equal("of a team", read("beta", 0, 0), []string{"rule-9", "rule-6", "rule-3", "rule-0"})
	evs, err := e.b.AuditEvents(ctx, "beta", 0, 2)
	e.must(err)
	e.equal("next page", read("beta", evs[1].ID, 2), []string{"rule-3", "rule-0"})
	want := store.AuditEvent{ID: evs[0].ID, Time: day0.Add(9 * time.Minute), Team: "beta", Principal: "token:ann",
		Action: "commit.refused", Subject: e.key.String(), Detail: "rule-9", RequestID: "q", Count: 1}
	e.equal("whole value", evs[0], want)
}
