#!/usr/bin/env bash
# Runs every fuzz target of the module, one after the other, and prints how many
# executions each had. The test of a package is built once for all its targets,
# with coverage counters in this module's packages only: what `go test -fuzz`
# would put into every library takes minutes to build. Targets of the command read
# its own packages' code only, so that these alone have counters there.
#
#	tools/fuzz.sh 20000x          so many executions each
#	tools/fuzz.sh 20000x 2000x    so many, and fewer of the slow targets
#	tools/fuzz.sh 30s             so long each
set -euo pipefail
cd "$(dirname "$0")/.."
usual=${1:?usage: tools/fuzz.sh FUZZTIME [SLOW] (20000x 2000x, 30s)}
fewer=${2:-$usual}

# Targets that take more than a millisecond an execution: large inputs, whole tables.
slow='^(bfield/cuckoo Fuzz(ReadMap|Table))$'

root=$PWD module=$(go list -m) cache=$(go env GOCACHE)/fuzz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# passed runs a target of the package that was built. A target that is stopped by
# the clock may report its own deadline as a failure (go.dev/issue/75804); a
# finding names the input that it has written.
passed() { # package target
  (cd "$1" && "$work/test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$fuzztime" -test.fuzzminimizetime 10x \
    -test.parallel 2 -test.timeout 0 -test.fuzzcachedir "$cache/$1") >"$work/log" 2>&1 </dev/null && return
  [[ $fuzztime != *x ]] && grep -q 'context deadline exceeded' "$work/log" && ! grep -q 'Failing input' "$work/log"
}

found=0 slowly=0 failed=0
while read -r package; do
  begin=$SECONDS
  counted=$module/...
  [[ $package != cmd/* ]] || counted=$module/cmd/...
  go test -c -vet=off -ldflags='-s -w' -gcflags="$counted=-d=libfuzzer" -o "$work/test" "./$package"
  printf '      %-52s built %14d s\n' "$package" $((SECONDS - begin))
  for target in $(grep -hEo '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | sed 's/func //' | sort); do
    found=$((found + 1)) begin=$SECONDS fuzztime=$usual
    if [[ "$package $target" =~ $slow ]]; then fuzztime=$fewer slowly=$((slowly + 1)); fi
    if passed "$package" "$target"; then
      execs=$(grep -o 'execs: [0-9]*' "$work/log" | tail -1 || true)
      printf 'ok    %-52s %-20s %5d s\n' "$package $target" "${execs:-execs: ?}" $((SECONDS - begin))
    else
      failed=$((failed + 1))
      cat "$work/log"
      printf 'FAIL  %s %s\n' "$package" "$target"
    fi
  done
done < <(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}' ./... |
  xargs grep -lE '^func Fuzz' | xargs -n 1 dirname | sort -u | sed "s|^$root/||")

if ((found == 0)); then
  echo "no fuzz target found: the search is broken" >&2
  exit 1
fi
if ((slowly != 2)); then
  echo "fuzz.sh names 2 slow targets, and met $slowly" >&2
  exit 1
fi
echo "$found fuzz targets, $failed with findings"
((failed == 0))
