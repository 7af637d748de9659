"""Build the students' versions of the assignments: ``python -m utils.assignments``.

A source holds solutions, visible and hidden tests, and rubrics. ``build/assignments/`` gets, for
each, the notebook without them, and a zip to hand out. nbgrader's own preprocessors do the work.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)
from nbgrader.utils import is_solution
from traitlets.config import Config

from utils.run import ROOT, Refusal

SOURCES = ROOT / "notebooks" / "assignments" / "source"
BUILD = ROOT / "build" / "assignments"
ANSWER_HERE = "*Write your answer here.*"
"""Stands where the source has a model answer and its rubric."""

CONFIG = Config(
    # A stub keeps the sentence that follows the solution in the source.
    ClearSolutions={"code_stub": {"python": ""}, "text_stub": ANSWER_HERE},
)
STEPS = (
    CheckCellMetadata,
    LockCells,
    ClearSolutions,
    ClearOutput,
    ClearHiddenTests,
    ClearMarkScheme,
    ComputeChecksums,
)
"""The order matters: checksums are those of the text that students get."""

MARKERS = tuple(
    f"### {edge} {region}"
    for region in ("SOLUTION", "HIDDEN TESTS", "MARK SCHEME")
    for edge in ("BEGIN", "END")
)

SILENT = logging.getLogger("utils.assignments.silent")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def find_sources(folder: Path = SOURCES) -> dict[str, Path]:
    """Find the source notebook of every assignment.

    Parameters
    ----------
    folder : Path
        Holds ``<assignment>/<assignment>.ipynb``.

    Returns
    -------
    dict of str to Path
        By name, in order.

    Raises
    ------
    Refusal
        If there is none, or if a folder lacks the notebook of its name.
    """
    folders = sorted(p for p in folder.glob("*") if p.is_dir() and not p.name.startswith("."))
    if not folders:
        raise Refusal(f"There is no assignment in {folder}.")
    sources = {p.name: p / f"{p.name}.ipynb" for p in folders}
    for name, path in sources.items():
        if not path.is_file():
            raise Refusal(f"Assignment {name}: there is no {path}.")
    return sources


def read_source(path: Path) -> NotebookNode:
    """Read a source notebook.

    Raises
    ------
    Refusal
        If it is no notebook, or if its nbgrader metadata are wrong.
    """
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        CheckCellMetadata(log=SILENT).preprocess(notebook, {})
    except Exception as error:
        raise Refusal(f"Assignment {path.stem}: {_first_line(error)}") from error
    for number, cell in enumerate(notebook.cells, start=1):
        trouble = _regions_trouble(cell)
        if trouble:
            raise Refusal(f"Assignment {path.stem}, cell {number}: {trouble}.")
    return notebook


def release(source: NotebookNode, name: str) -> NotebookNode:
    """Make the students' version of a source notebook.

    Parameters
    ----------
    source : NotebookNode
        Is left as it is.
    name : str
        Of the assignment, for messages.

    Returns
    -------
    NotebookNode
        Without solutions, hidden tests, rubrics and outputs, with nbgrader's checksums.

    Raises
    ------
    Refusal
        If a region has no end, or stands in a cell where it must not be.
    """
    notebook = nbformat.from_dict(source)
    try:
        for step in STEPS:
            notebook, _ = step(config=CONFIG, log=SILENT).preprocess(notebook, {})
            if step is ClearHiddenTests:
                _tidy(notebook)
    except Exception as error:
        raise Refusal(f"Assignment {name}: {_first_line(error)}") from error
    return notebook


def build(sources: dict[str, Path], folder: Path = BUILD) -> list[Path]:
    """Write the students' versions, all or none.

    Parameters
    ----------
    sources : dict of str to Path
        As `find_sources` returns it.
    folder : Path
        Gets ``<assignment>/<assignment>.ipynb`` and ``<assignment>.zip``.

    Returns
    -------
    list of Path
        The zip files.

    Raises
    ------
    Refusal
        If a source is not in order; nothing is written then.
    """
    texts = {
        name: nbformat.writes(release(read_source(path), name)) + "\n"
        for name, path in sources.items()
    }
    return [_write(folder, name, text) for name, text in texts.items()]


def _write(folder: Path, name: str, text: str) -> Path:
    notebook = folder / name / f"{name}.ipynb"
    notebook.parent.mkdir(parents=True, exist_ok=True)
    notebook.write_text(text, encoding="utf-8")
    packed = folder / f"{name}.zip"
    with (
        tempfile.NamedTemporaryFile(dir=folder, delete=False) as half,
        zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.write(notebook, f"{name}/{name}.ipynb")
    Path(half.name).replace(packed)
    packed.chmod(0o644)
    return packed


def _regions_trouble(cell: NotebookNode) -> str:
    """Say what is wrong with the regions of a cell: a wrong marker would give a solution away."""
    marked = [
        line.strip()
        for line in cell.source.splitlines()
        if re.search(r"\b(BEGIN|END)\W+(SOLUTION|HIDDEN|MARK)", line, re.IGNORECASE)
    ]
    unknown = [line for line in marked if line not in MARKERS]
    if unknown:
        return f"`{unknown[0]}` is none of the markers {', '.join(MARKERS)}"
    ends = [line.replace("BEGIN", "END") for line in marked[::2]]
    if marked[1::2] != ends or any(" END " in line for line in marked[::2]):
        return f"its markers do not pair: {', '.join(marked)}"
    if is_solution(cell) and MARKERS[0] not in marked:
        return f"a solution cell needs a region from `{MARKERS[0]}` to `{MARKERS[1]}`"
    return ""


def _tidy(notebook: NotebookNode) -> None:
    """Take away what the removed regions leave: blanks at line ends, blank lines at cell ends."""
    for cell in notebook.cells:
        cell.source = "\n".join(line.rstrip() for line in cell.source.splitlines()).strip("\n")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return f"{text[0].upper()}{text[1:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m utils.assignments``."""
    parser = argparse.ArgumentParser(prog="python -m utils.assignments", description=__doc__)
    parser.add_argument("--sources", type=Path, default=SOURCES, help="folder of the sources")
    parser.add_argument("--out", type=Path, default=BUILD, help="folder to write to")
    options = parser.parse_args(arguments)
    try:
        for packed in build(find_sources(options.sources), options.out):
            print(packed)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
