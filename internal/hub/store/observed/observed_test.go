package observed_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/store"
	"github.com/memsvc/memsvc/internal/hub/store/inmem"
	"github.com/memsvc/memsvc/internal/hub/store/observed"
	"github.com/memsvc/memsvc/internal/hub/store/storetest"
	"github.com/memsvc/memsvc/internal/memory"
)

// The wrapper keeps every promise of what it wraps.
func TestPromises(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(storetest.T) store.Backend {
			return observed.New(inmem.New(inmem.Options{}), observed.Options{Registerer: prometheus.NewRegistry()})
		},
	})
}

var (
	ctx = context.Background()
	key = memory.ProjectKey{Team: "acme", Project: "payments"}
)

const secret = "content-that-must-not-be-seen"

// counts returns the number of observations by op and outcome.
func counts(t *testing.T, reg *prometheus.Registry) map[string]uint64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]uint64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += l.GetName() + "=" + l.GetValue() + " "
			}
			switch f.GetName() {
			case "memsvc_store_operation_seconds":
				out[strings.TrimSpace(labels)] = m.GetHistogram().GetSampleCount()
			case "memsvc_store_committed_bytes_total":
				out["bytes"] = uint64(m.GetCounter().GetValue())
			}
		}
	}
	return out
}

func commit(content string, p memory.Precondition) store.CommitRequest {
	return store.CommitRequest{Project: key, Now: time.Unix(1, 0), Changes: []memory.Change{{Path: "a.md", Kind: memory.Put, Content: []byte(content), Precondition: p}}}
}

func TestMetricsHaveBoundedLabels(t *testing.T) {
	reg := prometheus.NewRegistry()
	b := observed.New(inmem.New(inmem.Options{}), observed.Options{Registerer: reg})
	if err := b.CreateProject(ctx, key, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = b.Commit(ctx, commit(secret, memory.Precondition{})) // one revision, then unchanged
	}
	_, err := b.Commit(ctx, commit("x", memory.IfAbsent()))
	if !errors.Is(err, memory.ErrETagMismatch) {
		t.Fatalf("got %v, want the store's own answer", err)
	}
	dry := commit("other", memory.Precondition{})
	dry.ValidateOnly = true
	_, _ = b.Commit(ctx, dry)
	_, _ = b.Get(ctx, key, "never.md", 0)
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, _ = b.Teams(over)
	_ = b.Close()
	_, _ = b.Teams(ctx)
	got := counts(t, reg)
	want := map[string]uint64{
		"op=create_project outcome=ok":    1,
		"op=commit outcome=ok":            3,
		"op=commit outcome=ETAG_MISMATCH": 1,
		"op=validate outcome=ok":          1,
		"op=get outcome=NOT_FOUND":        1,
		"op=teams outcome=CANCELLED":      1,
		"op=teams outcome=CLOSED":         1,
		"bytes":                           uint64(len(secret)),
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: got %d, want %d", k, got[k], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got series %v, want %v", got, want)
	}
}

// broken fails every read for reasons of its own.
type broken struct{ store.Backend }

func (broken) Teams(context.Context) ([]memory.Team, error) { return nil, errors.New("disk on fire") }

func TestLogsSlowAndFailed(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	b := observed.New(broken{inmem.New(inmem.Options{})}, observed.Options{
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Slow:   2 * time.Second,
		Now:    func() time.Time { now = now.Add(time.Second); return now }, // every operation takes a second
	})
	if err := b.CreateProject(ctx, key, now); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Fatalf("a quick success was logged: %s", out.String())
	}
	_, _ = b.Teams(ctx)
	if got := out.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "op=teams") || !strings.Contains(got, "disk on fire") {
		t.Fatalf("a failure was logged as %q", got)
	}
	out.Reset()
	slow := observed.New(b.Unwrap(), observed.Options{Logger: slog.New(slog.NewTextHandler(&out, nil)), Slow: time.Nanosecond})
	_, _ = slow.Commit(ctx, commit(secret, memory.Precondition{}))
	_, _ = slow.Commit(ctx, commit("x", memory.IfAbsent())) // an answer, though slow, is no failure
	got := out.String()
	if strings.Count(got, "level=WARN") != 2 || !strings.Contains(got, "subject=teams/acme/projects/payments") {
		t.Fatalf("slow commits were logged as %q", got)
	}
	if strings.Contains(got, secret) {
		t.Fatal("the log holds content")
	}
}

func TestBackupNeedsABackuper(t *testing.T) {
	b := observed.New(inmem.New(inmem.Options{}), observed.Options{})
	if err := b.Backup(ctx, t.TempDir()+"/x"); !errors.Is(err, memory.ErrUnavailable) {
		t.Fatalf("got %v, want UNAVAILABLE", err)
	}
}
