package jsonhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
	"github.com/memsvc/memsvc/internal/lifecycle/model/jsonhttp"
)

// ask posts to a server that answers with handle, and returns what came of it and the
// pauses that were made.
func ask(t *testing.T, ctx context.Context, handle http.HandlerFunc) (answer map[string]any, pauses []time.Duration, err error) { //nolint:revive // t first, as everywhere
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	c := jsonhttp.Caller{Provider: "test", Client: jsonhttp.NewClient(), Pause: func(_ context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		return nil
	}}
	err = c.Post(ctx, s.URL+"/path?key=sk-hush", http.Header{"X-Api-Key": {"sk-hush"}}, map[string]string{"q": "private words"}, &answer)
	return answer, pauses, err
}

func TestStatuses(t *testing.T) {
	const body = `{"error":{"type":"%","message":"key sk-hush, private words"}}`
	for _, test := range []struct {
		status int
		kind   string
		tries  int
		want   error
		text   string
	}{
		{400, "invalid_request_error", 1, model.ErrDenied, "status 400 (invalid_request_error)"},
		{401, "authentication_error", 1, model.ErrDenied, "status 401"},
		{403, "sk-hush", 1, model.ErrDenied, "test: status 403: "},
		{404, "not_found_error", 1, model.ErrDenied, "status 404"},
		{307, "", 1, model.ErrDenied, "status 307"},
		{429, "rate_limit_error", 3, model.ErrBusy, "status 429"},
		{500, "api_error", 3, model.ErrBusy, "status 500"},
		{503, "", 3, model.ErrBusy, "status 503"},
		{529, "overloaded_error", 3, model.ErrBusy, "status 529 (overloaded_error)"},
	} {
		n := 0
		_, pauses, err := ask(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
			n++
			if r.URL.Path != "/path" {
				t.Errorf("%d: the redirect was followed with key %q", test.status, r.Header.Get("X-Api-Key"))
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "%", test.kind))
		})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || n != test.tries || len(pauses) != n-1 {
			t.Errorf("%d: %v after %d tries and %v", test.status, err, n, pauses)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "private") || strings.Contains(err.Error(), "127.0.0.1")) {
			t.Errorf("%d: the error tells too much: %v", test.status, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		name, value string
		min, max    time.Duration
		tries       int
	}{
		{"Retry-After", "7", 7 * time.Second, 7 * time.Second, 3},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond, 1500 * time.Millisecond, 3},
		{"Retry-After", time.Now().Add(40 * time.Minute).UTC().Format(http.TimeFormat), time.Minute, 40 * time.Minute, 1},
		{"Retry-After", "300", 300 * time.Second, 300 * time.Second, 1}, // too long to wait here
		{"Retry-After", "1e300", time.Hour, time.Hour, 1},
		{"Retry-After", "-5", 0, 0, 3},
		{"Retry-After", "soon", 0, 0, 3},
	} {
		n := 0
		_, pauses, err := ask(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			n++
			w.Header().Set(test.name, test.value)
			w.WriteHeader(429)
		})
		var busy *model.BusyError
		if !errors.As(err, &busy) || busy.RetryAfter < test.min || busy.RetryAfter > test.max || n != test.tries {
			t.Errorf("%s: %s: %v, %+v after %d tries", test.name, test.value, err, busy, n)
		}
		if len(pauses) > 0 && test.min > 0 && (pauses[0] < test.min || pauses[0] > test.max) {
			t.Errorf("%s: %s: paused %v", test.name, test.value, pauses)
		}
	}
}

func TestSecondTryHelps(t *testing.T) {
	n := 0
	answer, pauses, err := ask(t, t.Context(), func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(529)
			return
		}
		text, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"got":`+strconv.Quote(string(text))+`}`)
	})
	if err != nil || answer["got"] != `{"q":"private words"}` || len(pauses) != 1 || pauses[0] < 500*time.Millisecond || pauses[0] > 750*time.Millisecond {
		t.Errorf("%v, %v, %v", answer, pauses, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, body := range []string{"", "<html>private words</html>", `{"a":`, `"x"`, strings.Repeat(" ", 9<<20)} {
		_, _, err := ask(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if !errors.Is(err, model.ErrMalformed) || strings.Contains(err.Error(), "private") {
			t.Errorf("%.20q: %v", body, err)
		}
	}
}

// TestEndsWithItsContext: a provider that hangs is left, and none is waited for past the
// caller's time.
func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := ask(t, ctx, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the other side leave
		<-r.Context().Done()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	n := 0
	_, pauses, err := ask(t, endsSoon{t.Context()}, func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Retry-After", "15")
		w.WriteHeader(429)
	})
	if !errors.Is(err, model.ErrBusy) || n != 1 || len(pauses) != 0 {
		t.Errorf("no time left: %v after %d tries", err, n)
	}
}

// endsSoon is a context with ten seconds left, however long the test takes.
type endsSoon struct{ context.Context }

// Deadline is always as near.
func (endsSoon) Deadline() (time.Time, bool) { return time.Now().Add(10 * time.Second), true }

// TestUnreachable: nobody listens, or somebody does and hangs up at once.
func TestUnreachable(t *testing.T) {
	rude := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(rude.Close)
	for _, url := range []string{"http://127.0.0.1:1", rude.URL} {
		tries := 1
		c := jsonhttp.Caller{Provider: "test", Client: jsonhttp.NewClient(), Pause: func(context.Context, time.Duration) error { tries++; return nil }}
		err := c.Post(t.Context(), url, nil, struct{}{}, &struct{}{})
		if !errors.Is(err, model.ErrBusy) || strings.Contains(err.Error(), "127.0.0.1") || tries != 3 {
			t.Errorf("%s: %v after %d tries", url, err, tries)
		}
	}
}
