package hub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// TestRESTRefusesWhatIsNotUTF8 answers 400 with a reason and an id that is in the log,
// whoever asks, and never with a library's text.
func TestRESTRefusesWhatIsNotUTF8(t *testing.T) {
	h := hubtest.Start(t, hubtest.Options{})
	writer := "Bearer " + h.Token("acme", "app", "writer")
	const base = "/v1/" + project
	for _, x := range []struct {
		method, path, reason string
	}{
		{"GET", base + "/memories/%ff.md", "INVALID_PATH"},
		{"PUT", base + "/memories/a/%c0%ae%c0%ae/x.md", "INVALID_PATH"},
		{"DELETE", base + "/memories/%ff.md", "INVALID_PATH"},
		{"GET", "/v1/teams/%ff/projects/app/memories", "INVALID_PATH"},
		{"GET", "/v1/teams/%c0%ae/guardPolicy", "INVALID_PATH"},
		{"GET", "/v1/teams/acme/projects/%ff/memories:watch", "INVALID_PATH"},
		{"GET", base + "/memories?pageToken=%ff", "INVALID_ARGUMENT"},
		{"GET", base + "/memories?%ff=1", "INVALID_ARGUMENT"},
		{"GET", base + "/memories:search?query=%c0%ae", "INVALID_ARGUMENT"},
		{"GET", base + "/memories:watch?epoch=%ff", "INVALID_ARGUMENT"},
		{"PUT", base + "/memories/a.md?message=%ff", "INVALID_ARGUMENT"},
		{"GET", "/v1/auditEvents?teamId=%ff", "INVALID_ARGUMENT"},
	} {
		for _, credential := range []string{"", writer} {
			status, id, body := ask(t, h, x.method, x.path, credential)
			if status != http.StatusBadRequest || !strings.Contains(body, `"`+x.reason+`"`) {
				t.Errorf("%s %s: %d %s, want 400 %s", x.method, x.path, status, body, x.reason)
			}
			if id == "" || !strings.Contains(h.Log.String(), id) {
				t.Errorf("%s %s: request id %q is not in the log", x.method, x.path, id)
			}
		}
	}
	for _, path := range []string{base + "/memories", base, base + "/memories/a.md"} {
		if status, _, body := ask(t, h, "GET", path, "Bearer \xff\xfe"); status != http.StatusUnauthorized {
			t.Errorf("%s with a credential that is no text: %d %s, want 401", path, status, body)
		}
	}
}

// ask returns the status, the request id and the body of an answer.
func ask(t *testing.T, h *hubtest.Hub, method, path, credential string) (status int, id, body string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+h.HTTPAddr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if credential != "" {
		req.Header.Set("Authorization", credential)
	}
	if method == http.MethodPut {
		req.Header.Set("Content-Type", "text/markdown")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	return res.StatusCode, res.Header.Get("X-Request-Id"), string(text)
}
