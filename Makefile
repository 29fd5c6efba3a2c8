# colltune: build, try, test, measure. `make help` lists the targets.
#
# Everything lands below target/, or below CARGO_TARGET_DIR where that is set; the finished files
# are copied to target/ in any case.

SHELL := /bin/bash
.DEFAULT_GOAL := help
PREFIX ?= /usr/local
MPIS ?= openmpi mpich
CARGO ?= cargo
CARGO_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
export COLLTUNE_TARGET_DIR := $(abspath target)

# One Cargo directory per MPI library and version: a changed mpicc must not find old objects.
mpi_dir = $(CARGO_DIR)/mpi/$(1)-$(shell mpicc.$(1) -dumpversion 2>/dev/null)-$(shell scripts/setup --mpi-version $(1))

# Not members of the workspace: they are built for each MPI library.
MPI_CRATES := shim src/mpibench examples/amr/mpi

.PHONY: help setup build demo demo-cg test bench evidence book conformance install clean lint $(MPIS:%=mpi-%)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## install what the build needs (as root), or name it
	@scripts/setup

build: setup command $(MPIS:%=mpi-%) shim-mpi_abi ## target/release/colltune and target/<mpi>/{libcolltune.so, colltune-amr, colltune-mpibench}

.PHONY: command
command:
	$(CARGO) build --release --locked --target-dir $(CARGO_DIR) -p colltune
	@mkdir -p target/release
	@[ $(CARGO_DIR) -ef target ] || install -m 755 $(CARGO_DIR)/release/colltune target/release/colltune

$(MPIS:%=mpi-%): mpi-%:
	@for crate in $(MPI_CRATES); do \
	  MPICC=mpicc.$* $(CARGO) build --release --locked --manifest-path $$crate/Cargo.toml --target-dir $(call mpi_dir,$*) || exit 1; \
	done
	@mkdir -p target/$*
	@# Renamed into place, so that a running job keeps the file that it has mapped.
	@for file in libcolltune.so colltune-amr colltune-mpibench; do \
	  install -m 755 $(call mpi_dir,$*)/release/$$file target/$*/.$$file && mv target/$*/.$$file target/$*/$$file || exit 1; \
	done

# The standard binary interface: where there is a compiler wrapper for it, in PATH or from PyPI.
.PHONY: shim-mpi_abi
shim-mpi_abi:
	@if compiler=$$(CARGO_TARGET_DIR=$(CARGO_DIR) scripts/setup --mpicc-abi); then \
	  MPICC=$$compiler $(CARGO) build --release --locked --manifest-path shim/Cargo.toml --target-dir $(CARGO_DIR)/mpi/mpi_abi && \
	  mkdir -p target/mpi_abi && install -m 755 $(CARGO_DIR)/mpi/mpi_abi/release/libcolltune.so target/mpi_abi/.libcolltune.so && \
	  mv target/mpi_abi/.libcolltune.so target/mpi_abi/libcolltune.so; \
	fi

demo: build ## tune the mini-app over two batches of ten runs and show what changed, with a picture
	examples/amr/demo

demo-cg: build ## the same with a conjugate-gradient solver
	examples/poisson-cg/demo

test: build ## every test; ends with "N passed, N failed"
	CARGO="$(CARGO)" CARGO_DIR="$(CARGO_DIR)" scripts/test

bench: build ## measure; reports under target/bench/
	target/release/colltune bench

evidence: build ## published figures beside ours, target/evidence/index.html, in an hour; QUICK=--quick: in 5 minutes
	target/release/colltune bench $(QUICK) ompicolltune
	target/release/colltune emulate evidence $(QUICK) -o target/evidence

book: ## the book, target/book/index.html; installs mdBook below Cargo's folder where there is none
	@PATH="$(CARGO_DIR)/mdbook/bin:$$PATH"; type -P mdbook >/dev/null || \
	  $(CARGO) install mdbook --locked --version 0.5.4 --no-default-features --features search --root $(CARGO_DIR)/mdbook; \
	  mdbook build --dest-dir $(abspath target/book) docs/book

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
	for crate in $(MPI_CRATES); do $(CARGO) fmt --check --manifest-path $$crate/Cargo.toml || exit 1; done
	$(CARGO) clippy --release --locked --target-dir $(CARGO_DIR) --all-targets -- -D warnings
	MPICC=mpicc.openmpi $(CARGO) clippy --release --manifest-path shim/Cargo.toml --target-dir $(call mpi_dir,openmpi) -- -D warnings
	MPICC=mpicc.mpich $(CARGO) clippy --release --manifest-path shim/Cargo.toml --target-dir $(call mpi_dir,mpich) -- -D warnings

install: build ## below PREFIX (default /usr/local), with manual pages and completions; DEBUG=1: debug information, too
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" MPIS="$(MPIS)" scripts/install $(if $(DEBUG),--debug)

clean: ## remove target/
	rm -rf target
