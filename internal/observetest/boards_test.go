package observetest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// board is what these tests read of a dashboard.
type board struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct {
			Type, Name string
			Query      json.RawMessage
		}
	}
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ H, W, X, Y int }
	Datasource               struct{ UID string }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                struct{ UID string }
	}
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Transformations []struct {
		Options struct{ IndexByName map[string]int }
	}
}

// boards reads the dashboards, by file.
func boards(t *testing.T) map[string]board {
	t.Helper()
	out := map[string]board{}
	for name, text := range readAll(t, "deploy/grafana/dashboards/*.json") {
		var b board
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = b
	}
	return out
}

// filled is the expression with Grafana's variables filled in as "all" and a few
// seconds.
func filled(expr string) string {
	return strings.NewReplacer(
		"$__rate_interval", "5s", "$__interval", "1s", "$__range", "60s",
		"$job", ".*", "$instance", ".*", "$team", ".*",
	).Replace(expr)
}

// shown returns the labels that a panel shows of its series.
func (p panel) shown() []string {
	var out []string
	for _, tr := range p.Transformations {
		for column := range tr.Options.IndexByName {
			if column != "Value" {
				out = append(out, column)
			}
		}
	}
	for _, target := range p.Targets {
		for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// TestBoardsAreWhole checks what needs no Prometheus: that every panel can be read,
// lies on its own place, asks the chosen data source and says what it shows.
func TestBoardsAreWhole(t *testing.T) {
	uids := map[string]bool{}
	for file, b := range boards(t) {
		if b.UID == "" || uids[b.UID] || b.SchemaVersion < 39 {
			t.Errorf("%s: uid %q must be there once, schema %d must be a current one", file, b.UID, b.SchemaVersion)
		}
		uids[b.UID] = true
		variables := map[string]bool{}
		for _, v := range b.Templating.List {
			variables[v.Name] = true
		}
		ids, taken := map[int]bool{}, map[[2]int]string{}
		for _, p := range b.Panels {
			if ids[p.ID] {
				t.Errorf("%s: panel %q: id %d is taken", file, p.Title, p.ID)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, ok := taken[[2]int{x, y}]; ok {
						t.Fatalf("%s: panels %q and %q overlap", file, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
			if p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %q is too far right", file, p.Title)
			}
			if p.Type == "row" {
				continue
			}
			if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
				t.Errorf("%s: panel %q needs a description, a unit, a query and the chosen data source", file, p.Title)
			}
			for _, target := range p.Targets {
				if target.Datasource.UID != "${datasource}" || target.RefID == "" {
					t.Errorf("%s: panel %q: a query without data source or id", file, p.Title)
				}
				for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
					if !variables[m[1]] && !strings.HasPrefix(m[1], "__") {
						t.Errorf("%s: panel %q: variable $%s does not exist", file, p.Title, m[1])
					}
				}
			}
		}
	}
}

// TestNamedMetricsAreDocumented looks for names of metrics in dashboards, rules and
// runbooks that docs/observability.md, which is held against the programs, does not
// have. It needs no Prometheus.
func TestNamedMetricsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(mem(?:svc|sync)_\\w+)` \\| (\\w+)").FindAllStringSubmatch(readAll(t, "docs/observability.md")["docs/observability.md"], -1) {
		documented[m[1]] = true
		if m[2] == "histogram" {
			documented[m[1]+"_bucket"], documented[m[1]+"_sum"], documented[m[1]+"_count"] = true, true, true
		}
	}
	for _, pattern := range []string{
		"deploy/grafana/dashboards/*.json", "deploy/prometheus/*/*.yaml",
		"docs/runbooks.md", "docs/operating.md", "docs/agent.md", "CHANGELOG.md",
	} {
		for file, text := range readAll(t, pattern) {
			for _, name := range regexp.MustCompile(`\bmem(?:svc|sync)_[a-z_]+[a-z]\b`).FindAllString(text, -1) {
				if !documented[name] && name != "memsvc_team" { // part of a pattern of a variable
					t.Errorf("%s: metric %s is not in docs/observability.md", file, name)
				}
			}
		}
	}
}

// alerts returns the alerts of the rule files, each with its text.
func alerts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for file, text := range readAll(t, "deploy/prometheus/rules/*.yaml") {
		for _, part := range strings.Split(text, "- alert: ")[1:] {
			name, _, _ := strings.Cut(part, "\n")
			if out[name] != "" {
				t.Errorf("%s: alert %s is there twice", file, name)
			}
			out[name] = part
		}
	}
	return out
}

// TestAlertsAreWhole checks that every alert says how bad it is and what to do, and
// that it has its runbook, and its test, which shows every label that its texts use.
func TestAlertsAreWhole(t *testing.T) {
	all := alerts(t)
	if len(all) < 30 {
		t.Fatalf("only %d alerts found", len(all))
	}
	var fires strings.Builder
	for _, text := range readAll(t, "deploy/prometheus/tests/*.yaml") {
		fires.WriteString(text)
	}
	runbooks := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(readAll(t, "docs/runbooks.md")["docs/runbooks.md"], -1) {
		runbooks[m[1]] = true
		if all[m[1]] == "" {
			t.Errorf("docs/runbooks.md: there is no alert %s", m[1])
		}
	}
	for name, text := range all {
		if !regexp.MustCompile(`severity: (critical|warning|info)\n`).MatchString(text) ||
			!strings.Contains(text, "summary: ") || !strings.Contains(text, "description: ") {
			t.Errorf("%s needs a severity, a summary and a description", name)
		}
		if !runbooks[name] || !strings.Contains(text, "/docs/runbooks.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s needs its entry in docs/runbooks.md, and the link to it", name)
		}
		expected := regexp.MustCompile(`labels: 'ALERTS\{alertname="` + name + `",(.*)\}'`).FindStringSubmatch(fires.String())
		if expected == nil || !strings.Contains(fires.String(), `ALERTS{alertname="`+name+`",alertstate="firing"}`) {
			t.Errorf("%s: no test in which it fires", name)
			continue
		}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(","+expected[1], ","+m[1]+`="`) {
				t.Errorf("%s: its text uses label %q, which it has not where it fires: %s", name, m[1], expected[1])
			}
		}
	}
}

