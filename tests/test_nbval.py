"""nbval as configured here: a wrong output, a dead kernel and an endless cell fail in time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from utils.outputs import METADATA

ROOT = Path(__file__).parent.parent


def nbval(
    path: Path, cells: list[nbformat.NotebookNode], seconds: int
) -> subprocess.CompletedProcess[str]:
    """Run nbval, as set up in pyproject.toml but for the time limit, on a notebook."""
    for number, cell in enumerate(cells, start=1):
        cell.execution_count = number
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-n0"]
    command += [f"--nbval-cell-timeout={seconds}", "-p", "no:cacheprovider", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=path.parent)


def check(path: Path, source: str, stored: str) -> subprocess.CompletedProcess[str]:
    """Run nbval on a notebook of two cells, of which the second is right."""
    cells = [
        new_code_cell(source, outputs=[new_output("stream", text=stored)]),
        new_code_cell("print('next')", outputs=[new_output("stream", text="next\n")]),
    ]
    return nbval(path, cells, seconds=8)


@pytest.mark.parametrize(
    ("source", "passes"),
    [
        pytest.param("print('same')", True, id="same"),
        pytest.param("print('other')", False, id="other output"),
        pytest.param("1 / 0", False, id="error"),
        pytest.param("import os\nos._exit(1)", False, id="dead kernel"),
        pytest.param("while True: pass", False, id="endless"),
    ],
)
def test_nbval_passes_only_what_is_the_same(tmp_path: Path, source: str, passes: bool) -> None:
    done = check(tmp_path / "a.ipynb", source, "same\n")
    assert done.returncode == (0 if passes else 1), done.stdout + done.stderr
    assert ("1 failed" in done.stdout or "2 failed" in done.stdout) != passes


PREPARE = """import sys

sys.modules["tensorflow"] = sys  # drawing does not need it, and importing it takes long
from utils import plots

import matplotlib.pyplot as plt"""
PLOT = """
fig, ax = plt.subplots()
plots.curves(ax, {"fit": [3, 2, 1], "tape": [3, 2, 2]}, title="A finding", ylabel="loss")
plt.show()
"""
STORED = {
    "image/png": "iVBORw0KGgo=",
    "text/plain": """figure
axes 'A finding'
  x: 'epoch', linear
  y: 'loss', linear
  legend: ['fit', 'tape']
  line 'fit': #b0b0b0, -, width 4; 3 points, x 1 2 3, y 3 2 1, lowest and highest 1 3
  line 'tape': #0072b2, --, width 1.8; 3 points, x 1 2 3, y 3 2 2, lowest and highest 2 3""",
}


def test_nbval_compares_what_figures_show(tmp_path: Path) -> None:
    swapped = PLOT.replace("[3, 2, 1]", "curve").replace("[3, 2, 2]", "[3, 2, 1]")
    sources = [
        PLOT,
        swapped.replace("curve", "[3, 2, 2]"),
        PLOT.replace("plt.show", "ax.get_legend().remove()\nplt.show"),
    ]
    # Another picture beside the same text is no failure: nbval cannot compare pictures.
    figures = [new_output("display_data", data=STORED) for _ in sources]
    cells = [new_code_cell(PREPARE)] + [
        new_code_cell(source, outputs=[figure]) for source, figure in zip(sources, figures)
    ]
    done = nbval(tmp_path / "a.ipynb", cells, seconds=100)
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    failed = re.findall(r"^FAILED .*::(Cell \d)", done.stdout, re.MULTILINE)
    assert failed == ["Cell 2", "Cell 3"]
