"""What a test cell of an assignment says to the student: the misconception, and where to read.

A check that fails raises `Misconception`; its text is the whole message. It works in plain
JupyterLab, and the grader shows the same text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from unittest import mock

import keras

from utils import parity
from utils.blackbox import Train
from utils.diagnosis import Cause
from utils.faults import FAULTS
from utils.loops import Setup
from utils.parity_report import BROKEN, Report

IRIS, GLOVE, SPEED = "01_iris_fit_vs_tape", "02_glove_shuffle_bug", "03_tf_function_speedups"
STEP, CLINIC = "04_custom_train_step", "05_parity_clinic"


class Misconception(AssertionError):
    """What a student's work shows to be misunderstood; the message is for the student."""

    def _render_traceback_(self) -> list[str]:
        """Jupyter shows this in place of a traceback: the message is all that helps."""
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class Remark:
    """What to say of a fault.

    Attributes
    ----------
    clause : str
        Completes the sentence "Your loop trains exactly as a loop that ... would".
    lesson : str
        Name of the notebook to read.
    section : str
        Heading of the section there.
    """

    clause: str
    lesson: str
    section: str


REMARKS = {
    "initial_weights_differ": Remark(
        "starts from weights of its own",
        CLINIC,
        "Patient 15: a fresh start, they said",
    ),
    "label_rank_broadcast": Remark(
        "subtracts labels of shape (N,) from predictions of shape (N, 1)",
        GLOVE,
        "5. Second suspect: the shapes",
    ),
    "training_flag_missing": Remark(
        "calls the model without `training=True`", IRIS, "9. A harder model"
    ),
    "regularization_missing": Remark("leaves out `model.losses`", IRIS, "9. A harder model"),
    "loss_summed": Remark(
        "sums the losses of a batch instead of averaging them",
        CLINIC,
        "Patient 4: jumps, and grows with the batch size",
    ),
    "logits_mismatch": Remark(
        "takes logits for probabilities, or the other way round",
        CLINIC,
        "Patient 3: the loss starts too high and creeps",
    ),
    "sample_weight_ignored": Remark(
        "leaves out the sample weights", STEP, "Sample weights and class weights"
    ),
    "clipping_missing": Remark(
        "does not clip the gradients", CLINIC, "Patient 5: calm under `fit`, wild in the loop"
    ),
    "model_called_twice": Remark("calls the model twice in every step", IRIS, "9. A harder model"),
    "arguments_swapped": Remark(
        "hands predictions to the loss where labels belong", CLINIC, "1. One healthy loop"
    ),
    "clipping_added": Remark(
        "clips gradients that `fit` does not clip",
        CLINIC,
        "Patient 5: calm under `fit`, wild in the loop",
    ),
    "gradients_applied_twice": Remark(
        "updates the weights twice for every batch", CLINIC, "Some faults look alike"
    ),
    "variables_left_out": Remark(
        "never changes some of the trainable variables",
        CLINIC,
        "Patient 2: it learns a little, then no more",
    ),
    "schedule_ignored": Remark(
        "keeps the first learning rate for ever", CLINIC, "Patient 6: the healthy loop"
    ),
    "last_batch_dropped": Remark(
        "drops the last batch of every epoch", CLINIC, "Patient 7: a little less of everything"
    ),
    "order_frozen": Remark(
        "takes the rows in the same order in every epoch", CLINIC, "Patient 13: every epoch alike"
    ),
    "order_not_shuffled": Remark(
        "takes the rows unshuffled", GLOVE, "4. First suspect: the order of the rows"
    ),
    "shuffle_pass_differs": Remark(
        "takes other passes over the shuffled dataset than `fit`",
        CLINIC,
        "Patient 14: an innocent look",
    ),
    "optimizer_state_reused": Remark(
        "uses an optimizer that has made steps before", CLINIC, "9. Different each time"
    ),
    "optimizer_state_lost": Remark(
        "makes a new optimizer in every epoch", CLINIC, "9. Different each time"
    ),
    "validation_updates_weights": Remark(
        "changes the model between the epochs (in validation, perhaps)",
        CLINIC,
        "Patient 10: a validation loss that nobody can repeat",
    ),
    "regularization_twice": Remark(
        "adds `model.losses` twice", STEP, "Which of the two losses is right?"
    ),
    "sample_weight_averaged": Remark(
        "divides by the sum of the sample weights instead of the number of rows",
        STEP,
        "Sample weights and class weights",
    ),
    "batch_size_fixed": Remark(
        "divides the smaller last batch, too, by the full batch size",
        IRIS,
        "9. A harder model",
    ),
    "first_batch_skipped": Remark(
        "skips the first batch of every epoch", CLINIC, "Patient 7: a little less of everything"
    ),
    "epochs_miscounted": Remark(
        "makes one epoch too many or too few", CLINIC, "1. One healthy loop"
    ),
    "phantom_step_missing": Remark(
        "ends each epoch one step before `fit` does",
        CLINIC,
        "10. When `fit` is the patient",
    ),
    "callbacks_ignored": Remark(
        "does nothing of what the callbacks do", STEP, "The same thing twice: callbacks"
    ),
    "other_optimizer": Remark(
        "uses an optimizer of its own instead of the given one", CLINIC, "1. One healthy loop"
    ),
    "learning_rate_differs": Remark(
        "has a learning rate of its own", CLINIC, "1. One healthy loop"
    ),
    "embedding_gradient_dense": Remark(
        "makes a full matrix of the gradient of an embedding", SPEED, "Only the rows that occur"
    ),
    "epoch_mean_unweighted": Remark(
        "lets the smaller last batch count as much as a full one",
        CLINIC,
        "Patient 11: off in the third digit",
    ),
    "metric_not_reset": Remark(
        "never resets its metric",
        CLINIC,
        "Patient 12: the curve is too smooth",
    ),
    "penalties_not_logged": Remark(
        "leaves `model.losses` out of the loss that it logs",
        STEP,
        "Which of the two losses is right?",
    ),
    "last_batch_logged": Remark("reports the last batch of each epoch only", CLINIC, "8. Odd logs"),
}
"""What to say of each fault that `utils.faults` knows."""


