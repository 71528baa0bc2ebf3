# make demo         see labels being read, here and now
# make test         the whole test suite
# make test-arm64   the same on 64-bit ARM, by qemu; slow, needs root
# They set up what they need in .venv first; calling them again costs seconds.

PYTHON ?= python3
VENV   ?= .venv
SOURCE ?=
FRAMES ?= 60
TESTS  ?=
# so many tests run at once: most wait for processes of their own; on a GPU they would disturb one another's builds
WORKERS ?= $(if $(wildcard /dev/nvidia0 /dev/nvmap),0,2)
BIN    := $(VENV)/bin

# On a Jetson, TensorRT and OpenCV (with GStreamer) come from JetPack: the environment must see them, pip must not
# bring its own, and JetPack 6's OpenCV wants numpy 1.
ifneq ($(wildcard /etc/nv_tegra_release),)
EXTRAS       ?= jetson,demo,dev
VENV_OPTIONS ?= --system-site-packages
PIP_MORE     ?= $(if $(shell grep -s '^\# R36' /etc/nv_tegra_release),'numpy<2')
else
EXTRAS       ?= cpu,demo,dev
endif

# the variable as one word for the shell, as it was typed: a name or password may hold blanks, quotes and dollars
quoted = '$(subst ','\'',$(value $(1)))'

export ARM64_ROOT ?= /var/tmp/edge-agent-arm64

.PHONY: help demo test test-arm64 check models clean clean-arm64
.DEFAULT_GOAL := help

help: ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ -/' | sed 's/^/make /'

$(BIN)/activate:
	@echo "== making a virtual environment in $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit("edge_agent needs Python >= 3.10, this is " + sys.version.split()[0]) if sys.version_info < (3, 10) else None'
	@$(PYTHON) -m venv $(VENV_OPTIONS) $(VENV) || { echo "the venv module is missing: apt install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.installed: $(BIN)/activate pyproject.toml
	@echo "== installing edge_agent and what it needs (a minute or two, about 250 MB)"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -e '.[$(EXTRAS)]' $(PIP_MORE)
	@touch $@

models: $(VENV)/.installed ## fetch and prepare the models (once)
	@$(BIN)/edge-agent models fetch

demo: models ## see labels being read; SOURCE=/dev/video0, a file, a folder or an RTSP URL uses your own, FRAMES=N ends it
	@$(BIN)/edge-agent demo $(if $(FRAMES),--frames '$(FRAMES)') $(if $(value SOURCE),--source=$(call quoted,SOURCE))

test: models ## the whole test suite; WORKERS=0: one test after the other
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

test-arm64: models ## the suite in an arm64 Debian under qemu, as root; TESTS='tests/outbox -q' runs a part of it
	@tests/arm64.sh $(value TESTS)

check: $(VENV)/.installed ## ruff and mypy
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

clean: ## remove the environment and what was fetched
	rm -rf $(VENV) demo-out engines/*/*.onnx engines/*/*.json engines/*/*.txt

clean-arm64: ## remove the arm64 Debian
	rm -rf '$(ARM64_ROOT)' '$(ARM64_ROOT).log'
