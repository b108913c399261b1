package observetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// tool returns the path of one of Prometheus's programs, or skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("MEMSVC_PROMETHEUS")
	if dir == "" {
		t.Skip("needs Prometheus itself, which takes minutes to build: make rules does, and runs this")
	}
	return filepath.Join(dir, name)
}

// server is a running Prometheus.
type server struct{ url string }

// startPrometheus starts a Prometheus that collects every second from the targets of
// each job and evaluates the rules of deploy/prometheus, and ends it with the test.
func startPrometheus(t *testing.T, jobs map[string][]string) *server {
	t.Helper()
	program, dir := tool(t, "prometheus"), t.TempDir()
	rules, err := filepath.Abs(filepath.Join(root, "deploy/prometheus/rules"))
	must(t, err)
	var config strings.Builder
	fmt.Fprintf(&config, "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n", rules+"/*.yaml")
	for job, targets := range jobs {
		list, err := json.Marshal(targets)
		must(t, err)
		fmt.Fprintf(&config, "- job_name: %s\n  static_configs: [{targets: %s, labels: {namespace: test}}]\n", job, list)
	}
	file := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(file, []byte(config.String()), 0o600))
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address=127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it ends with the test's context, by our signal
	listening := regexp.MustCompile(`msg="Listening on".*address=(127\.0\.0\.1:\d+)`)
	lines := bufio.NewScanner(stderr)
	var log []string
	for lines.Scan() {
		log = append(log, lines.Text())
		if m := listening.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // until it ends
			s := &server{url: "http://" + m[1]}
			hubtest.Eventually(t, patience, "Prometheus is ready", s.ready)
			return s
		}
	}
	t.Fatalf("Prometheus does not start:\n%s", strings.Join(log, "\n"))
	return nil
}

func (s *server) ready() bool {
	res, err := http.Get(s.url + "/-/ready")
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// call asks the API and decodes the data of its answer. An error of the API is
// returned.
func (s *server) call(path string, params url.Values, into any) error {
	res, err := http.Get(s.url + "/api/v1/" + path + "?" + params.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, res.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// sample is a series of an answer. Values come as text, which tells NaN.
type sample struct {
	Metric map[string]string
	Value  [2]any   // of a query at one time
	Values [][2]any // of a query over time
}

// real reports whether any value is a number.
func (s sample) real() bool {
	for _, v := range append(s.Values, s.Value) {
		if text, ok := v[1].(string); ok && text != "NaN" {
			return true
		}
	}
	return false
}

// now evaluates an expression.
func (s *server) now(expr string) ([]sample, error) {
	var data struct{ Result []sample }
	err := s.call("query", url.Values{"query": {expr}}, &data)
	return data.Result, err
}
