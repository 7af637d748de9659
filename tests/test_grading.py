"""The grader on a small assignment: whatever is handed in gets a grade or a reason."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
import psutil
import pytest
import toy_assignment as toy
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell

from utils import grading, submissions
from utils.run import ROOT

LIMITS = grading.Limits(cell_seconds=6, output_bytes=200_000)
FULL = {"task1_visible": 1.0, "task1_hidden": 2.0, "task2_test": 3.0, "task3": None}
NONE = {"task1_visible": 0.0, "task1_hidden": 0.0, "task2_test": 0.0, "task3": None}


@dataclass(frozen=True)
class Outcome:
    """What `grades.csv` and the feedback say of one student."""

    points: dict[str, float | None]
    reasons: str
    page: str


def read(out: Path) -> dict[str, Outcome]:
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for student in dict.fromkeys(row["student"] for row in rows):
        theirs = [row for row in rows if row["student"] == student]
        student = student.removeprefix("'")
        found[student] = Outcome(
            {r["task"]: float(r["points"]) if r["points"] else None for r in theirs},
            " ".join(r["reason"] for r in theirs),
            (out / f"{student}.html").read_text(encoding="utf-8"),
        )
    return found


def grade(folder: Path, limits: grading.Limits = LIMITS) -> int:
    sources = folder / "sources"
    if not sources.exists():
        toy.write_source(folder)
    return grading.grade(folder / "submitted", folder / "out", sources, limits)


# --- what students hand in ------------------------------------------------------------------------


def without(notebook: nbformat.NotebookNode, *grade_ids: str) -> nbformat.NotebookNode:
    notebook.cells = [c for c in notebook.cells if submissions.grade_id_of(c) not in grade_ids]
    return notebook


def with_own_cell(code: str, place: int = 2) -> nbformat.NotebookNode:
    notebook = toy.solved()
    notebook.cells.insert(place, new_code_cell(code))
    return notebook


def unsolved_but(code: str) -> nbformat.NotebookNode:
    """Solve nothing, and try to get points by a cell at the top."""
    notebook = toy.released()
    notebook.cells.insert(2, new_code_cell(code))
    notebook.cells[-1].source = "Some answer."
    return notebook


def edited_tests() -> nbformat.NotebookNode:
    notebook = toy.released()
    for c in notebook.cells:
        if "test" in submissions.grade_id_of(c) or "task1_" in submissions.grade_id_of(c):
            c.source = "pass"
    notebook.cells[-1].source = "Some answer."
    return notebook


def twice_in_one_file() -> nbformat.NotebookNode:
    """Paste a whole solved notebook behind an unsolved one, with the same ids."""
    notebook = toy.released()
    notebook.cells += toy.solved().cells
    return notebook


def in_format_3() -> str:
    old = nbformat.convert(toy.solved(), 3)
    return nbformat.v3.writes_json(old)


CALL_OF_SQUARE = "def square(x):\n    {}\n    return x * x"

HOSTILE: dict[str, tuple[object, dict[str, float | None], str]] = {
    "good": (toy.solved, FULL, ""),
    "untouched": (toy.released, {**NONE, "task3": 0.0}, "Not written yet. Task 1: return"),
    "missing_solution": (
        lambda: without(toy.solved(), "task2"),
        {**FULL, "task2_test": 0.0},
        "Missing: task2.",
    ),
    "deleted_tests": (
        lambda: without(toy.solved(), "task1_visible", "task1_hidden", "given"),
        FULL,
        "Deleted, and taken from the assignment: given, task1_visible, task1_hidden.",
    ),
    "edited_tests": (edited_tests, NONE, "Edited, and taken from the assignment: task1_visible"),
    "syntax_error": (
        lambda: toy.solved(task2="def cube(x:\n    return"),
        {**FULL, "task2_test": 0.0},
        "The cell `task2` stopped with SyntaxError: '(' was never closed (line 1).",
    ),
    "endless_cell": (
        lambda: with_own_cell("while True:\n    pass"),
        FULL,
        "A cell of your own ran for more than 6 seconds and was stopped.",
    ),
    "endless_test": (
        lambda: toy.solved(task2="def cube(x):\n    while True:\n        pass"),
        {**FULL, "task2_test": 0.0},
        "The test ran for more than 18 seconds and was stopped.",
    ),
    "cannot_be_interrupted": (
        lambda: with_own_cell(
            "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except: pass", place=5
        ),
        {**FULL, "task1_hidden": 0.0, "task2_test": 0.0},
        "Not run: a cell of your own ended the kernel or could not be stopped.",
    ),
    "kills_kernel": (
        lambda: with_own_cell("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", place=5),
        {**FULL, "task1_hidden": 0.0, "task2_test": 0.0},
        "A cell of your own ended the kernel. Not run: a cell of your own ended",
    ),
    "exits_in_test": (
        lambda: toy.solved(task2="import os\n\n\ndef cube(x):\n    os._exit(0)"),
        {**FULL, "task2_test": 0.0},
        "The test ended the kernel.",
    ),
    "sys_exit_in_test": (
        lambda: toy.solved(task2="import sys\n\n\ndef cube(x):\n    sys.exit(0)"),
        {**FULL, "task2_test": 0.0},
        "The test stopped with SystemExit",
    ),
    "endless_output": (
        lambda: with_own_cell("while True:\n    print('x' * 10_000)"),
        FULL,
        "A cell of your own printed more than 0.2 MB and was stopped.",
    ),
    "five_gigabytes_at_once": (
        lambda: with_own_cell("print('x' * 5_000_000_000)"),
        FULL,
        "A cell of your own stopped with MemoryError",
    ),
    "asks_for_input": (
        lambda: with_own_cell("input('Name? ')"),
        FULL,
        "A cell of your own stopped with StdinNotImplementedError",
    ),
    "fills_the_disk": (
        lambda: with_own_cell("open('big', 'wb').write(bytes(200_000_000))"),
        FULL,
        "A cell of your own stopped with OSError",
    ),
    "leaves_a_process": (
        lambda: with_own_cell(
            "import subprocess, sys\n"
            "code = 'import time; time.sleep(600)'\n"
            "subprocess.Popen([sys.executable, '-c', code], start_new_session=True)"
        ),
        FULL,
        "",
    ),
    "kills_its_grader": (
        lambda: with_own_cell("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
        None,
        "The process that ran this submission left no result (it was killed by SIGKILL).",
    ),
    "renamed": ((toy.solved, "final version (2).ipynb"), FULL, "named final version (2).ipynb"),
    "empty": ("", None, "01_toy.ipynb is empty."),
    "no_notebook": ("print('hello')", None, "The file is no notebook (JSONDecodeError"),
    "other_json": ("[1, 2]", None, "The file is no notebook"),
    "binary": (bytes(range(256)), None, "The file is no notebook (UnicodeDecodeError"),
    "odd_cells": (
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": 3, "cells": [1, {"metadata": "x"}]}',
        None,
        "None of the assignment's cells is in it",
    ),
    "deeply_nested": ("[" * 100_000, None, "The file is no notebook (RecursionError"),
    "wrong_suffix": ((toy.solved, "01_toy.txt"), None, "There is no notebook; 01_toy.ipynb was"),
    "duplicate_ids": (twice_in_one_file, FULL, "There more than once, the last one counts: given"),
    "format_3": (in_format_3, FULL, ""),
    "fake_score": (
        lambda: unsolved_but(
            "def square(x):\n    get_ipython().displayhook(10)\n    return 0\n\n\n10"
        ),
        NONE,
        "Not written yet.",
    ),
    "fake_score_in_test": (
        lambda: toy.solved(task2="def cube(x):\n    get_ipython().displayhook(3)\n    return 0"),
        {**FULL, "task2_test": 0.0},
        "Two cubed is eight.",
    ),
    "renames_the_checker": (
        lambda: unsolved_but("def require(*anything):\n    pass"),
        NONE,
        "Not written yet. Task 2",
    ),
    "swallows_errors": (
        lambda: unsolved_but(
            "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)\n"
            "get_ipython().showtraceback = lambda *a, **k: None"
        ),
        NONE,
        "",
    ),
    "empties_the_tests": (
        lambda: unsolved_but("get_ipython().input_transformers_post.append(lambda lines: [])"),
        NONE,
        "The test did not run to its end.",
    ),
    "fits_the_visible_test": (
        lambda: toy.solved(task1="def square(x):\n    return x + 2"),
        {**FULL, "task1_hidden": 0.0},
        "Your square fits some numbers only. Read lesson 1.",
    ),
    "warns": (
        lambda: toy.solved(
            task2="import sys\n\n\ndef cube(x):\n    print('!', file=sys.stderr)\n    return x**3"
        ),
        FULL,
        "",
    ),
    "=1+1": (toy.solved, FULL, ""),
    "<b>Zoë & co": (toy.solved, FULL, ""),
}
"""By name: what is handed in, the points intended (None: no grade), a part of the reasons."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> tuple[int, dict[str, Outcome], Path]:
    """All of them in one run: none may change another's grade."""
    folder = tmp_path_factory.mktemp("hostile")
    for student, (made, _, _) in HOSTILE.items():
        made, *name = made if isinstance(made, tuple) else (made,)
        toy.hand_in(folder / "submitted", student, made() if callable(made) else made, *name)
    os.mkfifo(folder / "submitted" / "good" / "pipe")
    code = grade(folder)
    return code, read(folder / "out"), folder


