# The two commands of the README, and what CI runs. Needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
PIP = bin/python -m pip --disable-pip-version-check -q install -c $(CURDIR)/constraints.txt
SOURCES := $(shell find src -type f) pyproject.toml constraints.txt README.md LICENSE
OLD_HF := .envs/transformers-4.57.6
NEW_HF := .envs/transformers-5.24.0

.PHONY: demo test check lint types right engine live bench docs clean

demo: .envs/run/.ready $(NEW_HF)/.ready  ## set up and run the main job: the case study, on real files
	PATH="$(CURDIR)/.envs/run/bin:$$PATH" .envs/run/bin/python examples/stale_config/demo.py $(NEW_HF)/bin/python

test: check  ## set up and pass the tests

check: lint types right live engine  ## what CI runs

lint: .envs/dev/.ready
	.envs/dev/bin/ruff format --check .
	.envs/dev/bin/ruff check .

types: .envs/dev/.ready
	.envs/dev/bin/mypy

right: .envs/wheel/.ready  ## the wing without torch, against the built wheel
	.envs/wheel/bin/python -m pytest -m "not engine and not live"

live: .envs/wheel/.ready $(OLD_HF)/.ready $(NEW_HF)/.ready  ## real peers: two transformers
	.envs/wheel/bin/python -m pytest -m "live and not engine"

engine: .envs/engine/.ready  ## the wing with torch, against the built wheel
	.envs/engine/bin/python -m pytest -m engine

bench: .envs/dev/.ready  ## speed: whole processes, interleaved
	.envs/dev/bin/python bench/cli_import.py
	.envs/dev/bin/python bench/checkpoint_check.py
	.envs/dev/bin/python bench/digest_speed.py

docs: .envs/dev/.ready  ## regenerate every generated page
	.envs/dev/bin/python docs/generate.py
	.envs/dev/bin/python docs/reliability.py

# An editable install with every tool and torch, for lint, types, docs and benches.
.envs/dev/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .envs/dev
	cd .envs/dev && $(PIP) torch==2.13.0
	cd .envs/dev && $(PIP) -e '$(CURDIR)[dev,engine]' transformers
	touch $@

# What a user installs: the base package alone.
.envs/run/.ready: $(SOURCES)
	$(PYTHON) -m venv .envs/run
	cd .envs/run && $(PIP) --force-reinstall $(CURDIR)
	touch $@

# The built wheel, the test tools, and no torch: src/ is not importable there.
dist/.wheel: $(SOURCES) .envs/dev/.ready
	rm -rf dist && .envs/dev/bin/python -m build --wheel --no-isolation --outdir dist .
	touch $@

.envs/wheel/.ready: dist/.wheel
	$(PYTHON) -m venv .envs/wheel
	cd .envs/wheel && $(PIP) --force-reinstall --no-deps $(CURDIR)/dist/draftproof-*.whl
	cd .envs/wheel && $(PIP) "draftproof[dev] @ file://$$(ls $(CURDIR)/dist/draftproof-*.whl)"
	touch $@

.envs/engine/.ready: dist/.wheel
	$(PYTHON) -m venv .envs/engine
	cd .envs/engine && $(PIP) torch==2.13.0
	cd .envs/engine && $(PIP) --force-reinstall --no-deps $(CURDIR)/dist/draftproof-*.whl
	cd .envs/engine && $(PIP) "draftproof[dev,engine] @ file://$$(ls $(CURDIR)/dist/draftproof-*.whl)" transformers
	touch $@

$(OLD_HF)/.ready $(NEW_HF)/.ready: .envs/transformers-%/.ready:
	$(PYTHON) -m venv .envs/transformers-$*
	.envs/transformers-$*/bin/python -m pip --disable-pip-version-check -q install transformers==$*
	touch $@

clean:
	rm -rf .envs dist build .demo
