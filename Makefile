# Everything a person or a machine does with this repository, by name.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Tests fail, not skip, where one of these providers cannot be used. With efa, the
# emulated device must be there.
export WEFT_REQUIRE ?= sockets,tcp,shm

# A dependency of Debian's libfabric catches SIGSEGV and hides Go's own traces.
export IPATH_NO_BACKTRACE := 1

# ofi_rxm takes 16 MiB at once for each endpoint, and clears it: in pages of 4 KiB that is a
# third of what tests of many endpoints take.
test test-efa test-hosts race: export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1
# There, whoever looks into memory that was freed finds something else in it.
test-libfabric-2 test-efa-2: export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1:glibc.malloc.perturb=165:glibc.malloc.tcache_count=0

# An AWS installation of libfabric goes before the system's.
EFA := /opt/amazon/efa
ifneq ($(wildcard $(EFA)),)
colons = $(subst $() ,:,$(strip $(1)))
export PKG_CONFIG_PATH := $(call colons,$(wildcard $(EFA)/lib64/pkgconfig $(EFA)/lib/pkgconfig) $(PKG_CONFIG_PATH))
export LD_LIBRARY_PATH := $(call colons,$(wildcard $(EFA)/lib64 $(EFA)/lib) $(LD_LIBRARY_PATH))
export PATH := $(EFA)/bin:$(PATH)
endif

PKG       ?= ./...# which packages to test
TESTFLAGS ?=# more flags for go test, such as -run=TestName
TIMEOUT   ?= 15m# for the tests of one package
export FUZZTIME ?= 60s# for one fuzz target
BENCHFLAGS ?=# more flags for weft bench
MACHINE   ?= $(shell uname -n)# its name in bench/results

LINT := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Modules of their own, so that what they need is not asked of who uses weft. Their
# tests run with all the others.
MODULES := examples/grpc examples/tracing
ALSO = $(if $(filter ./...,$(PKG)),$(addprefix -also=,$(MODULES)))

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup:
	@scripts/setup $(if $(findstring efa,$(WEFT_REQUIRE)),emulator)

.PHONY: demo
demo: setup ## send the Go toolchain from one process to another, over each provider
	@scripts/demo

.PHONY: build
build: setup ## build the command, bin/weft
	go build -o bin/weft ./cmd/weft

.PHONY: testreport
testreport: setup
	@go build -o bin/testreport ./scripts/testreport

# The efa provider has its turn where everything is run.
EVERYTHING := $(and $(filter ./...,$(PKG)),$(if $(strip $(TESTFLAGS)),,yes))
EFA_ROUNDS ?= plain faults

.PHONY: test
test: testreport ## run every test, on every provider that this machine has, and on efa
	@code=0; bin/testreport $(ALSO) -count=1 -timeout=$(TIMEOUT) $(TESTFLAGS) $(PKG) || code=1; \
		$(if $(and $(EVERYTHING),$(EFA_ROUNDS)),scripts/test-efa $(EFA_ROUNDS) -timeout=$(TIMEOUT) || code=1;) exit $$code

# A module that takes long to compile, and needs a server: not a part of make test.
.PHONY: test-etcd
test-etcd: testreport ## lint and test the store of jobs in etcd, with Debian's etcd-server
	@scripts/setup etcd
	cd bootstrap/etcd && go vet ./... && $(LINT) run
	@cd bootstrap/etcd && WEFT_REQUIRE=etcd ../../bin/testreport -count=1 -timeout=$(TIMEOUT) $(TESTFLAGS) ./...

.PHONY: test-efa
test-efa: testreport ## run the tests on libfabric's efa provider and an emulated device, plain and with faults
	@scripts/test-efa $(EFA_ROUNDS) -timeout=$(TIMEOUT) $(TESTFLAGS)

# make test does the same without the commands that take minutes.
.PHONY: test-docs
test-docs: ## run every command in README.md and docs that can be run here, and Prometheus; takes hours
	@scripts/setup docs
	WEFT_REQUIRE=prometheus go test -run='^TestPrometheus' -count=1 -v ./metrics
	WEFT_DOCS=all go test -run='^TestDoc' -count=1 -timeout=0 -v . ./cmd/weft

.PHONY: test-hosts
test-hosts: testreport ## run the tests between hosts, which are network namespaces, while the network fails
	@scripts/test-hosts -timeout=$(TIMEOUT) $(TESTFLAGS)

# Tests of processes that are killed, cut off or written in C: what happens there
# happens in the other process, and with the race detector they take long.
OTHERS = -skip='^Test(Interop|ClosePrograms|UnknownPeer|UnknownPeerOfDatagrams|UnknownPeerOfContexts|DeferredAtomicsOfVectors|HostVanishes|PeerIsRestarted|PeerIsKilled|PeerIsKilledInLongWrite|ShmLostPeers|ReceiverIsKilled|SenderIsKilled|ReceiverIsInterrupted|SenderIsInterrupted|ScriptsOnEachProvider|RankIsKilled|Processes|Ring|Faults|ScriptWithoutNamespaces|TrainingByMpirun|BenchScripts|BenchIsInterrupted|BenchShowsProgressOnTerminal|RanksMeasure|OpenMPIMeasures|JobFails|DocPrograms|DocShell|BrowserDrawsPlots|ProviderIsMeasured|AddressVectorOfTwoProcesses$(RACE_LESS))$$'

