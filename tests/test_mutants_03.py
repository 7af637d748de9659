"""Planted faults in lesson 3: each must turn its claims red, and leave the others alone.

Faults that do not touch each other are planted into one copy of the lesson, to save time. Ratios of
times are not judged with small parameters; where a fault is meant for one, the copy judges them.
"""

from __future__ import annotations

import os
import re
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor

import nbformat
import pytest
from conftest import SMALL as PARAMETERS
from conftest import plant, shrink
from nbclient import NotebookClient

from utils import run
from utils.claims import Claim, read

pytestmark = pytest.mark.slow

LESSON = run.LESSONS / "03_tf_function_speedups.ipynb"
SMALL = PARAMETERS[LESSON.stem]
TIMINGS = {
    "eval-decorated-beats-eager",
    "eval-whole-beats-evaluate",
    "iris-step-beats-fit",
    "iris-whole-beats-fit",
    "iris-whole-near-numpy",
    "trap-looking",
    "gather-beats-slices",
    "glove-graph-beats-fit",
}
NEEDS_ALL_PAIRS = {"glove-graph-loss"}

Fault = tuple[str, str, str]
"""Names of the claims that must turn red, old text, new text."""

JUDGE_TIMES = [
    ("", "full = rows >= 10_000", "full = True"),
    ("", "full = epochs >= 10 and repeats >= 3", "full = True"),
    ("", "when=calls >= 20", "when=True"),
    ("", "when=few >= 150_000", "when=True"),
    ("", "full = n >= 1_000_000 and glove_epochs >= 5", "full = n > 0"),
]
FAULTS: dict[str, list[Fault]] = {
    "slow": [
        *JUDGE_TIMES,
        (
            "eval-decorated-beats-eager eval-python-runs-per-shape",
            "decorated_step = tf.function(test_step)",
            "decorated_step = test_step",
        ),
        ("eval-whole-beats-evaluate", "@tf.function\ndef all_batches(", "def all_batches("),
        (
            "eval-same-bits eval-whole-close",
            "prediction = digit_model(x, training=False)",
            "prediction = digit_model(x, training=True)",
        ),
        (
            # The scalar tensor is first met after the debugging, which then counts one trace more.
            "traced-once-per-shape debugging-runs-python",
            "    double(tf.constant(value))",
            "    double(value)",
        ),
        ("graph-keeps-operations", "margin = 2 + 3", "margin = width + 3"),
        ("iris-step-beats-fit", "step = decorate(step_for(name))", "step = step_for(name)"),
        (
            "iris-whole-beats-fit iris-whole-near-numpy xla-other-bits",
            "    @tf.function(jit_compile=jit_compile)\n",
            "",
        ),
        # The last batch is forgotten.
        ("ladder-same-bits", "step_y[k]) for k in range(steps)]", "step_y[k]) for k in range(14)]"),
        (
            "xla-close",
            'zip(trained["tape, whole training, XLA"], trained["fit, arrays"])',
            'zip(trained["tape, whole training, XLA"], new_iris()[0].get_weights())',
        ),
        (
            "trap-python-numbers mend-python-numbers",
            "warm_step(x, y, k) for",
            "warm_step(x, y, tf.constant(k)) for",
        ),
        ("mend-shapes", "train_step, reduce_retracing=True)", "train_step)"),
        ("mend-made-in-loop", "lambda: made_once(x, y)", "lambda: tf.function(train_step)(x, y)"),
        ("mend-unrolled", ", several_steps(tf.range)", ", several_steps(range)"),
        ("trap-late-variables", "if build:", "if True:"),
        ("trap-frozen-noise", "tf.constant(generator.normal())", "tf.random.normal([])"),
        ("trap-captured-rate", "assign_sub(rate_variable * 1.0)", "assign_sub(0.1)"),
        ("trap-looking", "@tf.function\ndef step_with_metric(", "def step_with_metric("),
        ("gather-beats-slices", "walk(gathered(*few_rows))", "walk(source)"),
        (
            "gather-every-row-once",
            "tf.random.shuffle(tf.range(len(counts)), seed=shuffle_seed)",
            "tf.random.uniform([len(counts)], 0, len(counts), tf.int32)",
        ),
        (
            "repeated-word-as-dense",
            "words, place = tf.unique(rows)",
            "words, place = rows, tf.range(tf.size(rows))",
        ),
        ("row-gradients-as-tape", "(word, pull * other)", "(word, pull * one)"),
        ("ones-stay-ones", "([rate, 0.0], [0.0, rate])", "([rate, rate], [rate, rate])"),
        (
            "glove-graph-beats-fit",
            "    epoch_of[name] = epoch\n",
            "    epoch_of[name] = lambda: tf.function(epoch.python_function)()\n",
        ),
    ],
    "wrong": [
        (
            "debugging-runs-python",
            "tf.config.run_functions_eagerly(True)",
            "tf.config.run_functions_eagerly(False)",
        ),
        ("mend-python-numbers", "warm_step(x, y, tf.constant(k))", "warm_step(x, y, calls + k)"),
        (
            "trap-shapes",
            "strict_step = tf.function(train_step)",
            "strict_step = tf.function(train_step, reduce_retracing=True)",
        ),
        ("trap-made-in-loop", "lambda: tf.function(train_step)(x, y)", "lambda: strict_step(x, y)"),
        ("trap-unrolled", "several_steps(range), several", "several_steps(tf.range), several"),
    ],
    "unmodified": [],
}
PARTS = {
    # Section 4 needs two cells of the others: the spy, and the flowers.
    "wrong": ({2, 4}, ("python_runs = []", "def new_iris(")),
}
"""Sections that a copy keeps, and marks of single cells from other sections."""

