# The commands of the house. `make help` lists them; `make demo` and `make test` need only Rust,
# Python 3.11 and a C compiler, and the network only the first time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The profile of the Python extension (`release` for the fastest replays, built in twice the time)
# and the one of `cargo test`.
EXTENSION_PROFILE ?= demo
TEST_PROFILE ?= dev
# Seconds per fuzz target.
FUZZ_SECONDS ?= 300
FUZZ_FLAGS ?=
# Checks and generators; alone they are built with fewer features than beside the tests.
XTASK ?= cargo xtask
BENCH_REQUESTS ?= 20000000
# Losses of power and kills that `make crash` tries at random, in each of its tests.
CRASHES ?= 100000
CRASH_PROFILE ?= release
# Requests of the longest sequences after which power is lost everywhere.
CRASH_SEQUENCES ?= 4
# The part of these sequences to try: those of 4 requests take hours, and parts can be run alone.
CRASH_SHARD ?= 0/1
# Simulated devices are copied for each loss of power: glibc keeps their memory, which takes a fifth
# of the processor time of asking the kernel for it anew (33 s and 6.4 s for sequences of two).
KEEPS_MEMORY = MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=4000000000
# Crates whose tests `make mutants` judges; a folder of one where a crate is more than that.
MUTANTS_OF ?= control steps cache partition/src/layout

# What `make demo` runs.
DEMO_STACK := specs/demo.toml
DEMO_OUT := demo
# Ten policies answer in about ten seconds; `make demo DEMO_POLICIES=all` runs every one.
DEMO_BY_BLOCKS := {name="rc-x",by_request=false}
DEMO_POLICIES := lru,sieve,s3-fifo,arc,lirs,w-tinylfu,cachesack,duel-x
DEMO_POLICIES := $(DEMO_POLICIES),$(DEMO_BY_BLOCKS),belady-bypass
DEMO_PARTITIONS := shared,static,hull
DEMO_CAPACITIES := 64MiB,128MiB,256MiB
DEMO = $(BIN)/cachewright compare $(DEMO_STACK) --vary 'policy=$(DEMO_POLICIES)' \
	--vary partition=$(DEMO_PARTITIONS) --vary capacity=$(DEMO_CAPACITIES) \
	--report --out $(DEMO_OUT)

# Where `make install` puts what shells and `man` look for.
PREFIX ?= $(HOME)/.local

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
START := $(shell date +%s)
step = printf '\n== %s  (%d s)\n' "$(1)" "$$(( $$(date +%s) - $(START) ))"
# Runs $(2), shows it and keeps it with its exit status in the log of $(1).
logged = mkdir -p target/tests; { $(2); echo "exit status: $$?"; } 2>&1 | tee target/tests/$(1).log

RUST_SOURCES := $(shell find crates python/src -name '*.rs' -o -name Cargo.toml 2>/dev/null) \
	Cargo.toml Cargo.lock
INSTALLED := $(VENV)/.installed
EXTENSION := $(VENV)/.extension-$(EXTENSION_PROFILE)
# Tests take the extension that is there, or one of their own profile: one build instead of two.
BUILT := $(patsubst $(VENV)/.extension-%,%,$(firstword $(wildcard $(VENV)/.extension-*)))
TEST_EXTENSION := $(or $(BUILT),$(TEST_PROFILE))

# The Python tests, a file at a time on each processor.
PYTEST_WORKERS ?= $(shell nproc)
PYTEST := ../$(BIN)/python -m pytest --numprocesses $(PYTEST_WORKERS)

# Papers whose figures are run, and where they are put.
PAPERS ?= shiro soft-qos icache oc-cache rc-rnn
FIGURES_OUT ?= results

# Clients of the live server, and a database for its kills.
LIVE_PACKAGES := nbdkit nbdkit-plugin-python libnbd-bin python3-libnbd qemu-utils fio e2fsprogs \
	postgresql-15 qemu-system-x86 linux-image-amd64 busybox-static
