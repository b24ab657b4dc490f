# syncd: build, test, measure. `make help` lists the targets.
#
# `make test` is exactly what CI runs. Each of its steps is a target of its
# own, so that a failed one is repeated alone: `make lint`, `make unit SEED=7`.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# Order of the tests within each package; printed, so that a failure that
# depends on the order is replayed with `make unit SEED=…`.
SEED := $(or $(SEED),$(shell date +%s))

# A count of executions (10000x) or a duration (30s) for each fuzz target. The
# default is a count: what is tried does not depend on how busy the machine is.
# Targets that are slow, by tools/fuzz.sh, have a tenth of the default.
FUZZTIME ?= 10000x
SLOWFUZZ ?= $(if $(filter 10000x,$(FUZZTIME)),1000x,$(FUZZTIME))

TOOLS    := .tools/stamp
GOTESTSUM := .tools/gotestsum

# The steps of `make test`: first each by itself, as these keep all processors at
# work; then two lanes beside one another.
SINGLE   := deps format tidy lint unit
LANES    := seeds fuzz / cross platforms openapi modules
STEPS    := $(SINGLE) $(filter-out /,$(LANES))

.PHONY: help test check $(STEPS) build fmt fuzz-million soak mutants bench bench-bfield figures clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## everything CI runs: all of the steps below, with their times
	@SEED=$(SEED) tools/steps.sh $(SINGLE) '$(LANES)'

check: test ## the same as test

deps: ## install the Debian packages that the tests use (as root; else say which)
	@tools/deps.sh

format: $(TOOLS) ## is every file formatted by gofumpt?
	@bad=$$(.tools/gofumpt -l .); if [ -n "$$bad" ]; then \
	  echo "not formatted; run 'make fmt':"; echo "$$bad"; exit 1; fi

tidy: ## are go.mod and go.sum tidy?
	go mod tidy -diff
	cd bench && go mod tidy -diff

lint: $(TOOLS) ## golangci-lint, as .golangci.yml says; go vet is part of it
	.tools/golangci-lint run --allow-parallel-runners

unit: $(TOOLS) ## all tests of the module in a random order (SEED=…), with -race where goroutines run
	@echo "test order: SEED=$(SEED)"
	$(GOTESTSUM) --format testname --jsonfile .tools/test.json --raw-command -- tools/unit.sh $(SEED)

seeds: ## 1,340 simulated runs, every tenth of them twice
	go test -count=1 -v -timeout 1h -run '^TestSeeds$$' ./testnet -again 10 -seeds 1000
	go test -count=1 -v -timeout 1h -run '^TestSeeds$$' ./testnet -again 10 -seeds 150 -profile ranges
	go test -count=1 -v -timeout 1h -run '^TestSeeds$$' ./testnet -again 10 -seeds 150 -profile shards
	go test -count=1 -v -timeout 1h -run '^TestSeeds$$' ./testnet -again 10 -seeds 40 -profile writer

soak: ## 20,000 simulated runs, each twice (from the seed FIRST=…, with the faults PROFILE=…)
	go test -count=1 -v -timeout 3h -run '^TestSeeds$$' ./testnet -seeds 20000 -seed $(or $(FIRST),0) -profile $(or $(PROFILE),mixed) -found scenarios/found

mutants: ## plant each fault of testnet/mutants, and show that the test it names finds it (ONLY="03 clock")
	@tools/mutants.sh $(ONLY)

fuzz: ## run each fuzz target for FUZZTIME (10000x, or 30s …)
	@tools/fuzz.sh $(FUZZTIME) $(SLOWFUZZ)

fuzz-million: ## run each fuzz target 10^6 times
	@tools/fuzz.sh 1000000x

cross: ## golden vectors on arm64 and on s390x (big-endian), under qemu
	@tools/golden-cross.sh

# Windows alone: it has neither the files for unix nor those for Linux, and
# compiling all dependencies for one more system takes long with an empty cache.
# Without optimizations, which the check does not need, it takes two thirds of that.
platforms: ## do the programs build for Windows?
	GOOS=windows GOARCH=amd64 go build -gcflags='all=-N -l' -o /dev/null ./cmd/syncd ./cmd/syncd/syncd-testnet

openapi: ## lint the HTTP API's description, by Redocly's strict rules (npm)
	@tools/openapi.sh

modules: $(TOOLS) ## test and lint the bench module
	cd bench && go test -count=1 ./... && ../.tools/golangci-lint run --allow-parallel-runners --config ../.golangci.yml

# Go writes the commit into the program itself, unless GOFLAGS forbids it; git
# must not refuse to tell because the clone belongs to another user.
build: ## bin/syncd and bin/syncd-testnet, with the version of this commit
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' \
	  go build -buildvcs=auto -trimpath -o bin/ ./cmd/syncd ./cmd/syncd/syncd-testnet

fmt: $(TOOLS) ## format every file
	.tools/gofumpt -w .

bench: ## measured ratios, each within one run (COUNT=… repeats)
	@cd bench && go run ./ratio -count $(or $(COUNT),9)

bench-bfield: ## B-field and locator compared with a Go map and a ribbon, in one run each (ONLY=… a pattern of benchmarks)
	cd bench && go test -run '^$$' -bench '$(or $(ONLY),.)' -benchtime 1x -timeout 2h ./bfield/...

figures: ## the figures of docs/PERFORMANCE.md that are counts, and the cost of a sync against the size of the set
	go test -v -run 'FortyDifferences|SketchBytes|ManyDifferences|Openings|NoCells|WholeConversation' ./reconcile -trials 10000 | grep -v seed
	go run ./cmd/syncd bench sync --records 10000,1000000 --differences 100

clean: ## remove what was built here
	rm -rf bin .tools

# All tools, at the versions of tools/go.mod.
$(TOOLS): tools/go.mod tools/go.sum
	cd tools && go build -o ../.tools/ tool
	@touch $@