# CI leaves out more, each after a |, and has with asan what these are.
RACE_LESS ?=
ASANED ?=

# The code in Go is the same for all providers but for how it waits: of these, on sockets
# it blocks, and on shm it spins, or naps.
RACE_PROVIDERS ?= sockets,shm
RACE_PKG ?= $(PKG)
RACED = WEFT_TEST_PROVIDERS=$(or $(WEFT_TEST_PROVIDERS),$(RACE_PROVIDERS))

# -race brings checkptr with it; cgocheck2 watches each Go pointer stored in C
# memory: both watch in one run. -asan watches the memory that C reads and writes;
# what libfabric keeps for good is not a leak of the tests.
.PHONY: race
race: testreport ## run the tests with the race, pointer and cgo checks, and the packages around C with asan
	@$(RACED) GOEXPERIMENT=cgocheck2 bin/testreport $(if $(filter ./...,$(RACE_PKG)),$(ALSO)) $(OTHERS) -race -count=1 -timeout=$(TIMEOUT) $(TESTFLAGS) $(RACE_PKG)
	@$(RACED) ASAN_OPTIONS=detect_leaks=0 bin/testreport $(if $(ASANED),'$(ASANED)') -asan -count=1 -timeout=$(TIMEOUT) $(TESTFLAGS) ./cgo ./fabric

# The same tests with Debian 13's libfabric, in a root of its own, but for the long
# ones of the benchmarks, of jobs, of other processes and of the device itself, the
# one of weft as a module, which wants git, and those on devices in memory, which are
# the same with any libfabric (make test PKG=... in it runs them).
LONG := -skip='^Test(SidesUnderstandEachOther|ConnectionsCarry|BenchmarksRun|PingPongUnderFaults|PingPongBetweenContainers|SRD|SRDUnderFaults|Valgrind|JobsOfAllSizes|RanksThatDoNotJoinAreNamed|HostVanishes|PeerIsRestarted|Interop|RankIsKilled|Processes|ManyRanks|OneNodeStandsForAll|TrainingByFourRanks|TrainingByMpirun|Faults|ScriptWithoutNamespaces|BenchScripts|BenchIsInterrupted|BenchShowsProgressOnTerminal|JobFails|DocPrograms|DocShell|ModuleCanBeHad|BrowserDrawsPlots)$$|/^fake'
LIBFABRIC_2_PKG ?= $(PKG)
LIBFABRIC_2_PROVIDERS ?=# all
.PHONY: test-libfabric-2
test-libfabric-2: testreport ## run the tests, but for the longest, against libfabric 2.1
	@code=0; export WEFT_TEST_PROVIDERS=$(or $(WEFT_TEST_PROVIDERS),$(LIBFABRIC_2_PROVIDERS)); \
		scripts/libfabric-2 bin/testreport $(if $(filter ./...,$(LIBFABRIC_2_PKG)),$(ALSO)) $(LONG) -count=1 -timeout=$(TIMEOUT) $(TESTFLAGS) $(LIBFABRIC_2_PKG) || code=1; \
		$(if $(and $(EVERYTHING),$(filter ./...,$(LIBFABRIC_2_PKG))),scripts/libfabric-2 scripts/test-efa plain -timeout=$(TIMEOUT) || code=1;) exit $$code

# CI has no time for all of it on efa, which make test-libfabric-2 has by hand.
.PHONY: test-efa-2
test-efa-2: testreport ## on efa of libfabric 2.1, the tests in which endpoints are closed or peers end, and of counters
	@scripts/libfabric-2 scripts/test-efa ends -timeout=$(TIMEOUT) $(TESTFLAGS)

# scripts/libfabric-2 go run ./scripts/matrix -write docs/PROVIDERS.md does the
# same for libfabric 2.1.
.PHONY: matrix
matrix: setup ## run the cases of fabtests on every provider, into docs/PROVIDERS.md
	go run ./scripts/matrix -write docs/PROVIDERS.md

