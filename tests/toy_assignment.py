"""A small assignment without TensorFlow, on which the grader's tests run in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from utils import assignments, submissions
from utils.outputs import METADATA

NAME = "01_toy"

SQUARE = '''
def square(x):
    """Return the square of x."""
    ### BEGIN SOLUTION
    return x * x
    ### END SOLUTION
    raise NotImplementedError("Task 1: return the square.")
'''
VISIBLE = """
assert square(2) == 4, "Two squared is four."
"""
HIDDEN = """
# More numbers are tried when this is graded.
### BEGIN HIDDEN TESTS
secret_number = 12
if square(secret_number) != 144:
    raise AssertionError("Your square fits some numbers only. Read lesson 1.")
### END HIDDEN TESTS
"""
CUBE = """
def cube(x):
    ### BEGIN SOLUTION
    return x * square(x)
    ### END SOLUTION
    raise NotImplementedError("Task 2: return the cube.")
"""
CUBE_TEST = "require(cube(twice(1)) == 8, 'Two cubed is eight.')"
GIVEN = """
import math


def twice(x):
    return 2 * x


def require(condition, sentence):
    if not condition:
        raise AssertionError(sentence)
"""
ANSWER = """
### BEGIN SOLUTION
Because it is a square. Rubric: 4 points for any reason.
### END SOLUTION
"""


def cell(kind: str, grade_id: str, source: str, points: float | None = None) -> NotebookNode:
    """Make a cell of a source: given, solution, test or answer."""
    new = new_markdown_cell if kind == "answer" else new_code_cell
    made = new(source.strip("\n"))
    made.metadata["nbgrader"] = {
        "grade_id": grade_id,
        "grade": kind in ("test", "answer"),
        "solution": kind in ("solution", "answer"),
        "locked": kind in ("given", "test"),
        "task": False,
        "schema_version": 3,
    }
    if points is not None:
        made.metadata["nbgrader"]["points"] = points
    return made


def source() -> NotebookNode:
    """Make the source notebook: two tasks, a hidden test, a written answer; 10 points."""
    cells = [
        new_markdown_cell("# Square some numbers"),
        cell("given", "given", GIVEN),
        new_markdown_cell("## Task 1: square"),
        cell("solution", "task1", SQUARE),
        cell("test", "task1_visible", VISIBLE, 1),
        cell("test", "task1_hidden", HIDDEN, 2),
        new_markdown_cell("## Task 2: cube"),
        cell("solution", "task2", CUBE),
        cell("test", "task2_test", CUBE_TEST, 3),
        new_markdown_cell("## Task 3: say why"),
        cell("answer", "task3", ANSWER, 4),
    ]
    return new_notebook(cells=cells, metadata=METADATA)


def write_source(folder: Path, notebook: NotebookNode | None = None) -> Path:
    """Write the source into a folder of sources, and return that folder."""
    path = folder / "sources" / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook or source(), path)
    return path.parent.parent


def released() -> NotebookNode:
    """Make the students' version."""
    return assignments.release(source(), NAME)


def solved(**sources: str) -> NotebookNode:
    """Fill the students' version in: with the solutions, or with other sources by grade_id."""
    texts = {submissions.grade_id_of(c): c.source for c in source().cells} | sources
    notebook = released()
    for c in notebook.cells:
        grade_id = submissions.grade_id_of(c)
        if grade_id.startswith("task") and "test" not in grade_id and c.metadata.nbgrader.solution:
            c.source = texts[grade_id]
    return notebook


def hand_in(folder: Path, student: str, notebook: Any, name: str = f"{NAME}.ipynb") -> Path:
    """Write what a student hands in: a notebook, text or bytes."""
    path = folder / student / NAME / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(notebook, bytes):
        path.write_bytes(notebook)
    else:
        text = notebook if isinstance(notebook, str) else nbformat.writes(notebook)
        path.write_text(text, encoding="utf-8")
    return path
