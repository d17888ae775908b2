# `make help` lists the targets. Every target sets up what it needs: a virtual environment in .venv with this package,
# all its extras and the development tools; `demo` alone has one of its own, .venv-demo, with what a user installs.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
COLLECTED := $(VENV)/.collected

GENERATED := --specs message_specs --out generated/kafka_records --package kafka_records --docs docs/reference
REFERENCE := --specs message_specs --out docs/reference --package kafka_records --code generated/kafka_records
HAND_WRITTEN := examples generator spark_udfs tests tools
SPELLED := CONTRIBUTING.md Makefile README.md docs java message_specs pyproject.toml $(HAND_WRITTEN)

# Tests are shared out among so many processes, as tests/sharing.py says; one of them has the Spark session, and those
# with brokers wait a third of their time.
WORKERS := 3
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)
# The marks of what `make quick` runs; tools/support.py runs the same with other releases of Python.
QUICK := not (spark or broker or browser or maven or releases or slow or matrix)
# What a release of Kafka may change: specs, codecs, the JSON form, the columns, what dump prints,
# reference pages, links of pages. Of a folder of specs the tests that ask Kafka's released jars say nothing.
FOLLOWED := tests/message_specs tests/codecs tests/runtime tests/log/test_lossless.py tests/cli/test_dump_vectors.py \
	tests/columns/test_kafkas_bytes.py tests/generator/test_reference.py tests/house/test_links.py
# Older makes cannot keep the lines of two targets apart.
SIDE_BY_SIDE := $(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Spark starts its workers with this interpreter, and its own jars, regardless of what the machine has set.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport SPARK_HOME
# Every process that tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets. README.md says what it does, CONTRIBUTING.md where things live and how to add one.
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------------------------------------- set-up

.PHONY: python-found java-found
python-found:
	@[ -e $(INSTALLED) ] || tools/prerequisites.sh python >/dev/null
java-found:
	@tools/prerequisites.sh java

.PHONY: venv
venv: $(INSTALLED) ## Create .venv with everything in it; does nothing when it is up to date.

# Python compiles what it imports, which is a part: all that is installed takes a minute.
$(INSTALLED): pyproject.toml | python-found
	@python=$$(tools/prerequisites.sh python) && echo "Setting up $(VENV) with $$python" && \
	$$python -m venv $(VENV) && \
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]' && \
	touch $@

# ----------------------------------------------------------------------------------------------------------- the jobs

.PHONY: demo
demo: ## Show a captured topic as tables, here and by PySpark, with what a user installs (in .venv-demo).
	@tools/demo.sh

.PHONY: quick
quick: $(INSTALLED) ## Lint, check types and run the tests without Spark, broker, Maven and what is slow: three minutes.
	@$(SIDE_BY_SIDE) pyright mypy lint
	$(PYTEST) -m "$(QUICK)" --hypothesis-profile=quick

.PHONY: test
test: jar archives ## Run lint, types, import contracts, the generated tree and all tests but slow variants.
	@$(SIDE_BY_SIDE) pyright mypy check lint collect
	$(PYTEST) -m "not matrix"

.PHONY: generate
generate: $(INSTALLED) ## Write generated/kafka_records, docs/reference, docs/tables.md, docs/report.md and the list of messages.
	$(BIN)/kafka-records-codegen generate $(GENERATED)
	$(BIN)/kafka-records-codegen docs $(REFERENCE)
	$(BIN)/python -m tools.table_pages
	$(BIN)/python -m tools.report_page
	$(BIN)/python -m tools.message_list

.PHONY: jar
jar: java-found $(INSTALLED) ## Build the functions for Spark's JVM, which a wheel has; needs a JDK.
	@$(BIN)/python tools/jar.py

.PHONY: archives
archives: java-found $(INSTALLED) ## Let brokers and Spark in tests start in half the time: their classes as archives, made once.
	@$(BIN)/python tools/class_archives.py