POSTGRES := /usr/lib/postgresql/15/bin
KILLS ?= 20
# Losses of power of `make live-losses`, its further options, and the server of the small one.
LOSSES ?= 300
LOSSES_FLAGS ?=
LOSSES_SERVER = --server target/$(patsubst dev,debug,$(TEST_PROFILE))/cachewrightd
# What `make wheels` builds for: the C library's version, and processors.
MANYLINUX ?= manylinux_2_28
WHEEL_ARCHS ?= x86_64 aarch64
# Rounds of requests and changes of `make live-soak`: about 80 in a minute.
SOAK_ROUNDS ?= 5000
# Servers that `rehearsed-kills` kills.
REHEARSED_KILLS ?= 10000

.PHONY: help demo test test-rust test-python lab-test answers newcomer fmt fmt-check lint types \
	tidy generate check-generated develop figures figures-smoke traps bench bench-smoke fuzz \
	fuzz-smoke mutants agree rehearsed-kills crash crash-smoke live-demo static live-tools live-kills \
	live-kills-smoke live-losses live-losses-smoke live-guest live-guest-smoke live-soak \
	live-soak-smoke bench-live wheel wheels wheel-check man install docs cachewrightd clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
		awk -F'\t' '{ printf "  make %-16s %s\n", $$1, $$2 }'

demo: develop ## compare policies and partitioners on the bundled traces; ends with an answer
	@$(call step,comparing on four bundled traces: $(DEMO_STACK))
	@$(DEMO)

test: ## set up and run every test; the last line counts them
	@$(MAKE) --no-print-directory develop EXTENSION_PROFILE=$(TEST_EXTENSION)
	@test -d "$${CACHEWRIGHT_SHARED:-../shared}/golden" || \
		echo "skipped: comparisons that need the reference data (set CACHEWRIGHT_SHARED)"
	@$(call step,Rust tests)
	@$(call logged,rust,cargo test --workspace --tests --profile $(TEST_PROFILE) --no-fail-fast \
		&& cargo test --doc --package cachewright-model \
			--profile $(TEST_PROFILE))
	@$(call step,Python tests)
	@$(call logged,python,cd python && $(PYTEST))
	@$(call step,tests of the laboratory)
	@$(call logged,lab,cd lab && $(PYTEST))
	@$(call step,counts)
	@$(PYTHON) .ci/count target/tests/rust.log target/tests/python.log target/tests/lab.log

newcomer: develop ## walk the README in an empty folder: no traceback, no file overwritten
	@tests/newcomer.sh

test-rust: ## the Rust tests alone
	cargo test --workspace --profile $(TEST_PROFILE) --no-fail-fast

test-python: ## the Python tests alone
	@$(MAKE) --no-print-directory develop EXTENSION_PROFILE=$(TEST_EXTENSION)
	cd python && $(PYTEST)

lab-test: ## the tests of the laboratory alone: papers reproduced, schemes judged
	@$(MAKE) --no-print-directory develop EXTENSION_PROFILE=$(TEST_EXTENSION)
	@$(call logged,lab,cd lab && $(PYTEST))
	@$(PYTHON) .ci/count target/tests/lab.log

answers: develop ## compare answers, and the papers' small tables, with those that are kept
	cd python && ../$(BIN)/python -m pytest tests/test_answers.py
	cd lab && ../$(BIN)/python -m pytest tests/test_reproduced_answers.py tests/test_data.py

fmt: $(INSTALLED) ## format all sources
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff format --config python/pyproject.toml python benches scripts .ci/count
	cd lab && ../$(BIN)/ruff format .

fmt-check: $(INSTALLED) ## check the format of all sources
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	$(BIN)/ruff format --config python/pyproject.toml --check python benches scripts .ci/count
	cd lab && ../$(BIN)/ruff format --check .

lint: $(INSTALLED) ## clippy and ruff, warnings denied
	cargo clippy --workspace --all-targets --profile $(TEST_PROFILE) -- -D warnings
	cd python && ../$(BIN)/ruff check .
	cd lab && ../$(BIN)/ruff check .
	$(BIN)/ruff check --config python/pyproject.toml benches scripts .ci/count

