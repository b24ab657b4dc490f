#!/bin/sh
# Runs the golden vectors of hash, field, mapping and cells, and of the structures
# under bfield, on processors that round, fuse or order bytes otherwise: arm64
# and s390x (big-endian), emulated by qemu-user. Simulated runs leave the traces
# there that they leave here. Installs qemu-user-static by apt-get when it runs
# as root and it is missing.
set -eu
cd "$(dirname "$0")/.."

if ! command -v qemu-s390x-static >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
		echo "golden-cross: qemu-s390x-static and qemu-aarch64-static are missing; install the package qemu-user-static" >&2
		exit 1
	fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for package in internal/keyhash iblt iblt/rateless dbadapter reconcile/wire bfield bfield/internal/keyed bfield/ribbon bfield/cuckoo; do
	for target in arm64:aarch64 s390x:s390x; do
		arch=${target%%:*}
		qemu=qemu-${target##*:}-static
		test=$out/$(basename "$package")-$arch.test
		CGO_ENABLED=0 GOOS=linux GOARCH=$arch go test -c -o "$test" "./$package"
		result=$(cd "$package" && "$qemu" "$test" -test.v -test.run Golden) || {
			echo "$result"
			echo "golden-cross: $package differs on $arch" >&2
			exit 1
		}
		# A run that matched no test would pass too.
		case $result in
		*"--- PASS: TestGolden"*) echo "golden-cross: $package on $arch: same" ;;
		*) echo "golden-cross: $package has no golden test" >&2; exit 1 ;;
		esac
	done
done

traces() { # of a test binary, with what emulates it
	(cd testnet && "$@" -test.v -test.run '^TestTraces$' | sed -n 's/.*\(trace of seed .*\)/\1/p')
}
CGO_ENABLED=0 go test -c -o "$out/traces" ./testnet
here=$(traces "$out/traces")
test -n "$here" || { echo "golden-cross: testnet has left no traces" >&2; exit 1; }
for target in arm64:aarch64 s390x:s390x; do
	arch=${target%%:*}
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go test -c -o "$out/traces-$arch" ./testnet
	there=$(traces "qemu-${target##*:}-static" "$out/traces-$arch")
	if [ "$here" != "$there" ]; then
		printf 'golden-cross: testnet differs on %s:\n%s\nnot\n%s\n' "$arch" "$there" "$here" >&2
		exit 1
	fi
	echo "golden-cross: testnet on $arch: same traces"
done
