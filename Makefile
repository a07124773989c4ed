# Everything that one does with this project; `make help` lists it. The recipes are one line where they can be: the work is in hack/ and test/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMP := .venv/.installed

# The site of documents has an environment of its own: what builds it is not part of the product.
DOCS := .venv/docs/bin
DOCS_STAMP := .venv/docs/.installed
LOOK_STAMP := .venv/docs/.look

# Images: the manifests name IMAGE_NAME:RELEASE_VERSION as they stand here.
IMAGE_NAME ?=
RELEASE_VERSION ?=
PLATFORMS ?=

# release: CLIENT=1 builds only mpiop-client and kubectl-mpi; URL is the folder from which krew downloads the archive.
VERSION ?=
REGISTRY ?=
KEY ?=
CLIENT ?=
URL ?=

# e2e: SUITE is a file of test/e2e without `test_` and `.py` ("" is all but those of APART, which take long or need programs that are
# built first; `all` is all), RUNS how often the π job and each library run, LATE=20,120 how many seconds after
# the launcher the workers of a library come (20), KEEP=1 leaves the cluster up.
# ALONE: suites that share no cluster with others. SECOND: suites that share a second cluster. Both run at the same time as those that
# share the first, one after the other: tests mostly wait.
ALONE := cluster second_node faults admission informers contract manifests migration policies
SECOND := binding examples false_alarms first_job gitops images mpi plain random_jobs recipes restarts ssh
APART := allocation_jobs allocation_script allocations applications archive chart_values crowd leadership gang coscheduling kubeflow kueue pages volcano monitoring top dra shards chart helm release upgrade definition hangs horovod step_ends
SUITE ?=
SUITES = $(if $(filter all,$(SUITE)),test/e2e,$(if $(SUITE),test/e2e/test_$(SUITE).py,test/e2e $(patsubst %,--ignore=test/e2e/test_%.py,$(APART) $(ALONE) $(SECOND))))
RUNS ?= 1
LATE ?=
KEEP ?=

# invariants, mutants: which numbers ("" is all).
NUMBERS ?=

# agent: how long each fuzz target is fuzzed, for example 30s; "" runs the seeds only.
FUZZ ?=

# bench: SCENARIOS names some (all by default), ROUNDS how often each operator is measured, WRITE=1 puts the table into docs/performance.md.
SCENARIOS ?=
ROUNDS ?=
WRITE ?=

# Clusters of `make cluster-up`.
NAME ?= dev
UV_VERSION := 0.13.8
PIP_AUDIT_VERSION := 2.10.1

# faults: FAULTS names rows of the matrix (F8,F13), CASE one case as a failure prints it, PARALLEL how many runs go side by
# side, LEASE the lease duration in seconds (a busy machine needs more).
FAULTS ?=
CASE ?=
PARALLEL ?= 6
LEASE ?= 2

# fuzz: how many random jobs, and which (the same number, the same jobs).
COUNT ?= 10000
SEED ?= 0

# soak: for how many minutes jobs come, and how many.
MINUTES ?= 20
JOBS ?= 2000

# A unit test that hangs for three minutes ends the run, and says where it hangs.
HANG := -o faulthandler_timeout=180 -o faulthandler_exit_on_timeout=true

$(STAMP): requirements/dev.txt setup.cfg
	@hack/setup environment

$(DOCS_STAMP): requirements/docs.txt
	@hack/setup documents

$(LOOK_STAMP): $(DOCS_STAMP) requirements/look.txt
	@hack/setup look

##@ The two commands

.PHONY: demo
demo: ## Bring up a cluster, deploy the operator, compute π with mpirun across Pods
	@python=$$(hack/setup interpreter) && exec "$$python" hack/demo

# The agent's tests mostly wait, so they run beside those of Python.
.PHONY: test
test: ## Prove everything: lint, types, coverage, agent, newest Python, tools, verify, docs, conformance, then e2e on a cluster of its own
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint types
	@$(MAKE) --no-print-directory --jobs=2 coverage agent
	@for part in unit-newest tools verify docs; do $(MAKE) --no-print-directory $$part; done
	@$(MAKE) --no-print-directory --jobs=2 e2e-shared e2e-second SUITE=

.PHONY: test-all
test-all: test ## test, then the suites of e2e that it leaves out, every fault, and random jobs: some three hours
	@$(BIN)/pytest $(APART:%=test/e2e/test_%.py) --durations=10
	@for part in faults fuzz bench-check; do $(MAKE) --no-print-directory $$part; done

##@ While developing

