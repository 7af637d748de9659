"""Every assignment: its release, its reference solution, and the wrong answers it knows."""

from __future__ import annotations

import copy
import importlib
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
import toy_assignment as toy
from nbformat import NotebookNode

from utils import assignments, feedback, grading, submissions
from utils.run import LESSONS, Refusal
from utils.submissions import Submission

SOURCES = assignments.find_sources()
LIMITS = grading.Limits()


def tables() -> dict[str, dict[str, object]]:
    """Import the wrong answers of every assignment."""
    names = [p.stem for p in (Path(__file__).parent / "assignments").glob("[0-9]*.py")]
    return {name: importlib.import_module(f"assignments.{name}").WRONG for name in sorted(names)}


WRONG = tables()


def cases() -> list[Any]:
    """List the wrong answers; the first of each assignment is tried by ``make slow``."""
    return [
        pytest.param(
            name, wrong, id=f"{name[:2]}-{wrong}", marks=[pytest.mark.exhaustive] * (position > 0)
        )
        for name, table in WRONG.items()
        for position, wrong in enumerate(table)
    ]


@pytest.fixture(scope="module", params=SOURCES)
def assignment(request) -> grading.Assignment:
    return grading.Assignment.read(request.param, SOURCES[request.param])


def read(name: str) -> grading.Assignment:
    return grading.Assignment.read(name, SOURCES[name])


def graded(
    tmp_path: Path, assignment: grading.Assignment, notebook: NotebookNode
) -> grading.Result:
    """Hand a notebook in and have it graded, without its table and page."""
    folder = tmp_path / "student" / assignment.name
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / f"{assignment.name}.ipynb")
    return grading.grade_one_submission(
        Submission("student", assignment.name, folder), assignment, tmp_path / "results", LIMITS
    )


def handed_in(assignment: grading.Assignment, cells: dict[str, str]) -> NotebookNode:
    """Fill the release in with the reference solution, but for some cells."""
    solutions = {submissions.grade_id_of(c): c.source for c in assignment.source.cells}
    unknown = cells.keys() - solutions.keys()
    assert not unknown, unknown
    notebook = copy.deepcopy(assignment.release)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            grade_id = submissions.grade_id_of(cell)
            cell.source = cells.get(grade_id, solutions[grade_id])
    return notebook


# --- sources and releases -------------------------------------------------------------------------


def test_every_assignment_has_wrong_answers():
    assert list(WRONG) == list(SOURCES)


def test_source_has_no_outputs_and_no_metadata_but_those_needed(assignment):
    assert set(assignment.source.metadata) == {"kernelspec", "language_info"}
    for cell in assignment.source.cells:
        assert set(cell.metadata) <= {"nbgrader"}
        assert cell.cell_type != "code" or (not cell.outputs and cell.execution_count is None)


def test_source_has_what_an_assignment_needs(assignment):
    code = [c for c in assignment.source.cells if c.cell_type == "code"]
    marks = [cell.metadata.get("nbgrader", {}) for cell in assignment.source.cells]
    assert marks[assignment.source.cells.index(code[0])].get("locked"), "imports are not locked"
    assert code[0].source.startswith(("import utils", "from utils")), "utils comes first"
    written = [m for m in marks if m.get("grade") and m.get("solution")]
    assert len(written) == 1, "one written answer"
    assert any("### BEGIN HIDDEN TESTS" in cell.source for cell in code)
    assert re.search(r"\b\d+ minutes", "".join(c.source for c in assignment.source.cells))


def test_release_gives_nothing_away(assignment):
    text = nbformat.writes(assignment.release)
    assert not re.search(r"(BEGIN|END) (SOLUTION|HIDDEN|MARK)|[Rr]ubric", text)
    for given, kept in zip(assignment.source.cells, assignment.release.cells):
        for region in re.findall(
            r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)\n\s*### END", given.source, re.DOTALL
        ):
            assert region.strip() not in kept.source
    assert all(not c.outputs for c in assignment.release.cells if c.cell_type == "code")