@pytest.mark.slow
@pytest.mark.parametrize("student", HOSTILE)
def test_hostile(hostile, student):
    _, points, reason = HOSTILE[student]
    outcome = hostile[1][student]
    assert reason in outcome.reasons
    assert outcome.points == (points or dict.fromkeys(FULL))


@pytest.mark.slow
def test_hostile_run_says_that_not_all_were_graded(hostile):
    assert hostile[0] == 1


@pytest.mark.slow
def test_pages_have_no_script_no_link_no_traceback_and_no_hidden_code(hostile):
    for student, outcome in hostile[1].items():
        page = BeautifulSoup(outcome.page, "html.parser")
        assert page.h1.text == f"Feedback for {student}"
        assert not page.find_all(["script", "link", "img", "iframe", "a", "b"])
        assert "Traceback" not in outcome.page and "secret_number" not in outcome.page


@pytest.mark.slow
def test_nothing_is_left_running(hostile):
    marked = []
    for process in psutil.process_iter():
        try:
            marked += [process] * (grading.MARK in process.environ())
        except (psutil.Error, OSError):
            continue
    assert marked == []


@pytest.mark.slow
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    slow = with_own_cell("import time\ntime.sleep(4)")
    for number in range(4):
        toy.hand_in(tmp_path / "submitted", f"student{number}", slow)
    sources, out = toy.write_source(tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "utils.grading", str(tmp_path / "submitted")]
    command += ["--sources", str(sources), "--out", str(out), "--workers", "1"]
    first = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not list(out.glob("results/*/*.json")) and time.monotonic() < until:
        time.sleep(0.2)
    first.send_signal(signal.SIGTERM)
    assert "goes on where it stopped" in first.communicate(timeout=60)[1]
    assert first.returncode == 130 and not (out / "grades.csv").exists()
    done = len(list(out.glob("results/*/*.json")))
    assert 1 <= done < 4
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert second.returncode == 0, second.stderr
    assert f"4 of 4 submissions graded, {done} of them in an earlier run" in second.stdout
    assert all(outcome.points == FULL for outcome in read(out).values())


