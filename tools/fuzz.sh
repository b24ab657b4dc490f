#!/usr/bin/env bash
# Runs every fuzz target of the module for the given -fuzztime, one after the
# other, and prints how many executions each had.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:?usage: tools/fuzz.sh FUZZTIME (20000x, 30s)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The test files of this module: those that git knows or does not ignore, or
# all where the sources came without git.
test_files() {
  if git -c safe.directory='*' ls-files --error-unmatch Makefile >/dev/null 2>&1; then
    git -c safe.directory='*' ls-files --cached --others --exclude-standard '*_test.go' ':!bench' ':!tools'
  else
    find . \( -name '.?*' -o -path ./bench -o -path ./tools \) -prune -o -name '*_test.go' -printf '%P\n'
  fi
}

found=0 failed=0
while IFS=: read -r file target; do
  found=$((found + 1))
  package=./$(dirname "$file")
  begin=$SECONDS
  # Minimizing an interesting input makes it readable, and would use up the
  # executions.
  if go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10x -parallel 2 -timeout 0 "$package" >"$log" 2>&1 </dev/null; then
    execs=$(grep -o 'execs: [0-9]*' "$log" | tail -1 || true)
    printf 'ok    %-52s %-20s %5d s\n' "$package $target" "${execs:-execs: ?}" $((SECONDS - begin))
  else
    failed=$((failed + 1))
    cat "$log"
    printf 'FAIL  %s %s\n' "$package" "$target"
  fi
done < <(test_files | xargs grep -Eo '^func Fuzz[A-Za-z0-9_]+' /dev/null | sed 's/:func /:/' | sort)

if ((found == 0)); then
  echo "no fuzz target found: the search is broken" >&2
  exit 1
fi
echo "$found fuzz targets, $failed with findings"
((failed == 0))
