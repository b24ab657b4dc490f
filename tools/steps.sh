#!/usr/bin/env bash
# Runs the given make targets in order and prints, for each, how long it ran and
# how much processor time it took, which says more on a busy machine. A failed
# step does not hide the ones after it: all run, and the exit code says whether
# all passed.
#
#	tools/steps.sh lint unit 'seeds fuzz / cross platforms'
#
# The last argument there is two lanes, which run beside one another: a step that
# has one processor at work leaves the other to a step of the other lane. What a step of
# a lane prints is shown when it ends.
set -uo pipefail
cd "$(dirname "$0")/.."

# The C code that the tests are linked with (Pebble's zstd): gcc takes 42 s of
# processor time with -O2 -g, Go's default, and 9 s with these. It is compiled
# twice, with and without -race.
export CGO_CFLAGS=${CGO_CFLAGS:--O0 -g0}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%U %S' # of `time`: user and system
begin=$SECONDS

# step runs a target and notes its row; what the target prints goes to
# descriptors 3 and 4 while `time` is caught.
step() { # target
  local from=$SECONDS spent result=ok
  if ! spent=$({ time make "$1" SEED="${SEED:-}" </dev/null >&3 2>&4; } 2>&1); then
    result=FAILED
  fi
  awk -v step="$1" -v ran=$((SECONDS - from)) -v result=$result \
    '{ printf "%-10s %5d s, processors %5d s  %s\n", step, ran, $1 + $2, result }' <<<"$spent" >"$work/$1.row"
}

# lane runs targets in order, and shows each one's output as a whole.
lane() { # targets
  local target
  for target in "$@"; do
    step "$target" 3>"$work/$target.log" 4>&3
    {
      flock 9
      printf '\n=== make %s\n' "$target"
      cat "$work/$target.log"
    } 9>"$work/lock"
  done
}

declare -a order=()
for argument in "$@"; do
  if [[ $argument == *' / '* ]]; then
    printf '\n=== beside one another: %s\n' "$argument"
    # shellcheck disable=SC2086 # targets are words
    lane ${argument%% / *} &
    # shellcheck disable=SC2086
    lane ${argument#* / }
    wait
    for target in $argument; do
      [ "$target" = / ] || order+=("$target")
    done
  else
    printf '\n=== make %s\n' "$argument"
    step "$argument" 3>&1 4>&2
    order+=("$argument")
  fi
done

printf '\n=== steps\n'
declare -a failed=()
for target in "${order[@]}"; do
  cat "$work/$target.row"
  if ! grep -q 'ok$' "$work/$target.row"; then failed+=("$target"); fi
done
printf '%-10s %5d s\n' all $((SECONDS - begin))
if ((${#failed[@]})); then
  echo "FAILED: ${failed[*]}; repeat one alone with: make ${failed[0]}" >&2
  exit 1
fi
