package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// agents is about the machines: which agent is well, what holds which link.
func agents() *dashboard.DashboardBuilder {
	return board("memsvc-agents", "memsvc / agents", "Which machine's agent is well, and what holds it up. It shows agents whose metrics are collected.",
		choice("job", "Job", "memsync_build_info, job", ""),
		choice("instance", "Agent", `memsync_build_info{job=~"$job"}, instance`, ""),
	).
		WithRow(row("Is anything in the way?")).
		WithPanel(big("Agents", "That tell their metrics.", count, nil, q("", `count(memsync_build_info{%s})`, here))).
		WithPanel(big("Not connected", "Agents without a watch stream to some hub of theirs.", count, okUntil(1, 5),
			q("", `count(min by (job, instance) (memsync_hub_connected{%s}) == 0) or vector(0)`, here))).
		WithPanel(big("Halted", "Links that a brake holds until somebody decides.", count, okUntil(1, 1), q("", `sum(memsync_halted{%s})`, here))).
		WithPanel(big("Stopped or failing", "Links that cannot go on: a bad token, no permission, a directory that is gone.", count, okUntil(1, 5),
			q("", `sum(memsync_links{%s,phase=~"stopped|failing|no-root"}) or vector(0)`, here))).
		WithPanel(big("Files refused", "Files that stay on their machines until they are clean.", count, okUntil(1, 20),
			q("", `sum(memsync_refused_files{%s}) or vector(0)`, here))).
		WithPanel(big("Conflicts", "Edits that wait for a person.", count, okUntil(1, 10), q("", `sum(memsync_conflicts{%s})`, here))).
		WithRow(row("Links")).
		WithPanel(graph("Links by phase", "In-sync is well; attention waits for a person; pending and syncing pass.", count, nil,
			q("{{phase}}", `sum by (phase) (memsync_links{%s})`, here))).
		WithPanel(list("Links that are not in step", "What holds which link.", count, "links", 16,
			q("", `sum by (instance, link, phase) (memsync_link_phase{%s,phase!="in-sync"})`, here), "instance", "link", "phase")).
		WithPanel(graph("Since the last good cycle", "An idle agent looks every 5 minutes.", seconds, okUntil(900, 1800),
			q("{{instance}} {{link}}", `time() - memsync_last_success_timestamp_seconds{%s}`, here))).
		WithPanel(graph("Cycles that failed", "By reason: LOCAL is the machine's own trouble, the rest the hub's answer.", perSec, nil,
			q("{{instance}} {{reason}}", `sum by (instance, reason) (rate(memsync_cycle_errors_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Cycle, 95 %", "One look and what it leads to, by machine.", seconds, nil,
			q("{{instance}}", `histogram_quantile(0.95, sum by (instance, le) (rate(memsync_cycle_seconds_bucket{%s}[$__rate_interval])))`, here))).
		WithRow(row("Work")).
		WithPanel(graph("Commits made", "By machine.", perSec, nil,
			q("{{instance}}", `sum by (instance) (rate(memsync_pushes_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Files taken over", "Written or removed because the hub changed, by machine.", perSec, nil,
			q("{{instance}}", `sum by (instance) (rate(memsync_pulls_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Changes that wait", "Local changes that are not on the hub yet, and the hub's that cannot be put in place.", count, nil,
			q("{{instance}} {{link}}", `sum by (instance, link) (memsync_pending_changes{%s}) > 0`, here))).
		WithRow(row("The way to the hub")).
		WithPanel(graph("Connected", "1 while the watch stream stands.", count, nil,
			q("{{instance}} {{hub}}", `min by (instance, hub) (memsync_hub_connected{%s})`, here)).Max(1)).
		WithPanel(list("Not connected since", "How long there has been no stream.", "dtdurations", "for", graphWidth,
			q("", `sort_desc(time() - memsync_hub_disconnected_since_timestamp_seconds{%s})`, here), "instance", "hub")).
		WithPanel(graph("Clock", "The hub's clock minus the machine's. Ages are corrected by it; minutes of it deserve a look at the machine's time service.", seconds, nil,
			q("{{instance}}", `max by (instance) (memsync_hub_clock_offset_seconds{%s})`, here)).Min(-1)).
		WithRow(row("The machine")).
		WithPanel(graph("How changes are noticed", "Polling is slower than events: network file systems, or the system's limit of watches.", count, nil,
			q("{{how}}", `sum by (how) (memsync_links_watching{%s})`, here))).
		WithPanel(graph("Processor", "Cores in use.", count, nil,
			q("{{instance}}", `sum by (instance) (rate(process_cpu_seconds_total{%s}[$__rate_interval]) and on (job, instance) memsync_build_info{%s})`, here, here))).
		WithPanel(graph("Memory", "Resident.", bytes_, nil,
			q("{{instance}}", `sum by (instance) (process_resident_memory_bytes{%s} and on (job, instance) memsync_build_info{%s})`, here, here))).
		WithPanel(list("Builds", "What runs where.", count, "running", 24,
			q("", `count by (job, instance, version, commit, go) (memsync_build_info{%s})`, here), "job", "instance", "version", "commit", "go"))
}
