#!/usr/bin/env bash
# Generates everything that follows from api/proto, and the Grafana dashboards,
# below OUT, which gets the same layout as this repository. Old output goes
# first, so that a removed message leaves no file behind.
#
# usage: generate.sh OUT BUF-COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
shift

mkdir -p "$out/api/proto" "$out/api/openapi"
find "$out/api/proto" \( -name '*.pb.go' -o -name '*.pb.gw.go' \) -delete
rm -f "$out/api/openapi/memsvc.swagger.json"
"$@" generate --output "$out"

dashboards=deploy/grafana/dashboards
mkdir -p "$out/$dashboards"
rm -f "$out/$dashboards"/*.json
into=$(cd "$out/$dashboards" && pwd)
(cd internal/tools/dashboards && CGO_ENABLED=0 go run -mod=readonly . "$into")