def test_every_stub_raises_with_a_sentence(assignment):
    for cell in assignment.release.cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("solution") and cell.cell_type == "code":
            assert re.search(r'raise NotImplementedError\(\s*f?"Task \d', cell.source), mark


def test_what_students_are_told_to_read_exists(assignment):
    """Lesson and section stand together wherever a test names them."""
    names = {p.stem: p for p in LESSONS.glob("[0-9]*.ipynb")}
    constants = {k: v for k, v in vars(feedback).items() if isinstance(v, str) and v in names}
    pattern = r'(?:"(\d\d_\w+)"|feedback\.([A-Z]+)),\s*"([^"]+)"'
    for cell in assignment.source.cells:
        for name, constant, section in re.findall(pattern, cell.source):
            lesson = nbformat.read(names[name or constants[constant]], as_version=4)
            lines = "\n".join(c.source for c in lesson.cells if c.cell_type == "markdown")
            assert re.search(rf"^#+ {re.escape(section)}$", lines, re.MULTILINE), section


def test_wrong_answers_name_cells_and_points_that_exist():
    for name, table in WRONG.items():
        assignment = read(name)
        for wrong in table.values():
            assert wrong.cells.keys() <= assignment.first_text.keys()
            assert wrong.points.keys() <= assignment.tasks.keys()


def test_three_wrong_answers_for_every_task():
    for name, table in WRONG.items():
        solutions = {
            submissions.grade_id_of(c)
            for c in read(name).release.cells
            if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("solution")
        }
        for grade_id in solutions:
            assert sum(grade_id in wrong.cells for wrong in table.values()) >= 3, grade_id


def test_zip_holds_the_release(tmp_path):
    packed = assignments.build(assignments.find_sources(toy.write_source(tmp_path)), tmp_path)
    assert [p.name for p in packed] == [f"{toy.NAME}.zip"]
    with zipfile.ZipFile(io.BytesIO(packed[0].read_bytes())) as archive:
        text = archive.read(f"{toy.NAME}/{toy.NAME}.ipynb").decode()
    assert text == (tmp_path / toy.NAME / f"{toy.NAME}.ipynb").read_text(encoding="utf-8")
    assert "secret_number" not in text and "x * x" not in text and "checksum" in text


def test_release_of_the_toy_keeps_stub_and_visible_test():
    texts = {submissions.grade_id_of(c): c.source for c in toy.released().cells}
    assert texts["task1"] == (
        'def square(x):\n    """Return the square of x."""\n\n'
        '    raise NotImplementedError("Task 1: return the square.")'
    )
    assert texts["task1_hidden"] == "# More numbers are tried when this is graded."
    assert texts["task3"] == assignments.ANSWER_HERE


