package e2e

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestTraceOfAnotherCaller writes by REST within a trace of the caller's: delivery and
// application are part of it. Spans say which process and which machine made them, and
// nothing else of either.
func TestTraceOfAnotherCaller(t *testing.T) {
	r := telemetrytest.New(t)
	h := hubtest.Start(t, hubtest.Options{
		Config: func(c *hub.Config) { c.OTLPEndpoint = r.URL },
		Deps:   func(d *hub.Deps) { d.TracesEvery = 10 * time.Millisecond },
	})
	m := newMachine(t, "A", h.GRPCAddr, h.TokenFile("acme", "pay", "writer"))
	m.background(t, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "MEMSYNC_OTLP_ENDPOINT="+r.URL, "OTEL_BSP_SCHEDULE_DELAY=10")
	})
	m.write("project_own.md", note("n", "own"))
	hubtest.Eventually(t, patience, "the agent's own edit", func() bool { _, ok := spanOf(r, "memsync.upload", ""); return ok })

	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		"http://"+h.HTTPAddr+"/v1/teams/acme/projects/pay/memories/project_rest.md", strings.NewReader(note("n", "by REST")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token("acme", "pay", "writer"))
	req.Header.Set("Content-Type", "text/markdown")
	req.Header.Set("If-None-Match", "*")
	req.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s, %v", res.Status, err)
	}
	m.has("project_rest.md", note("n", "by REST"))
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	instances := map[string]bool{}
	for name, service := range map[string]string{
		"memsvc.v1.MemoryService/CommitChanges": "memsvc", "memsvc.deliver": "memsvc", "memsync.apply": "memsync-agent",
	} {
		hubtest.Eventually(t, patience, "the span "+name, func() bool {
			s, ok := spanOf(r, name, trace)
			if ok && (s.Parent != parent || s.Failure != "") {
				t.Errorf("%+v", s)
			}
			if ok {
				instances[s.Resource["service.instance.id"]] = true
				want := []string{"host.name", "service.instance.id", "service.name", "service.version"}
				if d := cmp.Diff(want, slices.Sorted(maps.Keys(s.Resource))); d != "" || s.Service != service || s.Resource["host.name"] != machine {
					t.Errorf("resource %v: %s", s.Resource, d)
				}
			}
			return ok
		})
	}
	if instances[""] || len(instances) != 2 {
		t.Errorf("processes %v, want the hub's and the agent's", instances)
	}
	told := false
	for id := range instances {
		told = told || strings.Contains(h.Log.String(), "replica="+id)
	}
	if !told {
		t.Errorf("the hub's log does not name its instance, one of %v", instances)
	}
}

// spanOf returns a span that has come, of a trace unless that is "".
func spanOf(r *telemetrytest.Receiver, name, trace string) (telemetrytest.Span, bool) {
	for _, s := range r.Spans() {
		if s.Name == name && (trace == "" || s.Trace == trace) {
			return s, true
		}
	}
	return telemetrytest.Span{}, false
}