PLANTED = [
    pytest.param(copy, claim, id=f"{copy}: {claim}")
    for copy, faults in FAULTS.items()
    for fault in faults
    for claim in fault[0].split()
]


def sections(notebook: nbformat.NotebookNode) -> list[int]:
    """The number of the section in which each cell stands; 0 before the first."""
    numbers, number = [], 0
    for cell in notebook.cells:
        headings = re.findall(r"^## (\d+)\.", cell.source, re.M) if cell.cell_type != "code" else []
        number = int(headings[-1]) if headings else number
        numbers.append(number)
    return numbers


def changed(copy: str) -> nbformat.NotebookNode:
    """The lesson with small parameters and this copy's faults, without the cells that only show."""
    notebook = nbformat.read(LESSON, as_version=4)
    for _, old, new in FAULTS[copy]:
        plant(notebook, old, new)
    shrink(notebook, SMALL)
    kept, marks = PARTS.get(copy, (set(range(1, 8)), ()))
    notebook.cells = [
        cell
        for cell, section in zip(notebook.cells, sections(notebook), strict=True)
        if cell.cell_type == "code"
        and "nbval-ignore-output" not in cell.metadata.get("tags", [])
        and (section in kept | {0} or any(mark in cell.source for mark in marks))
    ]
    if not any(cell.source == "claims.show()" for cell in notebook.cells):
        notebook.cells.append(nbformat.v4.new_code_cell("claims.show()"))
    return notebook


def execute(copy: str) -> dict[str, Claim]:
    """Run a copy in an empty folder and return its claims by name."""
    notebook = changed(copy)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute(
            env=os.environ | {"MPLBACKEND": "agg"}
        )
    return {claim.name: claim for claim in read(notebook)}


@pytest.fixture(scope="module")
def results() -> dict[str, Future]:
    """What each copy claims; two copies run at a time."""
    with ThreadPoolExecutor(2) as pool:
        return {copy: pool.submit(execute, copy) for copy in FAULTS}


def red(claims: dict[str, Claim]) -> set[str]:
    return {name for name, claim in claims.items() if claim.holds is False}


def test_small_parameters_are_those_of_the_lesson() -> None:
    run.check_parameters(LESSON, SMALL)


def test_unmodified_lesson_holds_with_the_same_parameters(results) -> None:
    claims = results["unmodified"].result()
    assert red(claims) == set()
    assert {name for name, claim in claims.items() if claim.holds is None} == (
        TIMINGS | NEEDS_ALL_PAIRS
    )


@pytest.mark.parametrize(("copy", "claim"), PLANTED)
def test_fault_turns_its_claim_red(results, copy: str, claim: str) -> None:
    assert results[copy].result()[claim].holds is False


@pytest.mark.parametrize("copy", FAULTS)
def test_other_claims_stay_as_they_are(results, copy: str) -> None:
    planted = {claim for fault in FAULTS[copy] for claim in fault[0].split()}
    assert red(results[copy].result()) - NEEDS_ALL_PAIRS - TIMINGS == planted - TIMINGS


def test_every_claim_has_a_fault_or_a_reason(results) -> None:
    planted = {parameter.values[1] for parameter in PLANTED}
    assert planted == set(results["unmodified"].result()) - NEEDS_ALL_PAIRS
