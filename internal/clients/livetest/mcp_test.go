package livetest

import (
	"bufio"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// node22 skips the test where node is older than the suite and the inspector need.
func node22(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		t.Skipf("node cannot be run: %v", err)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 22 {
		t.Skipf("node 22 is needed, this is %s", strings.TrimSpace(string(out)))
	}
}

// serve runs the tool server on HTTP and returns an address that shows its token, for
// programs that cannot; it ends with the test.
func (m *machine) serve() string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), m.exe, "mcp", "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env = m.work, m.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		m.t.Fatal(err)
	}
	addr, file, _ := strings.Cut(strings.TrimSpace(line), " with the bearer token in ")
	token, err := os.ReadFile(file)
	if err != nil {
		m.t.Fatal(err)
	}
	target, err := url.Parse(addr)
	if err != nil {
		m.t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // a foreign name must reach the server as it came
		r.Out.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}})
	m.t.Cleanup(proxy.Close)
	return proxy.URL + "/"
}

// The conformance suite, but for what it can only ask of a server made for it: those
// scenarios call tools, resources and prompts of certain names.
func TestConformance(t *testing.T) {
	suite := find(t, "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")
	node22(t)
	m := newMachine(t)
	addr := m.serve()
	t.Log("suite", strings.TrimSpace(m.run(time.Minute, "node", suite, "--version")))
	failed := regexp.MustCompile(`(\d+) failed`)
	for _, scenario := range []string{
		"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list",
		"server-sse-multiple-streams", "dns-rebinding-protection",
	} {
		out, err := m.try(time.Minute, "node", suite, "server", "--url", addr, "--scenario", scenario)
		counts := failed.FindStringSubmatch(out)
		if err != nil || counts == nil || counts[1] != "0" {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}

// The inspector's command line lists and calls the tools over both transports.
func TestInspector(t *testing.T) {
	inspector := find(t, "inspector/node_modules/@modelcontextprotocol/inspector/package.json")
	bin := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(inspector))), ".bin", "mcp-inspector")
	node22(t)
	m := newMachine(t)
	for name, server := range map[string][]string{
		"stdio": {m.exe, "mcp"},
		"http":  {m.serve(), "--transport", "http"},
	} {
		call := func(args ...string) string {
			return m.run(2*time.Minute, "node", append(append([]string{bin, "--cli"}, server...), args...)...)
		}
		if out := call("--method", "tools/list"); !strings.Contains(out, `"memory_recall"`) || !strings.Contains(out, `"conflict_resolve"`) {
			t.Errorf("%s: %s", name, out)
		}
		if out := call("--method", "tools/call", "--tool-name", "memory_recall", "--tool-arg", "query="+prompt); !strings.Contains(out, "called lighthouse") {
			t.Errorf("%s: %s", name, out)
		}
	}
}
