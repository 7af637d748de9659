"""nbval as configured here: a wrong output, a dead kernel and an endless cell fail in time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from utils.outputs import METADATA

ROOT = Path(__file__).parent.parent


def check(path: Path, source: str, stored: str) -> subprocess.CompletedProcess[str]:
    """Run nbval, as set up in pyproject.toml but for the time limit, on a notebook of two cells."""
    output = new_output("stream", text=stored)
    cells = [
        new_code_cell(source, execution_count=1, outputs=[output]),
        new_code_cell(
            "print('next')", execution_count=2, outputs=[new_output("stream", text="next\n")]
        ),
    ]
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-n0"]
    command += ["--nbval-cell-timeout=8", "-p", "no:cacheprovider", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=path.parent)


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
