"""`utils.submissions`: notebooks are read without trust, and cells put into the source's order."""

from __future__ import annotations

import json

import nbformat
import pytest
import toy_assignment as toy
from nbformat.v4 import new_code_cell, new_markdown_cell

from utils import submissions
from utils.submissions import Piece, Submission, Unreadable

SOURCE = toy.source()
GIVEN_OUT = {submissions.grade_id_of(c): c.source for c in toy.released().cells}
ORDER = ["given", "task1", "task1_visible", "task1_hidden", "task2", "task2_test"]


def assemble(notebook: nbformat.NotebookNode) -> submissions.Assembly:
    student = submissions.parse(nbformat.writes(notebook).encode())
    return submissions.assemble(SOURCE, student, GIVEN_OUT)


def test_hidden_tests_are_put_back_and_the_answer_is_kept():
    assembly = assemble(toy.solved())
    assert [piece.grade_id for piece in assembly.pieces] == ORDER
    assert [piece.is_test for piece in assembly.pieces] == [False, False, True, True, False, True]
    assert "secret_number" in assembly.pieces[3].source
    assert "Because it is a square" in assembly.written["task3"]
    assert assembly.notes == []


def test_cells_in_another_order_are_put_into_the_order_of_the_source():
    notebook = toy.solved()
    notebook.cells.reverse()
    assert [piece.grade_id for piece in assemble(notebook).pieces] == ORDER


def test_cells_of_ones_own_stay_behind_the_cell_they_followed():
    notebook = toy.solved()
    place = next(k for k, c in enumerate(notebook.cells) if "twice" in c.source)
    notebook.cells[place + 1 : place + 1] = [new_code_cell("one"), new_markdown_cell("two")]
    notebook.cells.insert(0, new_code_cell("zero"))
    pieces = assemble(notebook).pieces
    assert pieces[0] == Piece("zero") and pieces[2] == Piece("one")
    assert [p.grade_id for p in pieces if p.grade_id] == ORDER


def test_of_two_solutions_the_last_counts_and_the_first_is_run_before_it():
    notebook = toy.solved()
    place = next(k for k, c in enumerate(notebook.cells) if "square(x)" in c.source)
    copied = nbformat.from_dict(notebook.cells[place])
    copied.source = "first = 1"
    copied.id = "another"
    notebook.cells.insert(place, copied)
    assembly = assemble(notebook)
    assert [p.source for p in assembly.pieces[1:3]] == ["first = 1", toy.SQUARE.strip("\n")]
    assert assembly.notes == ["There more than once, the last one counts: task1."]


def test_a_solution_that_is_no_code_any_more_is_not_run():
    notebook = toy.solved()
    for cell in notebook.cells:
        if submissions.grade_id_of(cell) == "task2":
            cell.cell_type = "markdown"
            del cell["outputs"], cell["execution_count"]
    assembly = assemble(notebook)
    assert "task2" not in [piece.grade_id for piece in assembly.pieces]
    assert assembly.notes == ["Of another type of cell than given: task2."]


def test_givens_are_imports_and_functions_that_no_solution_makes_anew():
    source = toy.source()
    extra = toy.cell("given", "more", "import os\nnumber = 3\n\n\ndef cube(x):\n    return 0")
    source.cells.insert(1, extra)
    found = submissions.givens(source)
    assert list(found) == ["task1_visible", "task1_hidden", "task2_test"]
    code = found["task2_test"]
    assert "import os" in code and "def twice" in code
    assert "cube" not in code and "number" not in code


@pytest.mark.parametrize("metadata", [3, "x", None, [], {"nbgrader": 1}, {"nbgrader": {}}])
def test_odd_metadata_is_no_grade_id(metadata):
    assert submissions.grade_id_of({"metadata": metadata}) == ""
    assert submissions.grade_id_of({"metadata": {"nbgrader": {"grade_id": ["a"]}}}) == ""


def test_odd_sources_become_text():
    assert submissions.text_of({"source": ["a\n", "b"]}) == "a\nb"
    assert submissions.text_of({"source": None}) == "None"
    assert submissions.text_of({"source": "\ud800"}) == "?"
    assert submissions.text_of({}) == ""


@pytest.mark.parametrize("version", [2, 3])
def test_old_formats_keep_their_grade_ids_without_a_word(caplog, version):
    old = json.loads(nbformat.v3.writes_json(nbformat.convert(toy.solved(), 3)))
    old["nbformat"] = version
    notebook = submissions.parse(json.dumps(old).encode())
    assert notebook.nbformat == 4
    assert [submissions.grade_id_of(c) for c in notebook.cells if c.cell_type == "code"] == ORDER
    assert caplog.text == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"nbformat": "4", "cells": []}',
        '{"nbformat": 4}',
        '{"nbformat": 3, "worksheets": [3]}',
        '{"nbformat": -1, "cells": []}',
        "\x00",
    ],
)
def test_what_is_no_notebook_is_refused(text):
    with pytest.raises(Unreadable, match="The file is no notebook"):
        submissions.parse(text.encode())


def test_a_notebook_of_something_else_is_refused():
    notebook = nbformat.v4.new_notebook(cells=[new_code_cell("1 + 1")])
    with pytest.raises(Unreadable, match="None of the assignment's cells is in it"):
        assemble(notebook)


def load(tmp_path) -> tuple[bytes, list[str]]:
    return submissions.load(Submission("ada", toy.NAME, tmp_path / "ada" / toy.NAME))


def test_of_several_notebooks_the_one_with_the_right_name_is_read(tmp_path):
    toy.hand_in(tmp_path, "ada", b"copy", f"{toy.NAME}-Copy1.ipynb")
    toy.hand_in(tmp_path, "ada", b"right")
    assert load(tmp_path) == (
        b"right",
        [f"Only {toy.NAME}.ipynb was graded, not {toy.NAME}-Copy1.ipynb."],
    )


def test_several_notebooks_without_the_right_name_are_refused(tmp_path):
    toy.hand_in(tmp_path, "ada", b"a", "a.ipynb")
    toy.hand_in(tmp_path, "ada", b"b", "b.ipynb")
    with pytest.raises(Unreadable, match=r"none is named 01_toy.ipynb: a.ipynb, b.ipynb"):
        load(tmp_path)


def test_a_large_file_is_refused_unread(tmp_path):
    path = toy.hand_in(tmp_path, "ada", b"x")
    with path.open("r+b") as file:
        file.truncate(submissions.LARGEST_FILE + 1_000_000)
    with pytest.raises(Unreadable, match="has 51 MB, more than 50: clear its outputs"):
        load(tmp_path)


def test_a_link_is_not_followed(tmp_path):
    toy.hand_in(tmp_path, "ada", b"x").unlink()
    (tmp_path / "ada" / toy.NAME / f"{toy.NAME}.ipynb").symlink_to("/etc/passwd")
    with pytest.raises(Unreadable, match="is no regular file"):
        load(tmp_path)
