"""The parts of `utils.parity`, against values worked out by hand or by plain NumPy."""

from __future__ import annotations

import keras
import numpy as np
import parity_patients as patients
import pytest
import tensorflow as tf

from utils import distances, objectives, passes
from utils.faults import FAULTS
from utils.histories import candidates
from utils.loops import Loop, Run, Step
from utils.parity_report import paths
from utils.reference import Reference

F4 = np.float32

# --- distances -----------------------------------------------------------------------------------


def test_grain_is_the_largest_spread_or_one_unit():
    base = [F4([1.0, -4.0]), F4([0.5])]
    other = [F4([1.0, -4.25]), F4([0.5])]
    sizes = distances.grains(base, [other, base])
    assert sizes == [0.25, float(np.spacing(F4(0.5)))]
    assert distances.grains(base, [])[0] == float(np.spacing(F4(4.0)))


def test_distance_counts_grains_and_minds_nan():
    a, b = [F4([1.0, 2.0])], [F4([1.5, 2.0])]
    assert distances.distance(a, b, [0.25]) == 2
    assert distances.distance(a, a, [0.25]) == 0
    nan = [F4([1.0, np.nan])]
    assert distances.distance(nan, nan, [1.0]) == 0
    assert distances.distance(nan, a, [1.0]) == np.inf
    assert distances.same_bits(nan, nan)
    assert not distances.same_bits(nan, a)


@pytest.mark.parametrize(
    ("close", "gap", "near", "maybe"),
    [
        (0, 1e6, True, True),
        (0, 0, True, True),
        (1e3, 1e6, True, True),
        (1.01e3, 1e6, False, False),
        (7.9, 7.9, True, True),
        (7.9, 100, False, True),
        (9, 7.9, False, False),
        # Both far beyond all numbers: nothing can be said, and nothing must be named.
        (np.inf, np.inf, False, False),
    ],
)
def test_a_fault_must_be_a_thousand_times_closer(close, gap, near, maybe):
    assert distances.is_near(close, gap) == near
    assert distances.may_be_near(close, gap) == maybe


def test_series_must_be_exact_or_a_thousand_times_closer():
    usual, series = np.array([1.0, 2.0]), np.array([1.0, 2.1])
    near = distances.series_is_near
    assert near(series, np.array([1.0, 2.1]), usual, 1e-6)
    assert near(series, np.array([1.0, 2.10009]), usual, 1e-6)
    assert not near(series, np.array([1.0, 2.1002]), usual, 1e-6)
    assert not near(series, np.array([1.01, 2.1]), usual, 1e-6)
    assert not near(series, np.array([2.1]), usual, 1e-6)


# --- objectives ----------------------------------------------------------------------------------

Y = F4([0, 1, 1])
Z = F4([[0.5], [2.0], [-1.0]])


def mse(y, p):
    return tf.reduce_mean(tf.square(y - p))


def value(name, loss, y=Y, z=Z, w=None):
    found = objectives.make(name, loss)(tf.constant(y), tf.constant(z), w)
    return float(found)


@pytest.mark.parametrize("loss", [mse, "mse", keras.losses.MeanSquaredError()])
def test_squared_error_in_every_way(loss):
    mean = np.mean((Y - Z[:, 0]) ** 2)
    square = np.mean((Y[None] - Z) ** 2)
    assert value("given", loss) == pytest.approx(mean)
    assert value("summed", loss) == pytest.approx(3 * mean)
    assert value("broadcast", loss) == pytest.approx(square)
    if loss is mse:
        assert value("broadcast_call", loss) == pytest.approx(square)


def test_sample_weights_reach_every_objective():
    w = F4([1, 2, 0])
    loss = keras.losses.MeanSquaredError()
    each = (Y - Z[:, 0]) ** 2
    assert value("given", loss, w=w) == pytest.approx(np.mean(w * each))
    assert value("weights_averaged", loss, w=w) == pytest.approx(np.sum(w * each) / 3)
    assert value("summed", loss, w=w) == pytest.approx(np.sum(w * each))
    assert value("broadcast", loss, w=w) == pytest.approx(np.mean(w[None] * (Y[None] - Z) ** 2))


