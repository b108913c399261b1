package storetest

import (
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/memory"
)

func recordPromises() []promise {
	return []promise{
		{"ActsAreOnRecord", actsAreOnRecord},
		{"RepeatedEvents", repeatedEvents},
		{"AuditTrimmed", auditTrimmed},
	}
}

// act is what a store puts on record together with what it does.
type act struct {
	name string
	do   func(on ...store.AuditEvent) error
}

// acts are all of them. They are done once each, in this order.
func acts(b store.Backend, key memory.ProjectKey) []act {
	other := memory.ProjectKey{Team: "beta", Project: "new"}
	return []act{
		{"create a project", func(on ...store.AuditEvent) error { return b.CreateProject(ctx, other, day0, on...) }},
		{"first setting", func(on ...store.AuditEvent) error { return b.PutSetting(ctx, "beta", "policy", []byte(`{}`), 0, on...) }},
		{"next setting", func(on ...store.AuditEvent) error {
			return b.PutSetting(ctx, "acme", "kept", []byte(`{"b":2}`), 1, on...)
		}},
		{"create a token", func(on ...store.AuditEvent) error {
			return b.PutToken(ctx, store.Token{ID: "new", Hash: "new", CreateTime: day0}, on...)
		}},
		{"revoke a token", func(on ...store.AuditEvent) error { return b.RevokeToken(ctx, "kept", day0, on...) }},
		{"revoke it again", func(on ...store.AuditEvent) error { return b.RevokeToken(ctx, "kept", day0, on...) }},
		{"mint an epoch", func(on ...store.AuditEvent) error { return b.NewEpoch(ctx, "an-epoch", day0, on...) }},
		{"purge a project", func(on ...store.AuditEvent) error { return b.PurgeProject(ctx, key, on...) }},
	}
}

