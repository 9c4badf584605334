# Lagscale for its developers and for newcomers: `make demo` shows the main job, `make test` runs everything.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BIN := .venv/bin
STAMP := .venv/.installed
PYTHON ?= python3
JOBS ?= 2
SEED ?= default

.PHONY: help install demo up down status test check shuffle bench fuzz mutations mutants lock proto

help: ## List the targets.
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP) ## Install everything into .venv, from the lock.

# The lock is the only input: an interrupted install leaves no stamp and is done again.
$(STAMP): requirements/dev.lock requirements/uv.lock pyproject.toml devstack/install.sh
	@bash devstack/install.sh $(PYTHON)
	@touch $@

demo: $(STAMP) ## The main job on real parts, live in the terminal.
	@$(BIN)/python -m devstack.demo

up: $(STAMP) ## Start a whole Lagscale and leave it running.
	@$(BIN)/python -m devstack up

down: $(STAMP) ## End what `make up` started.
	@$(BIN)/python -m devstack down

status: $(STAMP) ## Show what `make up` started.
	@$(BIN)/python -m devstack status

check: $(STAMP) ## The quick part: style, types, import contracts, generated code, conventions and unit tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@bash services/scaler/grpc/proto/generate.sh --check
	$(BIN)/pytest tests/conventions tests/unit

test: $(STAMP) ## Everything: the quick part's linters, then all shelves of tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@bash services/scaler/grpc/proto/generate.sh --check
	$(BIN)/pytest tests -n $(JOBS) --no-loadscope-reorder --max-worker-restart 0 --randomly-seed=$(SEED)

shuffle: $(STAMP) ## The fast shelves ten times, each in another order.
	@for run in 1 2 3 4 5 6 7 8 9 10; do \
	  $(BIN)/pytest tests/conventions tests/unit -q -n $(JOBS) --randomly-seed=$$RANDOM$$RANDOM || exit 1; done

bench: $(STAMP) ## Cost of a verdict, of a round of 5,000 groups, and of dead clusters for others; figures of one run.
	$(BIN)/python -m tests.bench.verdict
	$(BIN)/python -m tests.bench.coalescing
	$(BIN)/python -m tests.bench.timelag
	$(BIN)/python -m tests.bench.scrape
	$(BIN)/python -m tests.bench.fairness

fuzz: $(STAMP) ## 100,000 random histories, SQL against the reference, and the other random tests with as many.
	LAGSCALE_FUZZ_EXAMPLES=100000 $(BIN)/pytest tests/fuzz --timeout 7200

mutations: $(STAMP) ## Break the verdict's SQL on purpose and see that every break is caught.
	$(BIN)/python -m tests.contract.mutations

mutants: $(STAMP) ## Every single-token mutant of the verdict's SQL; prints those that no answer tells of.
	$(BIN)/python -m tests.contract.token_mutations

lock: $(STAMP) ## Resolve the dependencies anew and write the locks: names, versions, hashes.
	@for extra in scraper scaler api cli; do \
	  $(BIN)/uv pip compile -q pyproject.toml --extra $$extra --generate-hashes --no-header --no-annotate \
	    --python-version 3.11 --upgrade -o requirements/$$extra.lock; done
	@$(BIN)/uv pip compile -q pyproject.toml --extra scraper --extra msk --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --upgrade -o requirements/scraper-msk.lock
	@$(BIN)/uv pip compile -q pyproject.toml --all-extras --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --upgrade -o requirements/dev.lock
	@awk '/^uv==/{on=1;print;next} on&&/^    --hash/{print;next} {on=0}' requirements/dev.lock > requirements/uv.lock

proto: $(STAMP) ## Generate the gRPC code from its proto.
	@bash services/scaler/grpc/proto/generate.sh
