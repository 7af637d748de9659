"""Guards on the committed notebooks: executed, clean, tagged, with outputs that are compared."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import papermill
import pytest

from utils import claims, run
from utils.outputs import IGNORED, METADATA

LESSONS = run.find_lessons()
KNOWN_TAGS = {"parameters", IGNORED}


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def notebook(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@pytest.fixture
def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_each_lesson_has_a_number_of_its_own() -> None:
    numbers = [path.stem[:2] for path in LESSONS]
    assert len(set(numbers)) == len(numbers) and numbers[0] == "01"


def test_every_cell_was_executed_in_order(code) -> None:
    # nbval compares nothing in a cell without an execution count.
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))


def test_no_output_is_an_error_or_a_warning(code) -> None:
    for cell in code:
        for output in cell.outputs:
            assert output.output_type != "error", cell.source
            assert output.get("name") != "stderr", output.text


def test_metadata_holds_nothing_but_tags(notebook) -> None:
    assert notebook.metadata == METADATA
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}
        # An unknown tag, such as nbval_ignore_output, is silently no marker.
        assert set(cell.metadata.get("tags", [])) <= KNOWN_TAGS, cell.source


def test_second_code_cell_holds_the_parameters(code) -> None:
    tagged = [k for k, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == [1]
    for line in code[1].source.splitlines():
        assert re.fullmatch(r"[a-z_0-9]+ = [^#]+  # .+", line), line


def test_papermill_reads_the_parameters(path, code) -> None:
    assert len(papermill.inspect_notebook(str(path))) == len(code[1].source.splitlines())


def test_no_cell_ends_in_a_semicolon(code) -> None:
    # nbval runs cells so that the value hidden by a semicolon appears.
    assert [cell.source for cell in code if cell.source.rstrip().endswith(";")] == []


def test_results_are_not_ignored(code) -> None:
    # An ignored cell may show times and progress; a claim is a result, and is compared.
    for cell in code:
        if IGNORED in cell.metadata.get("tags", []):
            assert "claims.check(" not in cell.source and "claims.show()" not in cell.source


def test_claims_have_one_name_each_and_all_hold(path, notebook, code) -> None:
    source = "\n".join(cell.source for cell in code)
    names = re.findall(r"claims\.check\(\s*f?\"([^\"]+)\"", source)
    assert len(names) == len(set(names))
    stored = claims.read(notebook)
    assert {claim.lesson for claim in stored} == {path.stem}
    assert len(stored) >= 10
    assert [claim.name for claim in stored if claim.holds is not True] == []
    assert set(names) <= {claim.name for claim in stored}


def test_lesson_opens_and_closes_as_all_do(notebook) -> None:
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert notebook.cells[0].source.startswith("# ")
    for opening in ("**You will**", "**You need**", "**Time**", "README"):
        assert opening in notebook.cells[0].source, opening
    for heading in ("## Summary", "## Exercises", "## Further reading"):
        assert text.count(heading) == 1, heading
    assert text.count("<details>") == text.count("</details>") >= 3
    assert text.count("**Predict") >= 5


def test_every_figure_is_described(notebook) -> None:
    cells = notebook.cells
    for place, cell in enumerate(cells):
        if cell.cell_type == "code" and "plt.show()" in cell.source:
            # The description stands in the next text; a claim may come between.
            text = next(c.source for c in cells[place + 1 :] if c.cell_type == "markdown")
            assert "*The figure" in text, cell.source


def test_text_needs_no_network(notebook) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"!\[|<img|<script|\$[^$\n]+\$", cell.source), cell.source
