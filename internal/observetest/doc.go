// Package observetest holds what operators look at against the real programs: it runs
// a hub and agents, lets them do and suffer what metrics tell of, and checks the list
// of metrics in docs/observability.md, the dashboards and the alert rules against what
// they show.
//
// What needs Prometheus itself runs where MEMSVC_PROMETHEUS names the directory of the
// built tools; `make rules` builds them and does.
package observetest
