package observetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/hubtest"
)

// silent are the panels that show nothing in this world, by dashboard and title, each
// with why that is right.
var silent = map[string]string{}

// TestAgainstPrometheus lets a real Prometheus collect from a real hub and real agents
// that were through everything, and asks it what the dashboards and the rules ask.
func TestAgainstPrometheus(t *testing.T) {
	tool(t, "prometheus")
	w := newWorld(t)
	guarded := withTLS(t)
	s := startPrometheus(t, map[string][]string{
		"memsvc": {w.hubOps}, "memsvc-tls": {guarded.OpsAddr}, "memsync": w.agentsOps,
		"mixed": {w.hubOps, guarded.OpsAddr}, // as if they were replicas of one database, which they are not
	})
	begin := time.Now()
	// Work goes on, so that rates have something to show. Ten samples of everyone.
	hubtest.Eventually(t, patience, "ten samples of everyone", func() bool {
		n := strconv.Itoa(int(time.Now().UnixNano()))
		w.put(t, "teams/acme/projects/pay/memories/project_n"+n+".md", note("n"+n, "text"), http.StatusCreated)
		w.put(t, "teams/acme/projects/pay/memories/project_k"+n+".md", note("k"+n, fakeSecret()), http.StatusBadRequest)
		w.ann.write("pay/project_ann.md", note("ann", n))
		got, err := s.now(`count_over_time(up{job=~"mems.*"}[5m])`)
		must(t, err)
		enough := 0
		for _, series := range got {
			if text, ok := series.Value[1].(string); ok && len(text) > 1 {
				enough++
			}
		}
		return enough == 2+len(w.agentsOps)
	})
	families := w.catalog(t)
	maps.Copy(families, scrape(t, guarded.OpsAddr))
	maps.Copy(families, w.catalog(t)) // the busy hub's labels prevail
	c := checker{families: families, server: s}

	t.Run("dashboards", func(t *testing.T) { panelsAnswer(t, c, begin) })
	t.Run("variables", func(t *testing.T) { variablesAnswer(t, s) })
	t.Run("rules", func(t *testing.T) { rulesAnswer(t, c) })
	t.Run("the checker finds faults", func(t *testing.T) {
		for expr, want := range map[string]string{
			`memsvc_no_such_metric`:                                 `metric "memsvc_no_such_metric" does not exist`,
			`memsvc_watchers_bucket`:                                `metric "memsvc_watchers_bucket" does not exist`,
			`memsvc_commits_total{reason="x"}`:                      `no label "reason"`,
			`sum by (reason) (memsvc_commits_total)`:                `label "reason" is used`,
			`up and on (zone) memsvc_ready`:                         `label "zone" is used`,
			`sum by (le) (rate(memsvc_delivery_seconds_count[5m]))`: `label "le" is used`,
			`sum(`: "parse error",
		} {
			if got := strings.Join(c.check(expr), "; "); !strings.Contains(got, want) {
				t.Errorf("%s: found %q, want %q", expr, got, want)
			}
		}
	})
}

