# Attention, Made Visible. `make help` lists what can be made and how to ask for it.
# Needs a POSIX shell, GNU make 3.81 or newer and Python; nothing else.

# In a folder of their own: what is made or cleared here is never the user's.
BOOK := .environments/book
FULL := .environments/full
COLAB := .environments/colab
PDF := _build/attention-made-visible.pdf
INSTALLER = uv
PORT = 8000

# Where Python may not keep beside a file what it made of it, as in many containers, it
# keeps that here: without any, every process compiles torch anew.
ifneq ($(PYTHONDONTWRITEBYTECODE),)
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/_build/bytecode
endif

.DEFAULT_GOAL = help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:
.PHONY: always book clean colab-test everything help lint notebooks pdf requirements \
	serve slides test

help:
	@echo 'make book                 build _build/html from the executed notebooks (no torch)'
	@echo 'make serve                show it at http://127.0.0.1:8000 (PORT=8080 elsewhere)'
	@echo 'make pdf                  print it into $(PDF) (needs Chromium)'
	@echo 'make slides CH=06         make slides of chapter 6 in _build/slides (no CH: of all)'
	@echo 'make test                 check everything (FORCE=1: even if nothing changed)'
	@echo 'make colab-test           run the notebooks as Google Colab would (CH=06: one)'
	@echo 'make notebooks            run the notebooks that changed (CH=02: chapter 2 only)'
	@echo 'make requirements         pin all environments anew'
	@echo 'make clean                remove _build'
	@echo
	@echo 'PYTHON=python3.12         the interpreter to use'
	@echo 'INSTALLER=pip             install with pip instead of uv'
	@echo 'TORCH_INDEX=https://...   another package index for torch, e.g. for CPU wheels'

# --- Fingerprints -----------------------------------------------------------------
# A target is remade when the *content* of its inputs changed, not their dates, so a
# switch of branches and back costs nothing.

# $(call fingerprint,FOLDERS AND FILES)
fingerprint = find $(1) \( -name '.git' -o -name '.environments' -o -name '.venv*' \
	-o -path './my' -o -name '_build' -o -name '*.egg-info' -o -name '__pycache__' \
	-o -name '.*_cache' -o -name '.ipynb_checkpoints' -o -name '.DS_Store' \) -prune \
	-o -type f -exec cksum {} + | LC_ALL=C sort

# Keeps the old file, and with it its date, when nothing in it changed.
record = mkdir -p $(@D) && cat > $@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

_build/book.frame: always
	@$(call fingerprint,_config.yml _toc.yml book/_ext book/_static) | { $(record); }

_build/book.pages: always
	@$(call fingerprint,book notebooks tutorial_lib tutorial_figures) | { $(record); }

_build/test.inputs: always
	@{ $(call fingerprint,.); echo "$$REQUIRE_BROWSER $$CHROMIUM $$FIREFOX"; \
	for name in chromium chromium-browser google-chrome chrome firefox-esr firefox; \
	do command -v $$name; done; } | { $(record); }

# --- Environments -----------------------------------------------------------------

# An environment keeps the Python it was made with until another one is asked for. It
# holds its own place in its programs, so where it was moved it is made anew.
# $(call python,ENVIRONMENT)
python = $(or $(PYTHON),$(wildcard $(1)/bin/python),$(PYTHON_FOR_$(1)),python3)

# Colab's Python if it is here. A name may be there and refuse to run, as pyenv's do.
PYTHON_FOR_$(COLAB) = $(shell for name in python3.13 python3.11; do \
	if $$name --version > /dev/null 2>&1; then echo $$name; break; fi; done)

# $(call wanted,ENVIRONMENT,REQUIREMENTS FILES)
wanted = { pwd -P; $(call python,$(1)) --version 2>&1; cat $(2); } | { $(record); }

# $(call require,ENVIRONMENT,NEWEST MINOR VERSION,WHAT NEEDS IT,SPOKEN RANGE)
require = $(call python,$(1)) -c 'import sys; version = sys.version_info[:2]; \
	sys.exit(None if (3, 10) <= version <= (3, $(2)) else \
	"$(3) needs Python $(4), and $(call python,$(1)) is %d.%d: \
	name another one, for example PYTHON=python3.12" % version)'