# --- what is fast ---------------------------------------------------------------------------------


@pytest.fixture
def fake_run(monkeypatch) -> list[list[submissions.Piece]]:
    """Take every submission for perfect without running it; return what would have been run."""
    ran = []

    def run(pieces, givens, limits):
        ran.append(pieces)
        good = {"status": "ok", "name": "", "text": "", "finished": True}
        return [good for _ in pieces]

    monkeypatch.setattr(grading, "run", run)
    return ran


def test_one_submission_from_end_to_end(tmp_path):
    toy.hand_in(tmp_path / "submitted", "ada", toy.solved(task1="def square(x):\n    return 4"))
    assert grade(tmp_path) == 0
    outcome = read(tmp_path / "out")["ada"]
    assert outcome.points == {**FULL, "task1_hidden": 0.0, "task2_test": 3.0}
    assert "Your square fits some numbers only. Read lesson 1." in outcome.page
    assert "5 of 10 points" not in outcome.page and "4 of 10 points" in outcome.page


def test_a_result_is_used_again_until_submission_source_or_limits_change(tmp_path, fake_run):
    path = toy.hand_in(tmp_path / "submitted", "ada", toy.solved())
    for runs, change in (
        (1, lambda: None),
        (1, lambda: None),
        (2, lambda: path.write_text(path.read_text() + "\n")),
        (2, lambda: None),
    ):
        change()
        assert grade(tmp_path) == 0
        assert len(fake_run) == runs
    grade(tmp_path, replace(LIMITS, cell_seconds=7))
    assert len(fake_run) == 3


