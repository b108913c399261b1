#!/usr/bin/env bash
# Compares the proto contract with those that landed before: the last release, if
# there is one, and what this change starts from. That is, on a branch, the point
# where it left main; on main, the parent of HEAD, or HEAD while there are
# uncommitted changes. Before a first contract there is nothing to break.
# BREAKING_AGAINST names another commit.
#
# usage: breaking.sh BUF-COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."

if ! head=$(git rev-parse --verify -q HEAD); then
	echo "breaking: not a git checkout, nothing to compare with"
	exit 0
fi

# start prints the commit that this change starts from.
start() {
	local branch fork
	for branch in origin/main main; do
		fork=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
		if [[ $fork != "$head" ]]; then
			echo "$fork"
			return
		fi
	done
	if git diff --quiet HEAD -- api/proto; then echo HEAD~1; else echo HEAD; fi
}

# release prints the newest release that HEAD descends from, if any.
release() {
	git describe --tags --match 'v*' --abbrev=0 HEAD~1 2>/dev/null || true
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -n ${BREAKING_AGAINST:-} ]]; then
	bases=("$BREAKING_AGAINST")
else
	mapfile -t bases < <(release; start)
fi
for base in "${bases[@]}"; do
	# The workspace is complete from its first buf.yaml on.
	if ! git cat-file -e "$base:buf.yaml" 2>/dev/null; then
		echo "breaking: no contract at $base, nothing to compare with"
		continue
	fi
	before=$work/${base//\//_}
	mkdir -p "$before"
	git archive "$base" -- buf.yaml api | tar -x -C "$before"
	"$@" breaking --against "$before"
	echo "breaking: nothing breaks against $base"
done
