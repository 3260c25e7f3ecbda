# benchmatrix: `make help` lists the targets.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
# Bytecode is written: without it each process that a test starts would compile every module that it imports.
export PYTHONDONTWRITEBYTECODE :=
# Free of what the user's pip and uv are told for other projects, such as a constraint or a target.
INSTALL = $(BIN)/python runner/local/installer.py
uv-lock = sed -n '/^uv==/,/[^\\]$$/p' requirements.lock
IMAGES := $(patsubst images/%/requirements-cpu.in,%,$(wildcard images/*/requirements-cpu.in))
COMPILE := $(BIN)/uv pip compile -q --upgrade --python-version 3.11 --generate-hashes --no-annotate --no-header
# What an image installs: its frameworks as pinned in the .in file, and what the package `bench` needs.
define lock-image
$(COMPILE) --python-platform x86_64-manylinux_2_28 images/$(1)/requirements-$(2).in images/bench/pyproject.toml -o images/$(1)/requirements-$(2).txt

endef

.PHONY: help install matrix images push test check-beside tests environments test-fast e2e check types format lock audit chart docs site results golden picture gates clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 10

install: .venv/tool ## install the command line into .venv

matrix: .venv/tool ## measure the smoke matrix here or with CLUSTER=gke|eks|kind|FILE [CONTEXT=] STORE=s3://..., gs://... or az://... there; report; ARGS="..." goes to `benchmatrix run`
	@$(run-matrix)

# A kind cluster is set up first; without STORE with an S3 server in it, for trying only, whose keys its Secret gives.
CONTEXT ?= current
ON_CLUSTER = --on $(CONTEXT) --profile $(CLUSTER)
ifeq ($(CLUSTER),)
run-matrix = $(BIN)/benchmatrix run smoke $(ARGS)
else ifneq ($(STORE),)
SETUP = $(if $(filter kind,$(CLUSTER)),$(BIN)/benchmatrix setup $(ON_CLUSTER) --no-s3 && )
run-matrix = $(SETUP)$(BIN)/benchmatrix run smoke $(ON_CLUSTER) --store $(STORE) $(ARGS)
else ifeq ($(CLUSTER),kind)
run-matrix = exports=$$($(BIN)/benchmatrix setup $(ON_CLUSTER) --exports) && eval "$$exports" && \
	$(BIN)/benchmatrix run smoke $(ON_CLUSTER) --store s3://benchmatrix/runs $(ARGS)
else
run-matrix = echo "error: STORE is not set; say where the results go: make matrix CLUSTER=$(CLUSTER) STORE=s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX" >&2; exit 2
endif

images: .venv/tool ## build the container images for CPUs with Docker; ARGS="pytorch:cuda --base NAME" goes to `benchmatrix images build`
	@$(BIN)/benchmatrix images build $(ARGS)

push: .venv/tool ## push built images to REGISTRY=HOST/PROJECT/REPOSITORY; ARGS as for images
	@$(if $(REGISTRY),$(BIN)/benchmatrix images push $(REGISTRY) $(ARGS),echo "error: REGISTRY is not set; say where: make push REGISTRY=HOST/PROJECT/REPOSITORY" >&2; exit 2)

# Four workers at most: more would share too little memory. tests/conftest.py says how many, and what stays together.
PARALLEL := -n auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder
# What tests write stays in memory where there is room: workers spent a third of their time waiting for a disk.
IN_MEMORY := $(shell [ "$$(df --output=avail -k /dev/shm 2> /dev/null | tail -n 1)" -gt 8000000 ] 2> /dev/null && echo TMPDIR=/dev/shm)
PARALLEL += $(if $(IN_MEMORY),-o tmp_path_retention_policy=failed)
lint-imports := $(BIN)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }
FAST := not (framework or cluster or browser or e2e or slow)

# Side by side: `check` takes what the tests leave, which begin by waiting for what they start. The frameworks'
# environments are installed meanwhile, unless PYTEST chooses tests, which may need none of them.
test: .venv/tool ## check the code and run all tests, side by side; PYTEST="..." goes to pytest ("-n 0": one after the other)
	@$(MAKE) -s -j 3 -k check-beside tests $(if $(PYTEST),,environments)

check-beside: .venv/tool
	@nice -n 19 $(MAKE) -s check

environments: .venv/tool
	@$(BIN)/python tests/framework_environments.py > .venv/environments.log || { cat .venv/environments.log; exit 1; }

# Without make's own flags: some tests start make.
tests: .venv/dev
	@$(IN_MEMORY) MAKEFLAGS= MFLAGS= $(BIN)/pytest $(PARALLEL) $(PYTEST)

test-fast: .venv/dev ## lint, import rules and the quick tests, in under a minute: no types, frameworks, cluster or browser; PYTEST as for test
	@$(BIN)/ruff check -q .
	@$(lint-imports)
	@$(IN_MEMORY) $(BIN)/pytest $(PARALLEL) -m "$(FAST)" --ignore tests/cluster --ignore tests/e2e $(PYTEST)

e2e: .venv/dev ## real pods: in a kind cluster of its own, or where E2E_KUBECONFIG and E2E_LOAD say (see tests/e2e/conftest.py)
	@$(if $(E2E_KUBECONFIG),$(BIN)/pytest tests/e2e,PYTEST=$(BIN)/pytest tests/e2e/in-kind)

audit: .venv/dev ## known weaknesses of what the locks install, less those reviewed in audit-ignore.txt
	@for lock in requirements.lock images/bench/requirements-build.txt $(foreach image,$(IMAGES),images/$(image)/requirements-cpu.txt images/$(image)/requirements-cuda.txt); do \
		echo "$$lock"; $(BIN)/pip-audit --disable-pip --no-deps --requirement $$lock $$(sed -n 's/^\([A-Z][A-Z0-9-]*\).*/--ignore-vuln \1/p' audit-ignore.txt) || exit 1; done

check: .venv/dev ## lint, types, import rules
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .
	@$(MAKE) -s types
	@$(lint-imports)

# tests/cluster and tests/e2e have a conftest.py each, and mypy takes one module of a name at a time.
types: .venv/dev ## types alone: of the code and of the tests
	@$(BIN)/mypy --no-error-summary
	@for folder in tests/cluster tests/e2e; do MYPYPATH=$$folder $(BIN)/mypy --no-error-summary $$folder || exit 1; done

format: .venv/dev ## format the code, apply ruff's fixes
	@$(BIN)/ruff check -q --fix .
	@$(BIN)/ruff format -q .

lock: .venv/dev ## resolve all requirements anew and write the locks
	$(COMPILE) --universal pyproject.toml -o requirements.lock
	$(COMPILE) --universal --extra dev pyproject.toml -o requirements-dev.lock
	$(foreach image,$(IMAGES),$(foreach flavour,cpu cuda,$(call lock-image,$(image),$(flavour))))

chart: .venv/dev ## write the chart's values.schema.json and the table of its README anew
	@$(BIN)/python charts/make_schema.py

docs: .venv/dev ## write what the docs have from the code: the reference of commands and documents, models, tables
	@$(BIN)/python docs/make_tables.py

site: .venv/dev ## build the site of the documentation into .site/html; a broken link is an error
	@$(BIN)/python docs/build_site.py

results: .venv/dev ## write the pages of docs/results, their reports and README.md's example anew from the stored results; ARGS=--pages leaves the reports out
	@$(BIN)/python docs/make_results.py $(ARGS)

golden: .venv/dev ## write the figures of the published runs, which tests hold, anew into tests/golden
	@$(BIN)/python tests/golden/make_golden.py

picture: .venv/dev ## make the picture of a report in README.md anew, with chromium
	@$(BIN)/python docs/report_picture.py

gates: .venv/dev environments ## the tool's own speed beside yardsticks; fails where a ratio leaves its range (benchmarks/gates.yaml); ARGS=NAME for one
	@$(BIN)/python benchmarks/gates.py $(ARGS)

clean: ## remove environments and caches; results and reports stay
	rm -rf .venv .environments .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .site

# Run commands that print nothing, and say now and then that they go on, as a log shows no live line. $(1): what they
# install, $(2): the commands.
SIGN_SECONDS := 15
define install-aloud
@echo "installing $(1) into .venv"; begin=$$(date +%s); \
(while sleep $(SIGN_SECONDS) > /dev/null 2>&1; do kill -0 $$$$ 2> /dev/null || exit; \
	echo "  still installing $(1), $$(($$(date +%s) - begin)) s"; done) & signs=$$!; \
{ $(2); }; status=$$?; kill $$signs 2> /dev/null; \
[ $$status -ne 0 ] || echo "installed $(1) in $$(($$(date +%s) - begin)) s"; exit $$status
endef

# The tool's environment: what `benchmatrix` needs. The stamp is written last, so a killed installation is done again.
.venv/tool: requirements.lock pyproject.toml images/bench/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: benchmatrix needs Python 3.11 or newer; name one with PYTHON=...")'
	@$(PYTHON) -c 'import venv, ensurepip' 2> /dev/null || { echo "error: this Python cannot make environments; on Debian: apt-get install python3-venv" >&2; exit 2; }
	$(call install-aloud,the tool,$(PYTHON) -m venv .venv && $(uv-lock) > .venv/uv.txt && $(INSTALL) --require-hashes -r .venv/uv.txt && \
		$(INSTALL) --require-hashes -r requirements.lock && $(INSTALL) --no-deps -e . -e images/bench)
	@touch $@

.venv/dev: .venv/tool requirements-dev.lock
	$(call install-aloud,what the tests need,$(INSTALL) --require-hashes -r requirements-dev.lock)
	@touch $@
