"""What is trained (`Setup`), how (`Loop`), and what that leaves (`Run`).

These are the nouns of `utils.parity`; reference.py does the training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf

Weights = list[np.ndarray]
"""The weights of a model, in the order of ``model.weights``."""


class SetupError(ValueError):
    """The set-up itself cannot be trained, whatever the learner's loop does."""


@dataclass(frozen=True)
class Setup:
    """What both ``fit`` and the learner's loop train.

    Attributes
    ----------
    build_model, build_optimizer, build_dataset : callable
        Without arguments; each call makes a fresh ``keras.Model``, a fresh optimizer, a fresh
        ``tf.data.Dataset`` of batches (x, y) or (x, y, sample_weight).
    loss : callable, keras.losses.Loss or str
        As ``compile`` takes it.
    epochs : int, default 3
    metrics : sequence
        As ``compile`` takes them: names, Keras metrics, or classes of metrics.
    build_callbacks : callable, optional
        Makes the list of callbacks that ``fit`` gets.
    seed : int, default 0
        Given to ``keras.utils.set_random_seed`` before anything is built.
    build_validation : callable, optional
        Makes the dataset that ``fit`` gets as ``validation_data``.
    """

    build_model: Callable[[], keras.Model]
    build_optimizer: Callable[[], keras.optimizers.Optimizer]
    loss: Any
    build_dataset: Callable[[], tf.data.Dataset]
    epochs: int = 3
    metrics: Sequence[Any] = ()
    build_callbacks: Callable[[], list[keras.callbacks.Callback]] | None = None
    seed: int = 0
    build_validation: Callable[[], tf.data.Dataset] | None = None

    def build(self) -> tuple[keras.Model, keras.optimizers.Optimizer, tf.data.Dataset]:
        """Make model, optimizer and dataset from the seed; the model has its weights.

        Raises
        ------
        SetupError
            If a function makes something else than it should.
        """
        keras.utils.set_random_seed(self.seed)
        model, optimizer, dataset = self.build_model(), self.build_optimizer(), self.build_dataset()
        for made, kind, name in (
            (model, keras.Model, "build_model"),
            (optimizer, keras.optimizers.Optimizer, "build_optimizer"),
            (dataset, tf.data.Dataset, "build_dataset"),
        ):
            if not isinstance(made, kind):
                raise SetupError(f"{name}() made a {type(made).__name__}, not a {kind.__name__}.")
        if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise SetupError("build_dataset() never ends; leave out .repeat().")
        if not model.built:
            model(next(iter(self.build_dataset()))[0], training=False)
        return model, optimizer, dataset

    def fresh_metrics(self) -> list[Any]:
        """Copy the metrics, so that no two runs share their state."""
        return [_fresh(metric) for metric in self.metrics]

    def fit(self) -> tuple[Weights, dict[str, np.ndarray]]:
        """Train with ``fit``: the final weights and the history, one array an entry."""
        model, optimizer, dataset = self.build()
        # XLA, which Keras may choose on a GPU, rounds differently.
        model.compile(optimizer, self.loss, metrics=self.fresh_metrics(), jit_compile=False)
        logs = model.fit(
            dataset,
            epochs=self.epochs,
            verbose=0,
            shuffle=False,
            callbacks=self.build_callbacks() if self.build_callbacks else None,
            validation_data=self.build_validation() if self.build_validation else None,
        )
        return model.get_weights(), {k: np.array(v, float) for k, v in logs.history.items()}


