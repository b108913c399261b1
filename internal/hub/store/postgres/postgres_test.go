package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/postgres"
	"github.com/memsvc/memsvc/internal/hub/store/storetest"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestMain asks for fewer random sequences than the default: each makes a schema of its
// own and some thousand calls to a server.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("15"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

var ctx = context.Background()

func open(t storetest.T, opts postgres.Options) *postgres.Store {
	t.Helper()
	opts.Migrate = true
	s, err := postgres.Open(ctx, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// harness opens stores of so many handles, each in a schema of its own.
func harness(url string, handles int) storetest.Harness {
	var n atomic.Int64
	return storetest.Harness{
		New: func(ht storetest.T) store.Backend {
			// A cache that holds almost nothing, so that states are loaded again and again.
			opts := postgres.Options{URL: url, Schema: fmt.Sprintf("s%d", n.Add(1)), CacheEntries: 1}
			return openFleet(ht, opts, handles)
		},
		Reopen: func(ht storetest.T, b store.Backend) store.Backend {
			if err := b.Close(); err != nil {
				ht.Fatalf("close: %v", err)
			}
			opts := b.(*fleet).opts
			opts.CacheEntries = 0
			return openFleet(ht, opts, handles)
		},
	}
}

type fleet struct {
	*storetest.Fleet
	opts postgres.Options
}

func openFleet(t storetest.T, opts postgres.Options, n int) *fleet {
	t.Helper()
	var handles []store.Backend
	for range n {
		handles = append(handles, open(t, opts))
	}
	return &fleet{storetest.NewFleet(handles...), opts}
}

func TestPromises(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	storetest.Run(t, harness(server.Database()+"&pool_max_conns=8", 1))
}

// TestPromisesOfReplicas runs the suite on three handles in turn: no call goes to the
// handle that the one before went to.
func TestPromisesOfReplicas(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	storetest.Run(t, harness(server.Database()+"&pool_max_conns=4", 3))
}
