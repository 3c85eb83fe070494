# evdist: `make` alone lists the commands. The environment is .venv/, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# The caller's own Python set-up must not leak into the environment.
unexport PYTHONPATH
unexport PYTHONHOME
# Nor the wish for no compiled modules: tests start hundreds of interpreters, and each would compile
# evdist again.
unexport PYTHONDONTWRITEBYTECODE

# Processes of tests: two for two cores, and two of low priority that work while they wait for
# servers and workers. tests/conftest.py says which tests go together. JOBS=0 for one process.
JOBS ?= 4
XDIST = -n $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast coverage lint format docs bench clean cluster cluster-down test-cluster

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## cluster a real table; writes demo/report.html
	@$(BIN)/python -m evdist.demo --out demo

test: lint ## lint, types and the whole test suite
	$(BIN)/python -m pytest $(XDIST)

# None of these tests waits for another process: a third one would only take its part.
test-fast: JOBS = 2
test-fast: $(VENV)/.installed-dev ## the tests that need no processes and little time: minutes
	$(BIN)/python -m pytest $(XDIST) -m "not process and not slow and not gpu"

coverage: $(VENV)/.installed-dev ## lines and branches that the whole suite runs
	$(BIN)/python -m pytest $(XDIST) --cov --cov-report=term

lint: $(VENV)/.installed-dev ## ruff (rules and format) and mypy, changing nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev ## write the stub and the page of the public names, let ruff mend what it can
	$(BIN)/python -c 'from evdist.registry import write_stub; write_stub()'
	$(BIN)/python -c 'from evdist.registry import api_page; print(api_page(), end="")' > docs/api.md
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs ## build the site of the documentation into site/; a warning is an error
	$(BIN)/python docs/site.py
	@echo "look at it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

cluster: $(VENV)/.installed-dev ## a real Kubernetes of two nodes on this machine (Linux, root): see deploy/README.md
	$(BIN)/python deploy/cluster/build.py
	$(BIN)/python deploy/cluster/cluster.py up

cluster-down: ## end it; what was built is kept
	$(BIN)/python deploy/cluster/cluster.py down

test-cluster: ## the chart, jobs, policies, alerts and faults on it: hours
	$(BIN)/python deploy/cluster/check.py

bench: ## list the benchmarks and how each is run
	@grep -l __main__ benchmarks/*.py | sed 's|^|  $(BIN)/python |'

clean: ## remove the environment, the caches and what the demo wrote
	rm -rf $(VENV) demo build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	find evdist flows tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: an environment is made once, and installed into again only when what it is made from
# changes. The install is editable, so that a change of the code needs none.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evdist needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@# A recent pip finds the packages in half the time; where there is none, the old one does it.
	@$(PIP) install --quiet --upgrade pip || true

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing evdist and what it needs into $(VENV)/ (a minute or two the first time)"
	@$(PIP) install --quiet --constraint constraints.txt --editable .
	@$(BIN)/evdist warm
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing evdist, what it needs and the tools for testing into $(VENV)/ (a minute or two)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[dev,docs,nn,service,s3,k8s]'
	@# Else the first processes of the tests would all compile the same kernels.
	@$(BIN)/evdist warm
	@touch $@ $(VENV)/.installed $(VENV)/.installed-docs

# No kernels: the site is made from the text of the package.
$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing evdist and what builds the site into $(VENV)/ (a minute or two the first time)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@
