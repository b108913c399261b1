package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
)

func sharedPromises() []promise {
	return []promise{
		{"Leases", leases},
		{"Published", published},
	}
}

func shared(t *testing.T, e *env) store.Shared {
	t.Helper()
	s, ok := e.b.(store.Shared)
	if !ok {
		t.Skip("the backend is one process's own, so it need not share")
	}
	return s
}

func leases(t *testing.T, e *env) {
	s := shared(t, e)
	want := func(name, holder string, ttl time.Duration, want bool) {
		t.Helper()
		mine, err := s.Lease(ctx, name, holder, ttl)
		e.must(err)
		e.equal("lease "+name+" of "+holder, mine, want)
	}
	want("retention", "a", time.Hour, true)
	want("retention", "b", time.Hour, false)
	want("rescan", "b", time.Hour, true)
	want("retention", "a", time.Hour, true) // it keeps it
	want("retention", "a", 0, true)         // it gives it back
	want("retention", "b", time.Millisecond, true)
	// By the store's clock, it is over some time later.
	for end := time.Now().Add(time.Minute); ; {
		mine, err := s.Lease(ctx, "retention", "c", time.Hour)
		e.must(err)
		if mine {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a lease of a millisecond is not over after seconds")
		}
	}
	want("retention", "b", time.Hour, false)
	e.must(e.b.Close())
	if _, err := s.Lease(ctx, "retention", "c", time.Hour); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

func published(t *testing.T, e *env) {
	s := shared(t, e)
	e.must(s.Publish(ctx, "b", []byte("one")))
	e.must(s.Publish(ctx, "a", []byte("two")))
	e.must(s.Publish(ctx, "b", []byte("three")))
	e.must(s.Publish(ctx, "a", nil))
	e.must(s.Publish(ctx, "c", nil))
	got, err := s.Published(ctx, time.Hour)
	e.must(err)
	for i := range got {
		if got[i].Age < 0 || got[i].Age > time.Minute {
			t.Errorf("%s told something %v ago", got[i].Holder, got[i].Age)
		}
		got[i].Age = 0
	}
	e.equal("published", got, []store.Published{{Holder: "a", Doc: []byte("two")}, {Holder: "b", Doc: []byte("three")}, {Holder: "c"}})
	got, err = s.Published(ctx, 0)
	e.must(err)
	e.equal("just now", got, []store.Published(nil))
}
