#!/usr/bin/env bash
# Compares the proto contract with the one that landed before: on a branch, the
# point where it left main; on main, the parent of HEAD, or HEAD while there are
# uncommitted changes. Before a first contract there is nothing to break.
#
# usage: breaking.sh BUF-COMMAND...
set -euo pipefail
cd "$(dirname "$0")/.."

base=${BREAKING_AGAINST:-}
if [[ -z $base ]]; then
	if ! head=$(git rev-parse --verify -q HEAD); then
		echo "breaking: not a git checkout, nothing to compare with"
		exit 0
	fi
	for branch in origin/main main; do
		fork=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
		if [[ $fork != "$head" ]]; then
			base=$fork
			break
		fi
	done
	if [[ -z $base ]]; then
		if git diff --quiet HEAD -- api/proto; then base=HEAD~1; else base=HEAD; fi
	fi
fi

# The workspace is complete from its first buf.yaml on.
if ! git cat-file -e "$base:buf.yaml" 2>/dev/null; then
	echo "breaking: no contract at $base yet, nothing to compare with"
	exit 0
fi
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
git archive "$base" -- buf.yaml api | tar -x -C "$before"
"$@" breaking --against "$before"
echo "breaking: nothing breaks against $base"
