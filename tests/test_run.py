"""The commands behind ``make run`` and ``make outputs``: selection, refusals, broken lessons."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import SMALL, shrink
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from utils import outputs, run

CLAIM = 'claims.check("small", "Ten is less.", ten, "<", 20)\nclaims.show()'


@pytest.fixture
def write(tmp_path: Path):
    """Write a small lesson with the given last cell."""

    def write(name: str, last_cell: str = "1 + 1", *, plain: bool = False) -> Path:
        parameters = new_code_cell("ten = 10  # a number\nword = 'a'  # a word")
        parameters.metadata["tags"] = ["parameters"]
        imports = "from utils.claims import Claims\nclaims = Claims('" + name + "')"
        cells = [new_code_cell("" if plain else imports), parameters, new_markdown_cell("# Title")]
        path = tmp_path / f"{name}.ipynb"
        cells.append(new_code_cell(last_cell))
        nbformat.write(new_notebook(cells=cells, metadata=outputs.METADATA), path)
        return path

    return write


def test_lessons_are_found_by_number_and_name(write, tmp_path) -> None:
    paths = [write("01_one"), write("02_two"), write("03_three")]
    assert run.find_lessons("", tmp_path) == paths
    assert run.find_lessons("2", tmp_path) == run.find_lessons("02", tmp_path) == [paths[1]]
    assert run.find_lessons("03_three,1", tmp_path) == [paths[0], paths[2]]


def test_unknown_lesson_is_refused_with_the_names(write, tmp_path) -> None:
    write("01_one")
    with pytest.raises(run.Refusal, match=r"no lesson '7'; the lessons are 01_one\."):
        run.find_lessons("7", tmp_path)


def test_parameters_are_read_as_literals() -> None:
    text = "a=1 b=0.5 c=word d='two words' e=True"
    assert run.parse_parameters(text) == {
        "a": 1,
        "b": 0.5,
        "c": "word",
        "d": "two words",
        "e": True,
    }


@pytest.mark.parametrize("text", ["epochs", "=3", "a-b=3"])
def test_what_is_no_assignment_is_refused(text) -> None:
    with pytest.raises(run.Refusal, match="not of the form name=value"):
        run.parse_parameters(text)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"eleven": 1}, r"no parameter 'eleven'; it has ten=10, word='a'"),
        ({"ten": "many"}, "of type str; int expected"),
        ({"ten": 0.5}, "of type float; int expected"),
        ({"word": 3}, "of type int; str expected"),
    ],
)
def test_wrong_parameters_are_refused(write, parameters, words) -> None:
    with pytest.raises(run.Refusal, match=words):
        run.check_parameters(write("01_one"), parameters)


def test_run_writes_notebook_page_and_claims(write, tmp_path, capsys) -> None:
    build = tmp_path / "build"
    assert run.run([write("01_one", CLAIM)], {"ten": 12}, build) == 0
    assert sorted(p.name for p in build.iterdir()) == [
        "01_one.html",
        "01_one.ipynb",
        "claims.json",
    ]
    row = {
        "lesson": "01_one",
        "name": "small",
        "statement": "Ten is less.",
        "measured": 12,
        "bound": "< 20",
        "holds": True,
    }
    assert json.loads((build / "claims.json").read_text()) == [row]
    assert "1 of 1 claims hold" in capsys.readouterr().out
    page = (build / "01_one.html").read_text()
    assert "Ten is less." in page
    assert 'src="http' not in page and "from 'http" not in page


def test_failing_claim_fails_the_run(write, tmp_path) -> None:
    build = tmp_path / "build"
    assert run.run([write("01_one", CLAIM)], {"ten": 20}, build) == 1
    assert json.loads((build / "claims.json").read_text())[0]["holds"] is False


def test_broken_lesson_is_named_and_the_others_run(write, tmp_path, capsys) -> None:
    broken = write("01_broken", "claims.show()\n1 / 0")
    assert run.run([broken, write("02_whole", CLAIM)], {}, tmp_path / "build") == 1
    printed = capsys.readouterr()
    assert "Lesson 01_broken, cell 3: ZeroDivisionError: division by zero" in printed.err
    assert "1 of 1 claims hold" in printed.out


def test_dead_kernel_and_endless_cell_are_named(write, tmp_path, monkeypatch) -> None:
    dead = write("01_dead", "import os\nos._exit(1)", plain=True)
    _, trouble = run.run_lesson(dead, tmp_path / "out.ipynb", {}, progress=False)
    assert trouble == "Lesson 01_dead: its kernel died."
    monkeypatch.setattr(run, "CELL_SECONDS", 5)
    endless = write("02_endless", "while True:\n    pass", plain=True)
    _, trouble = run.run_lesson(endless, tmp_path / "out.ipynb", {}, progress=False)
    assert trouble == "Lesson 02_endless: a cell ran for more than 5 seconds."


@pytest.mark.parametrize("last_cell", ["1 / 0", CLAIM.replace("20", "5")], ids=["raises", "fails"])
def test_lesson_in_trouble_keeps_its_file(write, last_cell) -> None:
    lesson = write("01_one", last_cell)
    before = lesson.read_bytes()
    assert outputs.renew(lesson)
    assert lesson.read_bytes() == before
    assert [p.name for p in lesson.parent.iterdir()] == ["01_one.ipynb"]


def test_outputs_are_clean_and_renewing_twice_changes_nothing(write, capsys) -> None:
    lesson = write("01_one", "import time\nprint(time.time())")
    notebook = nbformat.read(lesson, as_version=4)
    notebook.cells[-1].metadata = {"tags": [outputs.IGNORED], "papermill": {"duration": 1}}
    nbformat.write(notebook, lesson)
    assert outputs.renew(lesson) == ""
    first = lesson.read_bytes()
    renewed = nbformat.reads(first.decode(), as_version=4)
    assert renewed.metadata == outputs.METADATA
    assert [cell.metadata for cell in renewed.cells[1:]] == [
        {"tags": ["parameters"]},
        {},
        {"tags": [outputs.IGNORED]},
    ]
    assert outputs.renew(lesson) == ""
    assert lesson.read_bytes() == first
    assert "01_one.ipynb: unchanged" in capsys.readouterr().out


@pytest.mark.slow
def test_renewing_lesson_1_twice_changes_not_a_byte(tmp_path, capsys) -> None:
    (original,) = run.find_lessons("1")
    lesson = tmp_path / original.name
    notebook = nbformat.read(original, as_version=4)
    # Fewer calls than this, and TensorFlow warns of frequent tracing, with an address in memory.
    shrink(notebook, SMALL[original.stem] | {"sweep_epochs": 4, "short_epochs": 20})
    nbformat.write(notebook, lesson)
    assert outputs.renew(lesson) == ""
    first = lesson.read_bytes()
    assert outputs.renew(lesson) == ""
    printed = capsys.readouterr().out
    assert "renewed" in printed and "unchanged" in printed
    assert lesson.read_bytes() == first


@pytest.mark.parametrize("module", [run, outputs])
def test_command_refuses_in_one_sentence(module, capsys) -> None:
    assert module.main(["--lesson", "99"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_page_folds_solutions_and_holds_its_figures(tmp_path) -> None:
    folded = "<details><summary>Solution</summary>\n\nThe answer.\n\n</details>\n\nAfter."
    figure = new_output("display_data", data={"image/png": "iVBORw0KGgo="})
    cells = [new_markdown_cell(folded), new_code_cell("", outputs=[figure])]
    path = tmp_path / "01_one.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata=outputs.METADATA), path)
    page = BeautifulSoup(run.render(path).read_text(), "html.parser")
    (details,) = page.select("details")
    assert "The answer." in details.text and "After." not in details.text
    assert not details.has_attr("open")
    (image,) = page.select(".jp-OutputArea img")
    assert image["src"].startswith("data:image/png;base64,")
