# The two commands of the README, and what CI runs. Needs Python 3.11 or newer and make, nothing else.
PYTHON ?= python3
PIP = bin/python -m pip --disable-pip-version-check -q install -c $(CURDIR)/constraints.txt
SOURCES := $(shell find src -type f) pyproject.toml constraints.txt README.md LICENSE
OLD_HF := .envs/transformers-4.57.6
NEW_HF := .envs/transformers-5.24.0

.PHONY: help demo test check lint types right hard live engine bench docs clean

demo: .envs/run/.ready $(NEW_HF)/.ready  ## set up and run the main job: the case study, on real files and on models
	PATH="$(CURDIR)/.envs/run/bin:$$PATH" .envs/run/bin/python examples/stale_config/demo.py $(NEW_HF)/bin/python
	PATH="$(CURDIR)/.envs/run/bin:$$PATH" .envs/run/bin/python examples/stale_config/on_the_pair.py

test: check  ## set up and pass every test

check: lint types right engine live hard  ## what CI runs

help:  ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## / - /'

lint: .envs/dev/.ready  ## format and lint rules
	.envs/dev/bin/ruff format --check .
	.envs/dev/bin/ruff check .

types: .envs/dev/.ready  ## mypy --strict, tests too
	.envs/dev/bin/mypy

right: .envs/wheel/.ready  ## the wing without torch, against the built wheel (minutes)
	.envs/wheel/bin/python -m pytest -q -n 2 --dist loadfile -m "not engine and not live and not root and not ssh"

engine: .envs/engine/.ready  ## the wing with torch, against the built wheel (minutes)
	OMP_NUM_THREADS=1 .envs/engine/bin/python -m pytest -q -n 2 --dist loadfile -m "engine and not live"

live: .envs/wheel/.ready .envs/engine/.ready $(OLD_HF)/.ready $(NEW_HF)/.ready  ## real peers, each in its environment
	.envs/wheel/bin/python -m pytest -q -n 2 --dist loadfile -m "live and not engine"
	OMP_NUM_THREADS=1 .envs/engine/bin/python -m pytest -q -n 2 --dist loadfile -m "live and engine"

# These drive real shells, sshd, strace and mounts; what a busy machine made late is run once more, and said.
hard: .envs/wheel/.ready  ## system calls broken, links and power cut, mounts, fleets (needs root and Debian packages)
	.envs/wheel/bin/python -m pytest -q -m "(root or ssh) and not engine and not live" \
	|| .envs/wheel/bin/python -m pytest -q -m "(root or ssh) and not engine and not live" --last-failed

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
	cd .envs/dev && $(PIP) -e '$(CURDIR)[dev,engine,plot]' transformers
	touch $@

# What a user installs: the base package, and what the models need. What is not imported is not compiled.
.envs/run/.ready: $(SOURCES)
	$(PYTHON) -m venv .envs/run
	cd .envs/run && $(PIP) --no-compile torch==2.13.0
	cd .envs/run && $(PIP) --force-reinstall --no-deps $(CURDIR)
	cd .envs/run && $(PIP) --no-compile "draftproof[engine] @ file://$(CURDIR)"
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
	cd .envs/engine && $(PIP) "draftproof[dev,engine,plot] @ file://$$(ls $(CURDIR)/dist/draftproof-*.whl)" transformers
	touch $@

$(OLD_HF)/.ready $(NEW_HF)/.ready: .envs/transformers-%/.ready:
	$(PYTHON) -m venv .envs/transformers-$*
	.envs/transformers-$*/bin/python -m pip --disable-pip-version-check -q install transformers==$*
	touch $@

clean:
	rm -rf .envs dist build .demo
