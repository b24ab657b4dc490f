#!/usr/bin/env bash
# Runs all tests of the module in a random order and prints them as test2json:
# with -race where goroutines run beside one another, without it elsewhere,
# where the detector finds nothing and takes ten times as long.
#
#	tools/unit.sh SEED
#
# A package is run with -race if a file of it starts a goroutine, tests included,
# or if its tests are linked with a package that does, but for those named below.
set -uo pipefail
cd "$(dirname "$0")/.."
seed=${1:?usage: tools/unit.sh SEED}

# Tests of one goroutine in such packages: statistics over many trials, damage done
# bit by bit, signatures by the thousand; and the longest ones of clusters whose code others run, too.
# They run without -race.
alone='^Test(Damage(Closed|Crashed|Trusted)?$|Figures|LoadsReached|TableIsAField|FalsePositiveRate|BandAgainstDenseElimination'
alone+='|Plans|PlacesAreIndependent|Size(Of.*)?$|Rates|RatesSimulated'
alone+='|CellsADifference|HostileStreams|HostileVectors|ListingWork|StructuredPairsDecodeAsRandomOnes'
alone+='|Estimate|EstimateOfSketches|DecoderEstimate|TwinLarge|FortyDifferencesFromTheFirstMessage'
alone+='|SketchBytes|ManyDifferences|FortyDifferences|SyncFindsEachKind|CellsForEver|Tape|Traces|Command'
alone+='|TwoLayers|GoldenPlans|Field$'
alone+='|RescueFlips|Rest$|Scenarios|Summaries$|Watchers|WatermarkHistories|AdmissionInBatches|DatedRecordsOfAnySigner|ImportAgainstTwin|SyncsConverge'
alone+='|AwayFromSixPeers|Rot$|HostsComeAndGo|VoidStatementsAreToldOnce|ManyStatementsOfItself|ForgedBytes$|PowerCut(Unsynced)?$|Copies$'
alone+='|Found$|AllCodes$|Adversary$|Conformance(OfCoded)?$|NumbersDiffer|BitsOfTheText)'

# Parts of the conformance suite of stores of which the same is true: they write much, in one goroutine.
parts='^(many_conflicts|large_conflicts|largest_batches|as_many_keys_as_an_index_takes|model)$'
large="^TestStore\$/$parts|^TestStore\$/^(badger|pebble)\$/$parts"

# Packages of one goroutine, which link iblt/rateless (its goroutines end within the call,
# and run no code of the caller) or the hasher of dbadapter/storetest.
single='^(reconcile|reconcile/wire|testnet/internal/check)$'

module=$(go list -m)
# starting prints the packages in which files of a kind start a goroutine.
starting() {
  go list -f "{{range $1}}{{\$.Dir}}/{{.}}{{\"\\n\"}}{{end}}" ./... |
    xargs grep -lE '^[[:space:]]*(defer )?go (func\(|[[:alpha:]][[:alnum:]_.]*\()|\.Go\(' |
    xargs -n 1 dirname | sed "s|^$PWD|$module|" | sort -u
}
starters=$(starting .GoFiles) tests=$(starting .TestGoFiles && starting .XTestGoFiles)

declare -a raced=() plain=()
while read -r package linked; do
  package=${package%.test}
  if grep -qxF "$package" <<<"$tests"$'\n'"$starters"; then
    raced+=("$package")
  elif [[ ! ${package#"$module"/} =~ $single ]] && grep -qxFf <(echo "$starters") <(tr ' ' '\n' <<<"$linked"); then
    raced+=("$package")
  else
    plain+=("$package")
  fi
done < <(go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... | grep -E '^[^ ]+\.test ')
if ((${#raced[@]} == 0 || ${#plain[@]} == 0)); then
  echo "tools/unit.sh: ${#raced[@]} packages with goroutines and ${#plain[@]} without: the search is broken" >&2
  exit 1
fi

sources=${alone//\$/\\(} # as functions are written
mapfile -t holders < <(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}' "${raced[@]}" |
  xargs grep -lE "^func (${sources#^}|TestStore\\()" | xargs -n 1 dirname | sort -u)

# Tests of real nodes and processes mostly wait. Theirs begin first, and two packages
# more than there are processors run at a time, so that others compile and compute while
# these wait, and stores for the disk. Of a package's tests that wait longest four run at a time.
waiting=("$module/peer" "$module/cmd/syncd/systemtest")
mapfile -t raced < <(printf '%s\n' "${waiting[@]}"; printf '%s\n' "${raced[@]}" | grep -vxF "$(printf '%s\n' "${waiting[@]}")")
beside=(-p $(($(nproc) + 2)))

# A package ends only when it hangs: a busy machine must not end it. Each wait within a
# test has its own deadline, and CI gives up after 90 minutes.
limit=(-timeout 85m)

code=0
go test -json -vet=off -shuffle="$seed" "${limit[@]}" "${beside[@]}" -parallel 4 -race -skip "$alone|$large" "${raced[@]}" || code=$?
go test -json -vet=off -shuffle="$seed" "${limit[@]}" "${beside[@]}" "${plain[@]}" || code=$?
go test -json -vet=off -shuffle="$seed" "${limit[@]}" "${beside[@]}" -run "$alone|$large" "${holders[@]}" || code=$?
exit $code
