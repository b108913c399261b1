package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hub/store"
)

// fakeShared is a table of leases whose clock is turned by hand.
type fakeShared struct {
	store.Shared
	now    time.Duration
	holder map[string]string
	until  map[string]time.Duration
}

func (f *fakeShared) Lease(_ context.Context, name, holder string, ttl time.Duration) (bool, error) {
	if f.holder[name] != holder && f.until[name] > f.now {
		return false, nil
	}
	f.holder[name], f.until[name] = holder, f.now+ttl
	return true, nil
}

// TestExclusive lets one of two replicas do the work at a time, and within a while.
func TestExclusive(t *testing.T) {
	shared := &fakeShared{holder: map[string]string{}, until: map[string]time.Duration{}}
	a, b := New(Config{Shared: shared}), New(Config{Shared: shared})
	runs := 0
	count := func(func() error) error { runs++; return nil }
	try := func(s *Service, work func(keep func() error) error, want int) {
		t.Helper()
		if err := s.exclusive(t.Context(), "work", time.Hour, work); err != nil {
			t.Fatal(err)
		}
		if runs != want {
			t.Errorf("%d runs, want %d", runs, want)
		}
	}
	try(a, func(keep func() error) error {
		try(b, count, 0) // a is at it
		shared.now += leaseFor - time.Second
		if err := keep(); err != nil {
			return err
		}
		shared.now += 2 * time.Second
		try(b, count, 0) // and has kept the lease
		return count(keep)
	}, 1)
	try(b, count, 1) // done within the hour
	shared.now += time.Hour
	try(b, count, 2)
	// A replica that dies at work leaves it after a while.
	if mine, err := shared.Lease(t.Context(), "other", a.replica, leaseFor); err != nil || !mine {
		t.Fatal(mine, err)
	}
	shared.now += leaseFor
	if err := b.exclusive(t.Context(), "other", 0, func(func() error) error { return errors.New("tried") }); err == nil {
		t.Error("the work of a dead replica was not taken over")
	}
	alone := New(Config{})
	try(alone, count, 3)
}
