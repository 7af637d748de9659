"""What several test files share: run a lesson, or a changed copy, with small parameters."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.fixture
def claims_of(tmp_path: Path) -> Callable[..., dict[str, Claim]]:
    """Run a lesson with small parameters after changing its code, and return its claims by name.

    Each fault is a pair of texts, old and new; the old one must stand in exactly one code cell.
    With `until`, the cells after the one that checks that claim are left out, to save time.
    """

    def claims_of(lesson: str, *faults: tuple[str, str], until: str = "") -> dict[str, Claim]:
        run.check_parameters(run.LESSONS / f"{lesson}.ipynb", SMALL[lesson])
        notebook = nbformat.read(run.LESSONS / f"{lesson}.ipynb", as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        for old, new in faults:
            places = [cell for cell in code if old in cell.source]
            assert len(places) == 1, f"{old!r} stands in {len(places)} cells"
            places[0].source = places[0].source.replace(old, new)
        if until:
            last = next(k for k, c in enumerate(notebook.cells) if f'"{until}"' in c.source)
            notebook.cells[last + 1 :] = [c for c in code if c.source == "claims.show()"]
        changed = tmp_path / f"{lesson}.ipynb"
        nbformat.write(notebook, changed)
        found, trouble = run.run_lesson(
            changed, tmp_path / "run" / changed.name, SMALL[lesson], progress=False
        )
        assert not trouble, trouble
        return {claim.name: claim for claim in found}

    return claims_of
