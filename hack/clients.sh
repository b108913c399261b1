#!/usr/bin/env bash
# Fetch the coding clients that internal/clients/livetest runs, from the npm registry, and
# run the tests. Needs npm, and node 22 or newer for some of the clients.
#   hack/clients.sh [DIR]    DIR keeps what was fetched; a temporary directory else
set -euo pipefail
cd "$(dirname "$0")/.."

dir=${1:-}
if [ -z "$dir" ]; then
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

fetch() { # fetch NAME PACKAGE
	[ ! -d "$dir/$1/node_modules" ] || return 0
	mkdir -p "$dir/$1"
	echo '{"private": true}' >"$dir/$1/package.json"
	# Whatever cannot be had is skipped by its test, which says so. No package's own
	# scripts are run: the programs are in the packages.
	(cd "$dir/$1" && npm install --no-audit --no-fund --ignore-scripts "$2" >install.log 2>&1) || echo "$2 cannot be fetched; see $dir/$1/install.log" >&2
}
fetch claude @anthropic-ai/claude-code
fetch codex @openai/codex
fetch gemini @google/gemini-cli
fetch opencode opencode-ai
fetch conformance @modelcontextprotocol/conformance
fetch inspector @modelcontextprotocol/inspector

MEMSVC_CLIENTS=$dir CGO_ENABLED=0 go test -count=1 -timeout 30m -v ./internal/clients/livetest