.PHONY: check
check: $(STAMP) ## The fast half: lint, types, import contracts, unit tests
	@$(MAKE) --no-print-directory --jobs=$$(nproc) --keep-going --output-sync=target lint types unit

.PHONY: lint
lint: $(STAMP) ## ruff, check and format, and the wording of documents, comments and messages
	@$(BIN)/ruff check --quiet --output-format=concise && $(BIN)/ruff format --check --quiet && hack/prose && echo "lint: ok"

.PHONY: types mypy basedpyright imports
types: mypy basedpyright imports ## mypy and basedpyright, both strict, and the import contracts
mypy: $(STAMP)
	@$(BIN)/mypy
basedpyright: $(STAMP)
	@$(BIN)/basedpyright
imports: $(STAMP)
	@$(BIN)/lint-imports --no-logo

.PHONY: unit coverage
unit: $(STAMP) ## Unit tests
	@$(BIN)/pytest --quiet --numprocesses=$$(nproc) test/unit test/contract $(HANG)
coverage: $(STAMP) ## The same with branch coverage, of at least 95 %
	@$(BIN)/pytest --quiet --numprocesses=$$(nproc) test/unit test/contract --cov --cov-branch --cov-report=term --cov-fail-under=95 $(HANG)

.PHONY: unit-newest
unit-newest: $(STAMP) ## The unit tests on the newest Python of this machine, if it is newer than that of .venv
	@hack/setup newest
	@[ ! -e .venv/newest/.installed ] || .venv/newest/bin/python -m pytest --quiet --numprocesses=$$(nproc) test/unit test/contract $(HANG)

.PHONY: tools
tools: $(STAMP) ## Tests of what stands in hack/ and of the fakes
	@$(BIN)/pytest --quiet --numprocesses=$$(nproc) test/tools $(HANG)

.PHONY: agent
agent: ## Format, vet, tests with coverage, and the build of mpiop-agent; FUZZ=30s fuzzes each target for so long
	@python=$$(hack/setup interpreter) && exec "$$python" hack/agent check --fuzz "$(FUZZ)"

.PHONY: conformance
conformance: $(STAMP) ## Compare the objects of recorded jobs, field by field, with those that Kubeflow's operator makes
	@$(BIN)/pytest --quiet test/conformance

.PHONY: e2e
e2e: $(STAMP) ## Tests against real clusters; SUITE=pi RUNS=10 KEEP=1 narrow, repeat, keep
	@$(MAKE) --no-print-directory --jobs=2 e2e-shared $(if $(SUITE),,e2e-second)

.PHONY: e2e-shared e2e-alone e2e-second
e2e-shared: $(STAMP) ## Those of `e2e` that share a cluster
	@MPIOP_E2E_RUNS=$(RUNS) MPIOP_E2E_LATE=$(LATE) MPIOP_E2E_KEEP=$(KEEP) $(BIN)/pytest $(SUITES) --durations=10
e2e-alone: conformance ## `conformance`, then those with clusters of their own
	@$(BIN)/pytest $(ALONE:%=test/e2e/test_%.py) --durations=10
e2e-second: e2e-alone ## Those that share a second cluster
	@MPIOP_E2E_CLUSTER=e2e-second MPIOP_E2E_RUNS=$(RUNS) MPIOP_E2E_LATE=$(LATE) MPIOP_E2E_KEEP=$(KEEP) $(BIN)/pytest $(SECOND:%=test/e2e/test_%.py) --durations=10

.PHONY: invariants
invariants: $(STAMP) ## List each invariant with its tests and their result; NUMBERS="R4 L64"
	@hack/invariants $(NUMBERS)

.PHONY: mutants
mutants: $(STAMP) ## Break each invariant in a copy and see a test fail; NUMBERS="R4 L64"
	@hack/mutants $(NUMBERS)

.PHONY: faults
faults: $(STAMP) ## Every fault at every request of a job's life, and the rows that need nodes; FAULTS=F13 picks rows, CASE= repeats one
	@PYTHONPATH=src:test:hack $(BIN)/python -m faults --rows "$(FAULTS)" --case "$(CASE)" --parallel $(PARALLEL) --lease $(LEASE)

.PHONY: fuzz
fuzz: $(STAMP) ## Random MPIJobs: each is refused, served, or told what is wrong with it; COUNT= SEED=
	@PYTHONPATH=src:test:hack $(BIN)/python -m fuzz --count $(COUNT) --seed $(SEED)

