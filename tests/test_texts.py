"""Numbers in the texts: what a lesson observes stands in its outputs; what it cites is as printed.

A number under **Observe** or **Explain** must stand in the code or the outputs of the same section,
one in the description of a figure in the cells right before it; or else among the numbers that come
from elsewhere. Small integers are left out: they count things in the text itself.
"""

from __future__ import annotations

import re

import nbformat
import pytest

from utils import run
from utils.outputs import IGNORED

NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?:e-?\d+)?")
JUDGED = ("**Observe", "**Explain")
FIGURE = "*The figure"
COUNTS = {str(k) for k in range(11)}

SOURCED: dict[str, dict[str, str]] = {
    "01_iris_fit_vs_tape": {
        "0.9733": "the blog post's accuracy",
        "90": "per cent of the data lie between the 5th and the 95th percentile",
        "0.0000001": "1e-7 in the code, written out",
    },
    "02_glove_shuffle_bug": {"100": "x_max, a parameter"},
    "03_tf_function_speedups": {
        "1.8": "seconds in the textbook, undecorated",
        "0.8": "seconds in the textbook, decorated",
        "2.25": "1.8 / 0.8",
    },
    "04_custom_train_step": {},
    "05_parity_clinic": {
        "0.001": "read off the figure",
        "64": "rows in a batch, a parameter",
        "44": "rows in the last batch: 300 - 4 * 64",
        "3.15": "the version of Keras",
    },
}
"""Numbers in the texts that come from elsewhere, and from where."""

CITED: dict[str, list[str]] = {
    "01_iris_fit_vs_tape": ["0.9733 after 200 epochs", "axvline(0.9733", "values > 0.9733"],
    "02_glove_shuffle_bug": [
        '"tape": [0.905, 0.352, 0.285, 0.282, 0.275]',
        '"tape, shuffled more": [0.918, 0.634, 0.518, 0.458, 0.421]',
        '"fit": [0.8793, 0.2226, 0.1192, 0.1029, 0.0940]',
    ],
    "03_tf_function_speedups": ["1.8 s down to 0.8 s"],
}
"""What was published, letter by letter."""


def plain(number: str) -> str:
    """A number without the separators of thousands."""
    return number.replace(",", "").replace("_", "")


def unprinted(notebook: nbformat.NotebookNode, sourced: dict[str, str]) -> list[str]:
    """Numbers of the judged paragraphs that the section has not printed, each with its words."""
    found: list[str] = []
    section: set[str] = set()
    before: set[str] = set()
    previous = None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            before = numbers_of(cell) | (before if previous == "code" else set())
            section |= before
        else:
            for paragraph in re.split(r"\n\n|^(?=#)", cell.source, flags=re.MULTILINE):
                if paragraph.startswith("## "):
                    section = set()
                known = before if paragraph.startswith(FIGURE) else section
                if paragraph.startswith((*JUDGED, FIGURE)):
                    found += missing(paragraph, known | COUNTS | set(sourced))
        previous = cell.cell_type
    return found


def numbers_of(cell: nbformat.NotebookNode) -> set[str]:
    """Numbers in the source and the outputs of a code cell, but for those that are not compared."""
    outputs = [] if IGNORED in cell.metadata.get("tags", []) else cell.outputs
    texts = [cell.source] + [
        output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs
    ]
    return {plain(number) for text in texts for number in NUMBER.findall(text)}


def missing(paragraph: str, known: set[str]) -> list[str]:
    """Numbers of a paragraph that are not known, each with the words around it."""
    words = re.sub(r"`[^`]*`", "", paragraph)
    return [
        words[max(0, match.start() - 30) : match.end() + 20]
        for match in NUMBER.finditer(words)
        if plain(match[0]) not in known
    ]


def miscited(notebook: nbformat.NotebookNode, cited: list[str]) -> list[str]:
    """Published texts that do not stand in the notebook."""
    text = " ".join(" ".join(cell.source.split()) for cell in notebook.cells)
    return [words for words in cited if words not in text]


@pytest.fixture(params=run.find_lessons(), ids=lambda path: path.stem)
def lesson(request: pytest.FixtureRequest) -> tuple[str, nbformat.NotebookNode]:
    return request.param.stem, nbformat.read(request.param, as_version=4)


def test_observed_numbers_are_printed_in_the_section(lesson) -> None:
    name, notebook = lesson
    assert unprinted(notebook, SOURCED[name]) == []


def test_published_numbers_are_cited_as_they_are(lesson) -> None:
    name, notebook = lesson
    assert miscited(notebook, CITED.get(name, [])) == []


def test_sources_are_still_needed(lesson) -> None:
    name, notebook = lesson
    for number in SOURCED[name]:
        others = {k: v for k, v in SOURCED[name].items() if k != number}
        assert unprinted(notebook, others), f"{number} is printed by now: take it off the list"
