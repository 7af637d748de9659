"""Every known fault in loops of three authors on three kinds of set-up: is it named, and alone?

``pytest -m exhaustive -s -n 0 tests/test_parity_faults.py`` runs every fault in every hand, takes
about half an hour, and prints the confusion matrix.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import keras
import numpy as np
import parity_patients as patients
import pytest
import tensorflow as tf

from utils import parity
from utils.faults import FAULTS

pytestmark = pytest.mark.slow

KINDS, AUTHORS = patients.KINDS, tuple(patients.AUTHORS)


def named(report):
    return tuple(cause.name for cause in report.causes)


def one_case_a_fault():
    """Turn through kinds, authors and ways to run, so that every one comes up."""
    return [
        (fault, KINDS[number % 3], AUTHORS[(number // 3) % 3], bool(number % 2))
        for number, fault in enumerate(patients.NEEDS)
    ]


FIRST_STEPS = {
    "epoch_mean_unweighted": None,
    "metric_not_reset": None,
    "last_batch_dropped": 4,
    "order_frozen": 5,
    "validation_updates_weights": 5,
    "schedule_ignored": 2,
}
"""With four batches an epoch. The schedule gives the first step the rate that the loops keep."""


@pytest.mark.parametrize(("fault", "kind", "author", "compiled"), one_case_a_fault())
def test_fault_is_named(fault, kind, author, compiled):
    report = patients.examine(fault, kind, author, compiled)
    assert named(report) == (fault,), str(report)
    assert report.verdict == "different"
    cause = report.causes[0]
    assert cause.evidence and cause.fix and cause.lesson
    step = 5 if (fault, author) == ("shuffle_pass_differs", "textbook") else 1
    assert report.first_step == FIRST_STEPS.get(fault, step)
    assert (report.variable is None) == (report.first_step is None)


def confusion(results):
    """Lay (fault, names) pairs out as a text table: a row for each fault, what it was taken for."""
    lines = []
    for fault in dict.fromkeys(fault for fault, _ in results):
        row = Counter(" + ".join(names) or "(none)" for f, names in results if f == fault)
        total = sum(row.values())
        others = ", ".join(f"{n} as {name}" for name, n in row.items() if name != fault)
        lines.append(f"{fault:28s} {row[fault]:3d} of {total:3d}  {others}".rstrip())
    right = sum(names == (fault,) for fault, names in results)
    return "\n".join([*lines, f"{'all':28s} {right:3d} of {len(results):3d}"])


def test_confusion_counts_by_fault():
    table = confusion(
        [("loss_summed", ("loss_summed",)), ("loss_summed", ()), ("order_frozen", ("a", "b"))]
    )
    rows = {line.split()[0]: line.split()[1:] for line in table.splitlines()}
    assert rows["loss_summed"] == ["1", "of", "2", "1", "as", "(none)"]
    assert rows["order_frozen"] == ["0", "of", "1", "1", "as", "a", "+", "b"]
    assert rows["all"] == ["1", "of", "3"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", patients.NEEDS)
def test_fault_is_named_in_every_hand(fault):
    cases = product(KINDS, AUTHORS, (False, True))
    results = [(fault, named(patients.examine(fault, *case))) for case in cases]
    print("\n" + confusion(results))
    assert all(names == (fault,) for fault, names in results)


# --- faults beyond the usual ones ----------------------------------------------------------------


def plain(
    *,
    before=lambda model, optimizer: None,
    gradients=lambda gradients: gradients,
    then=lambda model, x: None,
    batches=lambda dataset, epoch: dataset,
    after=lambda model, optimizer: None,
    epochs_of=lambda epochs: epochs,
    optimizer_of=lambda optimizer: optimizer,
    logged=lambda bare, value: value,
):
    """A healthy loop with openings to make it ill."""

    def train(model, optimizer, loss, dataset, epochs):
        before(model, optimizer)
        optimizer = optimizer_of(optimizer)
        variables = model.trainable_variables
        optimizer.build(variables)

        @tf.function(reduce_retracing=True)
        def step(x, y):
            with tf.GradientTape() as tape:
                prediction = model(x, training=True)
                if prediction.shape[-1] == 1:
                    y = y[:, None]
                bare = value = loss(y, prediction)
                for penalty in model.losses:
                    value += penalty
            found = gradients(tape.gradient(value, variables))
            optimizer.apply_gradients(zip(found, variables))
            then(model, x)
            return logged(bare, value)

        history = []
        for epoch in range(epochs_of(epochs)):
            if epoch:
                iter(dataset)
            values, rows = [], []
            for x, y in batches(dataset, epoch):
                values.append(float(step(x, y)))
                rows.append(len(y))
            after(model, optimizer)
            history.append(np.average(values, weights=rows) if values else 0.0)
        return {"loss": history}

    return train


def without_first(dataset, epoch):
    batches = iter(dataset)
    next(batches)
    return batches


def set_back(model, optimizer):
    for variable in optimizer.variables[2:]:
        variable.assign(tf.zeros_like(variable))
    optimizer.iterations.assign(0)


def with_loss(change):
    """A healthy loop, but for the loss of a batch: change(loss, y, prediction, weight, model)."""

    def train(model, optimizer, loss, dataset, epochs):
        for _ in range(epochs):
            for batch in dataset:
                x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
                with tf.GradientTape() as tape:
                    prediction = model(x, training=True)
                    if prediction.shape[-1] == 1:
                        y = y[:, None]
                    value = change(loss, y, prediction, weight, model)
                variables = model.trainable_variables
                optimizer.apply(tape.gradient(value, variables), variables)

    return train


def penalties_again(loss, y, prediction, weight, model):
    model.compile(loss=loss)
    return model.compute_loss(y=y, y_pred=prediction) + sum(model.losses)


def by_sum_of_weights(loss, y, prediction, weight, model):
    square = tf.square(y - prediction)[:, 0]
    return tf.reduce_sum(weight * square) / tf.reduce_sum(weight)


def labels_last(loss, y, prediction, weight, model):
    return loss(prediction, y)


def dense(gradient):
    return tf.convert_to_tensor(gradient)


def by_nominal_batch(loss, y, prediction, weight, model):
    each = keras.losses.sparse_categorical_crossentropy(y, prediction, from_logits=True)
    return tf.nn.compute_average_loss(each, global_batch_size=patients.BATCH)


OTHERS = [
    ("regularization_twice", "classifier", {"l2": 0.01}, with_loss(penalties_again)),
    ("sample_weight_averaged", "embedding", {"weights": True}, with_loss(by_sum_of_weights)),
    ("batch_size_fixed", "classifier", {}, with_loss(by_nominal_batch)),
    ("first_batch_skipped", "regression", {}, plain(batches=without_first)),
    ("epochs_miscounted", "classifier", {}, plain(epochs_of=lambda epochs: epochs - 1)),
    ("epochs_miscounted", "embedding", {}, plain(epochs_of=lambda epochs: epochs + 1)),
    (
        "learning_rate_differs",
        "classifier",
        {},
        plain(before=lambda model, optimizer: setattr(optimizer, "learning_rate", 0.003)),
    ),
    (
        "other_optimizer",
        "regression",
        {},
        plain(optimizer_of=lambda optimizer: keras.optimizers.Adam()),
    ),
    (
        "embedding_gradient_dense",
        "embedding",
        {},
        plain(gradients=lambda found: [dense(g) for g in found]),
    ),
    (
        "clipping_added",
        "regression",
        {},
        plain(gradients=lambda found: tf.clip_by_global_norm(found, 1.0)[0]),
    ),
    (
        "clipping_added",
        "classifier",
        {"optimizer": lambda: keras.optimizers.SGD(0.5)},
        plain(gradients=lambda found: [tf.clip_by_norm(g, 0.5) for g in found]),
    ),
    ("arguments_swapped", "embedding", {"logits": True}, with_loss(labels_last)),
    ("arguments_swapped", "regression", {"logits": True}, with_loss(labels_last)),
    (
        "model_called_twice",
        "classifier",
        {"dropout": True},
        plain(then=lambda model, x: model(x, training=True)),
    ),
    (
        "model_called_twice",
        "classifier",
        {},
        plain(then=lambda model, x: model(x, training=True)),
    ),
    ("optimizer_state_lost", "classifier", {}, plain(after=set_back)),
    (
        "penalties_not_logged",
        "classifier",
        {"l2": 0.01},
        plain(logged=lambda bare, value: bare),
    ),
    (
        "callbacks_ignored",
        "regression",
        {"callbacks": lambda: [keras.callbacks.EarlyStopping("loss", min_delta=9, patience=1)]},
        plain(),
    ),
    (
        "schedule_ignored",
        "embedding",
        {"callbacks": lambda: [keras.callbacks.LearningRateScheduler(patients.halving)]},
        plain(before=lambda model, optimizer: setattr(optimizer, "learning_rate", 0.01)),
    ),
]


@pytest.mark.parametrize(("fault", "kind", "options", "loop"), OTHERS)
def test_rarer_fault_is_named(fault, kind, options, loop):
    report = parity.compare(patients.setup(kind, **options), loop)
    assert named(report) == (fault,), str(report)


def test_every_fault_has_a_patient():
    elsewhere = {"last_batch_logged", "phantom_step_missing"}  # in test_parity.py
    tested = set(patients.NEEDS) | {fault for fault, *_ in OTHERS} | elsewhere
    assert tested == {fault.name for fault in FAULTS}


def test_callbacks_run_by_hand_are_healthy():
    def train(model, optimizer, loss, dataset, epochs):
        def set_rate(model, optimizer):
            optimizer.learning_rate = patients.halving(1, 0) if optimizer.iterations < 5 else 0.005

        start = plain(
            before=lambda model, optimizer: setattr(
                optimizer, "learning_rate", patients.halving(0, 0)
            ),
            after=set_rate,
        )
        return start(model, optimizer, loss, dataset, epochs)

    callbacks = lambda: [keras.callbacks.LearningRateScheduler(patients.halving)]  # noqa: E731
    report = parity.compare(patients.setup("regression", callbacks=callbacks), train)
    assert report.equal, str(report)


# --- two faults ----------------------------------------------------------------------------------


def test_two_faults_at_once_are_both_named():
    setup = patients.setup("classifier", dropout=True, l2=0.01)

    def train(model, optimizer, loss, dataset, epochs):
        for _ in range(epochs):
            for x, y in dataset:
                with tf.GradientTape() as tape:
                    value = loss(y, model(x))
                variables = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))

    report = parity.compare(setup, train)
    assert set(named(report)) == {"training_flag_missing", "regularization_missing"}
    assert "and regularization_missing" in report.causes[0].evidence


def test_faults_that_look_alike_are_both_named_with_what_separates_them():
    """Twice the gradient is the gradient of the sum, if batches have two rows and SGD is plain."""
    options = {"batch": 2, "rows": 8, "optimizer": lambda: keras.optimizers.SGD(0.01)}
    setup = patients.setup("regression", **options)
    twice = patients.textbook("gradients_applied_twice")

    def silent(*arguments):
        twice(*arguments)

    report = parity.compare(setup, silent)
    assert {"loss_summed", "gradients_applied_twice"} <= set(named(report))
    assert "another size" in report.causes[0].evidence
    # What the loop logs is the mean: only one of the two would have done so... and both may have.
    apart = patients.setup("regression", **{**options, "batch": 4})
    assert named(parity.compare(apart, silent))[0] == "gradients_applied_twice"