@dataclass(frozen=True)
class Loop:
    """The decisions of a training loop. Every default is what ``fit`` does.

    Attributes
    ----------
    training : bool
        Passed to the model.
    called_again : {"never", "before", "after"}
        Whether a step calls the model once more with ``training=True``, and on which side of the
        update.
    penalties : {"once", "never", "twice", "per_row"}
        How often ``model.losses`` are added to the loss.
    objective : str
        A name that `objectives.make` knows.
    nominal_rows : int
        If not 0: the sum over a batch is divided by this number, whatever the rows of the batch.
    sample_weights, clipping, schedule, callbacks : bool
        Whether the loop heeds them. Without its schedule an optimizer keeps its first rate.
    own_clipping : (str, float), optional
        An option of a Keras optimizer that clips, and its limit, where ``fit`` has none.
    optimizer : (str, float or None), optional
        Name and rate of another optimizer than that of the set-up; None: the default rate.
    dense : bool
        Whether gradients of embeddings are made full matrices.
    updates : {"once", "gradients_twice", "step_twice"}
        How often a batch changes the weights.
    left_out : tuple of int
        Positions in ``model.trainable_variables`` that get no gradient.
    rate : float, optional
        Another learning rate.
    own_start : bool
        Whether it starts from `Reference.own_start`, other initial weights.
    warm_up : {"none", "zeros", "step", "epoch"}
        What the optimizer has done before, the weights being put back.
    passes : (int, int), optional
        The pass over the dataset that the first epoch takes, from 0, and the passes from one epoch
        to the next. None: as ``fit`` does, which opens two iterators an epoch.
    shuffled : bool
        Whether ``Dataset.shuffle`` has any effect.
    dropped : {"none", "partial", "last", "first"}
        The batch of an epoch that is not trained on.
    phantom : bool
        Whether an epoch over a dataset of unknown length ends as in ``fit``, with a step that
        finds no batch (`Reference.unknown_length`).
    more_epochs : int
        Epochs beyond those asked for; negative: fewer.
    between : {"nothing", "forward", "steps", "new_optimizer"}
        What follows each epoch: a pass over the validation data (else the training data) with
        ``training=True`` or with updates, or the loss of the optimizer's state.
    """

    training: bool = True
    called_again: str = "never"
    penalties: str = "once"
    objective: str = "given"
    nominal_rows: int = 0
    sample_weights: bool = True
    clipping: bool = True
    own_clipping: tuple[str, float] | None = None
    schedule: bool = True
    optimizer: tuple[str, float | None] | None = None
    dense: bool = False
    updates: str = "once"
    left_out: tuple[int, ...] = ()
    callbacks: bool = True
    rate: float | None = None
    own_start: bool = False
    warm_up: str = "none"
    passes: tuple[int, int] | None = None
    shuffled: bool = True
    dropped: str = "none"
    phantom: bool = True
    more_epochs: int = 0
    between: str = "nothing"

    @property
    def step(self) -> tuple[Any, ...]:
        """The decisions inside one step: loops that share them share a compiled step."""
        return (
            self.training,
            self.called_again,
            self.penalties,
            self.objective,
            self.nominal_rows,
            self.sample_weights,
            self.clipping,
            self.own_clipping,
            self.schedule,
            self.optimizer,
            self.dense,
            self.updates,
            self.left_out,
        )


@dataclass(frozen=True)
class Step:
    """What one step of a run leaves for the logs.

    Attributes
    ----------
    epoch, rows : int
    minimised, given, bare : float
        The loss that the loop went down, the one that ``fit`` would have computed there, and that
        one without the penalties of the layers.
    batch, prediction
        The batch and the model's output before the update.
    """

    epoch: int
    rows: int
    minimised: np.float32
    given: np.float32
    bare: np.float32
    batch: Any
    prediction: Any


@dataclass
class Run:
    """What a run of a loop leaves: final weights, the steps, the weights after each if traced."""

    weights: Weights = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    trace: list[Weights] = field(default_factory=list)


def rows_of(batch: Any) -> int:
    """Count the rows of a batch."""
    return int(tf.nest.flatten(batch[0])[0].shape[0])


def _fresh(metric: Any) -> Any:
    if isinstance(metric, keras.metrics.Metric):
        return type(metric).from_config(metric.get_config())
    return metric() if isinstance(metric, type) else metric