.PHONY: bench bench-check
bench: $(STAMP) ## Measure mpiop and Kubeflow's operator side by side; SCENARIOS=one-job,failover ROUNDS=5 WRITE=1
	@PYTHONPATH=src:test:hack $(BIN)/python -m bench --scenarios "$(SCENARIOS)" --rounds $(or $(ROUNDS),0) $(if $(WRITE),--write)
bench-check: $(STAMP) ## Requests, syncs and memory of a small run, and memory of a store of 10,000 Pods: fails above their bounds
	@PYTHONPATH=src:test:hack $(BIN)/python -m bench.store_memory
	@PYTHONPATH=src:test:hack $(BIN)/python -m bench.check

.PHONY: soak
soak: $(STAMP) ## Thousands of short jobs: memory, descriptors and tasks stay where they were; MINUTES= JOBS=
	@PYTHONPATH=src:test:hack $(BIN)/python hack/bench/soak.py --minutes $(MINUTES) --jobs $(JOBS)

.PHONY: format
format: $(STAMP) ## Let ruff format and repair what it can
	@$(BIN)/ruff format -q && $(BIN)/ruff check --fix -q

.PHONY: generate
generate: $(STAMP) ## Write what is generated: CRD, deploy/, parts of charts/, CLI reference
	@$(BIN)/python hack/generate

.PHONY: pod-types
pod-types: $(STAMP) ## Renew the types of Pod templates from the Kubernetes release that hack/generators/openapi.py names, and what is made of them
	@$(BIN)/python hack/generate --pod-types

.PHONY: verify
verify: $(STAMP) ## Fail if a generated file is not what `make generate` would write
	@$(BIN)/python hack/generate --check

.PHONY: docs docs-serve docs-look
docs: $(DOCS_STAMP) ## Build the site of documents into build/site, and check its links
	@PYTHONPATH=hack $(DOCS)/python -m website build
docs-serve: $(DOCS_STAMP) ## Show the site on this machine
	@PYTHONPATH=hack $(DOCS)/python -m website serve
docs-look: $(LOOK_STAMP) ## Look at every page of the site in Chromium: widths, search, light and dark
	@PYTHONPATH=hack $(DOCS)/python -m website look

.PHONY: lock
lock: $(STAMP) ## Pin requirements/*.in with hashes into requirements/*.txt
	@python=$$(hack/setup interpreter) && "$$python" -m venv .venv/lock && .venv/lock/bin/pip install --quiet --no-deps uv==$(UV_VERSION)
	@for name in runtime dev build docs look plugin; do UV_CUSTOM_COMPILE_COMMAND="make lock" .venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --output-file requirements/$$name.txt requirements/$$name.in; done

.PHONY: audit
audit: ## Ask the advisory database of PyPI about every locked version; requires network access
	@python=$$(hack/setup interpreter) && "$$python" -m venv .venv/audit && .venv/audit/bin/pip install --quiet pip-audit==$(PIP_AUDIT_VERSION)
	@for name in runtime dev build docs look plugin; do .venv/audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off --requirement requirements/$$name.txt; done

##@ Images and clusters

.PHONY: images
images: ## Build operator and example images; IMAGE_NAME= RELEASE_VERSION= PLATFORMS=
	@python=$$(hack/setup interpreter) && exec "$$python" hack/images build

.PHONY: push
push: ## Build images, push them to REGISTRY=registry.example.com/team, print their digests and the command that installs them
	@python=$$(hack/setup interpreter) && exec "$$python" hack/images push --registry "$(REGISTRY)"

.PHONY: release
release: $(STAMP) ## Write chart, YAML, image, wheel, SBOM, checksums and notes into dist/, sign pushed images; VERSION= REGISTRY= KEY= CLIENT=1 URL=
	@exec .venv/bin/python hack/release "$(VERSION)" $(if $(REGISTRY),--registry "$(REGISTRY)") $(if $(KEY),--key "$(KEY)") $(if $(CLIENT),--client) $(if $(URL),--url "$(URL)")

.PHONY: cluster-up
cluster-up: ## Start an embedded cluster; NAME=dev
	@hack/cluster up --name $(NAME) && echo "Use it: eval \"\$$(hack/cluster env --name $(NAME))\""

.PHONY: cluster-down
cluster-down: ## Stop it and remove every trace; NAME=dev
	@hack/cluster down --name $(NAME)

.PHONY: demo-down
demo-down: ## Stop the demo's cluster and remove every trace of it
	@python=$$(hack/setup interpreter) && exec "$$python" hack/demo down

.PHONY: clean
clean: ## Remove the environment and what was built; clusters and their cache stay
	@rm -rf .venv build .cache dist src/*.egg-info .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
