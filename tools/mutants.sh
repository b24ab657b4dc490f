#!/usr/bin/env bash
# Plants each fault of testnet/mutants in turn, and shows that the test it names
# finds it. A patch begins with prose, and says what to run:
#
#	Caught-by: ./reconcile TestSpoiltMessages [more flags of go test]
#
# The tree stays as it is: the go command is told to read the changed files from
# elsewhere (-overlay). A fault counts as caught if the test fails by its own
# word; one that does not build, or dies without naming the test, does not.
# First the tests must pass without any fault.
#
#	tools/mutants.sh            all
#	tools/mutants.sh 03 clock   those whose names hold one of the words
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

chosen() {
	local word
	for word in "${words[@]}"; do
		case $1 in *"$word"*) return 0 ;; esac
	done
	[ ${#words[@]} = 0 ]
}
words=("$@")
patches=()
for patch in testnet/mutants/*.patch; do
	if chosen "$(basename "$patch")"; then patches+=("$patch"); fi
done
[ ${#patches[@]} -gt 0 ] || { echo "mutants: no patch in testnet/mutants has one of these words in its name: $*" >&2; exit 2; }

# catcher sets package, test and flags from a patch.
catcher() {
	local line
	line=$(sed -n 's/^Caught-by: //p' "$1" | head -1)
	[ -n "$line" ] || { echo "mutants: $1 has no line Caught-by: PACKAGE TEST" >&2; exit 2; }
	read -r package test flags <<<"$line"
}

run() { # log, further flags of go test…
	local log=$1
	shift
	# shellcheck disable=SC2086 # flags are words
	go test -count=1 -timeout 10m "$@" "$package" -run "^$test\$" -v $flags >"$log" 2>&1
}

declare -A clean
missed=0
for patch in "${patches[@]}"; do
	name=$(basename "$patch" .patch)
	catcher "$patch"
	if [ -z "${clean[$package $test $flags]:-}" ]; then
		run "$work/clean.log" || { echo "mutants: $test in $package fails without any fault:" >&2; tail -20 "$work/clean.log" >&2; exit 1; }
		grep -q "^--- PASS: $test" "$work/clean.log" || { echo "mutants: $package has no test $test, which $name names" >&2; exit 2; }
		clean[$package $test $flags]=yes
	fi
	rm -rf "$work/tree"
	mkdir "$work/tree"
	files=$(git apply --numstat "$patch" | cut -f3)
	overlay=""
	for file in $files; do
		mkdir -p "$work/tree/$(dirname "$file")"
		cp "$file" "$work/tree/$file"
		overlay="$overlay${overlay:+,}\"$root/$file\":\"$work/tree/$file\""
	done
	(cd "$work/tree" && GIT_CEILING_DIRECTORIES=$work git apply "$root/$patch") || { echo "mutants: $patch does not apply any more; make it anew" >&2; exit 2; }
	echo "{\"Replace\":{$overlay}}" >"$work/overlay.json"
	started=$SECONDS
	if run "$work/log" -overlay "$work/overlay.json"; then
		verdict="NOT CAUGHT"
	elif grep -q "^--- FAIL: $test" "$work/log"; then
		verdict="caught"
	elif grep -q "^panic: " "$work/log" && grep -q "^=== RUN   $test" "$work/log"; then
		verdict="caught" # the test's own watchdog, or the fault itself
	else
		verdict="NO VERDICT"
	fi
	printf '%-12s %-44s %s %s (%d s)\n' "$verdict" "$name" "$package" "$test" $((SECONDS - started))
	if [ "$verdict" != caught ]; then
		missed=$((missed + 1))
		tail -5 "$work/log" | sed 's/^/    /'
	fi
done
echo "$((${#patches[@]} - missed)) of ${#patches[@]} mutants caught"
[ $missed = 0 ]