@pytest.mark.parametrize(
    ("grade_id", "old", "new", "sentence"),
    [
        ("task1", "### END SOLUTION", "### END", "its markers do not pair: ### BEGIN SOLUTION"),
        ("task1", "### BEGIN SOLUTION\n", "", "its markers do not pair: ### END SOLUTION"),
        ("task1_hidden", "BEGIN HIDDEN TESTS", "BEGIN HIDDEN TEST", "is none of the markers"),
        ("task2", "cube", "cube(", "a cell is no Python"),
        ("given", "import math", "### BEGIN SOLUTION\n### END SOLUTION", "non-solution cell"),
    ],
)
def test_a_source_that_is_not_in_order_is_refused_and_nothing_written(
    tmp_path, capsys, grade_id, old, new, sentence
):
    notebook = toy.source()
    cell = next(c for c in notebook.cells if submissions.grade_id_of(c) == grade_id)
    assert old in cell.source
    cell.source = cell.source.replace(old, new)
    sources = toy.write_source(tmp_path, notebook)
    toy.hand_in(tmp_path / "submitted", "ada", toy.solved())
    if "Python" not in sentence:
        assert assignments.main(["--sources", str(sources), "--out", str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert said.startswith("Assignment 01_toy") and sentence in said
        assert said.count("\n") == 1
    with pytest.raises(Refusal, match=re.escape(sentence)):
        grading.grade(tmp_path / "submitted", tmp_path / "out", sources)
    assert not (tmp_path / "out").exists()


def test_duplicate_ids_in_a_source_are_refused(tmp_path):
    notebook = toy.source()
    notebook.cells[-1].metadata.nbgrader.grade_id = "task1"
    with pytest.raises(Refusal, match="01_toy"):
        assignments.build(assignments.find_sources(toy.write_source(tmp_path, notebook)), tmp_path)


def test_a_folder_without_its_notebook_is_refused(tmp_path):
    with pytest.raises(Refusal, match="There is no assignment in"):
        assignments.find_sources(tmp_path)
    (tmp_path / "02_empty").mkdir()
    with pytest.raises(Refusal, match=r"Assignment 02_empty: there is no .*02_empty\.ipynb"):
        assignments.find_sources(tmp_path)


# --- grades ---------------------------------------------------------------------------------------


def test_the_reference_solution_of_the_first_assignment_gets_full_marks(tmp_path):
    assignment = read("01_identical_loop")
    check_full_marks(graded(tmp_path, assignment, handed_in(assignment, {})))


def check_full_marks(result: grading.Result) -> None:
    assert result.graded and not result.notes, result
    for row in result.rows:
        assert row.needs_manual_grading or row.points == row.maximum, row
    assert sum(row.needs_manual_grading for row in result.rows) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SOURCES if name != "01_identical_loop"])
def test_reference_solution_gets_full_marks(tmp_path, name):
    assignment = read(name)
    check_full_marks(graded(tmp_path, assignment, handed_in(assignment, {})))


@pytest.mark.slow
def test_untouched_release_gets_zero(tmp_path, assignment):
    result = graded(tmp_path, assignment, assignment.release)
    assert result.graded
    assert [row for row in result.rows if row.points != 0] == []
    assert "Not written yet. Task 1" in result.rows[0].reason


@pytest.mark.slow
def test_release_runs_to_its_first_stub(assignment):
    """Run as in JupyterLab, where nobody has put cells together."""
    pieces = [
        submissions.Piece(c.source) for c in assignment.release.cells if c.cell_type == "code"
    ]
    outcomes = grading.run(pieces, {}, LIMITS)
    first = next(o for o in outcomes if o["status"] != "ok")
    assert "Task 1" in first["text"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wrong"), cases())
def test_wrong_answer_gets_its_points_and_its_sentence(tmp_path, name, wrong):
    assignment, case = read(name), WRONG[name][wrong]
    result = graded(tmp_path, assignment, handed_in(assignment, case.cells))
    assert result.graded, result
    points = {row.task: row.points for row in result.rows if not row.needs_manual_grading}
    full = {i: float(assignment.tasks[i].metadata.nbgrader.points) for i in points}
    said = "\n".join([*(row.reason for row in result.rows), *result.notes])
    assert points == full | case.points, said
    assert case.says in said, said


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_thirty_submissions_in_one_run(tmp_path, capsys):
    """Ten students have it right, the others make ten mistakes, two students each."""
    assignment = read("01_identical_loop")
    table = list(WRONG[assignment.name].values())[:10]
    for number in range(30):
        case = table[number % 10] if number >= 10 else None
        toy_folder = tmp_path / "submitted" / f"student{number:02d}" / assignment.name
        toy_folder.mkdir(parents=True)
        notebook = handed_in(assignment, case.cells if case else {})
        nbformat.write(notebook, toy_folder / f"{assignment.name}.ipynb")
    assert grading.grade(tmp_path / "submitted", tmp_path / "out") == 0
    assert "30 of 30 submissions graded; 30 answers to be read" in capsys.readouterr().out
    lines = (tmp_path / "out" / "grades.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 30 * len(assignment.tasks)
    assert len(list((tmp_path / "out").glob("student*.html"))) == 30
