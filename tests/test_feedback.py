"""`utils.feedback`: every fault has a remark that leads somewhere, and the sentences say it."""

from __future__ import annotations

import keras
import nbformat
import numpy as np
import pytest
import tensorflow as tf
from IPython.core.interactiveshell import InteractiveShell

from utils import feedback, run, training
from utils.diagnosis import Cause
from utils.faults import FAULTS
from utils.feedback import REMARKS, Misconception
from utils.loops import Setup
from utils.parity_report import BROKEN, DIFFERENT, Report

LOST = Cause("regularization_missing", "", "", "")
FLAG = Cause("training_flag_missing", "", "", "")


def headings(lesson: str) -> set[str]:
    cells = nbformat.read(run.LESSONS / f"{lesson}.ipynb", as_version=4).cells
    lines = [line for c in cells if c.cell_type == "markdown" for line in c.source.splitlines()]
    return {line.lstrip("#").strip() for line in lines if line.startswith("#")}


def test_every_fault_has_a_remark_and_no_remark_is_left_over():
    assert set(REMARKS) == {fault.name for fault in FAULTS}


def test_every_remark_points_to_a_heading_of_its_lesson():
    known = {lesson: headings(lesson) for lesson in {r.lesson for r in REMARKS.values()}}
    assert [n for n, r in REMARKS.items() if r.section not in known[r.lesson]] == []


def test_every_clause_fits_into_the_sentence():
    for remark in REMARKS.values():
        assert remark.clause[0].islower() and not remark.clause.endswith(".")


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (
            Report(DIFFERENT, "…", causes=(LOST,)),
            "Your loop trains exactly as a loop that leaves out `model.losses` would. "
            "Read lesson 1, section ‘9. A harder model’.",
        ),
        (
            Report(DIFFERENT, "…", causes=(Cause("clipping_missing", "", "", "", exact=False),)),
            "Your loop trains as a loop that does not clip the gradients would. "
            "Read lesson 5, section ‘Patient 5: calm under `fit`, wild in the loop’.",
        ),
        (
            Report(DIFFERENT, "…", causes=(LOST, FLAG)),
            "Your loop trains exactly as a loop that leaves out `model.losses` would. "
            "So does one that calls the model without `training=True`. "
            "Read lesson 1, section ‘9. A harder model’.",
        ),
        (
            Report(
                DIFFERENT,
                "…",
                causes=(
                    Cause(LOST.name, "", "", "", partner=FLAG.name),
                    Cause(FLAG.name, "", "", "", partner=LOST.name),
                ),
            ),
            "Your loop trains exactly as a loop that leaves out `model.losses` and calls the "
            "model without `training=True` would. Read lesson 1, section ‘9. A harder model’.",
        ),
        (
            Report(DIFFERENT, "…", causes=(Cause("metric_not_reset", "", "", ""),)),
            "Your loop trains as `fit` does, but logs as a loop that never resets its metric "
            "would. Read lesson 5, section ‘Patient 12: the curve is too smooth’.",
        ),
        (
            Report(DIFFERENT, "the weights differ after step 2.", notes=("Nobody knows why.",)),
            "Your loop does not train as `fit` does: the weights differ after step 2. Nobody "
            "knows why. Read lesson 5, section ‘3. Which symptom do you have?’.",
        ),
        (
            Report(BROKEN, "The loop raised ValueError at `x`: no."),
            "The loop raised ValueError at `x`: no.",
        ),
        (
            Report(
                BROKEN,
                'The loop raised NotImplementedError at `raise NotImplementedError("Task 1: do.")`:'
                " Task 1: do.",
            ),
            "Not written yet. Task 1: do.",
        ),
    ],
)
def test_sentence(monkeypatch, report, sentence):
    monkeypatch.setattr(feedback.parity, "compare", lambda setup, train: report)
    with pytest.raises(Misconception) as caught:
        feedback.same_training(None, print)
    assert str(caught.value) == sentence


def test_require():
    feedback.require(np.True_, "never said")
    with pytest.raises(Misconception, match=r"^Too slow\.$"):
        feedback.require(False, "Too slow.")
    with pytest.raises(Misconception, match=r"^Too slow\. Read lesson 3, section ‘2\. What "):
        feedback.require([], "Too slow.", feedback.SPEED, "2. What tracing is")


def test_jupyter_shows_the_sentence_and_no_traceback(capsys):
    shell = InteractiveShell()
    shell.run_cell('from utils import feedback\nfeedback.require(False, "Only this.")')
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip() == "Misconception: Only this."


# --- on real loops --------------------------------------------------------------------------------


def small_model() -> keras.Model:
    layer = keras.layers.Dense(1, kernel_regularizer=keras.regularizers.L2(0.1))
    return keras.Sequential([keras.Input((2,)), layer])


def few_rows() -> tf.data.Dataset:
    x = np.random.default_rng(0).normal(size=(7, 2)).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)


SMALL = Setup(
    small_model, lambda: keras.optimizers.SGD(0.1), keras.losses.MeanSquaredError(), few_rows, 2
)


def train(model, optimizer, loss, dataset, epochs):
    return training.train(model, optimizer, loss, dataset, epochs)


def train_without_penalties(model, optimizer, loss, dataset, epochs):
    for _ in range(epochs):
        for x, y in dataset:
            with tf.GradientTape() as tape:
                value = loss(y, model(x, training=True))
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))


def train_with_bare_logs(model, optimizer, loss, dataset, epochs):
    train(model, optimizer, loss, dataset, epochs)
    return {"loss": [0.0] * epochs}


def test_a_correct_loop_passes():
    assert feedback.same_training(SMALL, train).equal


def test_the_history_can_be_left_out_of_it():
    assert feedback.same_training(SMALL, train_with_bare_logs, logs=False).equal
    with pytest.raises(Misconception):
        feedback.same_training(SMALL, train_with_bare_logs)


def test_a_loop_by_hand_may_not_call_fit():
    def train_by_fit(model, optimizer, loss, dataset, epochs):
        model.compile(optimizer, loss)
        return model.fit(dataset, epochs=epochs, verbose=0).history

    assert feedback.same_training(SMALL, feedback.by_hand(train)).equal
    with pytest.raises(Misconception, match=r"a loop of your own, without `fit`\.$"):
        feedback.same_training(SMALL, feedback.by_hand(train_by_fit))


def test_a_faulty_loop_hears_of_its_fault():
    with pytest.raises(Misconception, match=r"a loop that leaves out `model\.losses` would"):
        feedback.same_training(SMALL, train_without_penalties)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError):
        feedback.same_training(SMALL, None, logs=False)


def test_an_error_is_traced_to_the_student_s_line_with_and_without_logs():
    def broken(model, optimizer, loss, dataset, epochs):
        raise ValueError("no")

    for logs in (True, False):
        with pytest.raises(Misconception, match=r"ValueError at `raise ValueError\(\"no\"\)`"):
            feedback.same_training(SMALL, broken, logs=logs)
