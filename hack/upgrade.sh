#!/usr/bin/env bash
# Upgrades replicas and agents from the programs of a revision to those of this source,
# one after the other, under load: ./hack/upgrade.sh REVISION
set -euo pipefail
cd "$(dirname "$0")/.."
from=$(git rev-parse --verify "${1:?name the revision to upgrade from, a tag or a commit}^{commit}")

dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/source" 2>/dev/null || true; rm -rf "$dir"' EXIT
git worktree add --quiet --detach "$dir/source" "$from"
mkdir "$dir/programs"
(cd "$dir/source" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -o "$dir/programs/" ./cmd/memsvc ./cmd/memsync-agent)
chmod 755 "$dir" "$dir/programs"
MEMSVC_UPGRADE_FROM="$dir/programs" CGO_ENABLED=0 go test -count=1 -vet=off -timeout 15m -v -run '^TestRollingUpgrade$' ./internal/killtest
