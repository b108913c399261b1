package authn_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/memsvc/memsvc/internal/hub/authn"
	"github.com/memsvc/memsvc/internal/memory"
)

// directory is a table of tokens that counts look-ups and can be in trouble.
type directory struct {
	mu      sync.Mutex
	tokens  map[string]authn.Identity
	lookups int
	trouble error
	told    func() // called when the table was asked, before its answer arrives; nil: nothing
}

func (d *directory) TokenByHash(_ context.Context, hash string) (authn.Identity, error) {
	id, err := d.lookUp(hash)
	if d.told != nil {
		d.told()
	}
	return id, err
}

func (d *directory) lookUp(hash string) (authn.Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups++
	if d.trouble != nil {
		return authn.Identity{}, d.trouble
	}
	id, ok := d.tokens[hash]
	if !ok {
		return authn.Identity{}, memory.ErrNotFound
	}
	return id, nil
}

func (d *directory) change(hash string, f func(*authn.Identity)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := d.tokens[hash]
	f(&id)
	d.tokens[hash] = id
}

func mint(t *testing.T, d *directory) (text, hash string) {
	t.Helper()
	text, id, hash, err := authn.Mint()
	if err != nil {
		t.Fatal(err)
	}
	d.tokens[hash] = authn.Identity{ID: id, Name: "n", Hash: hash, Role: "reader"}
	return text, hash
}

func TestTokenForm(t *testing.T) {
	form := regexp.MustCompile(`^msv_[0-9A-Za-z]{49}$`)
	seen := map[string]bool{}
	for range 500 {
		text, id, hash, err := authn.Mint()
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(text) || !authn.WellFormed(text) || hash != authn.Hash(text) || seen[text] || seen[id] {
			t.Fatalf("minted %d chars, id %s", len(text), id)
		}
		seen[text], seen[id] = true, true
		// Any one digit changed is noticed.
		i := 4 + len(seen)%49
		other := byte('A')
		if text[i] == 'A' {
			other = 'B'
		}
		if authn.WellFormed(text[:i] + string(other) + text[i+1:]) {
			t.Fatalf("a token with another digit at %d is well-formed", i)
		}
	}
}

func FuzzWellFormed(f *testing.F) {
	f.Add("msv_")
	f.Add("msv_" + strings.Repeat("0", 49))
	f.Add(strings.Repeat("é", 30))
	f.Fuzz(func(t *testing.T, s string) {
		if authn.WellFormed(s) && (len(s) != 53 || !strings.HasPrefix(s, "msv_")) {
			t.Errorf("%q is well-formed", s)
		}
	})
}

func TestAuthenticate(t *testing.T) {
	d := &directory{tokens: map[string]authn.Identity{}}
	a := authn.New(d, authn.Options{})
	good, _ := mint(t, d)
	revoked, hash := mint(t, d)
	d.change(hash, func(id *authn.Identity) { id.Revoked = true })
	expired, hash := mint(t, d)
	d.change(hash, func(id *authn.Identity) { id.Expire = time.Now().Add(-time.Second) })
	unknown, _, _, err := authn.Mint()
	if err != nil {
		t.Fatal(err)
	}
	if id, err := a.Authenticate(t.Context(), "Bearer "+good); err != nil || id.Role != "reader" {
		t.Errorf("good token: %+v, %v", id, err)
	}
	texts := map[string]bool{}
	for name, header := range map[string]string{
		"revoked": "Bearer " + revoked, "expired": "Bearer " + expired, "unknown": "Bearer " + unknown,
		"none": "", "basic": "Basic " + good, "malformed": "Bearer msv_x", "bare": good,
	} {
		_, err := a.Authenticate(t.Context(), header)
		if !errors.Is(err, memory.ErrUnauthenticated) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		texts[err.Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("refusals are told apart: %v", texts)
	}
}

// TestTroubleIsNotARefusal keeps the store's trouble apart from a bad token, and
// does not remember it.
func TestTroubleIsNotARefusal(t *testing.T) {
	d := &directory{tokens: map[string]authn.Identity{}, trouble: errors.New("disk")}
	a := authn.New(d, authn.Options{})
	text, _ := mint(t, d)
	if _, err := a.Authenticate(t.Context(), "Bearer "+text); err == nil || errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("error %v", err)
	}
	d.trouble = nil
	if _, err := a.Authenticate(t.Context(), "Bearer "+text); err != nil {
		t.Errorf("error %v after the trouble", err)
	}
}

