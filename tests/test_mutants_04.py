"""Planted faults in lesson 4: each must turn its claim red.

A fault needs only a part of the lesson. A run keeps the sections that it names; of the others it
keeps the cells that only define something. Faults that touch different claims share a run.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import nbformat
import pytest
from conftest import SMALL as PARAMETERS
from conftest import plant, shrink
from nbclient import NotebookClient

from utils import claims, run

pytestmark = pytest.mark.slow

LESSON = run.LESSONS / "04_custom_train_step.ipynb"
SMALL = PARAMETERS[LESSON.stem]
DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)


@dataclass(frozen=True)
class Fault:
    """A change of one cell, and the claims that it must turn red.

    `marker` stands in one code cell only; `old` stands in that cell once and becomes `new`.
    """

    red: str
    marker: str
    old: str
    new: str


# Sections are named by number, or parts of a section by how their headings begin.
RUNS: dict[str, tuple[set[str], list[Fault]]] = {
    # Faults beside the own step, which only forgets `model.losses`: most models have none.
    "around": (
        {"1", "2", "3", "4", "The same thing", "Sample weights", "Stop and", "7"},
        [
            Fault(
                "second-form-same-weights second-form-same-logs",
                "class OwnStep(",
                "scale_loss(loss)",
                "scale_loss(loss - sum(self.losses))",
            ),
            Fault(
                "attribute-needs-no-property",
                "class Attribute(",
                "self.kept_here = tracker",
                "self.kept_here = None",
            ),
            Fault(
                "unlisted-metric-mixes-epochs unlisted-metric-wrong-from-epoch-2",
                "class OtherName(",
                "class OtherName(FirstForm)",
                "class OtherName(Listed)",
            ),
            Fault(
                "same-name-logs-zero",
                '"not listed, logged as loss": FirstForm',
                '"not listed, logged as loss": FirstForm',
                '"not listed, logged as loss": Listed',
            ),
            Fault(
                "three-builds-same-bits", "def build_sequential(", "Dropout(0.5)", "Dropout(0.4)"
            ),
            Fault("first-use-changes-the-class", "class Fresh(", "build(Fresh)", "Fresh()"),
            Fault(
                "unweighted-mean-logs-another-loss",
                "class ShortStep(",
                "update_state(loss)",
                "update_state(loss, sample_weight=tf.shape(inputs)[0])",
            ),
            Fault(
                "loss-is-mean-over-images",
                "per_image = -np.log",
                "penalty = float(sum(judge.losses))",
                "penalty = 0.0",
            ),
            Fault("compute-loss-suffices", "class OwnLoss(", " + sum(self.losses)", ""),
            Fault(
                "keras2-step-logs-one-tenth",
                "class Keras2Step(",
                "self.compiled_metrics.update_state(targets, predictions)",
                "self.metrics[0].update_state(loss)\n"
                "        return self.compute_metrics(inputs, targets, predictions)",
            ),
            Fault(
                "todays-names-work",
                "old_metrics = ",
                "| metric.reset_state() |",
                "| metric.reset_states() |",
            ),
            Fault("silent-old-names", "old_optimizers = ", "optimizer.lr = 0.5", "optimizer.lr"),
            Fault(
                "accumulation-equals-large-batch",
                "class Accumulating(",
                'share = tf.cast((cut.stop - cut.start) / n, "float32")',
                "share = 0.25",
            ),
            Fault(
                "optimizer-option-differs",
                "fit(large), fit(pieces)",
                "fit(option, batch_size=batch // 4)",
                "option.set_weights(large.get_weights())",
            ),
            Fault(
                "sharpness-aware-step detour-matters",
                "class SharpnessAware(",
                "radius = 0.05",
                "radius = 0.0",
            ),
            Fault(
                "callbacks-equal-the-bare-loop callbacks-same-logs",
                "best, waited, logs_bare =",
                "optimizer.learning_rate = schedule(epoch, float(optimizer.learning_rate))",
                "pass",
            ),
            Fault("dropped-weights-are-silent", "class Dropped(", "data[:2]", "data"),
            Fault(
                "backup-restores-weights-and-optimizer dropout-breaks-resume",
                "def interrupted(",
                "fit(resumed, epochs=total, callbacks=[backup(folder)])",
                "fit(resumed, epochs=4 if total == 4 else 1)",
            ),
            Fault(
                "two-optimizers",
                "class TwoOptimizers(",
                "self.head_optimizer.apply_gradients(pairs[-2:])",
                "pass",
            ),
            Fault(
                "callbacks-see-one-optimizer",
                "body, head =",
                "lambda epoch, rate: rate / 2",
                "lambda epoch, rate: rate",
            ),
        ],
    ),
    # The own step gets its logs, its loss scale and its sample weights wrong.
    "step": (
        {"5", "6"},
        [
            Fault(
                "callbacks-same-logs",
                "class OwnStep(",
                "update_state(loss, sample_weight=tf.shape(inputs)[0])",
                "update_state(loss)",
            ),
            Fault(
                "own-step-scales-the-loss",
                "class OwnStep(",
                "scaled = self.optimizer.scale_loss(loss)",
                "scaled = loss",
            ),
            Fault(
                "weights-reach-own-step",
                "class OwnStep(",
                "self.compute_loss(inputs, targets, predictions, weights)",
                "self.compute_loss(inputs, targets, predictions)",
            ),
            Fault(
                "short-step-forgets-loss-scale",
                "class ShortStep(",
                "loss = self.compute_loss(y=targets, y_pred=predictions)\n"
                "        gradients = tape.gradient(loss,",
                "loss = self.compute_loss(y=targets, y_pred=predictions)\n"
                "            scaled = self.optimizer.scale_loss(loss)\n"
                "        gradients = tape.gradient(scaled,",
            ),
            Fault(
                "steps-per-execution-same-bits",
                "one, five =",
                "compiled(OwnStep, steps_per_execution=5)",
                'compiled(OwnStep, optimizer="sgd", steps_per_execution=5)',
            ),
            Fault(
                "resume-to-the-bit",
                "class Resumable(",
                'variable.assign(store[f"random_{number}"])',
                "pass",
            ),
            Fault(
                "event-file-holds-the-logs",
                "class EventFile(",
                "tf.constant(value)",
                "tf.constant(0.0)",
            ),
            Fault(
                "overflow-happened overflow-skips-the-step",
                "initial_scale=2.0**32",
                "initial_scale=2.0**32",
                "initial_scale=2.0**5",
            ),
            Fault(
                "train-step-is-traced eager-step-runs-every-time",
                "in_graph, eagerly =",
                "python_runs(), python_runs(run_eagerly=True)",
                "python_runs(run_eagerly=True), python_runs()",
            ),
            Fault(
                "no-autograph-in-train-step",
                "class Decorated(",
                "tf.function(Branching.train_step)",
                "Branching.train_step",
            ),
            Fault(
                "xla-draws-other-masks",
                "def xla_difference(",
                "jit_compile=jit",
                "jit_compile=False",
            ),
            Fault(
                "xla-close-without-dropout",
                "def build_without_dropout(",
                "keras.utils.set_random_seed(seed)",
                "pass",
            ),
            Fault(
                "own-test-step-validates",
                "class Complete(",
                "update_state(loss, sample_weight=tf.shape(inputs)[0])",
                "update_state(loss)",
            ),
            Fault("own-predict-step", "class Complete(", "tf.argmax", "tf.argmin"),
        ],
    ),
    # Nothing is planted: all claims hold with the same parameters.
    "unmodified": (set("12345678"), []),
}

PLANTED = [
    pytest.param(name, claim, id=f"{name}: {claim}")
    for name, (_, faults) in RUNS.items()
    for fault in faults
    for claim in fault.red.split()
]


def prepare(name: str) -> nbformat.NotebookNode:
    """The lesson with small parameters, the run's faults, and only the cells that it needs."""
    wanted, faults = RUNS[name]
    notebook = nbformat.read(LESSON, as_version=4)
    shrink(notebook, SMALL)
    for fault in faults:
        plant(notebook, fault.old, fault.new, fault.marker)
    kept, section, part = [], "", ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for level, title in re.findall(r"(?m)^(##+) (.+)$", cell.source):
                if level == "##":
                    section, part = title[:1] if title[0].isdigit() else "", title
                else:
                    part = title
        elif not section or needed(section, part, wanted) or only_defines(cell.source):
            kept.append(cell)
    notebook.cells = kept
    return notebook


