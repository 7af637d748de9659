"""What several test files share: run a lesson, or a changed copy, with small parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest

from utils import run
from utils.claims import Claim

SMALL: dict[str, dict[str, Any]] = {
    "01_iris_fit_vs_tape": {
        "epochs": 6,
        "sweep_epochs": 1,
        "short_epochs": 2,
        "orders": 20,
        "digit_epochs": 1,
    },
    "02_glove_shuffle_bug": {
        "vocab_size": 300,
        "dim": 16,
        "batch_size": 256,
        "buffer_size": 3000,
        "epochs": 5,
        "learning_rate": 0.002,
    },
    "03_tf_function_speedups": {
        "rows": 1300,
        "repeats": 1,
        "epochs": 2,
        "calls": 4,
        "input_rows": 5000,
        "vocab_size": 100,
        "dim": 8,
        "glove_epochs": 2,
    },
    "04_custom_train_step": {
        "rows": 302,
        "held_out": 100,
        "batch": 64,
        "epochs": 2,
        "width": 16,
    },
    "05_parity_clinic": {"rows": 150, "batch": 32, "epochs": 2},
}
"""Parameters with which each lesson runs in seconds. Claims that need more are then not judged."""


def plant(notebook: nbformat.NotebookNode, old: str, new: str, marker: str = "") -> None:
    """Change one place of a lesson's code, in place.

    Parameters
    ----------
    notebook : NotebookNode
    old, new : str
        What stands there, and what shall.
    marker : str, optional
        Stands in the same cell and in no other; `old` itself if left out.

    Raises
    ------
    AssertionError
        If there is no such place, or more than one: the fault must be planted anew.
    """
    marker = marker or old
    places = [c for c in notebook.cells if c.cell_type == "code" and marker in c.source]
    assert len(places) == 1, f"{marker!r} stands in {len(places)} cells"
    count = places[0].source.count(old)
    assert count == 1, f"{old!r} stands in {count} places of its cell"
    places[0].source = places[0].source.replace(old, new)


def shrink(notebook: nbformat.NotebookNode, parameters: dict[str, Any]) -> None:
    """Give a lesson small parameters, in place."""
    (cell,) = (c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))
    cell.source += "".join(f"\n{name} = {value!r}" for name, value in parameters.items())


def claims_after(
    folder: Path, lesson: str, *faults: tuple[str, str], until: str = ""
) -> dict[str, Claim]:
    """Run a lesson with small parameters after changing its code, and return its claims by name.

    Each fault is a pair of texts, old and new; the old one must stand in exactly one place. With
    `until`, the cells after the one that checks that claim are left out, to save time.
    """
    run.check_parameters(run.LESSONS / f"{lesson}.ipynb", SMALL[lesson])
    notebook = nbformat.read(run.LESSONS / f"{lesson}.ipynb", as_version=4)
    for old, new in faults:
        plant(notebook, old, new)
    if until:
        last = next(k for k, c in enumerate(notebook.cells) if f'"{until}"' in c.source)
        shown = [c for c in notebook.cells if c.source == "claims.show()"]
        notebook.cells[last + 1 :] = shown
    changed = folder / f"{lesson}.ipynb"
    nbformat.write(notebook, changed)
    found, trouble = run.run_lesson(
        changed, folder / "run" / changed.name, SMALL[lesson], progress=False
    )
    assert not trouble, trouble
    return {claim.name: claim for claim in found}


@pytest.fixture
def claims_of(tmp_path: Path) -> Callable[..., dict[str, Claim]]:
    """`claims_after` in a folder of its own."""
    return partial(claims_after, tmp_path)
