#!/usr/bin/env bash
# Copies the dashboards and the rules into the Helm chart: Helm reads no file outside a
# chart, and a link would not survive its packing. OUT gets the same layout as this
# repository; files that have lost their source go.
#
# usage: chart-files.sh OUT
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1/deploy/helm/memsvc/files

mkdir -p "$out/dashboards" "$out/rules"
rm -f "$out"/dashboards/*.json "$out"/rules/*.yaml
cp deploy/grafana/dashboards/*.json "$out/dashboards/"
cp deploy/prometheus/rules/*.yaml "$out/rules/"
