package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// here narrows a selector to what the person picked.
const here = `job=~"$job",instance=~"$instance"`

// streams are the methods whose calls last as long as somebody watches.
const streams = `MemoryService/WatchMemories|grpc.health.v1.Health/Watch|AdminService/Backup|AdminService/(Ex|Im)portArchive|grpc.reflection.*`

// hub is the overview of one or several hubs: is it well, what does it do, how do
// watchers fare, how does the store, what does the process need.
func hub() *dashboard.DashboardBuilder {
	return board("memsvc-hub", "memsvc / hub", "Is the hub well, what does it do, and what will run out.",
		choice("job", "Job", "memsvc_build_info, job", ""),
		choice("instance", "Hub", `memsvc_build_info{job=~"$job"}, instance`, ""),
	).
		WithRow(row("Is it well?")).
		WithPanel(big("Hubs ready", "Hubs that may be sent work, as /readyz says.", count, okFrom(1, 1),
			q("", `sum(memsvc_ready{%s})`, here))).
		WithPanel(big("Hubs not ready", "Hubs that answer and may not be sent work: starting, draining, or without their store.", count, okUntil(1, 1),
			q("", `count(memsvc_ready{%s}) - sum(memsvc_ready{%s})`, here, here))).
		WithPanel(big("Store errors, 1 h", "Operations that failed for the store's own reasons. Any is worth a look.", count, okUntil(1, 10),
			q("", `sum(increase(memsvc_store_errors_total{%s}[1h]))`, here))).
		WithPanel(big("Guard without verdict, 1 h", "Texts that the secret guard could not judge. They were refused.", count, okUntil(1, 1),
			q("", `sum(increase(memsvc_guard_errors_total{%s}[1h]))`, here))).
		WithPanel(big("Replicas apart", "How many revisions the replicas of one database differ by at most, between their looks. More than a moment's commits means that they do not see the same.", count, okUntil(100, 1000),
			q("", `max(max by (job) (memsvc_store_revisions{%s}) - min by (job) (memsvc_store_revisions{%s}))`, here, here))).
		WithPanel(big("Disk left", "Of the file system with the data directory, on the hub that has least.", share, okFrom(.05, .15),
			q("", `min(memsvc_data_free_bytes{%s} / memsvc_data_size_bytes{%s})`, here, here))).
		WithPanel(big("Watchers", "Watch streams open.", count, nil, q("", `sum(memsvc_watchers{%s})`, here))).
		WithPanel(big("Agents", "Agents that watch.", count, nil, q("", `sum(memsvc_agents{%s})`, here))).
		WithPanel(big("Revisions, 1 h", "Commits that changed something.", count, nil,
			q("", `sum(increase(memsvc_commits_total{%s,outcome="created"}[1h]))`, here))).
		WithPanel(big("Refused, 1 h", "Violations in refused commits.", count, okUntil(20, 100),
			q("", `sum(increase(memsvc_refusals_total{%s}[1h])) or vector(0)`, here))).
		WithPanel(big("Commit, 95 %", "How long a commit takes on the hub, from its arrival to its answer.", seconds, okUntil(.25, 1),
			q("", `histogram_quantile(0.95, sum by (le) (rate(memsvc_rpc_seconds_bucket{%s,method="MemoryService/CommitChanges"}[$__rate_interval])))`, here))).
		WithPanel(big("Delivery, 95 %", "From a commit to its handing over to a watcher's stream.", seconds, okUntil(.25, 2),
			q("", `histogram_quantile(0.95, sum by (le) (rate(memsvc_delivery_seconds_bucket{%s}[$__rate_interval])))`, here))).
		WithRow(row("What it does")).
		WithPanel(graph("Commits", "By outcome: created, unchanged, or the reason of the refusal. ETAG_MISMATCH is two authors at once; the agent merges and tries again.", perSec, nil,
			q("{{outcome}}", `sum by (outcome) (rate(memsvc_commits_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Refusals", "Violations in refused commits, by rule. A rule that many files break is worth explaining to the team.", perSec, nil,
			q("{{rule}}", `sum by (rule) (rate(memsvc_refusals_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Conflicts told to the hub", "Edits that agents could not merge, and those that somebody resolved.", perSec, nil,
			q("{{method}}", `sum by (method) (rate(memsvc_rpc_calls_total{%s,method=~"MemoryService/(Report|Resolve)Conflict",code="OK"}[$__rate_interval]))`, here))).
		WithPanel(graph("Calls", "gRPC calls by method; REST goes through them too.", perSec, nil,
			q("{{method}}", `sum by (method) (rate(memsvc_rpc_calls_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Calls that failed", "By code. Aborted is a precondition, Unavailable the end of watches when a hub drains; Internal is a fault.", perSec, nil,
			q("{{code}}", `sum by (code) (rate(memsvc_rpc_calls_total{%s,code!="OK"}[$__rate_interval]))`, here))).
		WithPanel(graph("REST", "Requests by status.", perSec, nil,
			q("{{status}}", `sum by (status) (rate(memsvc_rest_requests_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Commit latency", "How long CommitChanges takes on the hub: rules, guard and store together.", seconds, okUntil(.25, 1),
			quantiles("memsvc_rpc_seconds", here+`,method="MemoryService/CommitChanges"`)...)).
		WithPanel(graph("Call latency, 95 %", "By method, watches and transfers left out.", seconds, nil,
			q("{{method}}", `histogram_quantile(0.95, sum by (method, le) (rate(memsvc_rpc_seconds_bucket{%s,method!~"%s"}[$__rate_interval])))`, here, streams))).
		WithPanel(graph("Guard", "How long the secret guard takes for a text. A text seen before costs next to nothing.", seconds, nil,
			quantiles("memsvc_guard_seconds", here)...)).
		WithPanel(graph("JWTs and certificates refused", "By reason. The hub's own tokens that are refused count as calls with the code Unauthenticated.", perSec, nil,
			q("{{why}}", `sum by (why) (rate(memsvc_foreign_credentials_refused_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Issuers' keys", "Fetches, by issuer and outcome.", perSec, nil,
			q("{{issuer}} {{outcome}}", `sum by (issuer, outcome) (rate(memsvc_oidc_key_fetches_total{%s}[$__rate_interval]))`, here))).
		WithRow(row("How watchers fare")).
		WithPanel(graph("Delivery", "From a commit, or from the begin of the watch if that was later, to its handing over to a watcher's stream.", seconds, okUntil(.25, 2),
			quantiles("memsvc_delivery_seconds", here)...)).
		WithPanel(graph("Watchers", "By hub. Uneven is fine; a hub without any, beside others with many, is not.", count, nil,
			q("{{instance}}", `sum by (instance) (memsvc_watchers{%s})`, here))).
		WithPanel(graph("Agents by version", "As the agents tell it.", count, nil,
			q("{{version}}", `sum by (version) (memsvc_agents{%s})`, here))).
		WithPanel(graph("Commits found by polling", "Watchers should hear of a commit at once. Where the regular look at each project finds many, they waited up to 30 s.", perSec, nil,
			q("{{instance}}", `sum by (instance) (rate(memsvc_feed_polled_commits_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Projects followed", "Projects that somebody watches, by hub.", count, nil,
			q("{{instance}}", `sum by (instance) (memsvc_feed_projects{%s})`, here))).
		WithPanel(graph("Commits kept for watchers", "Memory; it is bounded by 64 MiB a hub.", bytes_, nil,
			q("{{instance}}", `sum by (instance) (memsvc_feed_cache_bytes{%s})`, here))).
		WithRow(row("The store")).
		WithPanel(graph("Store latency, 95 %", "By operation.", seconds, nil,
			q("{{op}}", `histogram_quantile(0.95, sum by (op, le) (rate(memsvc_store_operation_seconds_bucket{%s}[$__rate_interval])))`, here))).
		WithPanel(graph("Store operations", "By operation.", perSec, nil,
			q("{{op}}", `sum by (op) (rate(memsvc_store_operation_seconds_count{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Store errors", "Failures for the store's own reasons: UNAVAILABLE may pass, INTERNAL is a fault. The log has the cause.", perSec, nil,
			q("{{instance}} {{reason}}", `sum by (instance, reason) (rate(memsvc_store_errors_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Head of all projects", "The sum of all heads as each hub sees it. Replicas of one database lie on one line.", count, nil,
			q("{{instance}}", `max by (instance) (memsvc_store_revisions{%s})`, here))).
		WithPanel(graph("Projects", "In the store.", count, nil,
			q("{{job}}", `max by (job) (memsvc_store_projects{%s})`, here))).
		WithPanel(graph("Texts written", "Bytes of contents in commits.", "Bps", nil,
			q("{{instance}}", `sum by (instance) (rate(memsvc_store_committed_bytes_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Removed by retention, an hour", "Commits and versions that nobody may still want.", count, nil,
			q("{{what}}", `sum by (what) (increase(memsvc_compacted_total{%s,what!="bytes"}[1h]))`, here))).
		WithPanel(graph("Stored texts against today's rules", "Found when rules changed. They are served until somebody redacts them; the audit log names them.", count, nil,
			q("found", `sum(increase(memsvc_rescan_hits_total{%s}[1h]))`, here))).
		WithPanel(list("Epochs", "Replicas of one database serve one epoch. Two in one job are two databases.", count, "hubs", graphWidth,
			q("", `count by (job, epoch) (memsvc_store_epoch_info{%s})`, here), "job", "epoch")).
		WithRow(row("The process")).
		WithPanel(graph("Processor", "Cores in use.", count, nil,
			q("{{instance}}", `sum by (instance) (rate(process_cpu_seconds_total{%s}[$__rate_interval]) and on (job, instance) memsvc_build_info{%s})`, here, here))).
		WithPanel(graph("Memory", "Resident.", bytes_, nil,
			q("{{instance}}", `sum by (instance) (process_resident_memory_bytes{%s} and on (job, instance) memsvc_build_info{%s})`, here, here))).
		WithPanel(graph("Goroutines", "A few for each watcher and connection; a line that only rises is a leak.", count, nil,
			q("{{instance}}", `sum by (instance) (go_goroutines{%s} and on (job, instance) memsvc_build_info{%s})`, here, here))).
		WithPanel(graph("Connections", "By port; those closed at once because of the bound, a second, below zero never.", count, nil,
			q("{{port}}", `sum by (port) (memsvc_connections{%s})`, here),
			q("{{port}} refused a second", `sum by (port) (rate(memsvc_connections_refused_total{%s}[$__rate_interval]))`, here))).
		WithPanel(graph("Files open", "Share of what the system allows the process.", share, okUntil(.7, .9),
			q("{{instance}}", `max by (instance) (process_open_fds{%s} / process_max_fds{%s} and on (job, instance) memsvc_build_info{%s})`, here, here, here))).
		WithPanel(graph("Panics and lost audit records", "Each is a fault to report.", count, nil,
			q("panics", `sum(increase(memsvc_rpc_panics_total{%s}[1h]))`, here),
			q("audit records lost", `sum(increase(memsvc_audit_lost_total{%s}[1h]))`, here))).
		WithPanel(list("Builds", "What runs where.", count, "running", 24,
			q("", `count by (job, instance, version, commit, go) (memsvc_build_info{%s})`, here), "job", "instance", "version", "commit", "go"))
}
