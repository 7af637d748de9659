"""Run lessons without a browser and collect their claims: ``python -m utils.run``.

Writes ``build/run/NN_*.ipynb``, an HTML rendering of each, and ``build/run/claims.json``. Exits
non-zero if a claim fails or a lesson breaks.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter

from utils import claims

ROOT = Path(__file__).resolve().parent.parent
LESSONS = ROOT / "notebooks"
BUILD = ROOT / "build" / "run"
CELL_SECONDS = 600
"""A cell that runs longer is stopped."""
KERNEL_ARGUMENTS = ("--log-level=ERROR",)
"""Newer kernels warn at every start that they listen on this machine without encryption."""

PAGE = """
{%- extends "lab/index.html.j2" -%}
{%- block html_head_js_requirejs -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block data_png -%}
<div class="jp-RenderedImage jp-OutputArea-output">
<img alt="{{ output.metadata.alt | escape_html }}"
 src="data:image/png;base64,{{ output.data['image/png'] | escape_html }}">
</div>
{%- endblock -%}
"""
"""nbconvert's page, without the scripts that it fetches, and with a text for each figure."""


class Refusal(Exception):
    """What the user asked for cannot be done; the message says why and what can."""


def find_lessons(which: str = "", folder: Path = LESSONS) -> list[Path]:
    """Find lessons by number, or all of them.

    Parameters
    ----------
    which : str
        Numbers or names, separated by spaces or commas (``"01"``, ``"1 3"``); empty for all.
    folder : Path
        Where the notebooks are.

    Returns
    -------
    list of Path
        In order of number.

    Raises
    ------
    Refusal
        If there is no such lesson.
    """
    lessons = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    chosen = []
    for word in which.replace(",", " ").split():
        found = [p for p in lessons if word.zfill(2) == p.stem[:2] or word == p.stem]
        if not found:
            names = ", ".join(p.stem for p in lessons)
            raise Refusal(f"There is no lesson {word!r}; the lessons are {names}.")
        chosen += found
    return sorted(set(chosen)) or lessons


def parse_parameters(text: str) -> dict[str, Any]:
    """Read ``"epochs=20 seed=1"`` as a dict of Python literals.

    Parameters
    ----------
    text : str
        Assignments separated by spaces; a value that is no literal is taken as a string.

    Raises
    ------
    Refusal
        If a word is no assignment.
    """
    parameters = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise Refusal(f"PARAMS: {word!r} is not of the form name=value.")
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value
    return parameters


def check_parameters(lesson: Path, parameters: dict[str, Any]) -> None:
    """Refuse parameters that the lesson does not have, or of another type than its own.

    papermill itself only warns, and then runs the lesson as if nothing had been asked.

    Raises
    ------
    Refusal
        With the valid names.
    """
    known = {
        name: ast.literal_eval(entry["default"])
        for name, entry in papermill.inspect_notebook(str(lesson)).items()
    }
    for name, value in parameters.items():
        if name not in known:
            raise Refusal(
                f"Lesson {lesson.stem} has no parameter {name!r}; it has "
                f"{', '.join(f'{k}={v!r}' for k, v in known.items())}."
            )
        default = known[name]
        fits = type(value) is type(default) or (type(default), type(value)) == (float, int)
        if not fits:
            raise Refusal(
                f"Lesson {lesson.stem}: {name}={value!r} is of type {type(value).__name__}; "
                f"{type(default).__name__} expected, for example {name}={default!r}."
            )