_LOG_FAULTS = {fault.name for fault in FAULTS if fault.log_style}


def same_training(setup: Setup, train: Train, *, logs: bool = True) -> Report:
    """Demand that a loop trains as ``fit`` does.

    Parameters
    ----------
    setup : Setup
        What is trained.
    train : callable
        The student's loop, as `utils.parity.compare` takes it.
    logs : bool, default True
        Whether the history that the loop returns must be that of ``fit`` too. If not, it may
        return anything.

    Returns
    -------
    Report
        Of the comparison, if the two are equal.

    Raises
    ------
    Misconception
        If not: which mistake makes a loop train like this, and the section to read.
    TypeError
        If `train` cannot be called.
    """
    report = parity.compare(setup, train if logs or not callable(train) else _WithoutLogs(train))
    if report.equal:
        return report
    raise Misconception(_judgement(report))


def by_hand(train: Train) -> Train:
    """Forbid a loop to call ``fit`` or ``train_on_batch``: it is to be written out.

    Parameters
    ----------
    train : callable
        The student's loop.

    Returns
    -------
    callable
        The same loop; where it calls one of these, `Misconception` is raised.
    """
    return _ByHand(train) if callable(train) else train


def require(condition: Any, sentence: str, lesson: str = "", section: str = "") -> None:
    """Demand that a condition holds.

    Parameters
    ----------
    condition : bool
    sentence : str
        What to tell the student if it does not: what is wrong, in the student's terms.
    lesson, section : str, optional
        Name of a notebook, and the heading of the section there to read.

    Raises
    ------
    Misconception
        With the sentence, and the section to read.
    """
    if not condition:
        raise Misconception(" ".join([sentence, _pointer(lesson, section)]).strip())


class _Wrapped:
    """A student's loop that is called in a changed way."""

    def __init__(self, train: Train) -> None:
        self._train = train
        # By this, an error is traced to the line that raised it.
        self.__code__ = getattr(train, "__code__", None)


class _WithoutLogs(_Wrapped):
    def __call__(self, *arguments: Any) -> None:
        self._train(*arguments)


class _ByHand(_Wrapped):
    def __call__(self, *arguments: Any) -> Any:
        with (
            mock.patch.object(keras.Model, "fit", _forbidden),
            mock.patch.object(keras.Model, "train_on_batch", _forbidden),
        ):
            return self._train(*arguments)


def _forbidden(*arguments: Any, **options: Any) -> None:
    raise Misconception("This task asks for a loop of your own, without `fit`.")


def _judgement(report: Report) -> str:
    if report.verdict == BROKEN and not report.causes:
        not_written = re.search(r"raised NotImplementedError.*: (Task .*)", report.summary)
        return f"Not written yet. {not_written[1]}" if not_written else report.summary
    if not report.causes:
        notes = " ".join(report.notes)
        start = f"Your loop does not train as `fit` does: {report.summary} {notes}"
        return f"{start} {_pointer(CLINIC, '3. Which symptom do you have?')}"
    cause, *others = report.causes
    remark = REMARKS[cause.name]
    return " ".join([_likeness(cause), *_rivals(cause, others), _pointer_of(remark)])


def _likeness(cause: Cause) -> str:
    """Say whom the student's loop resembles, and how closely."""
    clause = REMARKS[cause.name].clause
    if cause.name in _LOG_FAULTS:
        return f"Your loop trains as `fit` does, but logs as a loop that {clause} would."
    if cause.partner:
        clause += f" and {REMARKS[cause.partner].clause}"
    exactly = "exactly " if cause.exact else ""
    return f"Your loop trains {exactly}as a loop that {clause} would."


def _rivals(cause: Cause, others: list[Cause]) -> list[str]:
    """Say what else would explain the same numbers, so that nobody mends the wrong line."""
    rivals = [
        REMARKS[other.name].clause
        for other in others
        if not cause.partner and (other.name in _LOG_FAULTS) == (cause.name in _LOG_FAULTS)
    ]
    return [f"So does one that {' or that '.join(rivals)}."] if rivals else []


def _pointer_of(remark: Remark) -> str:
    return _pointer(remark.lesson, remark.section)


def _pointer(lesson: str, section: str) -> str:
    return f"Read lesson {int(lesson[:2])}, section ‘{section}’." if lesson else ""
