package e2e

import (
	"fmt"
	"testing"

	"github.com/memsvc/memsvc/internal/agent"
	"github.com/memsvc/memsvc/internal/hubtest"
)

// metric returns the value of a machine's counter or gauge, all its labels together.
func (m *machine) metric(name string) float64 {
	m.t.Helper()
	families, err := m.reg.Gather()
	must(m.t, err)
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, x := range f.GetMetric() {
				sum += x.GetCounter().GetValue() + x.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// TestMetricsAreWhatTheirHelpSays holds the figures of an agent against what happened:
// commits on the hub, files here, and what waits while the hub is away.
func TestMetricsAreWhatTheirHelpSays(t *testing.T) {
	h, ms := team(t, 2)
	a, b := ms[0], ms[1]
	for i := range 8 {
		a.write(fmt.Sprintf("project_%d.md", i), note("n", fmt.Sprint("text ", i)))
	}
	inStep(t, a, b)
	a.remove("project_0.md")
	a.remove("project_1.md")
	b.lacks("project_0.md")
	b.lacks("project_1.md")
	inStep(t, a, b)
	hubtest.Eventually(t, patience, "the figures are those of the last cycle", func() bool {
		return a.metric("memsync_pushes_total") == float64(a.status().Revision) && b.metric("memsync_pulls_total") == 10
	})
	if got := b.metric("memsync_pushes_total") + a.metric("memsync_pulls_total") + a.metric("memsync_pending_changes"); got != 0 {
		t.Errorf("B made commits, or A wrote or waits: %v", got)
	}

	h.Stop()
	for i := range 3 {
		a.write(fmt.Sprintf("project_%d.md", i+2), note("n", fmt.Sprint("edited ", i)))
	}
	a.remove("project_7.md")
	a.write("project_secret.md", note("s", "token "+githubToken))
	s := a.eventually("says what waits, and what is refused, without the hub", func(s agent.LinkStatus) bool {
		return s.Phase == agent.PhaseOffline && s.Pending == 4 && len(s.Refusals) == 1
	})
	if s.Refusals[0].Path != "project_secret.md" || s.Refusals[0].Findings[0].Line == 0 {
		t.Errorf("refused %+v", s.Refusals)
	}
	hubtest.Eventually(t, patience, "the figure of what waits", func() bool { return a.metric("memsync_pending_changes") == 4 })
	a.remove("project_secret.md")
	h.StartAgain()
	inStep(t, a, b)
	hubtest.Eventually(t, patience, "nothing waits", func() bool { return a.metric("memsync_pending_changes") == 0 })
}
