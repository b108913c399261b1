package e2e

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/telemetry"
	"github.com/memsvc/memsvc/internal/telemetry/telemetrytest"
)

// TestOneTraceAnEdit follows one edit by its spans: the upload on one machine, the
// commit and the delivery on the hub, the application on the other machine, all in one
// trace; and none of them says what or which file it was.
func TestOneTraceAnEdit(t *testing.T) {
	r := telemetrytest.New(t)
	h := hubtest.Start(t, hubtest.Options{
		Config: func(c *hub.Config) { c.OTLPEndpoint = r.URL },
		Deps:   func(d *hub.Deps) { d.TracesEvery = 10 * time.Millisecond },
	})
	file := h.TokenFile(string(project.Team), string(project.Project), "writer")
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var ms []*machine
	for _, name := range []string{"A", "B"} {
		tr, err := telemetry.NewTracing(t.Context(), telemetry.TracingOptions{
			Service: "agent-" + name, Endpoint: r.URL, Logger: slog.New(slog.DiscardHandler), Every: 10 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := tr.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		m := newMachine(t, name, h.GRPCAddr, file, func(o *agent.DaemonOptions) { o.Tracing = tr })
		m.start()
		ms = append(ms, m)
	}
	a, b := ms[0], ms[1]
	inStep(t, a, b)
	const word = "platypus"
	a.write("project_"+word+".md", note("n", word))
	b.has("project_"+word+".md", note("n", word))
	b.write("project_other.md", note("n", "back"))
	a.has("project_other.md", note("n", "back"))
	inStep(t, a, b)

	// By name and service; the edit is the one that A uploads.
	find := func(service, name, trace string) (telemetrytest.Span, bool) {
		for _, s := range r.Spans() {
			if s.Service == service && s.Name == name && (trace == "" || s.Trace == trace) {
				return s, true
			}
		}
		return telemetrytest.Span{}, false
	}
	for _, way := range []struct{ from, to string }{{"agent-A", "agent-B"}, {"agent-B", "agent-A"}} {
		var up telemetrytest.Span
		hubtest.Eventually(t, patience, "the upload's span", func() bool {
			var ok bool
			up, ok = find(way.from, "memsync.upload", "")
			return ok
		})
		if up.Parent != "" || up.Failure != "" || up.Attributes["memsvc.project"] != project.String() {
			t.Errorf("upload %+v", up)
		}
		for _, want := range []struct{ service, name string }{
			{"memsvc", "memsvc.v1.MemoryService/CommitChanges"}, {"memsvc", "memsvc.deliver"}, {way.to, "memsync.apply"},
		} {
			hubtest.Eventually(t, patience, want.service+"'s span "+want.name+" in the trace", func() bool {
				s, ok := find(want.service, want.name, up.Trace)
				if ok && (s.Parent != up.ID || s.Failure != "" || s.Start < up.Start || s.End < s.Start) {
					t.Errorf("upload %+v, then %+v", up, s)
				}
				return ok
			})
		}
		if _, own := find(way.from, "memsync.apply", up.Trace); own {
			t.Errorf("%s has applied its own edit", way.from)
		}
	}
	for _, secret := range []string{word, strings.TrimSpace(string(token)), a.dir, b.dir} {
		if strings.Contains(r.Raw(), secret) {
			t.Errorf("the spans hold %q", secret[:8])
		}
	}
}
