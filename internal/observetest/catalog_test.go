package observetest

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

var update = flag.Bool("update", false, "write the tables of docs/observability.md anew")

// family is what is published of a metric.
type family struct {
	kind, help string
	labels     []string
}

// scrape returns the families that an ops port shows.
func scrape(t *testing.T, addr string) map[string]family {
	t.Helper()
	res, err := http.Get("http://" + addr + "/metrics")
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(res.Body)
	must(t, err)
	out := map[string]family{}
	for name, f := range families {
		labels := map[string]bool{}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = true
			}
		}
		out[name] = family{kind: strings.ToLower(dto.MetricType_name[int32(f.GetType())]), help: f.GetHelp(), labels: slices.Sorted(maps.Keys(labels))}
	}
	return out
}

// catalog is all that hub and agents show.
func (w *world) catalog(t *testing.T) map[string]family {
	t.Helper()
	out := scrape(t, w.hubOps)
	for _, addr := range w.agentsOps {
		for name, f := range scrape(t, addr) {
			if have, ok := out[name]; ok {
				both := map[string]bool{}
				for _, l := range append(slices.Clone(have.labels), f.labels...) {
					both[l] = true
				}
				f.labels = slices.Sorted(maps.Keys(both))
			}
			out[name] = f
		}
	}
	return out
}

// unit reads a metric's unit off its name, as the names promise.
func unit(name string) string {
	name = strings.TrimSuffix(name, "_total")
	switch {
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return "seconds since 1970"
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case strings.HasSuffix(name, "_bytes"):
		return "bytes"
	}
	return "count"
}

// tableOf returns the documentation of the metrics that begin with prefix.
func tableOf(families map[string]family, prefix string) string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | unit | meaning |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		f := families[name]
		labels := "–"
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", name, f.kind, labels, unit(name), f.help)
	}
	return b.String()
}

// TestDocumentedMetrics holds docs/observability.md against what the programs show.
func TestDocumentedMetrics(t *testing.T) {
	w := newWorld(t)
	guarded := withTLS(t) // for what only a hub with TLS has
	names := namesInSources(t)
	var got map[string]family
	all := func() bool {
		got = scrape(t, guarded.OpsAddr)
		maps.Copy(got, w.catalog(t))
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := got[name]; return !ok && unshown[name] == "" })
	}
	// An agent may count what its status tells of a moment later. What is missing then is
	// named below.
	for begin := time.Now(); !all() && time.Since(begin) < patience; {
	}
	file := filepath.Join(root, "docs/observability.md")
	text, err := os.ReadFile(file)
	must(t, err)
	doc := string(text)
	for _, prefix := range []string{"memsvc_", "memsync_"} {
		begin, end := "<!-- metrics of "+prefix+"* -->\n", "<!-- end -->\n"
		i := strings.Index(doc, begin)
		if i < 0 {
			t.Fatalf("docs/observability.md lacks %q", begin)
		}
		i += len(begin)
		j := i + strings.Index(doc[i:], end)
		want := tableOf(got, prefix)
		if *update {
			doc = doc[:i] + want + doc[j:]
			continue
		}
		if d := cmp.Diff(want, doc[i:j]); d != "" {
			t.Errorf("docs/observability.md is not what the programs show; run go test ./internal/observetest -run TestDocumentedMetrics -update, and read what it wrote (-shown +documented):\n%s", d)
		}
	}
	if *update {
		must(t, os.WriteFile(file, []byte(doc), 0o644))
	}
	// Nothing that the sources name is missing from what was shown: a metric that only
	// appears in trouble needs a beginning at zero, or a line in newWorld.
	for _, name := range names {
		if _, ok := got[name]; !ok && unshown[name] == "" {
			t.Errorf("%s: in the sources, and not shown by a hub and agents that were through everything", name)
		}
	}
	for name := range unshown {
		if _, ok := got[name]; ok {
			t.Errorf("%s is shown; it needs no excuse", name)
		}
	}
}

// unshown are metrics that this world cannot show, each with the reason.
var unshown = map[string]string{}

// namesInSources finds the metrics that the product's sources register.
func namesInSources(t *testing.T) []string {
	t.Helper()
	full := regexp.MustCompile(`"(memsvc_[a-z_]+|memsync_[a-z_]+[a-z])"`)
	agents := regexp.MustCompile(`(?:gauge|counter|desc)\("([a-z_]+)"|Namespace: "memsync", Name: "([a-z_]+)"`)
	found := map[string]bool{}
	for _, dir := range []string{"internal/hub", "internal/agent"} {
		must(t, filepath.WalkDir(filepath.Join(root, dir), func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil || !strings.Contains(string(text), "client_golang") {
				return err
			}
			for _, m := range full.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = true
			}
			if strings.Contains(dir, "agent") {
				for _, m := range agents.FindAllStringSubmatch(string(text), -1) {
					found["memsync_"+m[1]+m[2]] = true
				}
			}
			return nil
		}))
	}
	delete(found, "memsync_") // the prefix of a description
	if len(found) < 40 {
		t.Fatalf("only %d metrics found in the sources: %v", len(found), found)
	}
	return slices.Sorted(maps.Keys(found))
}
