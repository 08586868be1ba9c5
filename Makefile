# One way to run things. `make test` needs only Rust.
SHELL := /bin/bash
CARGO ?= cargo
SEED ?= 1
STEPS ?= 1000000
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)
export RUSTDOCFLAGS = -D warnings

.PHONY: test check fmt lint tidy unit interleave doctest docs bench sim

test: fmt lint tidy unit interleave doctest docs ## everything that must hold before a merge

check: test ## the same, under the name people try first

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

tidy:
	$(CARGO) xtask tidy

unit:
ifeq ($(NEXTEST),yes)
	$(CARGO) nextest run --workspace --locked
else
	$(CARGO) test --workspace --locked --lib --bins --tests
endif

interleave: ## every interleaving of two or three threads on one budget
	$(CARGO) test --locked -p spinney --features shuttle --test interleave

doctest:
	$(CARGO) test --workspace --locked --doc

docs:
	$(CARGO) doc --workspace --locked --no-deps --quiet

bench: ## ratios against a reference in the same run; see docs/bench.md
	$(CARGO) bench --quiet --locked -p spinney-testkit --bench bench
	$(CARGO) bench --quiet --locked -p spinney-store --bench commit --bench trees

sim: ## SEED=… STEPS=…: random trees under random load, then whole trees that crash everywhere, every invariant checked
	$(CARGO) run --quiet --release --locked -p spinney-testkit --features whole --bin sim -- --seed $(SEED) --steps $(STEPS)
