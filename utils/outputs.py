"""Renew the stored outputs of lessons from a fresh kernel: ``python -m utils.outputs``.

This is the only way that outputs change. A lesson that breaks, or has a claim that fails, leaves
its file untouched; so does one whose compared outputs come out the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from tqdm.auto import tqdm

from utils import claims
from utils.figures import VARIES
from utils.run import CELL_SECONDS, KERNEL_ARGUMENTS, Refusal, find_lessons

IGNORED = "nbval-ignore-output"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}


def execute(notebook: nbformat.NotebookNode, name: str) -> str:
    """Execute a notebook in place in an empty working folder.

    Parameters
    ----------
    notebook : NotebookNode
        Its outputs are replaced.
    name : str
        Shown at the progress bar.

    Returns
    -------
    str
        Empty, or one sentence that says which cell broke, or which claim failed, and why.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    bar = tqdm(total=len(code), desc=name, unit=" cells")
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=CELL_SECONDS,
            kernel_name="python3",
            extra_arguments=list(KERNEL_ARGUMENTS),
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
            on_cell_executed=lambda **_: bar.update(),
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return f"{name}: {error.ename}: {error.evalue}"
        except CellTimeoutError:
            return f"{name}: a cell ran for more than {CELL_SECONDS} seconds"
        except DeadKernelError:
            return f"{name}: its kernel died"
        finally:
            bar.close()
    failed = [claim.name for claim in claims.read(notebook) if claim.holds is False]
    return f"{name}: these claims fail: {', '.join(failed)}" if failed else ""


def clean(notebook: nbformat.NotebookNode) -> None:
    """Strip all metadata but the kernel's name, the language, and the cells' tags, in place."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})


def same(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> bool:
    """Whether two notebooks differ in nothing but what is not compared.

    That is the outputs of cells tagged so, and pictures of what differs from run to run.
    """

    def compared(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
        notebook = nbformat.from_dict(notebook)
        for cell in notebook.cells:
            if IGNORED in cell.metadata.get("tags", []) and cell.get("outputs"):
                cell.outputs = []
            for output in cell.get("outputs", []):
                if output.get("metadata", {}).get("text/plain", {}).get(VARIES):
                    output.data.pop("image/png", None)
        return notebook

    return compared(old) == compared(new)


def renew(lesson: Path) -> str:
    """Execute a lesson and, if all went well, write its clean outputs.

    Parameters
    ----------
    lesson : Path
        The notebook; it is replaced in one step, or not at all.

    Returns
    -------
    str
        Empty, or one sentence that says why the file was left as it was.
    """
    old = nbformat.read(lesson, as_version=4)
    new = nbformat.read(lesson, as_version=4)
    trouble = execute(new, lesson.stem)
    if trouble:
        return trouble
    clean(new)
    if same(old, new):
        print(f"{lesson.name}: unchanged")
        return ""
    half = lesson.with_suffix(".tmp")
    nbformat.write(new, half)
    os.replace(half, lesson)
    print(f"{lesson.name}: renewed")
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m utils.outputs``."""
    parser = argparse.ArgumentParser(prog="python -m utils.outputs", description=__doc__)
    parser.add_argument("--lesson", default="", help="numbers of the lessons, all if left out")
    options = parser.parse_args(arguments)
    try:
        troubles = [
            trouble for lesson in find_lessons(options.lesson) if (trouble := renew(lesson))
        ]
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    for trouble in troubles:
        print(f"left as it was: {trouble}", file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
