"""The table of environments: what is the same, what differs, and what there is not."""

from __future__ import annotations

from pathlib import Path

import matrix
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from utils.outputs import METADATA


@pytest.fixture(autouse=True)
def build(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(matrix, "BUILD", tmp_path / "build")
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "build" / "matrix.csv")


@pytest.fixture
def lesson(tmp_path: Path) -> Path:
    """A lesson of two cells; the second prints what a variable of the environment says."""
    cells = []
    for count, source in enumerate(
        ["import os", "print('loss', 0.5)\nprint('rate', os.environ.get('RATE', 0.1), 'end')"], 1
    ):
        stored = [new_output("stream", text="loss 0.5\nrate 0.1 end\n")] if count == 2 else []
        cells.append(new_code_cell(source, execution_count=count, outputs=stored))
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), tmp_path / "01_a.ipynb")
    return tmp_path / "01_a.ipynb"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "text", "differences"),
    [("0.1", "same", ""), ("0.25", "differs", "cell 2: 0.1 -> 0.25")],
)
def test_a_number_that_differs_is_named_with_its_cell(
    lesson, monkeypatch, rate, text, differences
) -> None:
    other = matrix.Environment(variables={"RATE": rate})
    monkeypatch.setitem(matrix.ENVIRONMENTS, "default", other)
    row = matrix.check(lesson, "default")
    assert (row.text, row.differences, row.digest) == (text, differences, "")


def test_the_table_keeps_earlier_rows() -> None:
    rows = {("01_a", "default"): matrix.Row("01_a", "default", "same")}
    matrix.write_table(rows)
    assert matrix.as_text(matrix.read_table()) == matrix.as_text(rows)
    assert "same text" in matrix.as_text(rows)


def test_same_bits_are_claimed_only_with_the_same_weights() -> None:
    usual = matrix.Row("01_a", "default", "same", digest="aa")
    assert matrix.verdict(matrix.Row("01_a", "x", "same", digest="aa"), usual) == "same bits"
    assert matrix.verdict(matrix.Row("01_a", "x", "same", digest="ab"), usual) == "same text"
    assert matrix.verdict(matrix.Row("01_a", "x", "same"), None) == "same text"


def test_a_python_that_is_not_there_is_reported(lesson, monkeypatch) -> None:
    monkeypatch.setitem(matrix.ENVIRONMENTS, "old", matrix.Environment(python="3.1"))
    assert matrix.check(lesson, "old").text == "not installed"


def test_an_unknown_environment_is_refused(capsys) -> None:
    assert matrix.main(["--environments", "windows"]) == 2
    assert "no environment 'windows'; there are default, onednn-on," in capsys.readouterr().err