.PHONY: docs
docs: $(INSTALLED) ## Build the documentation as a site with a search, in build/site; broken links fail.
	@$(BIN)/python -m tools.docs_site

.PHONY: shots
shots: docs ## Take the pictures in docs/img: a terminal, and in a Chromium the report and the site.
	@$(BIN)/python -m tools.shots

.PHONY: notebooks
notebooks: $(INSTALLED) ## Run the notebooks under examples/ and write what their cells show.
	$(BIN)/python -m tools.notebooks

.PHONY: check
check: $(INSTALLED) ## Compare generated/kafka_records and the pages that are written with what would be written.
	$(BIN)/kafka-records-codegen generate $(GENERATED) --check
	$(BIN)/kafka-records-codegen docs $(REFERENCE) --check
	$(BIN)/python -m tools.table_pages --check
	$(BIN)/python -m tools.report_page --check
	$(BIN)/python -m tools.message_list --check
	$(BIN)/python tools/support.py --check
	$(BIN)/python -m tools.judge.reach --check
	$(BIN)/python -m tools.trust --check

# ----------------------------------------------------------------------------------------------------- single checks

.PHONY: lint
# Ruff formats as black does but for a few files; black, which decides, takes a minute for all.
lint: contracts ## Lint with ruff, check the formatting, the spelling and that imports point one way.
	$(BIN)/ruff check
	$(BIN)/codespell $(SPELLED)
	@$(BIN)/ruff format --check --quiet --output-format concise $(HAND_WRITTEN) | sed 's/:.*//' | sort -u | \
		xargs -r $(BIN)/black --check --quiet || { echo "Not formatted: run make format." >&2; exit 1; }

.PHONY: format
format: $(INSTALLED) ## Sort imports, fix what ruff can fix, format with black.
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/black $(HAND_WRITTEN)

.PHONY: types
types: mypy pyright ## Check types with both.

.PHONY: mypy
mypy: $(INSTALLED) ## Check all types with mypy --strict.
	$(BIN)/mypy

.PHONY: pyright
pyright: $(INSTALLED) ## Check the types of the generated package with pyright.
	$(BIN)/pyright

.PHONY: contracts
contracts: $(INSTALLED) ## Check only that imports point one way.
	$(BIN)/lint-imports

.PHONY: collect
collect: $(COLLECTED) ## Import all tests once, which compiles them for the processes that share them out.

# What changes later is little, and each of them compiles it.
$(COLLECTED): $(INSTALLED)
	@found=$$($(BIN)/python -m pytest --collect-only -qq 2>&1) || { echo "$$found"; exit 1; }
	@touch $@

# -------------------------------------------------------------------------------------------------------- slow rings

.PHONY: broker
broker: java-found $(INSTALLED) ## Run only the tests against a real Kafka broker, which Maven fetches once.
	$(BIN)/python -m pytest tests/broker

.PHONY: live
live: java-found $(INSTALLED) ## Read three brokers under load while they are killed and started again, for minutes.
	KAFKA_RECORDS_LIVE_SECONDS=$${KAFKA_RECORDS_LIVE_SECONDS:-180} $(BIN)/python -m pytest -s tests/broker/test_live_cluster.py

.PHONY: faults
faults: java-found $(INSTALLED) ## Read three brokers for SECONDS=600 through proxies that disturb answers, by SEED=1; every answer is the log, or says why not.
	$(BIN)/python -m tools.faults --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1)

.PHONY: matrix
matrix: jar archives atheris ## Run what `make test` leaves out: other releases, more ways to a cluster, Spark benchmarks.
	$(PYTEST) -m matrix

.PHONY: mutants
mutants: java-found $(INSTALLED) ## Change the coordinator's rules, COUNT=500 times by SEED=26: do histories of Kafka or tests notice?
	@$(BIN)/python -m pip install --quiet --editable '.[mutants]'
	$(BIN)/python -m tools.mutants --count $(or $(COUNT),500) --seed $(or $(SEED),26)