.PHONY: lint
lint: setup ## golangci-lint with vet and gofumpt; shellcheck where there is one
	$(LINT) run
	@set -e; for module in $(MODULES); do echo "$$module:"; (cd $$module && $(LINT) run); done
	@if command -v shellcheck >/dev/null; then \
		shellcheck $$(grep -lsE '^#!.*sh$$' scripts/* .ci/*) && echo "shellcheck: no issues."; \
	else \
		echo "shellcheck is not installed: the scripts were not checked."; \
	fi

.PHONY: portable
portable: setup ## compile everything without cgo, for other systems too
	@scripts/portable

# CI does none of this. docker-demo and docker-test remove what they have made, but for
# the base images.
.PHONY: docker-demo
docker-demo: ## two containers and a job of four, over each provider; needs the Docker engine, not in CI
	@scripts/docker-demo

.PHONY: docker-test
docker-test: testreport ## the same as tests, with faults, wrong settings and manifests; needs Docker, not in CI
	@scripts/docker-test $(TESTFLAGS)

.PHONY: docker-images
docker-images: ## build the images weft, weft-dev and weft-demo
	@scripts/docker-images dev demo weft

.PHONY: fmt
fmt: ## format the code as lint wants it
	$(LINT) fmt
	@set -e; for module in $(MODULES) bootstrap/etcd docker; do (cd $$module && $(LINT) fmt); done

.PHONY: bench
bench: RUN := bench/results/$(shell date -u +%F)-$(MACHINE)
bench: build ## measure all targets beside their baselines, into bench/results/DATE-MACHINE.json and .html
	@[[ ! -e $(RUN).json ]] || { echo "$(RUN).json is there already: move it, or name another MACHINE" >&2; exit 1; }
	bin/weft bench --json $(RUN).json --html $(RUN).html $(BENCHFLAGS)

# make test does the same with a tenth of the messages, on tcp.
export SOAK_CONNECTIONS SOAK_MESSAGES SOAK_TIME SOAK_PROVIDERS
.PHONY: soak
soak: SOAK_MESSAGES := $(or $(SOAK_MESSAGES),1000)
# The last part of if may have commas, which those of or may not.
soak: SOAK_PROVIDERS := $(if $(SOAK_PROVIDERS),$(SOAK_PROVIDERS),sockets,tcp,shm)
soak: setup ## 1,000 connections of 1,000 messages, or SOAK_CONNECTIONS, SOAK_MESSAGES, SOAK_TIME=1h
	go test ./efa/ -run='^TestSoak$$' -count=1 -timeout=0 -v

# make test does the same with fewer, of which the second on the device in memory only.
FLOOD_PROVIDERS ?= sockets,tcp,shm
FLOOD_MESSAGES ?= 1000000
.PHONY: soak-flood
soak-flood: setup ## FLOOD_MESSAGES=1000000 that nobody receives at first, in both modes of matching
	SOAK_FLOOD=$(FLOOD_MESSAGES) WEFT_TEST_PROVIDERS=$(FLOOD_PROVIDERS) \
		go test ./comm/ -run='^TestUnexpectedIs(Bounded|Counted)$$' -count=1 -timeout=0 -v

# make test does the same with 40 programs on each provider.
.PHONY: soak-closing
soak-closing: export WEFT_TEST_PROVIDERS = $(if $(SOAK_PROVIDERS),$(SOAK_PROVIDERS),sockets,tcp,shm)
soak-closing: setup ## SOAK_PROGRAMS=5000 that open, use and close endpoints and what they need, in any order
	SOAK_PROGRAMS=$(or $(SOAK_PROGRAMS),5000) go test ./fabric/ -run='^TestClosePrograms$$' -count=1 -timeout=0 -v

# make test does the same with four ranks and a little of everything. SOAK_PROVIDERS=efa is
# the emulated device, of which WEFT_EFA_DROP and the like are the faults. SOAK_PARTS is which
# of the two tests: Processes, the calls by SOAK_RANKS processes, and RankIsKilled, in jobs of
# SOAK_KILLED. SOAK_SIZES and SOAK_SUBJECTS may be empty, and SOAK_CALLS 0, for none of these.
export SOAK_RANKS SOAK_KILLED SOAK_SIZES SOAK_SUBJECTS SOAK_CALLS SOAK_SEED SOAK_WORDS
SOAK_PARTS ?= Processes|RankIsKilled
# A setting that is given is no default, even if it is empty; export alone makes it one of this file.
given = $(filter-out undefined file,$(origin $(1)))
.PHONY: soak-collective
soak-collective: export WEFT_TEST_PROVIDERS = $(if $(SOAK_PROVIDERS),$(SOAK_PROVIDERS),shm,tcp,sockets)
soak-collective: export WEFT_REQUIRE = $(WEFT_TEST_PROVIDERS)
soak-collective: SOAK_KILLED := $(or $(SOAK_KILLED),$(SOAK_RANKS),3)
soak-collective: SOAK_RANKS := $(or $(SOAK_RANKS),1-17)
soak-collective: SOAK_SIZES := $(if $(call given,SOAK_SIZES),$(SOAK_SIZES),0,1,8,100,4Ki,32Ki,33000,100000,1Mi,16Mi,64Mi)
soak-collective: SOAK_SUBJECTS := $(if $(call given,SOAK_SUBJECTS),$(SOAK_SUBJECTS),40,3000)
soak-collective: SOAK_CALLS := $(or $(SOAK_CALLS),100000)
soak-collective: setup ## all collectives by 1 to 17 processes, or SOAK_RANKS=2-5, SOAK_SIZES=0,4Ki,1Mi, SOAK_CALLS
	go test $(if $(findstring efa,$(WEFT_TEST_PROVIDERS)),-exec=$(CURDIR)/scripts/with-efa) ./collective/ \
		-run='^Test($(SOAK_PARTS))$$' -count=1 -timeout=0 -v

.PHONY: fuzz
fuzz: setup ## run each fuzz target for FUZZTIME
	@scripts/fuzz

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
