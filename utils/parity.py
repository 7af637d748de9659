"""Which bug makes this loop differ from ``fit``?

>>> setup = parity.Setup(build_model, build_optimizer, loss, build_dataset, epochs=3)
>>> print(parity.compare(setup, train))

runs ``fit`` and the learner's ``train``, finds the first step after which the weights differ, and
names the known fault that reproduces the difference, if there is one. From a shell:
``python -m utils.parity FILE.py`` (or ``.ipynb``), for a file that defines `setup` and `train`.

Where to look: loops.py has the nouns; blackbox.py runs the learner's loop and keeps it from
hanging; reference.py (with objectives.py and passes.py) is the loop that faults are built into;
faults.py lists them; diagnosis.py finds the first difference and the fault, histories.py does so
for the logs; distances.py says what counts as equal; parity_report.py puts it into words.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from utils import blackbox, parity_report
from utils.blackbox import Outcome, Train
from utils.diagnosis import Cause, Examination
from utils.distances import same_bits
from utils.histories import comparable
from utils.loops import Setup, SetupError, Weights
from utils.parity_report import BROKEN, IDENTICAL, Report
from utils.reference import Reference

__all__ = ["Cause", "Report", "Setup", "SetupError", "compare", "main"]

History = dict[str, np.ndarray]


def compare(setup: Setup, train: Train, *, time_limit: float | None = None) -> Report:
    """Compare a training loop with ``fit`` on the same model, data and seed.

    The loop is run several times, on data cut short, to find out where it differs; what it prints
    is dropped. The global seed is set.

    Parameters
    ----------
    setup : Setup
    train : callable
        ``train(model, optimizer, loss, dataset, epochs)`` trains the model that it is given and
        returns a dict such as ``{"loss": [...]}`` with one number an epoch, or None.
    time_limit : float, optional
        Seconds for one run of the loop; by default 20 and twenty times what ``fit`` took.

    Returns
    -------
    Report

    Raises
    ------
    TypeError
        If `train` cannot be called.
    SetupError
        If ``fit`` itself cannot train the set-up, or ends with NaN.
    """
    if not callable(train):
        raise TypeError(f"train is a {type(train).__name__}; a function is expected.")
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights, history = _fit(setup)
    limit = time_limit or 20 + 20 * (time.perf_counter() - started)

    def rerun(batches: int | None, epochs: int) -> Outcome:
        return blackbox.run(setup, train, batches=batches, epochs=epochs, seconds=limit)

    full = rerun(None, setup.epochs)
    broken = _broken(full, weights)
    if broken:
        return Report(BROKEN, broken)
    odd_lengths = _lengths(full, history)
    if same_bits(full.weights, weights) and not odd_lengths and _same_logs(full, history):
        return Report(IDENTICAL, _identical(full, history), notes=tuple(full.warnings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notes = full.warnings + odd_lengths
        try:
            examination = Examination(Reference(setup), (weights, history), full, rerun)
            return parity_report.from_finding(examination, examination.examine(), notes)
        except Exception as error:  # A set-up that the reference loop cannot train.
            return parity_report.without_diagnosis(full, weights, error, notes)


def _fit(setup: Setup) -> tuple[Weights, History]:
    try:
        weights, history = setup.fit()
    except SetupError:
        raise
    except Exception as error:
        message = blackbox.first_line(error)
        raise SetupError(f"`fit` itself fails here: {type(error).__name__}: {message}") from error
    if any(np.isnan(w).any() for w in weights if w.dtype.kind == "f"):
        raise SetupError("`fit` itself ends with NaN weights here; lower the learning rate.")
    return weights, history


def _broken(full: Outcome, fit: Weights) -> str:
    """Say so if there is no training to compare, else nothing."""
    if full.problem:
        fine = full.weights and same_bits(full.weights, fit)
        return f"{full.problem}{' Its weights are those of `fit`.' if fine else ''}"
    rows = zip(full.weights, full.first_weights, fit, full.trainable)
    moved = [(not np.array_equal(w, f), not np.array_equal(g, f)) for w, f, g, t in rows if t]
    if any(mine for mine, _ in moved) or not any(its for _, its in moved):
        return ""
    if full.updates:
        return (
            f"The optimizer made {full.updates} updates, and none changed the model that the loop "
            "was given: it trains another model, or its gradients are zero."
        )
    return (
        "The loop never changed the model that it was given: it makes no step, or it trains "
        "another model."
    )


def _lengths(full: Outcome, history: History) -> list[str]:
    """Say what of the returned history cannot be compared."""
    names = comparable(full.history, history)
    return [
        f"`{name}` has {len(series)} values where `fit` returns {len(history[name])}."
        for name, series in full.history.items()
        if name in history and name not in names
    ]


def _same_logs(full: Outcome, history: History) -> bool:
    return all(
        np.array_equal(np.float32(full.history[k]), np.float32(history[k]), equal_nan=True)
        for k in comparable(full.history, history)
    )


def _identical(full: Outcome, history: History) -> str:
    names = [f"`{name}`" for name in comparable(full.history, history)]
    logs = f"every value of {', '.join(names)}" if names else "it returned no history to compare"
    return (
        f"every weight is bit-identical to that of `fit` (0 ULP); {'so is ' * bool(names)}{logs}."
    )


# --- the command line -----------------------------------------------------------------------------


def load(path: Path) -> dict[str, Any]:
    """Run a Python file or a notebook and return its names."""
    if path.suffix != ".ipynb":
        return runpy.run_path(str(path))
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            source = "\n".join("" if re.match(r"\s*[%!]", line) else line for line in lines)
            exec(compile(source, f"{path.name}, cell {number + 1}", "exec"), names)
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the loop in a file with ``fit``; 0 if equal, 1 if not, 2 if it cannot be told."""
    parser = argparse.ArgumentParser(
        prog="python -m utils.parity",
        description="Compare a training loop with model.fit() and name the bug.",
    )
    parser.add_argument("file", type=Path, help="FILE.py or FILE.ipynb with `setup` and `train`")
    parser.add_argument("--time-limit", type=float, help="seconds for one run of the loop")
    options = parser.parse_args(arguments)
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        names = load(options.file)
        missing = [name for name in ("setup", "train") if name not in names]
        if missing:
            raise SetupError(f"{options.file} defines no {' and no '.join(missing)}.")
        report = compare(names["setup"], names["train"], time_limit=options.time_limit)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(report)
    return 0 if report.equal else 1


if __name__ == "__main__":
    blackbox.leave_when_stuck = True
    # As `utils.parity`, so that a file that imports it shares its classes.
    from utils import parity

    sys.exit(parity.main())