# $(call create,ENVIRONMENT)
create = test "$$(cat $(1)/installed 2> /dev/null)" = "$$(pwd -P)" && \
	test "$$($(1)/bin/python --version 2>&1)" = \
	"$$($(call python,$(1)) --version 2>&1)" \
	|| $(call python,$(1)) -m venv --clear $(1)

# $(call install,ENVIRONMENT,ARGUMENTS)
pip = $(1)/bin/python -m pip install --quiet --disable-pip-version-check
install = { test "$(INSTALLER)" = uv && $(call pip,$(1)) uv \
	&& $(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2); } \
	|| { echo "Installing with pip" && $(call pip,$(1)) $(2); }

_build/book.wanted: always
	@$(call wanted,$(BOOK),book/requirements.txt)

_build/colab.wanted: always
	@$(call wanted,$(COLAB),tests/colab/requirements.txt)

_build/full.wanted: always
	@$(call wanted,$(FULL),requirements.txt pyproject.toml)

$(BOOK)/installed: _build/book.wanted
	@$(call require,$(BOOK),99,The book,3.10 or newer)
	@echo "Installing what builds the book into $(BOOK)"
	@$(call create,$(BOOK))
	@$(call install,$(BOOK),-r book/requirements.txt)
	@pwd -P > $@

# Wheels from another index bring (or leave out) their own CUDA packages.
# $(call pinned,ENVIRONMENT,REQUIREMENTS FILE)
ifdef TORCH_INDEX
pinned = grep -v -E '^(cuda-|nvidia-|triton=)' $(2) > _build/requirements.txt; \
	UV_INDEX_STRATEGY=unsafe-best-match; export UV_INDEX_STRATEGY; \
	$(call install,$(1),--extra-index-url $(TORCH_INDEX) -r _build/requirements.txt)
else
pinned = $(call install,$(1),-r $(2))
endif

# Where that takes long, matplotlib says so: here, and not in a chapter that is tested.
FONTS = import os; from tools.notebooks import ENVIRONMENT; \
	os.environ.update(ENVIRONMENT); import matplotlib.font_manager

$(FULL)/installed: _build/full.wanted
	@$(call require,$(FULL),13,The full environment,3.10 to 3.13)
	@echo "Installing everything into $(FULL) (torch is large: minutes the first time)"
	@$(call create,$(FULL))
	@$(call pinned,$(FULL),requirements.txt)
	@$(FULL)/bin/python -c '$(FONTS)'
	@pwd -P > $@

# Nothing may stay from before: what is here now is what counts as preinstalled.
$(COLAB)/installed: $(FULL)/installed _build/colab.wanted
	@$(call require,$(COLAB),13,What is like Colab,3.10 to 3.13)
	@echo "Installing what Colab has into $(COLAB) (torch is large: minutes the first time)"
	@$(call python,$(COLAB)) -m venv --clear $(COLAB)
	@$(call pinned,$(COLAB),tests/colab/requirements.txt)
	@$(call pip,$(FULL)) uv
	@$(FULL)/bin/uv pip freeze --quiet --python $(COLAB)/bin/python \
	> $(COLAB)/preinstalled.txt
	@touch $@

# --- The book ---------------------------------------------------------------------

book: _build/book.built
	@echo "The book is built: open _build/html/index.html, or: make serve"

# A new frame (configuration, table of contents, style) touches every page. After a
# failure everything is built anew, because a page is only warned about once.
_build/book.built: $(BOOK)/installed _build/book.frame _build/book.pages
	@echo "Building the book into _build/html"
	@$(if $(filter-out _build/book.pages,$?),rm -rf _build/html _build/.doctrees)
	@$(BOOK)/bin/jupyter-book build . -n -W --keep-going -q || { rm -f $@; exit 1; }
	@touch $@