// beforeActs makes what the acts act on.
func beforeActs(t T, b store.Backend, key memory.ProjectKey) {
	t.Helper()
	for _, err := range []error{
		b.PutToken(ctx, store.Token{ID: "kept", Hash: "kept", CreateTime: day0}),
		b.PutSetting(ctx, "acme", "kept", []byte(`{"b":1}`), 0),
	} {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	if _, err := b.Commit(ctx, store.CommitRequest{Project: key, Now: day0, Changes: []memory.Change{put("a.md", "x")}}); err != nil {
		t.Fatalf("%v", err)
	}
}

func actsAreOnRecord(_ *testing.T, e *env) {
	beforeActs(e.t, e.b, e.key)
	var want []string
	for _, a := range acts(e.b, e.key) {
		ev := store.AuditEvent{Time: day0.Add(time.Minute), Team: "acme", Principal: "token:ann", Action: a.name, Subject: "s", Detail: "d", RequestID: "q"}
		e.must(a.do(ev, store.AuditEvent{Time: day0, Action: a.name + " too"}))
		want = append([]string{a.name + " too", a.name}, want...)
	}
	// What is refused leaves no event.
	nothing := store.AuditEvent{Time: day0, Action: "nothing"}
	other := memory.ProjectKey{Team: "beta", Project: "new"}
	e.wants(e.b.CreateProject(ctx, other, day0.Add(time.Hour), nothing), memory.ErrAlreadyExists)
	e.wants(e.b.PutSetting(ctx, "acme", "kept", []byte(`{}`), 7, nothing), memory.ErrETagMismatch)
	e.wants(e.b.PutSetting(ctx, "acme", "kept", []byte(`{}`), 0, nothing), memory.ErrETagMismatch)
	e.wants(e.b.PutToken(ctx, store.Token{ID: "new", Hash: "else", CreateTime: day0.Add(time.Hour)}, nothing), memory.ErrAlreadyExists)
	e.wants(e.b.RevokeToken(ctx, "none", day0, nothing), memory.ErrNotFound)
	e.wants(e.b.NewEpoch(ctx, "an-epoch", day0.Add(time.Hour), nothing), memory.ErrAlreadyExists)
	e.wants(e.b.PurgeProject(ctx, e.key, nothing), memory.ErrNotFound)
	e.reopen()
	events, err := e.b.AuditEvents(ctx, "", 0, 0)
	e.must(err)
	var got []string
	for _, ev := range events {
		got = append(got, ev.Action)
	}
	e.equal("on record", got, want)
	first := events[len(events)-1]
	first.ID = 0
	e.equal("whole value", first, store.AuditEvent{Time: day0.Add(time.Minute), Team: "acme", Principal: "token:ann",
		Action: "create a project", Subject: "s", Detail: "d", RequestID: "q", Count: 1})
}

// NothingOffTheRecord tries every act that is put on record while the audit log cannot be
// written: each fails, and nothing of it was done. The store is new and empty; breakLog
// makes every write to its audit log fail.
func NothingOffTheRecord(t *testing.T, b store.Backend, breakLog func()) {
	t.Helper()
	key := memory.ProjectKey{Team: "acme", Project: "app"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(b.CreateProject(ctx, key, day0))
	beforeActs(t, b, key)
	breakLog()
	if _, err := b.AppendAudit(ctx, store.AuditEvent{Time: day0}); err == nil {
		t.Fatal("the audit log can be written")
	}
	for _, a := range acts(b, key) {
		if err := a.do(store.AuditEvent{Time: day0, Action: a.name}); err == nil {
			t.Errorf("%s: done off the record", a.name)
		}
	}
	epoch, err := b.Epoch(ctx)
	must(err)
	if epoch == "an-epoch" {
		t.Error("an epoch was minted")
	}
	projects, err := b.Projects(ctx, "")
	must(err)
	if len(projects) != 1 || projects[0] != key {
		t.Errorf("projects %v, want %v alone", projects, key)
	}
	if m, err := b.Get(ctx, key, "a.md", 0); err != nil || string(m.Content) != "x" {
		t.Errorf("a.md: %q, %v", m.Content, err)
	}
	tokens, err := b.Tokens(ctx, "")
	must(err)
	if len(tokens) != 1 || !tokens[0].RevokeTime.IsZero() {
		t.Errorf("tokens %+v, want the one from before, not revoked", tokens)
	}
	if doc, version, err := b.Setting(ctx, "acme", "kept"); err != nil || string(doc) != `{"b":1}` || version != 1 {
		t.Errorf("setting %s at %d, %v", doc, version, err)
	}
	if _, version, err := b.Setting(ctx, "beta", "policy"); err != nil || version != 0 {
		t.Errorf("a setting was made: version %d, %v", version, err)
	}
}

func repeatedEvents(_ *testing.T, e *env) {
	at := day0.Add(time.Second + 1)
	first, err := e.b.AppendAudit(ctx, store.AuditEvent{Time: day0, Action: "first"})
	e.must(err)
	second, err := e.b.AppendAudit(ctx, store.AuditEvent{Time: day0, Action: "second", Count: 3, LastTime: at})
	e.must(err)
	if first <= 0 || second <= first {
		e.t.Fatalf("ids %d and %d, want them positive and ascending", first, second)
	}
	e.must(e.b.RepeatAudit(ctx, first, 2, at))
	e.must(e.b.RepeatAudit(ctx, first, 40, at.Add(time.Minute)))
	e.must(e.b.RepeatAudit(ctx, second+100, 1, at)) // nobody's
	e.reopen()
	events, err := e.b.AuditEvents(ctx, "", 0, 0)
	e.must(err)
	e.equal("events", events, []store.AuditEvent{
		{ID: second, Time: day0, Action: "second", Count: 3, LastTime: at},
		{ID: first, Time: day0, Action: "first", Count: 43, LastTime: at.Add(time.Minute)},
	})
}

func auditTrimmed(_ *testing.T, e *env) {
	const old = 2100 // more than one slice of every store
	events := make([]store.AuditEvent, 0, old)
	for i := range old {
		events = append(events, store.AuditEvent{Time: day0.Add(time.Duration(i)), Action: "old"})
	}
	e.must(e.b.PutSetting(ctx, "acme", "x", []byte(`{}`), 0, events...)) // many in one step
	cut := day0.Add(time.Hour)
	n, err := e.b.TrimAudit(ctx, day0)
	e.must(err)
	e.equal("older than the first", n, int64(0))
	e.must1(e.b.AppendAudit(ctx, store.AuditEvent{Time: cut, Action: "kept"}))
	// A clock that was behind: among newer ones of the same slice it goes too.
	e.must1(e.b.AppendAudit(ctx, store.AuditEvent{Time: day0, Action: "old"}))
	last := e.must1(e.b.AppendAudit(ctx, store.AuditEvent{Time: cut.Add(time.Hour), Action: "kept"}))
	n, err = e.b.TrimAudit(ctx, cut)
	e.must(err)
	e.equal("trimmed", n, int64(old+1))
	n, err = e.b.TrimAudit(ctx, cut)
	e.must(err)
	e.equal("again", n, int64(0))
	e.reopen()
	left, err := e.b.AuditEvents(ctx, "", 0, 0)
	e.must(err)
	for _, ev := range left {
		e.equal("left", ev.Action, "kept")
	}
	e.equal("left", len(left), 2)
	if id := e.must1(e.b.AppendAudit(ctx, store.AuditEvent{Time: cut})); id <= last {
		e.t.Fatalf("id %d after %d: an id came again", id, last)
	}
}
