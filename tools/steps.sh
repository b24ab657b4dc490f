#!/usr/bin/env bash
# Runs the given make targets in order and prints the time of each. A failed
# step does not hide the ones after it: all run, and the exit code says
# whether all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

declare -a rows failed=()
begin=$SECONDS
for step in "$@"; do
  printf '\n=== make %s\n' "$step"
  from=$SECONDS
  if make "$step" SEED="${SEED:-}" </dev/null; then result=ok; else result=FAILED; failed+=("$step"); fi
  rows+=("$(printf '%-10s %5d s  %s' "$step" $((SECONDS - from)) "$result")")
done

printf '\n=== steps\n'
printf '%s\n' "${rows[@]}"
printf '%-10s %5d s\n' all $((SECONDS - begin))
if ((${#failed[@]})); then
  echo "FAILED: ${failed[*]}; repeat one alone with: make ${failed[0]}" >&2
  exit 1
fi