types: develop ## type checks of the Python package, and its stubs against the extension
	cd python && ../$(BIN)/mypy
	cd lab && ../$(BIN)/mypy
	cd lab/capture && ../../$(BIN)/mypy --strict *.py
	cd python && ../$(BIN)/python -m mypy.stubtest cachewright._native

tidy: ## what compilers and linters do not see: columns, unsafe, imports between crates, dead files
	$(XTASK) tidy

generate: develop ## write the pages made from the code and from kept results
	$(XTASK) generate
	$(BIN)/python -m cachewright_lab.pages --write
	$(BIN)/python scripts/reference.py --write

check-generated: develop ## check that the pages made from code and kept results are fresh
	$(XTASK) generate --check
	$(BIN)/python -m cachewright_lab.pages --check
	$(BIN)/python scripts/reference.py --check

figures: develop ## the papers' figures beside ours, and what changed since the kept results (long)
	@for paper in $(PAPERS); do \
		$(BIN)/cachewright reproduce $$paper --out $(FIGURES_OUT)/$$paper || exit 1; \
		$(BIN)/python -m cachewright_lab.pages --changes $(FIGURES_OUT)/$$paper || exit 1; \
	done

figures-smoke: develop ## the same on small synthetic traces
	@for paper in $(PAPERS); do \
		$(BIN)/cachewright reproduce $$paper --quick --out $(FIGURES_OUT)/$$paper-quick || exit 1; \
	done

traps: ## what schemes lose on traces that mislead those which adapt; writes lab/traps.md
	@$(MAKE) --no-print-directory develop EXTENSION_PROFILE=release
	$(BIN)/python -m cachewright_lab.traps --out $(FIGURES_OUT)/traps --write

bench: ## speed and memory beside libCacheSim; writes benches/peers.md
	@$(MAKE) --no-print-directory develop EXTENSION_PROFILE=release
	$(BIN)/python benches/peers.py --requests $(BENCH_REQUESTS) --out benches/peers.md \
		--sample ../shared/traces/public/cloudphysics-libcachesim/cloudPhysicsIO.oracleGeneral.bin.zst

bench-smoke: develop ## the same at a small size, Cachewright alone, nothing written
	$(BIN)/python benches/peers.py --requests 200000 --blocks 10000 --no-peer

fuzz: ## run every fuzz target for FUZZ_SECONDS (needs cargo-fuzz)
	@if ! cargo fuzz --version > /dev/null 2>&1; then \
		echo 'skipped: needs cargo-fuzz (cargo install cargo-fuzz)'; exit 0; fi; \
	for target in $$(cargo fuzz list); do \
		$(call step,fuzzing $$target for $(FUZZ_SECONDS) s); \
		mkdir -p fuzz/corpus/$$target; \
		cargo fuzz run $(FUZZ_FLAGS) --sanitizer none $$target \
			fuzz/corpus/$$target fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -rss_limit_mb=4096 -print_final_stats=0 || exit 1; \
	done