serve: book
	@$(BOOK)/bin/python -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' \
	2> /dev/null || { echo "Port $(PORT) cannot be had: try PORT=8080, say"; exit 1; }
	@echo "Showing the book at http://127.0.0.1:$(PORT) until Ctrl-C"
	@$(BOOK)/bin/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

# --- Paper and slides -------------------------------------------------------------

pdf: $(PDF)
	@echo "The book is printed: $(PDF)"

# All pages become one; a failure leaves nothing behind that could pass for the book.
$(PDF): $(BOOK)/installed _build/book.frame _build/book.pages
	@$(BOOK)/bin/python book/_print/browser.py
	@echo "Printing the book (minutes)"
	@$(if $(filter-out _build/book.pages,$?),rm -rf _build/print)
	@$(BOOK)/bin/jupyter-book build . --builder singlehtml --path-output _build/print \
	-n -W --keep-going -q || { rm -rf _build/print; exit 1; }
	@$(BOOK)/bin/python book/_print/pdf.py _build/print/_build/singlehtml $@

CHAPTERS = $(wildcard $(if $(CH),notebooks/$(CH)_*.ipynb notebooks/0$(CH)_*.ipynb \
	notebooks/$(CH).ipynb,notebooks/*.ipynb))
DECKS = $(CHAPTERS:notebooks/%.ipynb=_build/slides/%.html)

slides: $(DECKS)
	@test -n "$(DECKS)" || { echo "There is no chapter $(CH): name one, as in CH=06"; exit 1; }
	@for deck in $(DECKS); do echo "The slides are made: open $$deck"; done

.PRECIOUS: _build/slides/%.inputs
_build/slides/%.inputs: always
	@$(call fingerprint,notebooks/$*.ipynb book/_print) | { $(record); }

_build/slides/%.html: $(BOOK)/installed _build/slides/%.inputs
	@echo "Making the slides of $*"
	@$(BOOK)/bin/python book/_print/slides.py notebooks/$*.ipynb $@

# --- Notebooks and tests ----------------------------------------------------------

notebooks: $(FULL)/installed
	@$(FULL)/bin/python -m tools sync
	@$(FULL)/bin/python -m tools execute -- "$(CH)"

test: $(FULL)/installed _build/test.inputs
	@if test -z "$(FORCE)" && cmp -s _build/test.inputs _build/test.passed; then \
	echo "Nothing changed since the last green run (make test FORCE=1 runs it again):"; \
	tail -n 1 _build/test.log; \
	else $(MAKE) --no-print-directory lint book everything; fi

CODE = tutorial_lib tutorial_exercises tutorial_figures tools tests benchmarks \
	notebooks book/_ext book/_print

lint: $(FULL)/installed
	@echo "Checking style"
	@$(FULL)/bin/ruff check --quiet $(CODE)
	@$(FULL)/bin/ruff format --quiet --check $(CODE)
	@$(FULL)/bin/oxlint --deny-warnings --quiet \
	-c tutorial_figures/.oxlintrc.json tutorial_figures book/_static book/_print

# A worker a core, each with whole files, long ones first (tests/conftest.py): the cells of
# a chapter share a kernel, and the tests of a module a browser. A chapter that has passed
# is not run again until its cells, or what they import, change; FORCE=1 runs all. The exit
# status of a pipe is that of its last command, so pytest's is kept in a file.
everything: $(FULL)/installed _build/test.inputs
	@echo "Running the tests and every notebook that changed"
	@rm -f _build/test.passed
	@{ FORCE=$(FORCE) PYTHONHASHSEED=0 $(FULL)/bin/python -m pytest notebooks tests \
	-n logical --dist loadfile --no-loadscope-reorder \
	--nbval --nbval-current-env --nbval-cell-timeout=300 \
	--nbval-sanitize-with tests/nbval.cfg; echo $$? > _build/test.status; } 2>&1 \
	| tee _build/test.log
	@exit $$(cat _build/test.status)
	@cp _build/test.inputs _build/test.passed

# No part of `make test`: it installs from package indexes, for every chapter anew.
colab-test: $(COLAB)/installed
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
