package hub

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/hub/service"
	"github.com/memsvc/memsvc/internal/memory"
	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/telemetry"
)

// gathered returns the registry's metrics by name and labels; of a histogram, how many
// observations it has.
func gathered(t *testing.T, cs ...prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(cs...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

func TestAgentsAreCountedWithinBounds(t *testing.T) {
	counts := []service.AgentCount{
		{Team: "acme", Version: "v1.2.3", Agents: 2},
		{Team: "acme", Version: "v1.2.3-4-gabc1234", Agents: 1},
		{Team: "", Version: "a8af235-dirty", Agents: 1},
		// What an agent says of itself is not repeated if it is no version.
		{Team: "acme", Version: "msv_0123456789abcdef0123456789abcdef", Agents: 5},
		{Team: "acme", Version: "ghp_0123456789abcdefghijABCDEFGHIJ0123456", Agents: 1},
	}
	for i := range maxTeams + 50 {
		counts = append(counts, service.AgentCount{Team: memory.Team(fmt.Sprintf("team%d", i)), Version: fmt.Sprintf("1.0.%d", i), Agents: 1})
	}
	got := gathered(t, newAgentCollector(func() []service.AgentCount { return counts }, newTeamLabel()))
	for name, want := range map[string]float64{
		"memsvc_team_agents team=acme":                 9,
		"memsvc_team_agents team=-":                    1,
		"memsvc_team_agents team=team0":                1,
		"memsvc_team_agents team=other":                51,
		"memsvc_agents version=v1.2.3":                 2,
		"memsvc_agents version=v1.2.3-4-gabc1234":      1,
		"memsvc_agents version=a8af235-dirty":          1,
		fmt.Sprintf("memsvc_agents version=1.0.%d", 0): 1,
		"memsvc_agents version=other":                  6 + maxTeams + 50 - (maxVersions - 3),
	} {
		if got[name] != want {
			t.Errorf("%s: got %v, want %v", name, got[name], want)
		}
	}
	if most := maxTeams + 2 + maxVersions + 1; len(got) > most {
		t.Errorf("%d series, want at most %d", len(got), most)
	}
}

func TestGuardErrorsAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newGuardMetrics(reg)
	broken := errors.New("no verdict")
	if _, err := m.scan(func() ([]secretscan.Finding, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the guard's own error", err)
	}
	found, err := m.scan(func() ([]secretscan.Finding, error) { return []secretscan.Finding{{Rule: "r"}}, nil })
	if err != nil || len(found) != 1 {
		t.Errorf("got %v, %v, want the guard's own answer", found, err)
	}
	got := gathered(t, m.seconds, m.errors)
	if got["memsvc_guard_errors_total"] != 1 || got["memsvc_guard_seconds"] != 2 {
		t.Errorf("got %v, want one error of two texts", got)
	}
}

func TestReadinessAndDisk(t *testing.T) {
	health := telemetry.NewHealth()
	if got := gathered(t, newReadiness(health))["memsvc_ready"]; got != 0 {
		t.Errorf("ready %v while starting", got)
	}
	health.SetReady()
	if got := gathered(t, newReadiness(health))["memsvc_ready"]; got != 1 {
		t.Errorf("ready %v, want 1", got)
	}
	_, _, ok := diskSpace(t.TempDir())
	got := gathered(t, newDisk(t.TempDir()))
	if size, free := got["memsvc_data_size_bytes"], got["memsvc_data_free_bytes"]; ok && (size <= 0 || free <= 0 || free > size) {
		t.Errorf("size %v, free %v", size, free)
	}
	if got := gathered(t, newDisk(filepath.Join(t.TempDir(), "gone"))); len(got) != 0 {
		t.Errorf("a directory that is not there has %v", got)
	}
}
