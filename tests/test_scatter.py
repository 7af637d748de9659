"""The fast GloVe step of lesson 3, taken from its cells: against dense Adagrad in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable

import nbformat
import numpy as np
import pytest
import tensorflow as tf

from utils import run

LESSON = run.LESSONS / "03_tf_function_speedups.ipynb"
ROWS, COLUMNS = 12, 5


@pytest.fixture(scope="module")
def lesson() -> nbformat.NotebookNode:
    return nbformat.read(LESSON, as_version=4)


def function(lesson: nbformat.NotebookNode, name: str) -> Callable:
    """The function of this name, as a cell of the lesson defines it."""
    cells = [cell.source for cell in lesson.cells if f"def {name}(" in cell.source]
    assert len(cells) == 1, f"{name} is defined in {len(cells)} cells"
    names = {"tf": tf}
    exec(cells[0], names)
    return names[name]


@pytest.fixture(params=["eager", "graph"])
def adagrad_step(request, lesson) -> Callable:
    step = function(lesson, "adagrad_step")
    return step if request.param == "eager" else tf.function(step)


def dense_adagrad(
    table: np.ndarray, squares: np.ndarray, rows: np.ndarray, gradient: np.ndarray, rate: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Adagrad on the whole table: row by row into a gradient of its shape, then one update."""
    whole = np.zeros_like(table)
    for row, one in zip(rows, gradient, strict=True):
        whole[row] += one
    squares = squares + whole**2
    return table - rate * whole / np.sqrt(squares), squares


def run_both(adagrad_step: Callable, batches: list[np.ndarray], rate) -> tuple[np.ndarray, ...]:
    """Make the same updates with the lesson's step and in NumPy (float64); return the tables."""
    rng = np.random.default_rng(5)
    table = rng.normal(size=(ROWS, COLUMNS))
    squares = np.ones_like(table)
    table_tf = tf.Variable(table, dtype=tf.float32)
    squares_tf = tf.Variable(squares, dtype=tf.float32)
    for rows in batches:
        gradient = rng.normal(size=(len(rows), COLUMNS))
        table, squares = dense_adagrad(table, squares, rows, gradient, rate)
        adagrad_step(
            table_tf,
            squares_tf,
            tf.constant(rows, tf.int32),
            tf.constant(gradient, tf.float32),
            tf.constant(rate, tf.float32),
        )
    return table_tf.numpy(), table, squares_tf.numpy(), squares


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([[3, 7, 1]], id="no repeated row"),
        pytest.param([[3, 7, 3]], id="a row twice"),
        pytest.param([[4, 4, 4, 4]], id="one row only"),
        pytest.param([[11, 0, 0, 11, 5, 0]], id="first and last row repeated"),
        pytest.param([[3, 7, 3], [7, 7, 2], [0, 3, 3, 3, 7]], id="several batches"),
    ],
)
def test_step_is_dense_adagrad(adagrad_step, batches) -> None:
    table, expected, squares, expected_squares = run_both(adagrad_step, batches, 0.3)
    np.testing.assert_allclose(table, expected, atol=1e-6)
    np.testing.assert_allclose(squares, expected_squares, rtol=1e-5)
    # The test itself must be able to fail: the update is much larger than the tolerance.
    start = np.random.default_rng(5).normal(size=(ROWS, COLUMNS))
    touched = np.unique(np.concatenate(batches))
    assert (np.abs(expected - start)[touched].max(axis=1) > 0.01).all()


def test_large_batch_of_frequent_words(adagrad_step) -> None:
    rng = np.random.default_rng(6)
    batches = [np.minimum(rng.zipf(1.5, size=4000) - 1, ROWS - 1) for _ in range(3)]
    table, expected, _, _ = run_both(adagrad_step, batches, 0.3)
    np.testing.assert_allclose(table, expected, atol=1e-5)


def test_other_rows_keep_their_bits(adagrad_step) -> None:
    table = tf.Variable(tf.random.normal((ROWS, COLUMNS), seed=1))
    squares = tf.Variable(tf.ones((ROWS, COLUMNS)))
    before = table.numpy()
    adagrad_step(table, squares, tf.constant([2, 2, 9]), tf.ones((3, COLUMNS)), tf.constant(0.3))
    others = [k for k in range(ROWS) if k not in (2, 9)]
    assert (table.numpy()[others] == before[others]).all()
    assert (squares.numpy()[others] == 1).all()
    # Row 2 has gradient 2, row 9 has 1.
    assert (squares.numpy()[2] == 5).all() and (squares.numpy()[9] == 2).all()
    np.testing.assert_allclose(before[9] - table.numpy()[9], 0.3 / np.sqrt(2), rtol=1e-5)
    np.testing.assert_allclose(before[2] - table.numpy()[2], 0.3 * 2 / np.sqrt(5), rtol=1e-5)


def test_opposite_gradients_of_a_row_cancel(adagrad_step) -> None:
    table, squares = tf.Variable(tf.ones((3, 1))), tf.Variable(tf.ones((3, 1)))
    gradient = tf.constant([[0.5], [-0.5]])
    adagrad_step(table, squares, tf.constant([1, 1]), gradient, tf.constant(0.3))
    assert table.numpy().ravel().tolist() == [1, 1, 1]
    assert squares.numpy().ravel().tolist() == [1, 1, 1]


def test_rate_may_differ_by_column(adagrad_step) -> None:
    rate = np.array([0.3, 0.3, 0.1, 0.0, 0.3])
    table, expected, _, _ = run_both(adagrad_step, [[3, 7, 3]], rate)
    np.testing.assert_allclose(table, expected, atol=1e-6)
    start = np.random.default_rng(5).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    assert (table[:, 3] == start[:, 3]).all()


def test_row_gradients_are_differences_of_the_loss(lesson) -> None:
    rng = np.random.default_rng(7)
    target, context = rng.normal(size=(2, 4, 3))
    words, neighbours = np.array([0, 2, 0]), np.array([1, 1, 3])
    logs, weights = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.25, 0.5])

    def loss(one: np.ndarray, other: np.ndarray) -> float:
        return float(sum(weights * ((one * other).sum(axis=1) - logs) ** 2)) / 2

    chunk = tf.constant(np.stack([words, neighbours, logs, weights], axis=1), tf.float32)
    tables = [tf.Variable(t, dtype=tf.float32) for t in (target, context)]
    parts = function(lesson, "row_gradients")(*tables, chunk)
    assert [rows.numpy().tolist() for rows, _ in parts] == [words.tolist(), neighbours.tolist()]
    pairs = [target[words], context[neighbours]]
    for k, (_, gradient) in enumerate(parts):
        for place in np.ndindex(3, 3):
            shift = np.zeros((3, 3))
            shift[place] = 1e-5
            up = loss(*(pair + shift * (j == k) for j, pair in enumerate(pairs)))
            down = loss(*(pair - shift * (j == k) for j, pair in enumerate(pairs)))
            assert gradient.numpy()[place] == pytest.approx((up - down) / 2e-5, abs=1e-4)
