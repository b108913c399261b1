package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// Selectors of the teams' dashboard: the hubs know teams, the agents links, which are
// named team/project.
const (
	ofTeam = `job=~"$job",team=~"$team"`
	ofLink = `link=~"($team)/.*"`
)

// teams is about what people of a team feel: does what one learns reach the others,
// how fast, and what is held back.
func teams() *dashboard.DashboardBuilder {
	return board("memsvc-teams", "memsvc / sync health per team", "Does what one machine learns reach the others of the team, how fast, and what is held back.",
		choice("job", "Hubs", "memsvc_build_info, job", ""),
		choice("team", "Team", `{__name__=~"memsvc_team_(agents|revisions_total)",job=~"$job"}, team`, ""),
	).
		WithRow(row("At a glance")).
		WithPanel(big("Agents", "That watch, as the hubs see it.", count, nil, q("", `sum(memsvc_team_agents{%s})`, ofTeam))).
		WithPanel(big("Revisions, 1 h", "What the teams wrote.", count, nil, q("", `sum(increase(memsvc_team_revisions_total{%s}[1h]))`, ofTeam))).
		WithPanel(big("Save to file, 95 %", "From an author's saving to the file in place on another machine, over what you look at.", seconds, okUntil(2, 10),
			q("", `histogram_quantile(0.95, sum by (le) (rate(memsync_end_to_end_seconds_bucket[$__range])))`))).
		WithPanel(big("Links not in step", "Of the teams, on machines whose metrics are collected.", count, okUntil(1, 10),
			q("", `sum(memsync_link_phase{%s,phase!~"in-sync|syncing"}) or vector(0)`, ofLink))).
		WithPanel(big("Conflicts", "Edits that wait for a person.", count, okUntil(1, 10), q("", `sum(memsync_conflicts{%s})`, ofLink))).
		WithPanel(big("Files refused", "Files that stay on their machines until they are clean.", count, okUntil(1, 20),
			q("", `sum(memsync_refused_files{%s}) or vector(0)`, ofLink))).
		WithRow(row("The teams' work")).
		WithPanel(graph("Agents", "That watch, by team, as the hubs see it. - are credentials of the whole hub, other the teams beyond the 200 first.", count, nil,
			q("{{team}}", `sum by (team) (memsvc_team_agents{%s})`, ofTeam))).
		WithPanel(graph("Revisions an hour", "By team.", count, nil,
			q("{{team}}", `sum by (team) (increase(memsvc_team_revisions_total{%s}[1h]))`, ofTeam))).
		WithPanel(graph("Files of a project", "That hub and machines agree on.", count, nil,
			q("{{link}}", `max by (link) (memsync_files{%s})`, ofLink))).
		WithRow(row("How fast it spreads")).
		WithPanel(graph("From save to file", "From the author's saving to the file in place on another machine, all teams; only edits that came to the hub within a minute.", seconds, okUntil(2, 10),
			quantiles("memsync_end_to_end_seconds", "")...)).
		WithPanel(graph("From hub to file", "From the commit on the hub to the file in place, all teams.", seconds, okUntil(1, 5),
			quantiles("memsync_propagation_seconds", "")...)).
		WithPanel(graph("Revisions behind", "How far the slowest machine of a project is behind the hub.", count, okUntil(5, 50),
			q("{{link}}", `max by (link) (memsync_revisions_behind{%s})`, ofLink))).
		WithRow(row("What is held back")).
		WithPanel(list("Refused files", "By rule; the agent's status names file and line.", count, "files", graphWidth,
			q("", `sum by (link, rule) (memsync_refused_files{%s}) > 0`, ofLink), "link", "rule")).
		WithPanel(list("Oldest conflict", "How long a conflict of the project has been open.", "dtdurations", "for", graphWidth,
			q("", `sort_desc(time() - min by (link) (memsync_oldest_conflict_timestamp_seconds{%s}))`, ofLink), "link")).
		WithPanel(list("Links not in step", "What holds which machine.", count, "links", graphWidth,
			q("", `sum by (link, instance, phase) (memsync_link_phase{%s,phase!~"in-sync|syncing"})`, ofLink), "link", "instance", "phase")).
		WithPanel(graph("Changes that wait", "Local changes that are not on the hub yet, and the hub's that cannot be put in place.", count, nil,
			q("{{link}}", `sum by (link) (memsync_pending_changes{%s})`, ofLink))).
		WithPanel(graph("Conflicts", "Open ones, by project.", count, nil,
			q("{{link}}", `sum by (link) (memsync_conflicts{%s})`, ofLink))).
		WithPanel(graph("Files that cannot be read", "The agent leaves them alone.", count, nil,
			q("{{link}}", `sum by (link) (memsync_unreadable_files{%s})`, ofLink)))
}
