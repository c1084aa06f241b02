# Everything here sets itself up: it needs Python 3.11, make and a package registry.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
TOOLS := mplang_simulator mplang_analysis mplang_cache mplang_passes mplang_trace mplang_cli mplang_testing
PLUGINS := $(TOOLS) mplang_confinement mplang_tables mplang_data mplang_policy mplang_stablehlo mplang_jax mplang_spu mplang_crypto mplang_phe mplang_he mplang_ibis mplang_match mplang_joins mplang_spark mplang_guard mplang_dp mplang_tee mplang_http mplang_worker
EXAMPLES := mplang_hello mplang_xp mplang_gpu mplang_grpc
# Stubs alone: no module, so none of SOURCES.
STUBS := plugins/mplang_core_stubs
PACKAGES := -e ".[dev,examples]" -e $(STUBS) $(foreach p,$(PLUGINS),-e plugins/$(p)) \
	$(foreach e,$(EXAMPLES),-e examples/$(e))
SOURCES := mplang_core $(foreach p,$(PLUGINS),plugins/$(p)/src/$(p)) \
	$(foreach e,$(EXAMPLES),examples/$(e)/src/$(e))
CORE := .venv-core
PIP := --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Installed once, not for each package in an environment of its own.
BUILD := hatchling hatch-fancy-pypi-readme editables setuptools
STAMP := $(VENV)/.installed
# What is uploaded; the examples are built beside it, for their tests.
DOCUMENTS = $$(git ls-files '*.md')
PUBLISHED := . $(STUBS) $(foreach p,$(PLUGINS),plugins/$(p))
# More than two cores have, since tests of workers wait a part of their time; with four, some wait too long.
JOBS ?= 3
TOGETHER := -n $(JOBS) --dist loadfile --max-worker-restart 0
# What make test leaves out; each of these markers has a target of its own.
SHORT := not slow and not long and not fuzz and not wheels
ALONE = $(shell grep -rl --include='test_*.py' 'mark\.alone' tests plugins examples)
SINCE ?= HEAD~1

# What processes import is compiled once, at the first import: most of what is installed never is.
unexport PYTHONDONTWRITEBYTECODE

# The group of a target stands before what it does.
GROUPS := begin:To_begin change:For_a_change tests:More_tests measure:Measurements release:Releases

.DEFAULT_GOAL := help
.PHONY: help setup environments components spark test-spark demo demo-http demo-hospitals demo-sql test test-core test-engines test-alone test-stress test-slow test-long test-hostile test-browser test-wheels test-versions test-numbers test-million test-failures test-noninterference test-everywhere test-same soak sweep fuzz lint accuracy sml stop bench docs docs-serve wheels changelog clean