def test_logits_and_probabilities():
    labels = np.array([2, 0])
    logits = F4([[0.1, -1.0, 2.0], [1.0, 0.5, 0.0]])
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    right = -np.log(p[[0, 1], labels]).mean()
    twice = np.exp(p) / np.exp(p).sum(1, keepdims=True)
    wrong = -np.log(twice[[0, 1], labels]).mean()
    for loss in (
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        keras.losses.SparseCategoricalCrossentropy(),
    ):
        told = objectives.takes_logits(loss)
        assert value("given", loss, labels, logits if told else p) == pytest.approx(right, rel=1e-5)
        assert objectives.activation_of(loss) == "softmax"
    assert value("squashed_twice", loss.__class__(from_logits=True), labels, logits) == (
        pytest.approx(wrong, rel=1e-5)
    )
    # Probabilities taken for logits are squashed once more; by name, too.
    for loss in (keras.losses.SparseCategoricalCrossentropy(), "sparse_categorical_crossentropy"):
        assert value("flag_flipped", loss, labels, p) == pytest.approx(wrong, rel=1e-5)
        assert value("unfused", loss, labels, p) == pytest.approx(right, rel=1e-5)
    assert objectives.activation_of(mse) is None


def test_ranks():
    assert objectives.ranks_differ(tf.zeros(3), tf.zeros((3, 1)))
    assert objectives.ranks_differ(tf.zeros((3, 1)), tf.zeros(3))
    assert not objectives.ranks_differ(tf.zeros(3), tf.zeros((3, 2)))
    assert not objectives.ranks_differ(tf.zeros((3, 1)), tf.zeros((3, 1)))


# --- passes --------------------------------------------------------------------------------------


def test_passes_are_those_of_the_dataset_and_shuffle_can_be_turned_off():
    def build():
        return tf.data.Dataset.range(9).shuffle(9, seed=4).batch(4)

    shuffled = build()
    read = passes.Passes(build())
    for number in range(3):
        assert passes.same(read[number], list(shuffled))
    assert not passes.same(read[0], read[1])
    with passes.shuffle_does_nothing():
        plain = passes.Passes(build())
    assert [list(b.numpy()) for b in plain[0]] == [[0, 1, 2, 3], [4, 5, 6, 7], [8]]
    assert not passes.same(list(build()), plain[0])
    assert passes.same(list(build().take(1)), read[0][:1])


# --- the reference loop --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", patients.KINDS)
def test_reference_loop_is_fit(kind):
    setup = patients.setup(kind, l2=0.01, dropout=True, shuffled=True)
    weights, _ = setup.fit()
    reference = Reference(setup)
    run = reference.run(Loop(), reference.batches, setup.epochs, compiled=True)
    shaken = reference.run(Loop(), reference.batches, setup.epochs, compiled=True, noise=1)
    sizes = distances.grains(run.weights, [shaken.weights])
    assert distances.distance(run.weights, weights, sizes) <= distances.ROUNDING
    again = reference.run(Loop(), reference.batches, setup.epochs, compiled=True, traced=True)
    assert distances.same_bits(again.trace[-1], run.weights)
    assert len(again.trace) == reference.batches * setup.epochs