.PHONY: damaged-rows
damaged-rows: $(INSTALLED) ## Read 100 000 damaged files of each format of saved rows, or FILES=5000: no crash, no hang, no strange row.
	KAFKA_RECORDS_MUTANTS=$(or $(FILES),100000) $(PYTEST) -m matrix tests/sources/test_saved_mutants.py

.PHONY: snapshot-kills
snapshot-kills: $(INSTALLED) ## Kill a hundred runs of snapshot, and of tables with --state, at random points; what is kept has to be whole.
	KAFKA_RECORDS_KILLS=100 $(BIN)/python -m pytest -s tests/sources/test_killed_snapshots.py

.PHONY: lost-writes
lost-writes: $(INSTALLED) ## Let the power, the disk and the clock fail after every step of snapshot and --state; what is kept has to be whole.
	KAFKA_RECORDS_LOST_WRITES=1 $(BIN)/python -m pytest -s tests/sources/test_lost_writes.py

.PHONY: releases
releases: $(INSTALLED) ## Round-trip every message of nine Kafka releases, and compare each with the next; needs Maven.
	$(BIN)/python tools/round_trip_release.py --all --examples 20
	$(BIN)/python -m pytest tests/evolution/test_history.py

.PHONY: follow
follow: java-found $(INSTALLED) ## Bring specs, code, vectors and pages up to RELEASE=4.4.0, or to a folder of specs, and test them; NOTES=FILE lists its upgrade notes.
	@test -n "$(RELEASE)" || { echo "Name a release of Kafka or a folder of specs: make follow RELEASE=4.4.0" >&2; exit 2; }
	$(BIN)/python -m tools.follow specs $(RELEASE)
	@$(MAKE) --no-print-directory generate
	$(BIN)/python -m tools.follow vectors $(RELEASE) $(if $(SINCE),--since $(SINCE))
	$(PYTEST) -m "not (spark or broker or matrix$(if $(wildcard $(RELEASE)), or maven))" $(FOLLOWED)
	$(if $(wildcard $(RELEASE)),,KAFKA_RECORDS_KAFKA=$(RELEASE) $(BIN)/python -m tools.judge $(or $(SEEDS),1-40))
	$(if $(NOTES),$(BIN)/python -m tools.follow.upgrade_notes $(RELEASE) $(NOTES))

.PHONY: vectors
vectors: java-found $(INSTALLED) ## Write the kept vectors into build/vectors, by Kafka's classes; RELEASE=4.3.1 names others than the newest.
	$(BIN)/python -m tools.follow.rewritten $(RELEASE) --out build/vectors

.PHONY: spark-releases
spark-releases: java-found $(INSTALLED) ## Run the tests that every supported PySpark has to pass, 3.5 to 4.3, which pip fetches once.
	$(BIN)/python tools/spark_releases.py --all

.PHONY: support
support: java-found $(INSTALLED) ## Run what docs/support.md reports on, with every release of Kafka, PySpark and Python; hours, or CELLS="kafka/4.*".
	$(BIN)/python tools/support.py $(CELLS)

.PHONY: judge
judge: java-found $(INSTALLED) ## Compare the tables with Kafka's coordinator classes on random histories, SEEDS="1-1000".
	@$(BIN)/python -m tools.judge $(or $(SEEDS),1-1000) --ledger build/judge.json

.PHONY: judge-reach
judge-reach: java-found $(INSTALLED) ## Measure what of Kafka's classes the judge's histories reach, SEEDS="1-300", into docs/judge-reach.md.
	@$(BIN)/python -m tools.judge.reach $(or $(SEEDS),1-300)

.PHONY: incidents
incidents: java-found $(INSTALLED) ## Bring real brokers into trouble, or health like it, KIND="jobs …" or all, SEED=1, and score the report.
	$(BIN)/python -m tools.incidents $(or $(KIND),all) --seed $(or $(SEED),1) --out build/incidents
	$(BIN)/python -m tools.incidents.score build/incidents

