#!/usr/bin/env bash
# Fails if the checked-in generated files are not what their sources give today.
#
# usage: generate-check.sh BUF-COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
./hack/generate.sh "$fresh" "$@"
./hack/chart-files.sh "$fresh"
# Sources that lie beside the generated files are not part of the question.
if ! diff -ru --exclude='*.proto' api/proto "$fresh/api/proto" ||
	! diff -ru --exclude='openapi*.go' --exclude='options.yaml' --exclude='rest.json' api/openapi "$fresh/api/openapi" ||
	! diff -ru deploy/grafana/dashboards "$fresh/deploy/grafana/dashboards" ||
	! diff -ru deploy/helm/memsvc/files "$fresh/deploy/helm/memsvc/files"; then
	echo "generate-check: generated files are stale; run 'make generate' and commit the result" >&2
	exit 1
fi
echo "generate-check: generated files are fresh"