def test_one_step_of_plain_descent_by_numpy():
    x, y = F4([[1.0, 2.0], [3.0, -1.0]]), F4([1.0, -1.0])

    def model():
        dense = keras.layers.Dense(
            1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L2(0.5)
        )
        return keras.Sequential([keras.Input((2,)), dense])

    setup = patients.parity.Setup(
        model,
        lambda: keras.optimizers.SGD(0.1),
        "mse",
        lambda: tf.data.Dataset.from_tensor_slices((x, y)).batch(2),
        epochs=1,
    )
    reference = Reference(setup)
    w = np.ones(2)
    slope = 2 / 2 * x.T @ (x @ w - y)
    penalty = 2 * 0.5 * w
    square = 2 / 4 * x.T @ (2 * (x @ w) - y.sum())

    def kernel(**change):
        return reference.run(Loop(**change), 1, 1).weights[0][:, 0]

    assert kernel() == pytest.approx(w - 0.1 * (slope + penalty), rel=1e-6)
    assert kernel(penalties="never") == pytest.approx(w - 0.1 * slope, rel=1e-6)
    assert kernel(penalties="twice") == pytest.approx(w - 0.1 * (slope + 2 * penalty), rel=1e-6)
    assert kernel(nominal_rows=4) == pytest.approx(w - 0.1 * (slope / 2 + penalty), rel=1e-6)
    assert kernel(objective="summed") == pytest.approx(w - 0.1 * (2 * slope + penalty), rel=1e-6)
    assert kernel(objective="summed", penalties="per_row") == pytest.approx(
        w - 0.1 * 2 * (slope + penalty), rel=1e-6
    )
    assert kernel(objective="broadcast") == pytest.approx(w - 0.1 * (square + penalty), rel=1e-6)
    assert kernel(updates="gradients_twice") == pytest.approx(w - 0.2 * (slope + penalty), rel=1e-6)
    assert kernel(left_out=(0,)) == pytest.approx(w)
    assert kernel(rate=0.3) == pytest.approx(w - 0.3 * (slope + penalty), rel=1e-6)
    assert kernel(more_epochs=-1) == pytest.approx(w)
    assert kernel(dropped="last") == pytest.approx(w)
    assert kernel() == pytest.approx(w - 0.1 * (slope + penalty), rel=1e-6)


# --- histories -----------------------------------------------------------------------------------


def test_styles_of_logging_by_hand():
    rows, losses = [3, 1, 3, 1], [1.0, 5.0, 2.0, 6.0]
    steps = [
        Step(k // 2, n, F4(v), F4(v), F4(v - 0.5), None, None)
        for k, (n, v) in enumerate(zip(rows, losses))
    ]
    expected = {
        "fit": [2.0, 3.0],
        "unweighted": [3.0, 4.0],
        "running": [2.0, 2.5],
        "running_unweighted": [3.0, 3.5],
        "last": [5.0, 6.0],
        "bare": [1.5, 2.5],
    }
    for style, series in expected.items():
        found = candidates(None, Run(steps=steps), "loss", style)
        assert all(c == pytest.approx(series) for c in found)
        assert found


# --- the catalogue -------------------------------------------------------------------------------


def test_catalogue_is_complete():
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names))
    for fault in FAULTS:
        assert fault.says and fault.fix.endswith(".") and fault.separate
        assert fault.lesson[:2] in ("01", "02", "03", "04", "05")


def test_paths_do_not_depend_on_earlier_models():
    first, second = (paths(patients.model("classifier")) for _ in range(2))
    assert first == second
    assert first[0] == "dense/kernel"
    assert "dense_1/bias" in first


# --- all together, in brief; the rest is in test_parity.py and test_parity_faults.py -------------


@pytest.mark.parametrize("kind", patients.KINDS)
def test_healthy_loop_is_equal_to_fit(kind):
    report = patients.parity.compare(patients.setup(kind, l2=0.01), patients.textbook())
    assert report.equal
    assert report.causes == ()


@pytest.mark.parametrize(
    ("fault", "kind", "author", "step"),
    [
        ("label_rank_broadcast", "regression", "textbook", 1),
        ("order_frozen", "embedding", "graph_epoch", 5),
        ("metric_not_reset", "classifier", "by_hand", None),
    ],
)
def test_fault_is_named_and_located(fault, kind, author, step):
    report = patients.examine(fault, kind, author, compiled=True)
    assert [cause.name for cause in report.causes] == [fault]
    assert report.first_step == step
    assert not report.equal
