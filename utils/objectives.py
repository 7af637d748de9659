"""The loss of one batch: as ``fit`` computes it, and as loops with a known fault compute it.

Every function here takes labels, predictions and sample weights (or None) of a batch and returns a
scalar. `make` picks one by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

Objective = Callable[[Any, Any, Any], tf.Tensor]

_TAKE_A_FLAG = {
    "binary_crossentropy": "sigmoid",
    "categorical_crossentropy": "softmax",
    "sparse_categorical_crossentropy": "softmax",
}


class RowwiseLoss(keras.losses.Loss):
    """A plain function as ``compile`` wraps it: ranks aligned, values averaged."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        super().__init__(name="loss")
        self.function, self.options = function, options

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return self.function(*_same_rank(y_true, y_pred), **self.options)


def as_loss(loss: Any) -> keras.losses.Loss:
    """Turn a name, a function or a Keras loss into the object that ``fit`` would call."""
    if isinstance(loss, str):
        loss = keras.losses.get(loss)
    return loss if isinstance(loss, keras.losses.Loss) else RowwiseLoss(loss)


def activation_of(loss: Any) -> str | None:
    """Return the activation whose outputs `loss` takes ("softmax", "sigmoid"), None if neither."""
    loss = as_loss(loss)
    function = getattr(loss, "function", getattr(loss, "fn", None))
    return _TAKE_A_FLAG.get(getattr(function, "__name__", ""))


def takes_logits(loss: Any) -> bool:
    """Whether the loss has been told ``from_logits=True``."""
    loss = as_loss(loss)
    if isinstance(loss, RowwiseLoss):
        return bool(loss.options.get("from_logits", False))
    return bool(loss.get_config().get("from_logits", False))


def ranks_differ(y: Any, prediction: Any) -> bool:
    """Whether one of the two is (batch,) where the other is (batch, 1)."""
    if not (tf.is_tensor(y) and tf.is_tensor(prediction)):
        return False
    short, long = sorted((y.shape, prediction.shape), key=len)
    return len(short) == 1 and len(long) == 2 and long[-1] == 1


def make(name: str, loss: Any) -> Objective:
    """Pick the function that computes the loss of a batch.

    Parameters
    ----------
    name : str
        "given": as ``fit`` does. "unfused": the same from probabilities, without the logits that
        Keras remembers; equal up to rounding. The others are faults: "broadcast" ((N,) against
        (N, 1) makes (N, N)), "broadcast_call" (the same by calling a plain function), "summed"
        (sum instead of mean), "weights_averaged" (divided by the sum of the weights),
        "flag_flipped" (``from_logits``), "squashed_twice", "swapped" (predictions as labels).
    loss : callable, keras.losses.Loss or str
        The loss of the set-up.

    Returns
    -------
    callable
        ``objective(y, prediction, weight)``, a scalar; `weight` may be None.
    """
    return _OBJECTIVES[name](loss)


def _given(loss: Any) -> Objective:
    given = as_loss(loss)
    return lambda y, prediction, weight: given(y, prediction, sample_weight=weight)


def _swapped(loss: Any) -> Objective:
    given = as_loss(loss)
    return lambda y, prediction, weight: given(prediction, y, sample_weight=weight)


def _broadcast(loss: Any) -> Objective:
    values = _reduced(loss, None)

    def objective(y: Any, prediction: Any, weight: Any) -> tf.Tensor:
        y = tf.cast(y, prediction.dtype)
        square = tf.zeros_like(y + prediction)
        each = values((square + y)[..., None], (square + prediction)[..., None])
        return tf.reduce_mean(each if weight is None else each * tf.cast(weight, each.dtype))

    return objective


def _broadcast_call(loss: Any) -> Objective:
    def objective(y: Any, prediction: Any, weight: Any) -> tf.Tensor:
        each = loss(tf.cast(y, prediction.dtype), prediction)
        return tf.reduce_mean(each if weight is None else each * tf.cast(weight, each.dtype))

    return objective


def _summed(loss: Any) -> Objective:
    total, values = _reduced(loss, "sum"), _reduced(loss, None)

    def objective(y: Any, prediction: Any, weight: Any) -> tf.Tensor:
        value = total(y, prediction, sample_weight=weight)
        if values(y, prediction).shape.rank:
            return value
        # The function averages by itself: its sum is its mean, times the number of rows.
        return value * tf.cast(tf.shape(prediction)[0], value.dtype)

    return objective


def _weights_averaged(loss: Any) -> Objective:
    total = _reduced(loss, "sum")

    def objective(y: Any, prediction: Any, weight: Any) -> tf.Tensor:
        value = total(y, prediction, sample_weight=weight)
        return value / tf.reduce_sum(tf.cast(weight, value.dtype))

    return objective


def _flag_flipped(loss: Any) -> Objective:
    return _on_plain_predictions(_with_flag(loss, not takes_logits(loss)))


def _squashed_twice(loss: Any) -> Objective:
    # For a loss told from_logits=True, which applies the activation once more.
    return _on_plain_predictions(as_loss(loss), keras.activations.get(activation_of(loss)))


def _unfused(loss: Any) -> Objective:
    return _on_plain_predictions(as_loss(loss))


def _on_plain_predictions(loss: keras.losses.Loss, change: Any = None) -> Objective:
    def objective(y: Any, prediction: Any, weight: Any) -> tf.Tensor:
        # Keras hangs the logits on what a softmax layer returns; a copy has none.
        plain = tf.identity(prediction if change is None else change(prediction))
        return loss(y, plain, sample_weight=weight)

    return objective


def _with_flag(loss: Any, from_logits: bool) -> keras.losses.Loss:
    loss = as_loss(loss)
    if isinstance(loss, RowwiseLoss):
        return RowwiseLoss(loss.function, **{**loss.options, "from_logits": from_logits})
    return type(loss).from_config({**loss.get_config(), "from_logits": from_logits})


def _reduced(loss: Any, reduction: str | None) -> keras.losses.Loss:
    # copy.copy() would go through the serialized form, which not every loss has.
    loss = as_loss(loss)
    twin = object.__new__(type(loss))
    twin.__dict__.update(loss.__dict__, reduction=reduction)
    return twin


def _same_rank(y: Any, prediction: Any) -> tuple[Any, Any]:
    if not (tf.is_tensor(y) and tf.is_tensor(prediction)):
        return y, prediction
    if y.shape.rank == prediction.shape.rank + 1 and y.shape[-1] == 1:
        if prediction.shape.rank == 1:
            return y, prediction[:, None]
        return tf.squeeze(y, -1), prediction
    if prediction.shape.rank == y.shape.rank + 1 and prediction.shape[-1] == 1:
        if y.shape.rank == 1:
            return y[:, None], prediction
        return y, tf.squeeze(prediction, -1)
    return y, prediction


_OBJECTIVES: dict[str, Callable[[Any], Objective]] = {
    "given": _given,
    "unfused": _unfused,
    "swapped": _swapped,
    "broadcast": _broadcast,
    "broadcast_call": _broadcast_call,
    "summed": _summed,
    "weights_averaged": _weights_averaged,
    "flag_flipped": _flag_flipped,
    "squashed_twice": _squashed_twice,
}