// panelsAnswer asks what every panel asks.
func panelsAnswer(t *testing.T, c checker, begin time.Time) {
	end := time.Now()
	seen := map[string]bool{}
	for file, b := range boards(t) {
		for _, p := range b.Panels {
			where := b.UID + ": " + p.Title
			found, labels := 0, map[string]bool{}
			for _, target := range p.Targets {
				expr := filled(target.Expr)
				for _, problem := range c.check(expr) {
					t.Errorf("%s: panel %q: %s\n%s", file, p.Title, problem, expr)
				}
				var data struct{ Result []sample }
				if err := c.server.call("query_range", url.Values{
					"query": {expr}, "step": {"1"}, "start": {unix(begin)}, "end": {unix(end)},
				}, &data); err != nil {
					t.Errorf("%s: panel %q: %v\n%s", file, p.Title, err, expr)
				}
				for _, series := range data.Result {
					for l := range series.Metric {
						labels[l] = true
					}
					if series.real() {
						found++
					}
				}
			}
			if p.Type == "row" {
				continue
			}
			switch why, excused := silent[where]; {
			case found == 0 && !excused:
				t.Errorf("%s: panel %q shows nothing\n%s", file, p.Title, p.Targets[0].Expr)
			case found > 0 && excused:
				t.Errorf("%s: panel %q shows something; it needs no excuse: %s", file, p.Title, why)
			case found > 0:
				for _, l := range p.shown() {
					if !labels[l] {
						t.Errorf("%s: panel %q shows label %q, which no series of its has", file, p.Title, l)
					}
				}
			}
			seen[where] = true
		}
	}
	for where := range silent {
		if !seen[where] {
			t.Errorf("%s: no such panel", where)
		}
	}
	t.Logf("%d panels, %d without data", len(seen), len(silent))
}

// variablesAnswer asks what the variables ask: each must offer something.
func variablesAnswer(t *testing.T, s *server) {
	form := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for file, b := range boards(t) {
		for _, v := range b.Templating.List {
			if v.Type != "query" {
				continue
			}
			var q struct{ Query string }
			must(t, json.Unmarshal(v.Query, &q))
			m := form.FindStringSubmatch(q.Query)
			if m == nil {
				t.Errorf("%s: variable %s: %q is not understood", file, v.Name, q.Query)
				continue
			}
			var values []string
			if err := s.call("label/"+m[2]+"/values", url.Values{"match[]": {filled(m[1])}}, &values); err != nil || len(values) == 0 {
				t.Errorf("%s: variable %s offers %v, error %v", file, v.Name, values, err)
			}
		}
	}
}

// rulesAnswer checks every rule's expression, that Prometheus evaluated it without
// trouble, and that exactly those alerts stir that this world gives cause to.
func rulesAnswer(t *testing.T, c checker) {
	want := []string{
		"MemsvcCertificateExpiresSoon", // the hub with TLS has one for an hour
		"MemsvcEpochsDiffer",           // the job whose hubs have nothing to do with each other
		"MemsyncFilesRefused",
		"MemsyncLinkHalted",
		"MemsyncNotInTouch", // bob's lost hub
	}
	queries := map[string]string{}
	var wrong []string
	defer func() {
		for _, w := range wrong {
			t.Error(w)
		}
	}()
	// A collection that a busy machine held up for a second stirs alerts until the next.
	hubtest.Eventually(t, patience, "the rules are evaluated, and those alerts stir", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct {
					Name, Query, Health, LastError, State string
				}
			}
		}
		must(t, c.server.call("rules", nil, &data))
		stirring := []string{}
		wrong = nil
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				queries[r.Name] = r.Query
				if r.Health != "ok" || r.LastError != "" {
					wrong = append(wrong, fmt.Sprintf("%s: %s %s", r.Name, r.Health, r.LastError))
				}
				if r.State != "inactive" && !byTime[r.Name] {
					stirring = append(stirring, r.Name)
				}
			}
		}
		slices.Sort(stirring)
		if !slices.Equal(stirring, want) {
			wrong = append(wrong, fmt.Sprintf("alerts stir: %v, want %v", stirring, want))
		}
		return len(wrong) == 0
	})
	for name, query := range queries {
		for _, problem := range c.check(query) {
			t.Errorf("%s: %s", name, problem)
		}
	}
	t.Logf("%d rules", len(queries))
}

// byTime are alerts that a slow or loaded machine may raise here.
var byTime = map[string]bool{
	"MemsvcCommitsSlow": true, "MemsvcWatchLag": true, "MemsvcNoticesLost": true, "MemsyncBehind": true, "MemsyncPropagationSlow": true,
	"MemsvcDiskNearlyFull": true, "MemsvcDiskFull": true, // this machine's disk
	"MemsvcFilesRefused": true, // as many as there was time for
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
