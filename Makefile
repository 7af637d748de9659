# make lab · make run · make test; the other commands are for maintainers (see README.md).
PYTHON ?= python3
LESSON ?=
PARAMS ?=
SUBMISSIONS ?=
OUT ?= build/grades
ENVIRONMENTS ?=
VENV := .venv/bin
ROOT_FLAG := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: help lab run test assignments grade slow exhaustive mutants browser matrix lint outputs pins clean setup-learner setup-teacher setup-maintainer

help:
	@echo "make lab    open lesson 1 in JupyterLab"
	@echo "make run    run all lessons, print their claims (LESSON=01, PARAMS=\"epochs=20\")"
	@echo "make test   run all tests"
	@echo "Teachers: make assignments, make grade SUBMISSIONS=folder (OUT=folder)"
	@echo "Maintainers: make slow, make exhaustive, make mutants, make browser, make matrix, make lint, make outputs, make pins, make clean"

lab: setup-learner
	$(VENV)/jupyter lab $(ROOT_FLAG) --LabApp.default_url=/lab/tree/notebooks/01_iris_fit_vs_tape.ipynb

run: setup-learner
	@$(VENV)/python -m utils.run --lesson "$(LESSON)" --params '$(PARAMS)'

test: setup-maintainer
	$(VENV)/pytest

# The students' versions, without solutions and hidden tests, and a zip of each.
assignments: setup-teacher
	@$(VENV)/python -m utils.assignments

# Reads SUBMISSIONS/<student>/<assignment>/*.ipynb. It runs students' code: see README.md.
grade: setup-teacher
	@$(VENV)/python -m utils.grading "$(SUBMISSIONS)" --out "$(OUT)"

# Planted faults in the lessons, and every known fault in strangers' loops.
slow: setup-maintainer
	$(VENV)/pytest -m "slow and not exhaustive"

# Every fault in every hand, every wrong answer to every assignment, a class of thirty.
exhaustive: setup-maintainer
	$(VENV)/pytest --dist=load -m exhaustive

# Every known fault, one by one, and the check that finds it; the table is in build/mutants.csv.
mutants: setup-maintainer
	@$(VENV)/python tests/mutants.py

lint: setup-maintainer
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .

# Each lesson in JupyterLab and Chromium, half an hour; pictures of all pages go to build/browser.
browser: setup-learner setup-maintainer
	$(VENV)/pytest tests/browser -n0 --timeout=1000 --lesson "$(LESSON)" --params '$(PARAMS)'

# Stored outputs under other versions, processors and threads; hours for all, so choose
# (LESSON=01, ENVIRONMENTS="onednn-on isa-sse41 python-3.13").
matrix: setup-maintainer
	@$(VENV)/python tests/matrix.py --lesson "$(LESSON)" --environments "$(ENVIRONMENTS)"

outputs: setup-maintainer
	@$(VENV)/python -m utils.outputs --lesson "$(LESSON)"

# Choose the newest versions within the ranges of the requirements files, for every Python at once.
pins: setup-maintainer
	$(VENV)/uv pip compile --quiet --upgrade --universal --python-version 3.10 --no-annotate --no-header --no-emit-index-url --no-emit-find-links --no-emit-package fit-and-tape requirements-maintainer.txt --output-file constraints.txt

clean:
	rm -rf build .pytest_cache .ruff_cache

setup-learner setup-teacher setup-maintainer: setup-%:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here; name a Python 3.10 to 3.13: make lab PYTHON=python3.12"; exit 1; }
	@$(PYTHON) utils/install.py requirements$(if $(filter-out learner,$*),-$*).txt
