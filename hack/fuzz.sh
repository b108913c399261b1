#!/usr/bin/env bash
# Runs every fuzz test of the repository for FUZZTIME each. A crasher found here
# is written below the package's testdata/fuzz; commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${FUZZTIME:=5s}"

found=0
while IFS=: read -r file line; do
	name=${line#func }
	name=${name%%(*}
	found=$((found + 1))
	echo "fuzz: $name in $(dirname "$file") for $FUZZTIME"
	CGO_ENABLED=0 go test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" "./$(dirname "$file")"
done < <(grep -rE '^func Fuzz[A-Z]' --include='*_test.go' internal | sort)
echo "fuzz: $found fuzz tests"
