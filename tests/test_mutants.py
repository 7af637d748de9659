"""Faults planted in every ``make test``; ``make mutants`` plants all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mutants
import nbformat
import pytest
from conftest import plant
from mutant_tables import FIGURES, LESSONS, TEXTS, UTILS, by_lesson, by_run

from utils import run


def test_fast_mutants_are_found(tmp_path: Path) -> None:
    # In a process of its own, which forks before TensorFlow has started its threads.
    command = [sys.executable, "tests/mutants.py", "--fast", "--report", str(tmp_path / "a.csv")]
    done = subprocess.run(command, cwd=mutants.ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\nfound ") >= 30


@pytest.mark.parametrize("lesson", by_lesson(FIGURES))
def test_faults_of_figures_still_apply(lesson: str) -> None:
    faults = by_lesson(FIGURES)[lesson]
    notebook = mutants.with_figures_changed(lesson, faults)
    assert sum("mutant" in cell.metadata for cell in notebook.cells) == len(faults)


@pytest.mark.parametrize(("lesson", "name"), by_run(LESSONS))
def test_faults_of_lessons_still_apply(lesson: str, name: str) -> None:
    notebook = nbformat.read(run.LESSONS / f"{lesson}.ipynb", as_version=4)
    for mutant in by_run(LESSONS)[lesson, name]:
        plant(notebook, mutant.old, mutant.new)


def test_faults_of_the_lessons_own_tests_still_apply() -> None:
    for name in mutants.test_mutants_03.FAULTS:
        mutants.test_mutants_03.changed(name)
    for name in mutants.test_mutants_04.RUNS:
        mutants.test_mutants_04.prepare(name)
    for lesson_run in mutants.lesson_runs():
        lesson = lesson_run.mutants[0][0].where
        notebook = nbformat.read(run.LESSONS / f"{lesson}.ipynb", as_version=4)
        if lesson[:2] not in ("03", "04"):
            for mutant, _ in lesson_run.mutants:
                plant(notebook, mutant.old, mutant.new)


def test_a_mutant_that_does_not_apply_or_survives_is_told(tmp_path: Path, capsys) -> None:
    gone = mutants.Mutant("gone", "01_iris_fit_vs_tape", "no such words", "")
    (result,) = mutants.by_texts([gone])
    assert result.verdict == "trouble" and "0 cells" in result.trouble
    same = mutants.Mutant(
        "nothing", "01_iris_fit_vs_tape", "the median is 0.92", "the median is 0.92"
    )
    (survivor,) = mutants.by_texts([same])
    assert survivor.verdict == "survived"
    assert mutants.report([result], 1.0, tmp_path / "a.csv") == 1
    assert mutants.report([survivor], 1.0, tmp_path / "a.csv") == 1
    argued = mutants.Mutant("nothing", "", "", "", equivalent="it is the same")
    assert mutants.report([mutants.Result(argued, "text", "", 0.0)], 1.0, tmp_path / "a.csv") == 0
    assert "it is the same" in capsys.readouterr().out


def test_there_are_enough_of_them() -> None:
    own = sum(len(lesson_run.mutants) for lesson_run in mutants.lesson_runs())
    assert own + len(FIGURES) + len(TEXTS) + len(UTILS) >= 60