help: ## begin: show this
	@for group in $(GROUPS); do echo "$$(echo "$${group#*:}" | tr _ ' '):"; \
		awk -F ":.*## $${group%%:*}: " 'NF > 1 {printf "  make %-20s %s\n", $$1, $$2}' Makefile; done

setup: $(STAMP) ## begin: make .venv with everything in it

environments: $(STAMP) $(CORE)/.installed ## change: make both environments

$(STAMP): pyproject.toml constraints.txt $(wildcard plugins/*/pyproject.toml examples/*/pyproject.toml)
	@echo "==> setting up $(VENV) with $$($(PYTHON) --version) (about a minute, once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "mplang needs Python 3.11; make PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "==> installing the core, the plugins and the tools, pinned by constraints.txt"
	@$(BIN)/python -m pip install $(PIP) $(BUILD)
	@$(BIN)/python -m pip install $(PIP) --no-build-isolation $(PACKAGES)
	@touch $@

components: ## change: install what tests start for real, as PostgreSQL and Chromium: Debian's packages, as root
	@$(PYTHON) tests/runner/components.py install

spark: .venv-spark/.installed ## change: install a Spark server for the tests, and Debian's Java, as root

.venv-spark/.installed: constraints.txt
	@$(PYTHON) tests/runner/components.py install spark
	@echo "==> installing Spark (400 MB)"
	@$(BIN)/python -m pip install $(PIP) --no-deps --target .venv-spark $$(grep '^pyspark==' constraints.txt)
	@touch $@

demo: setup ## begin: two hospitals train one model on shared secrets
	@$(BIN)/python examples/vertical_lr.py $(ARGS)

demo-http: setup ## begin: the same on three worker processes, with mutual TLS on one port each
	@$(BIN)/python examples/vertical_lr.py --parties 3 --backend http $(ARGS)

demo-hospitals: setup ## begin: three organizations with data of their own; a model in shares outlives a restart
	@$(BIN)/python examples/hospitals/demo.py $(ARGS)

demo-sql: setup ## begin: a query over a bank's and a shop's tables, joined in secret, signed by both
	@$(BIN)/python examples/bank_and_shop/demo.py $(ARGS)

test: test-core test-engines test-alone ## change: run the tests, three files at a time; JOBS=0 runs one after the other

test-engines: setup ## tests: run the tests of the plugins, and those of the core that need one
	@$(BIN)/python -m pytest $(TOGETHER) -m "$(SHORT) and not core and not alone" $(ARGS)

test-core: $(CORE)/.installed ## tests: run those of the core and its tools, without an engine
	@$(CORE)/bin/python -m pytest $(TOGETHER) tests $(patsubst %,plugins/%,$(filter-out mplang_simulator,$(TOOLS))) -m "$(SHORT) and not alone" $(ARGS)

test-alone: setup ## tests: run the tests that need order or quiet, one after the other
	@$(if $(ALONE),$(BIN)/python -m pytest -m "$(SHORT) and alone" $(ALONE) $(ARGS),echo "==> no test needs order or quiet")

test-stress: setup ## change: beside three busy processes: what changed SINCE=HEAD~1 five times, ARGS=FILE a hundred times, ALL=1 once
	@$(BIN)/python tests/runner/stress.py $(if $(ALL),--all,--since $(SINCE) $(ARGS))

$(CORE)/.installed: pyproject.toml constraints.txt $(foreach t,$(TOOLS),plugins/$(t)/pyproject.toml)
	@echo "==> setting up $(CORE): the core, its tools and the simulator, no engine"
	@test -x $(CORE)/bin/python || $(PYTHON) -m venv $(CORE)
	@$(CORE)/bin/python -m pip install $(PIP) $(BUILD)
	@$(CORE)/bin/python -m pip install $(PIP) --no-build-isolation -e ".[test-core]" -e $(STUBS) $(foreach t,$(TOOLS),-e plugins/$(t))
	@touch $@

test-slow: setup ## tests: run all tests, slow ones, too (two hours)
	@$(BIN)/python -m pytest $(TOGETHER) -m "not million and not fuzz and not wheels" $(ARGS)

test-long: setup ## tests: run the tests that take five seconds or more, and that make test leaves out, and 200 random examples of each (15 minutes)
	@$(BIN)/python -m pytest $(TOGETHER) --hypothesis-profile many -m "(long or hypothesis) and not slow and not fuzz" $(ARGS)

MPC = plugins/mplang_worker/tests/test_hostile_mpc.py

test-spark: setup spark ## tests: all that runs on a Spark server (15 minutes)
	@$(BIN)/python -m pytest plugins/mplang_spark/tests $(ARGS)

test-hostile: setup ## tests: try all hostile code and shares on live workers, and members of an SPU that send wrong messages (two hours)
	@$(BIN)/python -m pytest $(TOGETHER) $(filter-out $(MPC),$(wildcard plugins/mplang_worker/tests/test_hostile_*.py)) $(ARGS)
	@MPLANG_HOSTILE_RUNS=20 $(BIN)/python -m pytest -rP $(MPC) $(ARGS)
	@MPLANG_HOSTILE_RUNS=1000 $(BIN)/python -m pytest -rP -n 4 plugins/mplang_spu/tests/test_hostile_messages.py $(ARGS)

test-numbers: setup ## tests: check SPU's numbers against float64: all protocols, 3,000 functions (two hours)
	@$(BIN)/python -m pytest -n $(JOBS) -m "not million" $(foreach t,numbers dtypes passes battery property \
		reference_check reference_check_decisions reference_check_modes,\
		plugins/mplang_spu/tests/test_$(t).py) $(ARGS)

test-million: setup ## tests: a million keys, and the statistics of a million numbers on ABY3 (half an hour, 16 GB)
	@$(BIN)/python -m pytest -v -m million plugins/mplang_match/tests $(ARGS)
	@$(BIN)/python -m pytest -v -m million -k ABY3 plugins/mplang_spu/tests/test_battery.py $(ARGS)

test-failures: setup ## tests: break workers, links and hosts amid SPU jobs, each way 50 times; kill 200 while they store
	@MPLANG_FAILURES=50 MPLANG_KILLS=200 $(BIN)/python -m pytest -v $(ARGS) \
		plugins/mplang_worker/tests/test_failures_spu.py plugins/mplang_worker/tests/test_stored_kills.py

test-browser: docs ## tests: look at cells, reviews and each page of the site in Chromium, at 1280 and 400 pixels, light and dark (half an hour)
	@$(BIN)/python -m pytest -v tests/notebook/test_browser.py plugins/mplang_policy/tests/test_browser.py
	@$(BIN)/python tests/docs/browsed.py .build/site/out $(ARGS)

MINUTES ?= 30
HOSTS ?= 6

soak: setup ## tests: run HOSTS hosts for MINUTES on three organizations whose workers restart, certificates rotate and rules change
	@PYTHONPATH=plugins/mplang_worker/tests $(BIN)/python benchmarks/soak.py --minutes $(MINUTES) --hosts $(HOSTS) $(ARGS)

test-noninterference: setup ## tests: hold 20,000 random programs, and 500 on live workers, against their disclosure tables (two hours)
	@MPLANG_PROGRAMS=20000 $(BIN)/python -m pytest -n $(JOBS) \
		plugins/mplang_analysis/tests/noninterference/test_noninterference.py $(ARGS)
	@MPLANG_LIVE_PROGRAMS=500 $(BIN)/python -m pytest --timeout 3600 \
		plugins/mplang_analysis/tests/noninterference/test_live_workers.py $(ARGS)

test-everywhere: setup ## tests: run each program of the tests in both modes, from its artifact, and on workers
	@$(BIN)/python -m pytest -p everywhere $(TOGETHER) tests/semantics tests/language \
		tests/integration plugins --ignore plugins/mplang_worker -m "not slow and not once and not fuzz and not wheels" $(ARGS)

test-same: setup ## tests: run 200 random functions on each protocol, simulated and on workers, three times each, or the 40th to 79th: MPLANG_SAME_ANSWER=40:80 (15 minutes)
	@$(BIN)/python -m pytest -v -rP plugins/mplang_spu/tests/test_same_answer.py $(ARGS)

sweep: setup ## tests: run all functions of JAX on SPU, and compare with the record; goes on with what .sweep has of the same sources, ARGS="--only jnp.sort" runs a slice (an hour)
	@$(BIN)/python benchmarks/sweep.py --results .sweep $(ARGS)

fuzz: $(VENV)/.fuzz ## tests: feed twelve decoders and gates new inputs, two ways, 10 minutes each, and sources, a minute each (90 minutes)
	@$(BIN)/python -m pytest -v -rP -n $(JOBS) --maxschedchunk 1 -m fuzz tests/fuzz $(ARGS)

$(VENV)/.fuzz: $(STAMP)
	@echo "==> installing atheris, which has wheels for Linux"
	@$(BIN)/python -m pip install $(PIP) --no-build-isolation -e ".[fuzz]"
	@touch $@

$(VENV)/.release: $(STAMP)
	@echo "==> installing build, twine, towncrier and uv"
	@$(BIN)/python -m pip install $(PIP) --no-build-isolation -e ".[release]"
	@touch $@

wheels: $(VENV)/.release ## release: build the wheels and source distributions of all packages in dist, and check them
	@rm -rf dist
	@for package in $(PUBLISHED); do \
		$(BIN)/python -m build --no-isolation --outdir dist $$package >dist.log 2>&1 || { cat dist.log; exit 1; }; done
	@for example in $(EXAMPLES); do \
		$(BIN)/python -m build --no-isolation --wheel --outdir dist/examples examples/$$example >dist.log 2>&1 \
			|| { cat dist.log; exit 1; }; done
	@rm dist.log
	@$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz dist/examples/*.whl

test-wheels: wheels ## release: install the wheels into fresh environments, and run the programs of their READMEs there (10 minutes)
	@$(BIN)/python -m pytest -m wheels tests/release $(ARGS)

test-versions: wheels ## release: run the smoke tests on the lowest and highest versions allowed, on Python 3.11 to 3.13 (30 minutes)
	@PYTHONPATH=.:tests/runner:tests/architecture $(BIN)/python tests/release/versions.py -n $(JOBS) --timeout 120 $(ARGS)

changelog: $(VENV)/.release ## release: collect the news fragments of changes/ in CHANGELOG.md; ARGS=--draft only shows them
	@$(BIN)/towncrier build --yes --version $$($(BIN)/python -c 'import mplang_core; print(mplang_core.__version__)') $(ARGS)

docs: $(VENV)/.docs ## change: build the site in .build/site/out, without a network, its pages and their programs checked (three minutes)
	@$(BIN)/python docs/site/assemble.py .build/site
	@$(BIN)/python -m sphinx -q -W --keep-going -j 2 -c docs/site .build/site/source .build/site/out

docs-serve: docs ## change: build the site, and serve it at http://localhost:8000
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory .build/site/out 8000

$(VENV)/.docs: $(STAMP)
	@echo "==> installing what builds the site"
	@$(BIN)/python -m pip install $(PIP) --no-build-isolation -e ".[docs]"
	@touch $@

lint: setup ## change: format, style, types, spelling, layers, public names, waiting in tests, costs
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff format --check --line-length 76 $(DOCUMENTS)
	@$(BIN)/ruff check .
	@$(BIN)/mypy $(SOURCES)
	@$(BIN)/codespell .
	@$(BIN)/lint-imports
	@$(BIN)/python tests/architecture/core_size.py
	@$(BIN)/python tests/architecture/breaking_changes.py
	@$(BIN)/python tests/architecture/ratchets.py
	@$(BIN)/python tests/runner/waiting_rules.py
	@$(BIN)/python tests/costs/count.py

accuracy: setup ## measure: measure SPU's functions, and write the tables of plugins/mplang_spu/README.md
	@$(BIN)/python benchmarks/accuracy.py
	@$(BIN)/python benchmarks/linear_algebra_accuracy.py

sml: setup ## tests: run the tests of secretflow's machine learning library on mplang, and print a table (hours)
	@$(BIN)/python benchmarks/sml/run.py $(ARGS)

stop: setup ## measure: how long runs go on that owners stop, at ten moments on each protocol
	@$(BIN)/python benchmarks/bench_stop.py 10

bench: setup ## measure: measure
	@for file in benchmarks/bench_*.py; do echo "==> $$file"; $(BIN)/python $$file || exit 1; done

clean: ## release: remove what setup and the tests made
	rm -rf $(VENV) $(CORE) .venv-versions dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