def run_lesson(
    lesson: Path, output: Path, parameters: dict[str, Any], *, progress: bool = True
) -> tuple[list[claims.Claim], str]:
    """Run one lesson with papermill in an empty working folder.

    Parameters
    ----------
    lesson, output : Path
        The notebook to run and the file to write.
    parameters : dict
        Values for the cell tagged ``parameters``.
    progress : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    claims : list of Claim
        What the lesson claimed, up to the cell where it broke.
    trouble : str
        Empty, or one sentence: lesson, cell, error.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    trouble = ""
    with tempfile.TemporaryDirectory() as folder:
        try:
            papermill.execute_notebook(
                str(lesson),
                str(output),
                parameters,
                kernel_name="python3",
                cwd=folder,
                progress_bar={"desc": lesson.stem, "unit": " cells"} if progress else False,
                execution_timeout=CELL_SECONDS,
                extra_arguments=list(KERNEL_ARGUMENTS),
                request_save_on_cell_execute=False,
            )
        except papermill.PapermillExecutionError as error:
            reason = f"{error.ename}: {error.evalue}"
            trouble = f"Lesson {lesson.stem}, cell {error.exec_count}: {reason}"
        except CellTimeoutError:
            trouble = f"Lesson {lesson.stem}: a cell ran for more than {CELL_SECONDS} seconds."
        except DeadKernelError:
            trouble = f"Lesson {lesson.stem}: its kernel died."
    if not output.exists():
        return [], trouble
    return claims.read(nbformat.read(output, as_version=4)), trouble


def describe_figures(notebook: nbformat.NotebookNode) -> None:
    """Give each figure an alternative text, in place: the sentence "*The figure ...*" after it.

    Parameters
    ----------
    notebook : NotebookNode
        The text goes into the metadata of the output, under ``alt``. A figure that no text
        describes is called "A figure".
    """
    text = "A figure"
    for cell in reversed(notebook.cells):
        if cell.cell_type == "markdown":
            found = re.search(r"\*(The figure.+?)\*(?!\*)", cell.source, re.DOTALL)
            text = " ".join(found[1].split()).replace("`", "") if found else "A figure"
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.metadata["alt"] = text


def render(notebook: Path) -> Path:
    """Write an executed notebook as one HTML file that needs no network.

    Parameters
    ----------
    notebook : Path
        The notebook; the HTML is written beside it.

    Returns
    -------
    Path
        The HTML file.
    """
    # Not `embed_images`: it parses the text anew and closes each <details> at once, so that all
    # solutions stand open. The figures of code cells are embedded without it.
    exporter = HTMLExporter(raw_template=PAGE)
    content = nbformat.read(notebook, as_version=4)
    describe_figures(content)
    body, _ = exporter.from_notebook_node(content, {"metadata": {"name": notebook.stem}})
    page = notebook.with_suffix(".html")
    page.write_text(body, encoding="utf-8")
    return page


def run(lessons: Sequence[Path], parameters: dict[str, Any], build: Path = BUILD) -> int:
    """Run lessons one after the other, write their results, print the table of claims.

    Returns
    -------
    int
        0 if all claims hold and no lesson broke, 1 otherwise.
    """
    for lesson in lessons:
        check_parameters(lesson, parameters)
    found: list[claims.Claim] = []
    troubles: list[str] = []
    for lesson in lessons:
        output = build / lesson.name
        made, trouble = run_lesson(lesson, output, parameters)
        found += made
        troubles += [trouble] if trouble else []
        if output.exists():
            render(output)
    rows = json.dumps([asdict(claim) for claim in found], indent=2, ensure_ascii=False)
    build.mkdir(parents=True, exist_ok=True)
    (build / "claims.json").write_text(rows + "\n", encoding="utf-8")
    failed = [claim for claim in found if claim.holds is False]
    judged = [claim for claim in found if claim.holds is not None]
    print(f"\n{claims.as_text(found)}\n")
    print(f"{len(judged) - len(failed)} of {len(judged)} claims hold", end="")
    print(f", {len(found) - len(judged)} not judged" if len(found) > len(judged) else "", end="")
    print(f"; notebooks, pages and claims.json are in {build}")
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    return 1 if failed or troubles else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m utils.run``."""
    parser = argparse.ArgumentParser(prog="python -m utils.run", description=__doc__)
    parser.add_argument("--lesson", default="", help="numbers of the lessons, all if left out")
    parser.add_argument("--params", default="", help='for example "epochs=20 seed=1"')
    options = parser.parse_args(arguments)
    try:
        return run(find_lessons(options.lesson), parse_parameters(options.params))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