// TestCached asks the directory once in 5 s, for unknown tokens too.
func TestCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{tokens: map[string]authn.Identity{}}
		a := authn.New(d, authn.Options{})
		text, _ := mint(t, d)
		for range 100 {
			if _, err := a.Authenticate(t.Context(), "Bearer "+text); err != nil {
				t.Fatal(err)
			}
		}
		if d.lookups != 1 {
			t.Errorf("%d look-ups", d.lookups)
		}
		time.Sleep(5 * time.Second)
		if _, err := a.Authenticate(t.Context(), "Bearer "+text); err != nil || d.lookups != 2 {
			t.Errorf("error %v, %d look-ups after 5 s", err, d.lookups)
		}
	})
}

// TestRevokedWhileAsked revokes a token while an answer about it is under way, which is
// older: it is not believed afterwards.
func TestRevokedWhileAsked(t *testing.T) {
	d := &directory{tokens: map[string]authn.Identity{}}
	a := authn.New(d, authn.Options{})
	text, hash := mint(t, d)
	d.told = func() {
		d.told = nil
		d.change(hash, func(id *authn.Identity) { id.Revoked = true })
		a.Revoked(d.tokens[hash].ID)
	}
	if _, err := a.Authenticate(t.Context(), "Bearer "+text); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), "Bearer "+text); !errors.Is(err, memory.ErrUnauthenticated) {
		t.Errorf("after the revocation: %v", err)
	}
}

// TestHold ends a stream when its token is revoked here, is revoked elsewhere, and
// expires; each within 10 s.
func TestHold(t *testing.T) {
	for _, tc := range []struct {
		name   string
		end    func(d *directory, a *authn.Authenticator, hash string)
		within time.Duration
	}{
		{"revoked here", func(d *directory, a *authn.Authenticator, hash string) {
			d.change(hash, func(id *authn.Identity) { id.Revoked = true })
			a.Revoked(d.tokens[hash].ID)
		}, 0},
		{"revoked elsewhere", func(d *directory, _ *authn.Authenticator, hash string) {
			d.change(hash, func(id *authn.Identity) { id.Revoked = true })
		}, 10 * time.Second},
		{"expired", func(*directory, *authn.Authenticator, string) {}, 64 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &directory{tokens: map[string]authn.Identity{}}
				a := authn.New(d, authn.Options{})
				text, hash := mint(t, d)
				if tc.name == "expired" {
					d.change(hash, func(id *authn.Identity) { id.Expire = time.Now().Add(time.Minute) })
				}
				id, err := a.Authenticate(t.Context(), "Bearer "+text)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := a.Hold(t.Context(), id)
				defer stop()
				if tc.name != "expired" {
					time.Sleep(20 * time.Second)
					if ctx.Err() != nil {
						t.Fatal("the stream ended while its token held")
					}
				}
				begin := time.Now()
				tc.end(d, a, hash)
				<-ctx.Done()
				if took := time.Since(begin); took > tc.within {
					t.Errorf("the stream ended after %v, want %v", took, tc.within)
				}
				if !errors.Is(context.Cause(ctx), memory.ErrUnauthenticated) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
			})
		})
	}
}

// TestHoldThroughTrouble keeps streams while the directory does not answer.
func TestHoldThroughTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &directory{tokens: map[string]authn.Identity{}}
		a := authn.New(d, authn.Options{})
		text, _ := mint(t, d)
		id, err := a.Authenticate(t.Context(), "Bearer "+text)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := a.Hold(t.Context(), id)
		defer stop()
		d.mu.Lock()
		d.trouble = errors.New("disk")
		d.mu.Unlock()
		time.Sleep(time.Minute)
		if ctx.Err() != nil {
			t.Error("the store's trouble ended a stream")
		}
	})
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authn.New(&directory{}, authn.Options{RatePerSecond: 10, Burst: 5})
		one, two := authn.Identity{ID: "one"}, authn.Identity{ID: "two"}
		for range 5 {
			if err := a.Allow(one, 1); err != nil {
				t.Fatal(err)
			}
		}
		err := a.Allow(one, 1)
		var e *memory.Error
		if !errors.As(err, &e) || e.Reason != memory.ReasonRateLimited || e.RetryAfter <= 0 || e.RetryAfter > 100*time.Millisecond {
			t.Fatalf("sixth call: %v", err)
		}
		if err := a.Allow(two, 1); err != nil {
			t.Errorf("another token was held back: %v", err)
		}
		time.Sleep(e.RetryAfter)
		if err := a.Allow(one, 1); err != nil {
			t.Errorf("after the pause: %v", err)
		}
		time.Sleep(time.Second)
		if err := a.Allow(one, 3); err != nil {
			t.Errorf("three at once: %v", err)
		}
		if err := a.Allow(one, 3); !errors.As(err, &e) || e.RetryAfter != 100*time.Millisecond {
			t.Errorf("three more of two: %v, want to wait for one", err)
		}
		time.Sleep(time.Second)
		if err := a.Allow(one, 1000); err != nil {
			t.Errorf("more than there can be: %v", err)
		}
	})
}