def needed(section: str, part: str, wanted: set[str]) -> bool:
    return section in wanted or any(part.startswith(title) for title in wanted)


def only_defines(source: str) -> bool:
    return all(isinstance(node, DEFINITIONS) for node in ast.parse(source).body)


def execute(name: str) -> dict[str, claims.Claim]:
    notebook = prepare(name)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        ).execute()
    return {claim.name: claim for claim in claims.read(notebook)}


@pytest.fixture(scope="module")
def results() -> dict[str, Future]:
    """The runs, two at a time: `unmodified`, the longest, first."""
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        yield {name: pool.submit(execute, name) for name in reversed(RUNS)}


@pytest.mark.parametrize(("name", "claim"), PLANTED)
def test_fault_turns_its_claim_red(results, name: str, claim: str) -> None:
    assert results[name].result()[claim].holds is False


def test_unmodified_lesson_holds_with_the_same_parameters(results) -> None:
    found = results["unmodified"].result()
    assert [name for name, claim in found.items() if claim.holds is False] == []
    # What a fault is planted for must be judged at these parameters.
    assert {p.values[1] for p in PLANTED} <= {n for n, claim in found.items() if claim.holds}


def test_every_claim_has_a_fault_or_a_reason(results) -> None:
    # Whether the model learns enough is not judged at these parameters.
    assert {p.values[1] for p in PLANTED} == set(results["unmodified"].result()) - {
        "own-step-learns"
    }


def test_faults_leave_other_claims_alone(results) -> None:
    for name, (_, faults) in RUNS.items():
        red = {n for n, claim in results[name].result().items() if claim.holds is False}
        planted = {claim for fault in faults for claim in fault.red.split()}
        assert red == planted, name
