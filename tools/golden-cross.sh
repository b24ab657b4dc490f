#!/usr/bin/env bash
# Runs the golden vectors of hash, field, mapping and cells, and of the structures
# under bfield, on processors that round, fuse or order bytes otherwise: arm64
# and s390x (big-endian), emulated by qemu-user (Debian: qemu-user-static).
# Simulated runs leave the traces there that they leave here.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(internal/keyhash iblt iblt/rateless dbadapter reconcile/wire internal/node internal/locator bfield bfield/keyed bfield/bloom bfield/nested bfield/phf bfield/ribbon bfield/cuckoo bfield/keyset)

run() { # processor, then flags and packages of go test
  local processor=$1
  shift
  case $processor in
    arm64) CGO_ENABLED=0 GOARCH=arm64 go test -vet=off -count=1 -exec qemu-aarch64-static "$@" ;;
    s390x) CGO_ENABLED=0 GOARCH=s390x go test -vet=off -count=1 -exec qemu-s390x-static "$@" ;;
    *) go test -vet=off -count=1 "$@" ;; # what the other steps have compiled
  esac
}
traces() { run "$1" -v -run '^TestTraces$' ./testnet | sed -n 's/.*\(trace of seed .*\)/\1/p'; }

here=$(traces "$(go env GOHOSTARCH)")
[ -n "$here" ] || { echo "golden-cross: testnet has left no traces" >&2; exit 1; }
for processor in arm64 s390x; do
  log=$(run "$processor" -run '^TestGolden' "${packages[@]/#/./}") || { echo "$log"; echo "golden-cross: differs on $processor" >&2; exit 1; }
  # A run that matched no test would pass too.
  if grep 'no tests' <<<"$log"; then echo "golden-cross: a package has no golden test" >&2; exit 1; fi
  echo "golden-cross: ${#packages[@]} packages on $processor: same"
  there=$(traces "$processor")
  if [ "$here" != "$there" ]; then
    printf 'golden-cross: testnet differs on %s:\n%s\nnot\n%s\n' "$processor" "$there" "$here" >&2
    exit 1
  fi
  echo "golden-cross: testnet on $processor: same traces"
done
