# Two commands on a fresh machine: `make run` and `make test`. Both install what is missing, ask nothing, and put
# their tools outside this folder (.ci/env.sh says where).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Cargo already uses every core; the kinds of check run in the order written.
.NOTPARALLEL:
.PHONY: help run build test fmt lint bench bench-search campaign clean \
        tools test-tools check-format lint-native lint-wasm test-rust build-dev test-browser

# The goal asked for, so that a failure names the command that was typed.
export KEYTURN_GOAL := $(or $(firstword $(MAKECMDGOALS)),help)
PHASE := .ci/phase
# `app` is built natively only through `server`, which turns on its `ssr`; for the browser with `hydrate`. Both at once
# do not compile, so never --workspace --all-features.
NATIVE := -p domain -p portal -p app -p server
MINUTES ?= 10

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build in release and serve on 127.0.0.1:3000 with SQLite and the sample catalog
	@exec "$${CARGO_TARGET_DIR:-target}/release/keyturn" serve

# Cargo knows what to compile again, but the wasm would be optimised and compressed anew each time, which takes minutes.
# The stamp is older than whatever changed after the last good build began; a file that went away leaves a newer folder.
TARGET := $(or $(CARGO_TARGET_DIR),target)
BUILT := $(TARGET)/release/.built
SOURCES := app server migrations style Cargo.toml Cargo.lock Makefile .ci

build: tools ## Build both halves in release
	@if [ -e $(BUILT) ] && [ -x $(TARGET)/release/keyturn ] && [ -e target/site/pkg/keyturn.wasm ] \
	    && [ -z "$$(find $(SOURCES) -newer $(BUILT) -print -quit)" ]; then \
	    echo '<== release build: nothing changed'; \
	else \
	    mkdir -p $(TARGET)/release && touch $(BUILT).new \
	    && $(PHASE) 'release build' cargo leptos build --release --precompress \
	    && mv $(BUILT).new $(BUILT); \
	fi

test: tools test-tools check-format lint-native lint-wasm test-rust build-dev test-browser ## Format, lints, Rust tests, wasm build, browser tests
	@echo 'make test: all kinds of check passed'

fmt: tools ## Format the Rust sources
	@$(PHASE) 'format' cargo fmt --all

lint: tools check-format lint-native lint-wasm ## Only the format check and the lints

bench: tools test-tools ## Guarded submissions per second beside the bare databases; judges nothing
	@$(PHASE) 'benchmark' cargo bench --locked -p server --bench guard

bench-search: tools test-tools ## What searches take among a million requests, on both databases; judges nothing
	@$(PHASE) 'benchmark of searches' cargo bench --locked -p server --bench search

campaign: tools ## Randomised histories under kills, as in `make test`, longer: make campaign MINUTES=30
	@KEYTURN_CAMPAIGN_MINUTES='$(MINUTES)' $(PHASE) 'campaign' cargo test --locked --release -p server --test integration campaign -- --nocapture

clean: ## Remove what was built here; tools and data stay
	@rm -rf "$${CARGO_TARGET_DIR:-target}" end2end/node_modules end2end/test-results end2end/playwright-report

# What the targets above are made of; each can be run alone.

tools:
	@$(PHASE) 'compiler' .ci/toolchain.sh
	@$(PHASE) 'build tools' .ci/build-tools.sh

test-tools:
	@$(PHASE) 'test tools' .ci/test-tools.sh

check-format:
	@$(PHASE) 'format' cargo fmt --all --check

lint-native:
	@$(PHASE) 'lint (native)' cargo clippy --locked $(NATIVE) --all-targets -- -D warnings

lint-wasm:
	@$(PHASE) 'lint (wasm)' cargo clippy --locked -p app --lib --features hydrate --target wasm32-unknown-unknown -- -D warnings

test-rust:
	@$(PHASE) 'Rust tests' cargo test --locked $(NATIVE)

# In the dev profile: the tests above have already built most of the server in it, and an optimised build of both
# halves would double the time. Its files have a folder of their own, so that a portal in service keeps its own.
build-dev:
	@LEPTOS_SITE_ROOT=target/site-dev $(PHASE) 'wasm build' cargo leptos build

test-browser:
	@$(PHASE) 'browser tests' .ci/browser-tests.sh
