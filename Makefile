# Everything is installed into .venv, which these targets make themselves.
#
#   make reproduce-pt-en   train the baseline, RePE and causal RePE, and report
#   make reproduce-table1  train both on every pair: the paper's Table 1
#   make reproduce-figure3 train both ten times on pt_to_en: the paper's Figure 3
#   make test              run the tests, without the long ones
#   make test-all          run all tests
#   make check             lint, format, types and the direction of imports
#   make facts             renew the numbers of README and docs from the committed runs
#   make notebooks         execute the notebooks and keep their outputs
#   make try-notebooks     execute the notebooks into build/notebooks
#   make docs              build the documentation site, into build/site
#   make linkcheck         try the site's links to other sites; it needs a network
#   make bench             compare speed and memory in training with other packages
#   make bench-decoding    compare speed in translating with other packages
#   make bench-joeynmt     train beside JoeyNMT: ARGUMENTS="--train a --dev b --languages pt en"
#   make bench-gpu         speed on a GPU, by JAX without TensorFlow, and ten epochs
#   make gallery           audit other packages' models: docs/who_looks_ahead.md
#   make clean             remove .venv, and what was built
#
# These change what they do:
#
# PAIR=az_to_en       another of the 14 pairs, or one with the same layout (reproduce-pt-en)
# PAIRS="A B"         only these pairs of Table 1, in this order
# TEXT=embedded       auto (default), ted, embedded, or a folder or archive
# REPRT_TED=FOLDER    the place of the official text, searched first
# PYTHON=python3.12   the interpreter to make the environment with
# ARGUMENTS="..."     more for `reprt train`, e.g. "--only repe", for test-all or the benchmarks

PYTHON ?= python3
PAIR ?= pt_to_en
TEXT ?= auto
VENV := .venv
export REPRT_TED
# `reprt` sets it itself; here it is for the site.
docs linkcheck: export TF_CPP_MIN_LOG_LEVEL ?= 3

# Bare `make` shows the lines above.
.PHONY: help
help:
	@sed -n '/^[^#]/q; /^$$/q; s/^# \{0,1\}//p' Makefile

EXECUTED := $(addprefix build/,$(wildcard notebooks/*.ipynb))

.PHONY: reproduce-pt-en reproduce-table1 reproduce-figure3 test test-all check
.PHONY: facts notebooks try-notebooks docs linkcheck bench bench-decoding bench-joeynmt bench-gpu gallery clean

reproduce-pt-en: $(VENV)/train
	$(VENV)/bin/reprt train experiments/pt_to_en.toml \
		--pair $(PAIR) --text '$(TEXT)' $(ARGUMENTS)

reproduce-table1: $(VENV)/$(if $(findstring --ray,$(ARGUMENTS)),cluster,train)
	$(VENV)/bin/reprt train experiments/table1.toml \
		$(addprefix --pair ,$(PAIRS)) --text '$(TEXT)' $(ARGUMENTS)

reproduce-figure3: $(VENV)/$(if $(findstring --ray,$(ARGUMENTS)),cluster,train)
	$(VENV)/bin/reprt train experiments/figure3.toml --text '$(TEXT)' $(ARGUMENTS)

PYTEST := $(VENV)/bin/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

test: $(VENV)/test
	$(PYTEST) -m "not long"

test-all: $(VENV)/test
	$(PYTEST) $(ARGUMENTS)

check: $(VENV)/test
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

facts: $(VENV)/train
	$(VENV)/bin/python docs/facts.py

# Copies keep the times of files, so that nothing is executed twice.
notebooks: $(EXECUTED)
	cp -p $^ notebooks

try-notebooks: $(EXECUTED)

# Python's own kernel, in which TensorFlow prints no notes. Times of execution and versions,
# which differ between machines, are not kept.
build/notebooks/%.ipynb: notebooks/%.ipynb $(VENV)/docs $(shell find reprt reprt_lab -name '*.py')
	JUPYTER_PATH=$(CURDIR)/docs $(VENV)/bin/jupyter nbconvert --log-level WARN \
		--to notebook --execute --output-dir build/notebooks \
		--NotebookExporter.preprocessors=nbconvert.preprocessors.CoalesceStreamsPreprocessor \
		--ExecutePreprocessor.record_timing=False \
		--ClearMetadataPreprocessor.enabled=True \
		--ClearMetadataPreprocessor.preserve_nb_metadata_mask=kernelspec $<

build/notebooks/5_reading_the_results.ipynb: $(shell find experiments/results \
	-name '*.toml' -o -name '*.jsonl' -o -name notes.md)

docs: $(VENV)/docs
	$(VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going docs build/site

linkcheck: $(VENV)/docs
	$(VENV)/bin/python -m sphinx --quiet -b linkcheck docs build/linkcheck

bench: $(foreach peer,reprt plain_keras keras_hub pytorch,.bench/$(peer)/ready)
	.bench/reprt/bin/python experiments/benchmark/run.py train $(ARGUMENTS)

bench-decoding: $(foreach peer,reprt plain_keras ctranslate2,.bench/$(peer)/ready)
	.bench/reprt/bin/python experiments/benchmark/run.py translate $(ARGUMENTS)

bench-joeynmt: $(foreach peer,reprt joeynmt,.bench/$(peer)/ready)
	.bench/reprt/bin/python experiments/benchmark/joeynmt.py $(ARGUMENTS)

# Ids come from the cache, copied from a machine that has TensorFlow. JAX would take most
# of the GPU's memory for the first of several processes.
ON_GPU := PYTHONPATH=. KERAS_BACKEND=jax XLA_PYTHON_CLIENT_PREALLOCATE=false .bench/gpu/bin/python
BENCH_GPU := reprt reprt:bfloat16 reprt:cpu plain_jax

bench-gpu: .bench/gpu/ready
	$(ON_GPU) experiments/benchmark/run.py train --out runs/gpu/benchmark --peers $(BENCH_GPU) \
		--models baseline repe repe-causal --agreement-steps 20 --inexact $(BENCH_GPU) $(ARGUMENTS)
	$(ON_GPU) -m reprt_lab train experiments/pt_to_en.toml --pair az_to_en --text '$(TEXT)' \
		--set training.epochs=10 --out runs/gpu/az_to_en

gallery: $(patsubst experiments/gallery/requirements/%.txt,.gallery/%/ready,$(wildcard experiments/gallery/requirements/*.txt))
	$(PYTHON) experiments/gallery/run.py $(ARGUMENTS)

clean:
	rm -rf $(VENV) .bench .gallery build *.egg-info

# One file for each set of extras that has been installed.
$(VENV)/train: setup.cfg pyproject.toml
	@echo "Installing TensorFlow and other packages into $(VENV): 2.7 GB, some minutes."
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --editable '.[train]'
	touch $@

$(VENV)/cluster $(VENV)/test $(VENV)/docs: $(VENV)/%: $(VENV)/train
	$(VENV)/bin/python -m pip install --quiet --editable '.[train,$*]'
	touch $@

# Each environment of the gallery has its own packages.
.gallery/%/ready: experiments/gallery/requirements/%.txt setup.cfg
	$(PYTHON) -m venv .gallery/$*
	.gallery/$*/bin/python -m pip install --quiet --requirement $<
	touch $@

# Each peer of the comparison has its own packages.
.bench/%/ready: experiments/benchmark/requirements/%.txt setup.cfg
	$(PYTHON) -m venv .bench/$*
	.bench/$*/bin/python -m pip install --quiet --requirement $<
	touch $@