// TestRunbooksNameWhatIsThere looks for the panels and the log lines that the runbooks send
// people to: panels by their titles, log lines in the source of the two programs.
func TestRunbooksNameWhatIsThere(t *testing.T) {
	text := readAll(t, "docs/runbooks.md")["docs/runbooks.md"]
	titles := map[string]bool{}
	for _, b := range boards(t) {
		for _, p := range b.Panels {
			titles[p.Title] = true
		}
	}
	named := regexp.MustCompile(`“([^”]+)”`).FindAllStringSubmatch(text, -1)
	if len(named) < 20 {
		t.Fatalf("only %d panels are named", len(named))
	}
	for _, m := range named {
		if !titles[m[1]] {
			t.Errorf("docs/runbooks.md: no dashboard has a panel %q", m[1])
		}
	}
	var source strings.Builder
	for _, pattern := range []string{"internal/hub/*.go", "internal/hub/*/*.go", "internal/hub/*/*/*.go", "internal/agent/*.go", "internal/telemetry/*.go"} {
		for file, code := range readAll(t, pattern) {
			if !strings.HasSuffix(file, "_test.go") {
				source.WriteString(code)
			}
		}
	}
	lines := regexp.MustCompile("(?i)\\blog lines?(?: with)? `([^`]+)`|\\blines `([^`]+)`").FindAllStringSubmatch(text, -1)
	if len(lines) < 5 {
		t.Fatalf("only %d log lines are named", len(lines))
	}
	for _, m := range lines {
		if line := m[1] + m[2]; !strings.Contains(source.String(), `"`+line) {
			t.Errorf("docs/runbooks.md: nothing logs %q", line)
		}
	}
}
