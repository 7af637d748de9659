"""Guards on the committed notebooks: executed, clean, tagged, with outputs that are compared."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import html5lib
import nbformat
import papermill
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_notebook, new_output

from utils import claims, figures, rounding, run
from utils.outputs import IGNORED, METADATA

LESSONS = run.find_lessons()
KNOWN_TAGS = {"parameters", IGNORED}
NUMBER = r"\d[\d.,]*"
DEPENDS_ON_MACHINE = re.compile(
    rf"{NUMBER}(?:e-?\d+)? (?:ns|µs|ms|s|min)\b"  # a time
    rf"|{NUMBER} \({NUMBER} to {NUMBER}\)$"  # a ratio of times with its spread
    rf"|{NUMBER} million \w+ a second"
    r"|\d+%\|.*\]$"  # a progress bar
    r"|version \S+|/\S+",
    re.MULTILINE,
)
"""All that a cell may show whose output is not compared."""
NAMES = re.compile(
    rf"^epoch +\d+:|\(N,1\)|, {NUMBER} steps an execution|batches of {NUMBER}", re.MULTILINE
)
"""Parts of a row's name that hold a number, but no result."""


def results_in(text: str) -> list[str]:
    """Numbers in a text that are neither times, versions or paths, nor part of a name."""
    return re.findall(NUMBER, NAMES.sub("", DEPENDS_ON_MACHINE.sub("", text)))


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


def test_ignored_cells_show_no_number_but_times(code) -> None:
    for cell in code:
        if IGNORED not in cell.metadata.get("tags", []):
            continue
        for output in cell.outputs:
            if output.output_type == "stream":
                assert results_in(output.text) == [], cell.source
            else:
                # Timing claims and figures; the value of an expression would be a result.
                allowed = {claims.MIME_TYPE, "image/png"}
                assert output.output_type == "display_data" and allowed & set(output.data)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("epoch   1: 339 ms\nepoch   2: loss 0.25", ["0.25"]),
        ("fit   930 ms  428 ms  1.00 (0.97 to 1.20)", []),
        ("accuracy 0.9733 after 1.2 s", ["0.9733"]),
        ("epochs: 100%|█████| 5/5 [00:18<00:00,  3.62s/it]", []),
        ("pairs: 761232, 0.13 million pairs a second", ["761232,"]),
    ],
)
def test_a_result_among_times_is_found(text: str, found: list[str]) -> None:
    assert results_in(text) == found


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


def numbers_shown(notebook) -> Iterator[tuple[str, float, int]]:
    """Each rounded number of claims and figures: where it stands, unrounded, digits shown."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            table = output.get("metadata", {}).get(claims.MIME_TYPE, {})
            for name, (value, digits) in table.get(claims.UNROUNDED, {}).items():
                yield f"claim {name}", value, digits
            figure = output.get("metadata", {}).get("text/plain", {})
            for value, digits in figure.get(figures.UNROUNDED, []):
                yield f"figure {output.data['text/plain'].splitlines()[1]}", value, digits


def on_edge(notebook) -> list[tuple[str, float, int]]:
    """The rounded numbers that another machine may round otherwise."""
    shown = numbers_shown(notebook)
    return [entry for entry in shown if rounding.clearance(*entry[1:]) <= rounding.SPREAD]


def test_no_number_sits_on_a_rounding_edge(notebook) -> None:
    assert list(numbers_shown(notebook)), "the outputs hold no unrounded numbers"
    assert on_edge(notebook) == [], "print fewer digits, or more"


def test_a_number_on_a_rounding_edge_is_found() -> None:
    claim = {claims.MIME_TYPE: {claims.UNROUNDED: {"near": [0.3150001, 2], "far": [0.318, 2]}}}
    figure = {"text/plain": {figures.UNROUNDED: [[0.25000001, 1], [0.25000001, 2]]}}
    text = {"text/plain": "figure\naxes 'A'"}
    outputs = [
        new_output("display_data", data={}, metadata=claim),
        new_output("display_data", data=text, metadata=figure),
    ]
    notebook = new_notebook(cells=[new_code_cell("", outputs=outputs)])
    assert on_edge(notebook) == [("claim near", 0.3150001, 2), ("figure axes 'A'", 0.25000001, 1)]


def test_every_figure_says_what_it_shows(code) -> None:
    outputs = [o for cell in code for o in cell.outputs if "image/png" in o.get("data", {})]
    assert outputs
    for output in outputs:
        assert output.data["text/plain"].startswith("figure"), output.data["text/plain"]


def test_page_is_valid_describes_figures_and_needs_no_network(path, tmp_path) -> None:
    page = run.render(Path(shutil.copy(path, tmp_path))).read_text()
    html5lib.HTMLParser(strict=True).parse(page)  # raises at the first tag out of place
    soup = BeautifulSoup(page, "html.parser")
    descriptions = [image.get("alt", "") for image in soup.select("img")]
    assert descriptions and all(text.startswith("The figure") for text in descriptions)
    assert len(set(descriptions)) == len(descriptions)
    assert all(table.select("th") for table in soup.select("table"))
    assert soup.html["lang"] == "en" and soup.title.text == path.stem
    names = [element["id"] for element in soup.select("[id]")]
    assert len(set(names)) == len(names)
    # Links that a reader may follow are the only addresses.
    assert not soup.select("script, iframe, link[href], img[src^=http]")
    assert not re.search(r"url\([\"']?http|@import", page)
    # The text that compares a figure is not for readers.
    assert "lowest and highest" not in soup.text and ", linear" not in soup.text


def test_text_needs_no_network(notebook) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"!\[|<img|<script|\$[^$\n]+\$", cell.source), cell.source