# A mutant may allocate without end; rustc and tests need less than 8 GB.
mutants: ## mutations of MUTANTS_OF that the crate's own tests let pass (needs cargo-mutants)
	@if ! cargo mutants --version > /dev/null 2>&1; then \
		echo 'skipped: needs cargo-mutants (cargo install cargo-mutants --locked)'; exit 0; fi; \
	ulimit -v 8000000; for part in $(MUTANTS_OF); do crate=$${part%%/*}; \
		$(call step,mutations of $$part); mkdir -p target/mutants/$$crate; \
		PROPTEST_DISABLE_FAILURE_PERSISTENCE=true \
			cargo mutants --no-shuffle -p cachewright-$$crate --test-package cachewright-$$crate \
			-f "crates/decide/$$part/**" -o target/mutants/$$crate || true; \
	done

fuzz-smoke: ## every fuzz target for 5 seconds, built sooner and slower
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=5 FUZZ_FLAGS=--dev

crash: ## lose power, kill and fail CRASHES times at random, and in all short sequences (long)
	$(KEEPS_MEMORY) CACHEWRIGHT_CRASHES=$(CRASHES) CACHEWRIGHT_EXHAUSTIVE=$(CRASH_SEQUENCES) \
		CACHEWRIGHT_SHARD=$(CRASH_SHARD) \
		cargo test --profile $(CRASH_PROFILE) --package cachewright-live --test suite -- \
		crashes exhaustive failures bypass --nocapture

crash-smoke: ## the same 2,000 times at random, with some of the sequences
	$(KEEPS_MEMORY) CACHEWRIGHT_CRASHES=2000 cargo test --profile $(TEST_PROFILE) \
		--workspace --test suite -- blocks_crashes log_crashes exhaustive failures bypass

rehearsed-kills: ## kill REHEARSED_KILLS rehearsed servers at random moments (long)
	CACHEWRIGHT_REHEARSED_KILLS=$(REHEARSED_KILLS) cargo test --profile $(CRASH_PROFILE) \
		--package cachewright-daemon --test suite -- rehearsed::what_was_answered --nocapture

agree: ## serve and replay every policy, partitioner and write mode, on real devices, too (long)
	CACHEWRIGHT_AGREE=all cargo test --profile $(TEST_PROFILE) \
		--package cachewright-tests --test agree -- --nocapture

live-demo: develop ## two recorded volumes, served: a record, its replay, a kill, a warm start
	@$(call step,a live server of two recorded volumes)
	@$(BIN)/python scripts/live_demo.py

static: ## build the server without shared libraries, for containers
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --release -p cachewright-daemon \
		--target x86_64-unknown-linux-gnu

live-tools: ## install clients of the live server and a database to try it (Debian, as root)
	@missing=''; for tool in nbdkit nbdfuse qemu-nbd fio mkfs.ext4 busybox \
		qemu-system-x86_64 $(POSTGRES)/initdb; do \
		command -v $$tool > /dev/null || missing="$$missing $$tool"; done; \
	nbdkit --dump-plugin python > /dev/null 2>&1 || missing="$$missing nbdkit-plugin-python"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then \
		echo "skipped: needs root and apt-get to install$$missing"; exit 0; fi; \
	{ apt-get update && apt-get install --yes $(LIVE_PACKAGES); } \
		> /dev/null 2>&1 || echo "skipped: could not install$$missing"

live-kills: develop ## kill the live server KILLS times under a database on ext4 (needs root)
	cargo build --release -p cachewright-daemon
	$(BIN)/python scripts/live_kills.py --rounds $(KILLS)

live-kills-smoke: develop ## the same twice, with the server that the tests build
	cargo test --workspace --tests --no-run --profile $(TEST_PROFILE)
	$(BIN)/python scripts/live_kills.py --rounds 2 \
		--server target/$(patsubst dev,debug,$(TEST_PROFILE))/cachewrightd

live-guest: develop cachewrightd ## kill the live server KILLS times under a guest's disk
	$(BIN)/python scripts/live_guest.py --kills $(KILLS)

live-guest-smoke: develop ## the same three times, with the server that the tests build
	cargo test --workspace --tests --no-run --profile $(TEST_PROFILE)
	$(BIN)/python scripts/live_guest.py --kills 3 \
		--server target/$(patsubst dev,debug,$(TEST_PROFILE))/cachewrightd

live-losses: develop cachewrightd ## lose power LOSSES times under the live server (needs root)
	$(BIN)/python scripts/live_losses.py --rounds $(LOSSES) $(LOSSES_FLAGS)

live-losses-smoke: develop ## a few times, then with devices that lie, which the check must see
	cargo test --workspace --tests --no-run --profile $(TEST_PROFILE)
	$(BIN)/python scripts/live_losses.py --rounds 8 --each 2 --seed 1 $(LOSSES_SERVER)
	$(BIN)/python scripts/live_losses.py --rounds 4 --each 2 --seed 1 --lie $(LOSSES_SERVER)

live-soak: develop cachewrightd ## a live server under random load and reloads for about an hour
	$(BIN)/python scripts/live_soak.py --rounds $(SOAK_ROUNDS)

live-soak-smoke: develop ## the same for less than a minute, with the server that the tests build
	cargo test --workspace --tests --no-run --profile $(TEST_PROFILE)
	$(BIN)/python scripts/live_soak.py --rounds 60 \
		--server target/$(patsubst dev,debug,$(TEST_PROFILE))/cachewrightd

bench-live: develop cachewrightd ## the live server beside other servers of blocks (quiet machine)
	$(BIN)/python benches/live.py

# The wheel of the laboratory, which the extra `lab` asks for: Python alone, one for all machines.
LAB_WHEEL = $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps \
	--no-build-isolation --wheel-dir dist ./lab

wheel: $(INSTALLED) ## build the wheels of this machine, and of the laboratory, into dist/
	$(BIN)/maturin build --release --manifest-path python/Cargo.toml --out dist
	$(LAB_WHEEL)

wheels: $(INSTALLED) ## wheels for manylinux, of the laboratory, and the source archive, into dist/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check ziglang
	@for arch in $(WHEEL_ARCHS); do \
		rustup target add $$arch-unknown-linux-gnu > /dev/null 2>&1; \
		if ! test -d "$$(rustc --print target-libdir --target $$arch-unknown-linux-gnu)"; then \
			echo "skipped: $$arch (its Rust target is not installed)"; continue; fi; \
		$(call step,wheel for $(MANYLINUX) $$arch); \
		PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --zig \
			--compatibility $(MANYLINUX) --target $$arch-unknown-linux-gnu \
			--manifest-path python/Cargo.toml --out dist || exit 1; \
	done
	$(BIN)/maturin sdist --manifest-path python/Cargo.toml --out dist
	$(LAB_WHEEL)

wheel-check: ## install the wheel of this machine in an empty environment, without Rust, and run it
	@tests/wheel.sh

man: develop ## write the manual pages of the commands to target/man
	$(BIN)/python scripts/reference.py --man target/man

install: man ## put manual pages, completion and a link to the command below PREFIX
	install -d $(addprefix $(PREFIX)/,bin share/man/man1 share/bash-completion/completions \
		share/zsh/site-functions share/fish/vendor_completions.d)
	install -m 644 target/man/*.1 $(PREFIX)/share/man/man1
	ln -sf $(abspath $(BIN)/cachewright) $(PREFIX)/bin/cachewright
	$(BIN)/cachewright completion bash > $(PREFIX)/share/bash-completion/completions/cachewright
	$(BIN)/cachewright completion zsh > $(PREFIX)/share/zsh/site-functions/_cachewright
	$(BIN)/cachewright completion fish > $(PREFIX)/share/fish/vendor_completions.d/cachewright.fish

docs: man ## build the site of the documents: target/site/html/index.html
	@$(BIN)/python -m scripts.site.build

cachewrightd: ## build the server alone: target/release/cachewrightd
	cargo build --release -p cachewright-daemon

develop: $(EXTENSION) ## the Python environment with the extension in it

clean: ## remove what the commands made, the environment included
	rm -rf $(VENV) $(DEMO_OUT) dist target fuzz/target python/cachewright/*.so

# The environment and what pyproject.toml names; again only when that changes.
$(INSTALLED): python/pyproject.toml lab/pyproject.toml scripts/requirements.py
	@$(call step,Python environment in $(VENV))
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PYTHON) scripts/requirements.py > $(VENV)/requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--requirement $(VENV)/requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --editable lab
	@touch $@

# The extension; again only when a Rust source changed.
$(EXTENSION): $(INSTALLED) $(RUST_SOURCES)
	@$(call step,building the extension ($(EXTENSION_PROFILE) profile))
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile $(EXTENSION_PROFILE) \
		--manifest-path python/Cargo.toml | grep -v '^Requirement already satisfied'
	@rm -f $(VENV)/.extension-* && touch $@
