#!/usr/bin/env bash
# Checks the alert rules and the dashboards with Prometheus's own programs: the rules'
# form and their unit tests with promtool, and everything that rules and panels ask
# against a server that collects from a real hub and real agents.
#
# The programs are pinned in internal/tools/prometheus and built from source, without
# service discovery, which nothing here needs and most of the building would go into.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=bin/prometheus
mkdir -p "$tools"
CGO_ENABLED=0 go build -modfile=internal/tools/prometheus/go.mod -tags remove_all_sd -o "$tools/" \
	github.com/prometheus/prometheus/cmd/promtool github.com/prometheus/prometheus/cmd/prometheus

"$tools/promtool" check rules --lint=all --lint-fatal deploy/prometheus/rules/*.yaml
"$tools/promtool" test rules deploy/prometheus/tests/*.yaml
MEMSVC_PROMETHEUS="$PWD/$tools" CGO_ENABLED=0 go test -count=1 -vet=off -v -run '^TestAgainstPrometheus$' ./internal/observetest
