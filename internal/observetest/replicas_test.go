package observetest

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/hubtest"
	"github.com/memsvc/memsvc/internal/pgtest"
)

// TestReplicasAgreeInMetrics commits through two hubs on one PostgreSQL database and
// compares what both show of the whole: it is one. A hub on another database shows
// another epoch.
func TestReplicasAgreeInMetrics(t *testing.T) {
	server := pgtest.Start(t, pgtest.Options{})
	url := server.Database()
	a := hubtest.Start(t, hubtest.Options{DatabaseURL: url})
	b := hubtest.Start(t, hubtest.Options{DatabaseURL: url})
	stranger := hubtest.Start(t, hubtest.Options{DatabaseURL: server.Database()})
	token := a.Token("acme", "pay", "writer")
	const commits = 6
	for i := range commits {
		put(t, []*hubtest.Hub{a, b}[i%2], token, fmt.Sprintf("teams/acme/projects/pay/memories/project_%d.md", i), note("n", fmt.Sprint(i)), http.StatusCreated)
	}
	epoch := func(h *hubtest.Hub) string {
		for name := range seriesOf(t, h.OpsAddr, "memsvc_store_epoch_info") {
			return name
		}
		t.Fatal("no epoch is shown")
		return ""
	}
	revisions := func(h *hubtest.Hub) string {
		return seriesOf(t, h.OpsAddr, "memsvc_store_revisions")["memsvc_store_revisions"]
	}
	// The first look at a store may serve for ten seconds.
	hubtest.Eventually(t, patience, "both hubs show all revisions", func() bool {
		return revisions(a) == fmt.Sprint(commits) && revisions(b) == fmt.Sprint(commits)
	})
	if n := revisions(stranger); n != "0" {
		t.Errorf("the hub on another database shows %s revisions", n)
	}
	if epoch(a) != epoch(b) || epoch(a) == epoch(stranger) {
		t.Errorf("epochs %s and %s of one database, %s of another", epoch(a), epoch(b), epoch(stranger))
	}
}

// seriesOf returns the series of a metric, by name and labels as shown.
func seriesOf(t *testing.T, addr, metric string) map[string]string {
	t.Helper()
	res, err := http.Get("http://" + addr + "/metrics")
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	out := map[string]string{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		i := strings.LastIndexByte(lines.Text(), ' ')
		if i > 0 && (strings.HasPrefix(lines.Text(), metric+"{") || lines.Text()[:i] == metric) {
			out[lines.Text()[:i]] = lines.Text()[i+1:]
		}
	}
	must(t, lines.Err())
	return out
}
