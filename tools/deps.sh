#!/usr/bin/env bash
# Installs the Debian packages that the tests use, if they are missing and we
# are root. Otherwise it fails and says what to install: a test that cannot run
# must not look like one that passed.
set -euo pipefail

# command → package that brings it
declare -A need=(
  [gcc]=gcc                                 # the race detector
  [git]=git                                 # the version of a build
  [curl]=curl                               # the page on HTTP
  [jq]=jq                                   # scripts read JSON
  [qemu-aarch64-static]=qemu-user-static    # golden vectors on arm64
  [qemu-s390x-static]=qemu-user-static      # golden vectors on a big-endian machine
  [mkfs.ext4]=e2fsprogs                     # the disk of a power cut
  [mount]=mount
  [ip]=iproute2                             # network namespaces: limits per address
  [nft]=nftables                            # routers between them: hole punching
  [promtool]=prometheus                     # the alert rules
  [postgres]=postgresql                     # a store in a server that each test starts
)

# Debian keeps the programs of a PostgreSQL server apart, by version.
servers=$(printf '%s:' /usr/lib/postgresql/*/bin)

declare -A missing=()
for command in "${!need[@]}"; do
  PATH=$PATH:/usr/sbin:/sbin:$servers command -v "$command" >/dev/null || missing[${need[$command]}]=1
done

# The tests on real input import Debian's package index.
indexed() { (($(apt-cache dumpavail 2>/dev/null | grep -c '^Package:' || true) >= 10000)); }

if ((${#missing[@]} == 0)) && indexed; then
  echo "all present"
  exit 0
fi
if ! command -v apt-cache >/dev/null; then
  echo "no apt-cache, so this is no Debian, whose package index some tests need" >&2
  ((${#missing[@]} == 0)) || echo "missing too, to be installed by hand: ${!missing[*]}" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  run="sudo apt-get update"
  ((${#missing[@]} == 0)) || run+=" && sudo apt-get install -y ${!missing[*]}"
  echo "not root, so nothing was installed; run: $run" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
if ((${#missing[@]})); then
  apt-get install -y -q --no-install-recommends "${!missing[@]}"
fi
if ! indexed; then
  echo "apt-get update left Debian's package index with less than 10000 packages; does /etc/apt name a whole Debian?" >&2
  exit 1
fi