def test_a_damaged_result_is_made_anew(tmp_path, fake_run):
    toy.hand_in(tmp_path / "submitted", "ada", toy.solved())
    grade(tmp_path)
    stored = tmp_path / "out" / "results" / "ada" / f"{toy.NAME}.json"
    stored.write_text(stored.read_text()[:40])
    grade(tmp_path)
    assert len(fake_run) == 2 and json.loads(stored.read_text())["graded"]


def test_points_by_hand_stay_until_the_submission_changes(tmp_path, fake_run):
    path = toy.hand_in(tmp_path / "submitted", "ada", toy.solved())
    grade(tmp_path)
    table = tmp_path / "out" / "grades.csv"

    def give(points: str) -> None:
        text = table.read_text().replace("task3,,4,yes", f"task3,{points},4,yes")
        table.write_text(text)

    give("2.5")
    grade(tmp_path)
    assert read(tmp_path / "out")["ada"].points["task3"] == 2.5
    assert "ada,01_toy,task3,2.5,4,no," in table.read_text()
    assert "8.5 of 10 points" in read(tmp_path / "out")["ada"].page
    path.write_text(path.read_text() + "\n")
    grade(tmp_path)
    assert read(tmp_path / "out")["ada"].points["task3"] is None
    give("9")
    grade(tmp_path)
    assert "The points by hand, 9, are none from 0 to 4." in table.read_text()


def test_what_lies_in_the_wrong_place_gets_a_reason(tmp_path, fake_run):
    root = tmp_path / "submitted"
    toy.hand_in(root, "ada", toy.solved())
    toy.hand_in(root, "ada", toy.solved()).rename(root / "ada" / "alone.ipynb")
    (root / "bob" / "01_toys").mkdir(parents=True)
    (root / "eve").mkdir()
    (root / "eve" / toy.NAME).symlink_to("/etc")
    (root / "zip.zip").write_text("x")
    (root / ".DS_Store").write_text("x")
    assert grade(tmp_path) == 1
    found = read(tmp_path / "out")
    assert set(found) == {"ada", "bob", "eve"}
    assert "There is no assignment alone." in found["ada"].reasons
    assert "There is no notebook; 01_toy.ipynb was expected, and there is nothing." in (
        found["ada"].reasons
    )
    assert found["bob"].reasons == "There is no assignment 01_toys."
    assert "It does not lie in a folder of an assignment" in found["eve"].reasons


def test_a_process_without_result_is_no_grade_and_is_tried_again(tmp_path, monkeypatch):
    toy.hand_in(tmp_path / "submitted", "ada", toy.solved())
    monkeypatch.setattr(grading.grade_one, "__file__", str(tmp_path / "missing.py"))
    assert grade(tmp_path) == 1
    assert "left no result (it ended with code 2)" in read(tmp_path / "out")["ada"].reasons
    assert not list((tmp_path / "out").glob("results/*/*.json"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([""], "Say where the submissions are: make grade SUBMISSIONS=folder"),
        (["/no/such/folder"], "SUBMISSIONS: there is no folder /no/such/folder."),
        (["."], "SUBMISSIONS: no notebook lies in <student>/<assignment>."),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(
    tmp_path, monkeypatch, capsys, arguments, sentence
):
    monkeypatch.chdir(tmp_path)
    assert grading.main([*arguments, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.strip() == sentence
    assert not (tmp_path / "out").exists()
