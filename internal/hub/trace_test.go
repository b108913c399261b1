package hub_test

import (
	"net/http"
	"testing"
	"time"

	memsvcv1 "github.com/memsvc/memsvc/api/proto/memsvc/v1"
	"github.com/memsvc/memsvc/internal/hub"
	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/telemetry/telemetrytest"
)

// TestTracedCalls puts calls of both APIs into the callers' traces, with the reason of
// a refusal, and makes no span of health checks.
func TestTracedCalls(t *testing.T) {
	r := telemetrytest.New(t)
	h := hubtest.Start(t, hubtest.Options{
		Config: func(c *hub.Config) { c.OTLPEndpoint = r.URL },
		Deps:   func(d *hub.Deps) { d.TracesEvery = 10 * time.Millisecond },
	})
	token := h.Token("acme", "app", "reader")
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.HTTPAddr+"/v1/"+project, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Traceparent", "00-"+trace+"-"+parent+"-01")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", res.Status, err)
	}
	c := as(t, h, token)
	_, err = c.commit(t, put("a.md", "x"))
	wantReason(t, err, memory.ReasonPermissionDenied)
	hubtest.Eventually(t, patience, "the hub is ready", func() bool {
		code, _ := fetch(t, "http://"+h.OpsAddr+"/readyz")
		return code == http.StatusOK
	})
	var get, commit telemetrytest.Span
	hubtest.Eventually(t, patience, "both spans", func() bool {
		for _, s := range r.Spans() {
			switch "/" + s.Name {
			case memsvcv1.MemoryService_GetProject_FullMethodName:
				get = s
			case memsvcv1.MemoryService_CommitChanges_FullMethodName:
				commit = s
			default:
				t.Fatalf("span %+v", s)
			}
		}
		return get.Name != "" && commit.Name != ""
	})
	if get.Trace != trace || get.Parent != parent || get.Failure != "" || get.Attributes["request_id"] == "" {
		t.Errorf("REST: %+v", get)
	}
	if commit.Parent != "" || commit.Failure != "PERMISSION_DENIED" {
		t.Errorf("refused: %+v", commit)
	}
}
