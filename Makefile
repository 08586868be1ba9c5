# One way to run things. `make test` needs only Rust.
SHELL := /bin/bash
CARGO ?= cargo
SEED ?= 1
STEPS ?= 1000000
EVENTS ?= 1000000
SECONDS ?= 600
NEXTEST := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo yes)
export RUSTDOCFLAGS = -D warnings

.PHONY: test check fmt lint tidy unit interleave doctest docs test-peers bench bench-peers sim soak attempts golden picture long

test: fmt lint tidy unit interleave doctest docs ## everything that must hold before a merge

check: test ## the same, under the name people try first

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

tidy:
	$(CARGO) xtask tidy
	$(CARGO) xtask dependencies

unit:
ifeq ($(NEXTEST),yes)
	$(CARGO) nextest run --workspace --locked
else
	$(CARGO) test --workspace --locked --lib --bins --tests
endif

interleave: ## every interleaving of two or three threads on one budget
	$(CARGO) test --locked -p spinney --features shuttle --test interleave

doctest: ## and that the library builds without SQLite
	$(CARGO) check --locked -p spinney --no-default-features
	$(CARGO) test --workspace --locked --doc

docs:
	$(CARGO) doc --workspace --locked --no-deps --quiet

test-peers: ## aimock, a real small model, Claude Code, Codex, Gemini CLI and MCP servers, installed into a cache by peers/install; see docs/models.md
	peers=$$(peers/install) && export SPINNEY_PEERS="$$peers" && \
	$(CARGO) clippy --locked -p spinney-cli --features peers --tests -- -D warnings && \
	if [ "$(NEXTEST)" = yes ]; then $(CARGO) nextest run --locked -p spinney-cli --features peers -E 'test(/^peers::/)'; \
	else $(CARGO) test --locked -p spinney-cli --features peers --test it peers::; fi

bench: ## ratios against a reference in the same run; see docs/bench.md
	$(CARGO) bench --quiet --locked -p spinney-testkit --bench bench
	$(CARGO) bench --quiet --locked -p spinney-store --bench commit --bench trees --bench overhead
	$(CARGO) bench --quiet --locked -p spinney-drivers --bench boxes --bench network --bench streams --bench tokens --bench search --bench servers
	$(CARGO) bench --quiet --locked -p spinney-server --bench gateway
	$(CARGO) bench --quiet --locked -p spinney-cli --bench command_line
	$(MAKE) bench-peers

bench-peers: ## parallel calls at a ceiling, through `spinney exec` and through LiteLLM's proxy; see docs/bench.md
	$(CARGO) build --quiet --release --locked -p spinney-cli
	litellm=$$(peers/install litellm) && PYTHONDONTWRITEBYTECODE=1 python3 bench/storm/storm.py \
	$${CARGO_TARGET_DIR:-target}/release/spinney "$$litellm"

sim: ## SEED=… STEPS=…: random trees under random load, then whole trees that crash everywhere, every invariant checked
	$(CARGO) run --quiet --release --locked -p spinney-testkit --features whole --bin sim -- --seed $(SEED) --steps $(STEPS)

soak: ## SEED=… SECONDS=…: every campaign in turn until the time is up: decisions, whole trees that crash, processes that are killed, trees that move; then every attempt to get out of a box
	$(CARGO) build --quiet --release --locked -p spinney-testkit --features whole --bin campaign --bin soak
	$(CARGO) build --quiet --release --locked -p spinney-cli
	$${CARGO_TARGET_DIR:-target}/release/soak --seed $(SEED) --seconds $(SECONDS)
	$(MAKE) attempts

attempts: ## every attempt to get out of a box of each tier, as the user that you are
	$(CARGO) build --quiet --release --locked -p spinney-drivers --bin attempts
	@for tier in 1 2; do scene=$$(mktemp -d /var/tmp/spinney-attempts-XXXXXX) && chmod 755 $$scene && \
	VICTIMS_SECRET=the-secret-of-this-scene $${CARGO_TARGET_DIR:-target}/release/attempts table $$tier $$scene > $$scene.txt; code=$$?; \
	grep -v '^stopped: ' $$scene.txt; rm -rf $$scene $$scene.txt; [ $$code = 0 ] || exit $$code; done
	@scene=$$(mktemp -d /var/tmp/spinney-attempts-XXXXXX) && chmod 755 $$scene && \
	$${CARGO_TARGET_DIR:-target}/release/attempts ways $$scene > $$scene.txt; code=$$?; \
	grep -v -e '^stopped: ' -e '^works: ' $$scene.txt; rm -rf $$scene $$scene.txt; exit $$code

golden: ## journals of this version, for every later one to read
	$(CARGO) run --quiet --locked -p spinney-testkit --features whole --bin golden -- write crates/testkit/golden/$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)-rules-$(shell sed -n 's/^pub const RULES: u32 = \(.*\);/\1/p' crates/kernel/src/record/rules_version.rs)

picture: ## docs/live-view.svg, from a real run in tmux
	$(CARGO) build --quiet --release --locked -p spinney-cli
	home=$$(mktemp -d) && tmux -L spinney -f /dev/null new-session -d -x 96 -y 18 "$${CARGO_TARGET_DIR:-target}/release/spinney --home $$home run examples/research.yaml; sleep 2" && \
	until tmux -L spinney capture-pane -p | grep -q exhausted; do sleep 0.05; done && \
	tmux -L spinney capture-pane -e -p | sed '/SCRIPTED/,+1d' | $(CARGO) xtask picture docs/live-view.svg; tmux -L spinney kill-server; rm -rf "$$home"

long: ## EVENTS=…: a journal of very many events opens and replays a page at a time; prints the memory it took
	$(CARGO) build --quiet --release --locked -p spinney-testkit --bin long
	@home=$$(mktemp -d) && run=$${CARGO_TARGET_DIR:-target}/release/long && \
	for words in "build $$home $(EVENTS)" "verify $$home" "resume $$home"; do echo "$${words%% *}: $$($$run $$words)" || exit 1; done; rm -rf "$$home"
