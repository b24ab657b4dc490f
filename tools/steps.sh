#!/usr/bin/env bash
# Runs the given make targets in order and prints, for each, how long it ran and
# how much processor time it took, which says more on a busy machine. A failed
# step does not hide the ones after it: all run, and the exit code says whether
# all passed.
set -uo pipefail
cd "$(dirname "$0")/.."

declare -a rows failed=()
TIMEFORMAT='%U %S' # of `time`: user and system
exec 3>&1 4>&2     # what a step prints, while `time` is caught
begin=$SECONDS
for step in "$@"; do
  printf '\n=== make %s\n' "$step"
  from=$SECONDS
  if spent=$({ time make "$step" SEED="${SEED:-}" </dev/null >&3 2>&4; } 2>&1); then
    result=ok
  else
    result=FAILED failed+=("$step")
  fi
  rows+=("$(awk -v step="$step" -v ran=$((SECONDS - from)) -v result=$result \
    '{ printf "%-10s %5d s, processors %5d s  %s", step, ran, $1 + $2, result }' <<<"$spent")")
done

printf '\n=== steps\n'
printf '%s\n' "${rows[@]}"
printf '%-10s %5d s\n' all $((SECONDS - begin))
if ((${#failed[@]})); then
  echo "FAILED: ${failed[*]}; repeat one alone with: make ${failed[0]}" >&2
  exit 1
fi
