"""utils.training: one step against NumPy, whole trainings against ``fit``."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from utils import data, training
from utils.models import iris_model
from utils.ulp import max_ulp


def test_one_step_is_gradient_descent() -> None:
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, kernel_initializer="ones")])
    step = training.make_train_step(
        model, keras.optimizers.SGD(0.5), lambda y, p: tf.reduce_mean((y - p) ** 2)
    )
    loss, prediction = step(tf.constant([[1.0], [3.0]]), tf.constant([[0.0], [0.0]]))
    # Predictions 1 and 3; loss (1 + 9) / 2; d/dkernel = (2*1*1 + 2*3*3) / 2; d/dbias = (2 + 6) / 2.
    assert prediction.numpy().tolist() == [[1.0], [3.0]]
    assert float(loss) == 5.0
    assert [w.item() for w in model.get_weights()] == [1 - 0.5 * 10, -0.5 * 4]


def test_loss_of_the_log_is_a_mean_over_rows_and_holds_the_penalty() -> None:
    def penalty(kernel: tf.Tensor) -> tf.Tensor:
        return 10.0 * tf.reduce_sum(kernel)

    layer = keras.layers.Dense(1, kernel_initializer="ones", kernel_regularizer=penalty)
    model = keras.Sequential([keras.Input((1,)), layer])
    batches = [(np.float32([[1], [1], [1]]), np.float32([[0]] * 3)), (np.float32([[3]]),) * 2]
    history = training.train(
        model,
        keras.optimizers.SGD(0.0),
        lambda y, p: tf.reduce_mean((y - p) ** 2),
        batches,
        epochs=2,
        metrics=[keras.metrics.MeanAbsoluteError(name="mae")],
    )
    # Squared errors 1, 1, 1, 0 and a penalty of 10 in each batch; no update at rate 0.
    assert history == {"loss": [10.75, 10.75], "mae": [0.75, 0.75]}


@pytest.mark.parametrize("compiled", [True, False])
def test_training_is_bit_identical_to_fit(compiled: bool) -> None:
    x, y = data.load_iris()
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)

    def build() -> keras.Model:
        keras.utils.set_random_seed(1)
        return keras.Sequential(
            [
                keras.Input((4,)),
                keras.layers.Dense(8, activation="relu", kernel_regularizer="l2"),
                keras.layers.Dropout(0.5),
                keras.layers.Dense(3, activation="softmax"),
            ]
        )

    by_fit = build()
    by_fit.compile(
        keras.optimizers.Adam(0.01, clipnorm=1.0),
        "categorical_crossentropy",
        metrics=["categorical_accuracy"],
    )
    expected = by_fit.fit(batches, epochs=3, shuffle=False, verbose=0).history
    by_tape = build()
    history = training.train(
        by_tape,
        keras.optimizers.Adam(0.01, clipnorm=1.0),
        keras.losses.CategoricalCrossentropy(),
        batches,
        epochs=3,
        metrics=[keras.metrics.CategoricalAccuracy()],
        compiled=compiled,
    )
    assert max_ulp(by_fit, by_tape) == 0
    assert history == expected


def test_step_is_a_graph_only_if_asked_for() -> None:
    def is_graph(**options: bool) -> bool:
        step = training.make_train_step(
            iris_model(), keras.optimizers.SGD(), keras.losses.CategoricalCrossentropy(), **options
        )
        return isinstance(step, tf.types.experimental.PolymorphicFunction)

    assert is_graph() and is_graph(compiled=True)
    assert not is_graph(compiled=False)


def test_epoch_hook_is_called_before_each_epoch() -> None:
    called: list[int] = []
    training.train(
        iris_model(),
        keras.optimizers.SGD(0.01),
        keras.losses.CategoricalCrossentropy(),
        [data.load_iris()],
        epochs=3,
        on_epoch_begin=called.append,
    )
    assert called == [0, 1, 2]


def test_iris_model_starts_as_asked() -> None:
    ones, default = iris_model(), iris_model("glorot_uniform")
    assert [w.shape for w in ones.get_weights()] == [(4, 8), (8,), (8, 3), (3,)]
    assert all((w == 1).all() for w in ones.get_weights())
    kernel, bias, *_ = default.get_weights()
    assert len(np.unique(kernel)) == 32 and (bias == 0).all()
