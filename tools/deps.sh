#!/usr/bin/env bash
# Installs the Debian packages that the tests use, if they are missing and we
# are root. Otherwise it fails and says what to install: a test that cannot run
# must not look like one that passed.
set -euo pipefail

# command → package that brings it
declare -A need=(
  [gcc]=gcc                                 # the race detector
  [git]=git                                 # the version of a build
  [jq]=jq                                   # scripts read JSON
  [qemu-aarch64-static]=qemu-user-static    # golden vectors on arm64
  [qemu-s390x-static]=qemu-user-static      # golden vectors on a big-endian machine
  [mkfs.ext4]=e2fsprogs                     # the disk of a power cut
  [mount]=mount
)

declare -A missing=()
for command in "${!need[@]}"; do
  PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || missing[${need[$command]}]=1
done

# The tests on real input import Debian's package index.
index=ok
if ! command -v apt-cache >/dev/null; then
  index=none
elif (($(apt-cache dumpavail 2>/dev/null | grep -c '^Package:' || true) < 10000)); then
  index=empty
fi

if ((${#missing[@]} == 0)) && [ $index = ok ]; then
  echo "all present"
  exit 0
fi
if [ $index = none ]; then
  echo "this is no Debian: install what brings ${!missing[*]} by hand; the tests on Debian's package index need apt-cache" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "not root, so nothing was installed; run: sudo apt-get update && sudo apt-get install -y ${!missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
if ((${#missing[@]})); then
  apt-get install -y -q --no-install-recommends "${!missing[@]}"
fi