.PHONY: incident-scores
incident-scores: $(INSTALLED) ## Score the report on the recorded incidents of tests/data, into docs/incidents.md.
	$(BIN)/python -m tools.incidents.score tests/data/incidents --page docs/incidents.md

.PHONY: incomplete-incidents
incomplete-incidents: $(INSTALLED) ## Look for false statements in the report on recorded incidents of which a part is missing.
	$(BIN)/python -m tools.incidents.incomplete tests/data/incidents tests/data/clusters

.PHONY: page-scripts
page-scripts: $(INSTALLED) ## Fetch the Vega builds that a report page holds from npm again, and compare them with their digests.
	$(BIN)/python -m tools.page_scripts

.PHONY: atheris
atheris: $(INSTALLED) ## Install the fuzzer that guides inputs, where there is a build of it.
	@$(BIN)/python -m pip install --quiet --editable '.[fuzz]' || echo "No atheris here: what it guides runs without it, or is skipped."

.PHONY: fuzz
fuzz: atheris ## Fuzz every message (see tools/fuzz.py), then run the tests without Spark on many more examples.
	$(BIN)/python tools/fuzz.py --seconds 1
	$(BIN)/python -m pytest -m "not spark and not broker" --hypothesis-profile=exhaustive

.PHONY: fuzz-guided
fuzz-guided: atheris ## Fuzz what reads bytes by the branches it takes, TARGET=segments or all (see tools/guided), for SECONDS=60 each.
	$(BIN)/python -m tools.guided $(if $(TARGET),--target $(TARGET)) --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

.PHONY: fuzz-jvm
fuzz-jvm: jar ## Fuzz the functions for Spark in the JVM by the branches they take, for SECONDS=60.
	$(BIN)/python -m tools.guided.jvm --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

.PHONY: bench
bench: $(INSTALLED) ## Run the benchmarks of codecs, imports and the columnar engine, a table each; some ten minutes.
	@for name in import_time row_codecs columns; do $(BIN)/python tools/benchmarks/$$name.py || exit 1; done

.PHONY: bench-answers
bench-answers: java-found $(INSTALLED) ## Time the tables beside bare reading, Kafka's dump tool and Spark, and say which goals they met.
	$(BIN)/python tools/benchmarks/answers.py

.PHONY: bench-pages
bench-pages: $(INSTALLED) ## Time reports of up to 65 000 groups: findings, and pages in a browser (writing, opening, searching).
	$(BIN)/python tools/benchmarks/report_rules.py
	$(BIN)/python tools/benchmarks/page_opening.py

.PHONY: bench-lag
bench-lag: $(INSTALLED) ## Time `lag` of 65 000 groups and a million offsets with and without times.
	$(BIN)/python tools/benchmarks/lag_times.py

.PHONY: bench-state
bench-state: java-found $(INSTALLED) ## Time `lag` of a broker with 65 000 groups and --state: the first run, and runs when nothing is new.
	$(BIN)/python tools/benchmarks/state.py

.PHONY: bench-spark
bench-spark: java-found $(INSTALLED) ## Time decoding in Spark beside Kafka's own classes, and time over rows; needs Maven and a JDK.
	$(BIN)/python tools/benchmarks/spark_decode.py
	$(BIN)/python tools/benchmarks/spark_functions.py
	$(BIN)/python tools/benchmarks/linear.py --plot docs/img/linear.svg

.PHONY: release
release: $(INSTALLED) ## Build wheel and sdist twice, try both in empty environments, leave them in dist; DRAFT=1 before its heading.
	$(BIN)/python tools/release.py $(if $(DRAFT),--draft)

.PHONY: clean
clean: ## Remove .venv, .venv-demo, caches and build results.
	rm -rf $(VENV) .venv-demo build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf artifacts metastore_db spark-warehouse derby.log
	find examples generated generator spark_udfs tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
