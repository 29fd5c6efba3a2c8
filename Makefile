# colltune: build, try, test, measure. `make help` lists the targets.
#
# Everything lands below target/, or below CARGO_TARGET_DIR where that is set; the finished files
# are copied to target/ in any case.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PREFIX ?= /usr/local
# Debian's MPI libraries, or any by their compiler wrappers: make build MPICC=/opt/mpi/bin/mpicc
MPIS ?= openmpi mpich
WRAPPERS := $(or $(MPICC),$(MPIS:%=mpicc.%))
CARGO ?= cargo
CARGO_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
export COLLTUNE_TARGET_DIR := $(abspath target)

# Not members of the workspace: they are built for each MPI library.
MPI_CRATES := src/mpi shim messages src/mpibench examples/amr/mpi

.PHONY: help setup build demo demo-cg test bench evidence book conformance install clean lint $(MPIS:%=mpi-%)

help: ## this list
	@awk -F ':.*## ' '/^[a-z -]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## install what the build needs (as root), or name it
	@scripts/setup $(MPICC)

# The shims beside all else: each is optimised as a whole, which takes one processor a minute.
build: setup ## target/release/colltune{,-lab,-bench} and target/<mpi>/{libcolltune{,_messages}.so, colltune-amr, colltune-mpibench}
	@$(MAKE) --no-print-directory shims & shims=$$!; trap 'kill $$shims' INT TERM; \
	$(MAKE) --no-print-directory commands placement programs; code=$$?; wait $$shims || code=$$?; exit $$code

# Features as the tests have them: what both are made of is compiled once.
.PHONY: commands
commands: PROGRAMS ?= colltune colltune-lab colltune-bench
commands:
	$(CARGO) build --release --locked --target-dir $(CARGO_DIR) --workspace $(PROGRAMS:%=--bin %)
	@mkdir -p target/release
	@[ $(CARGO_DIR) -ef target ] || install -m 755 $(PROGRAMS:%=$(CARGO_DIR)/release/%) target/release

# For programs in C, C++ and Fortran that place blocks; needs no MPI.
.PHONY: placement
placement: ## target/release/libcolltune_placement.{so,a}
	$(CARGO) build --release --locked --target-dir $(CARGO_DIR) -p colltune-placement-c
	@mkdir -p target/release
	@[ $(CARGO_DIR) -ef target ] || install -m 644 $(CARGO_DIR)/release/libcolltune_placement.{so,a} target/release
	@ln -sf libcolltune_placement.so target/release/libcolltune_placement.so.0

MPI_BUILD := CARGO="$(CARGO)" CARGO_DIR="$(CARGO_DIR)" scripts/mpi-build

# The standard binary interface: where there is a compiler wrapper for it, in PATH or from PyPI.
.PHONY: mpi shims programs
mpi: shims programs

shims:
	@for wrapper in $(WRAPPERS); do $(MPI_BUILD) --shim $$wrapper || exit 1; done
	@$(if $(MPICC),,if compiler=$$(CARGO_TARGET_DIR="$(CARGO_DIR)" scripts/setup --mpicc-abi); then $(MPI_BUILD) --shim $$compiler; fi)

programs:
	@for wrapper in $(WRAPPERS); do $(MPI_BUILD) --programs $$wrapper || exit 1; done

$(MPIS:%=mpi-%): mpi-%:
	@$(MPI_BUILD) mpicc.$*

# One library's shim and programs: from nothing this is much less than `build`.
DEMO_WRAPPER := $(or $(firstword $(MPICC)),mpicc.openmpi)
.PHONY: demo-mpi
demo-mpi:
	@$(MPI_BUILD) $(DEMO_WRAPPER)

# What a demo needs, and nothing else: people wait for it.
.PHONY: demo-build
demo-build: setup
	@$(MAKE) --no-print-directory demo-mpi & mpi=$$!; trap 'kill $$mpi' INT TERM; \
	$(MAKE) --no-print-directory commands PROGRAMS=colltune; code=$$?; wait $$mpi || code=$$?; exit $$code

demo: demo-build ## tune the mini-app over two batches of ten runs and show what changed, with a picture
	examples/amr/demo

demo-cg: demo-build ## the same with a conjugate-gradient solver
	examples/poisson-cg/demo

test: build ## every test; ends with "N passed, N failed"
	CARGO="$(CARGO)" CARGO_DIR="$(CARGO_DIR)" scripts/test

bench: build ## measure; reports under target/bench/
	target/release/colltune-bench all

# Where the bench fails the file is written all the same.
evidence: build ## published figures beside ours, target/evidence/evidence.md, in an hour; QUICK=--quick: in 5 minutes
	@trap 'exit 130' INT TERM; code=0; target/release/colltune-bench $(QUICK) ompicolltune || code=$$?; \
	target/release/colltune-bench evidence $(QUICK) -o target/evidence || code=$$?; exit $$code

book: ## the book, target/book/index.html
	$(CARGO) run --release --locked --target-dir $(CARGO_DIR) -p colltune-book --example book -- $(abspath target/book)

.PHONY: sbom
sbom: ## what is in each program and library, as CycloneDX, target/sbom; installs cargo-cyclonedx where there is none
	@CARGO="$(CARGO)" CARGO_DIR="$(CARGO_DIR)" scripts/sbom

conformance: build ## the long suites
	CARGO="$(CARGO)" CARGO_DIR="$(CARGO_DIR)" COLLTUNE_LONG=1 scripts/test
	CARGO_TARGET_DIR="$(CARGO_DIR)" scripts/sanitize
	CARGO_TARGET_DIR="$(CARGO_DIR)" scripts/fuzz
	CARGO_TARGET_DIR="$(CARGO_DIR)" scripts/conformance

lint: ## formatting and clippy
	$(CARGO) fmt --check
	for crate in $(MPI_CRATES) fuzz; do $(CARGO) fmt --check --manifest-path $$crate/Cargo.toml || exit 1; done
	$(CARGO) clippy --release --locked --target-dir $(CARGO_DIR) --all-targets -- -D warnings
	for wrapper in $(WRAPPERS); do $(MPI_BUILD) --lint $$wrapper || exit 1; done

# What `make build` made, by its folders.
BUILT = $(if $(MPICC),$$(for wrapper in $(MPICC); do scripts/mpi-build --abi $$wrapper; done),$(MPIS) $$(cd target && compgen -G mpi_abi))

install: build ## below PREFIX (default /usr/local), with manual pages and completions; DEBUG=1: debug information, too
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" MPIS="$(BUILT)" scripts/install $(if $(DEBUG),--debug)

.PHONY: deb rpm
deb rpm: build ## a Debian or RPM package of what was built, target/package; cargo-deb is installed where there is none
	@CARGO="$(CARGO)" CARGO_DIR="$(CARGO_DIR)" MPIS="$(BUILT)" scripts/package $@

clean: ## remove target/
	rm -rf target
