"""The training loop that lesson 1 arrives at: every step and every log as ``fit`` does them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf


def make_train_step(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss_fn: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    *,
    compiled: bool = True,
) -> Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Make the step of the loop: forward, loss with penalties, gradients, update.

    Parameters
    ----------
    model : keras.Model
        A built model.
    optimizer : keras.optimizers.Optimizer
        Is built for the model's trainable variables here, so that a ``tf.function`` creates none.
    loss_fn : callable
        ``loss_fn(y, prediction)`` returns the mean loss of the batch, a scalar.
    compiled : bool, default True
        Whether to wrap the step in ``tf.function``.

    Returns
    -------
    callable
        ``step(x, y)`` makes one update and returns the loss (a scalar, penalties included) and the
        predictions made before the update.
    """
    variables = model.trainable_variables
    optimizer.build(variables)

    def step(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            prediction = model(x, training=True)
            loss = loss_fn(y, prediction)
            if model.losses:
                loss = loss + sum(model.losses)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        return loss, prediction

    return tf.function(step, reduce_retracing=True) if compiled else step


def train(
    model: keras.Model,
    optimizer: keras.optimizers.Optimizer,
    loss_fn: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    batches: Iterable[tuple[Any, Any]],
    epochs: int,
    *,
    metrics: Sequence[keras.metrics.Metric] = (),
    compiled: bool = True,
    on_epoch_begin: Callable[[int], None] = lambda epoch: None,
) -> dict[str, list[float]]:
    """Train a model as ``model.fit(batches, epochs=epochs)`` does, with a tape.

    Parameters
    ----------
    model, optimizer, loss_fn, compiled
        As for `make_train_step`.
    batches : iterable of (x, y)
        A ``tf.data.Dataset`` or a list, walked once an epoch.
    epochs : int
        Number of passes.
    metrics : sequence of keras.metrics.Metric
        Updated with every batch, reset before every epoch.
    on_epoch_begin : callable, optional
        Called with the epoch's number, from 0, before its first step.

    Returns
    -------
    dict of str to list of float
        ``"loss"`` and each metric's name, one value an epoch. The loss is the mean over rows, so
        that a last, smaller batch weighs less.
    """
    step = make_train_step(model, optimizer, loss_fn, compiled=compiled)
    mean_loss = keras.metrics.Mean(name="loss")
    trackers = [mean_loss, *metrics]
    history: dict[str, list[float]] = {tracker.name: [] for tracker in trackers}
    for epoch in range(epochs):
        on_epoch_begin(epoch)
        for tracker in trackers:
            tracker.reset_state()
        for x, y in batches:
            loss, prediction = step(x, y)
            mean_loss.update_state(loss, sample_weight=len(y))
            for metric in metrics:
                metric.update_state(y, prediction)
        for tracker in trackers:
            history[tracker.name].append(float(tracker.result()))
    return history
