"""The loop that ``fit`` is, with every decision laid open, so that a fault is one decision changed.

A `Loop` is first written out as a script, the list of its actions, and then played. Two loops with
the same script and the same step are the same training, and it is done once.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from utils import objectives
from utils.loops import Loop, Run, Setup, Step, Weights, rows_of
from utils.passes import Passes, same, shuffle_does_nothing

Script = tuple[tuple[Any, ...], ...]
"""Actions: a word and what it is done to."""


class Reference:
    """Runs loops on one set-up, from the same start each time.

    Parameters
    ----------
    setup : Setup

    Attributes
    ----------
    passes, plain : Passes
        Over the dataset, and over the dataset if ``Dataset.shuffle`` did nothing.
    unknown_length : bool
        Whether TensorFlow cannot tell the number of batches, as after ``unbatch`` or ``filter``.
        ``fit`` then ends every epoch with a step that finds no batch. What does not wait for the
        batch has happened by then: the optimizer's counter, seeds of Dropout and weight decay have
        moved on.
    first_weights : Weights
        Of the model as it is built.
    own_start : Weights or None
        Where a loop with `Loop.own_start` begins; to be set from outside.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.model, _, dataset = setup.build()
        self.passes = Passes(dataset)
        with shuffle_does_nothing():
            self.plain = Passes(setup.build()[2])
        build = setup.build_validation
        self.validation = None if build is None else Passes(build())
        self.unknown_length = bool(dataset.cardinality() < 0)
        # Keras 3 opens two iterators an epoch where it knows the number of batches.
        self.fit_stride = 1 if self.unknown_length else 2
        self.first_weights = self.model.get_weights()
        self.own_start: Weights | None = None
        self._state = [(v, v.numpy()) for v in self.model.variables]
        self._takes_training = "training" in inspect.signature(self.model.call).parameters
        self._optimizers: dict[Any, tuple[keras.optimizers.Optimizer, Weights]] = {}
        self._steps: dict[Any, Callable[..., Any]] = {}
        self._runs: dict[Any, Run] = {}

    @property
    def batches(self) -> int:
        """Number of batches of the first pass."""
        return len(self.passes[0])

    @property
    def reshuffles(self) -> bool:
        """Whether two passes over the dataset differ."""
        return not same(self.passes[0], self.passes[1])

    @property
    def shuffles(self) -> bool:
        """Whether the first pass has another order than without ``Dataset.shuffle``."""
        return not same(self.passes[0], self.plain[0])

    def run(
        self,
        loop: Loop,
        batches: int,
        epochs: int,
        *,
        compiled: bool = False,
        noise: int | None = None,
        traced: bool = False,
    ) -> Run:
        """Train from the start with a loop.

        Parameters
        ----------
        loop : Loop
        batches, epochs : int
            The dataset is cut to so many batches.
        compiled : bool, default False
            Whether the step is a ``tf.function``.
        noise : int, optional
            A seed: before each step all weights move by up to one unit in the last place.
        traced : bool, default False
            Keep the weights after every step.

        Returns
        -------
        Run
            Remembered: the same actions are not carried out twice.
        """
        script = tuple(self._script(loop, batches, epochs))
        key = (loop.step, script, compiled, noise, traced)
        if key not in self._runs:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._runs[key] = self._play(loop, script, compiled, noise, traced)
        return self._runs[key]

    def forward(self, training: bool) -> tuple[Any, Weights]:
        """Predict the first batch from the start: the output, and all state after it."""
        self._rewind()
        prediction = self._predict(self.passes[0][0][0], training)
        return prediction, [v.numpy() for v in self.model.variables]

    def metric_logs(self, steps: Sequence[Step], *, reset: str) -> dict[str, list[float]]:
        """Feed the steps to fresh metrics; one value of each metric for every epoch, or batch.

        Parameters
        ----------
        steps : sequence of Step
        reset : {"epoch", "never", "batch"}
            When the metrics start anew. With "batch" the values are those of every batch.
        """
        optimizer = getattr(self.model, "optimizer", None)
        metrics = self.setup.fresh_metrics()
        self.model.compile(optimizer, self.setup.loss, metrics=metrics, jit_compile=False)
        logs: dict[str, list[float]] = {}
        for step, following in zip(steps, [*steps[1:], None]):
            x, y, weight = keras.utils.unpack_x_y_sample_weight(step.batch)
            found = self.model.compute_metrics(x, y, step.prediction, sample_weight=weight)
            last = following is None or following.epoch != step.epoch
            if last or reset == "batch":
                for name, value in found.items():
                    logs.setdefault(name, []).append(float(value))
            if reset == "batch" or (reset == "epoch" and last):
                self.model.reset_metrics()
        logs.pop("loss", None)
        return logs

    # --- writing the script --------------------------------------------------------------------

    def _script(self, loop: Loop, batches: int, epochs: int) -> Iterator[tuple[Any, ...]]:
        """List the actions of a loop."""
        source = "passes" if loop.shuffled else "plain"
        first, stride = loop.passes or (0, self.fit_stride)
        hears = loop.callbacks and self.setup.build_callbacks is not None
        if loop.own_start:
            yield ("own_start",)
        if loop.rate is not None:
            yield ("rate", loop.rate)
        yield from self._warm_up(loop.warm_up, source, batches)
        for epoch in range(epochs + loop.more_epochs):
            number = first + stride * epoch if loop.shuffled and self.reshuffles else 0
            if hears:
                yield ("epoch_begins", epoch)
            for index in _kept(loop.dropped, getattr(self, source)[number], batches):
                yield ("train", epoch, source, number, index)
            if self.unknown_length and loop.phantom:
                yield ("phantom",)
            if hears:
                yield ("epoch_ends", epoch)
            yield from self._between(loop.between, number, batches)

    @staticmethod
    def _warm_up(kind: str, source: str, batches: int) -> Iterator[tuple[Any, ...]]:
        if kind == "zeros":
            yield ("zero_gradients",)
        elif kind != "none":
            for index in range(1 if kind == "step" else batches):
                yield ("update", source, 0, index)
            yield ("weights_back",)

    def _between(self, kind: str, number: int, batches: int) -> Iterator[tuple[Any, ...]]:
        if kind == "new_optimizer":
            yield ("new_optimizer",)
        elif kind != "nothing":
            action = {"forward": "look", "steps": "update"}[kind]
            if self.validation is not None:
                for index in range(len(self.validation[0])):
                    yield (action, "validation", 0, index)
                return
            following = number + 1 if self.reshuffles else 0
            for index in range(min(batches, len(self.passes[following]))):
                yield (action, "passes", following, index)

    # --- playing it ----------------------------------------------------------------------------

    def _play(
        self, loop: Loop, script: Script, compiled: bool, noise: int | None, traced: bool
    ) -> Run:
        self._rewind()
        scene = _Scene(self, loop, compiled, noise, traced)
        for action, *rest in script:
            getattr(scene, action)(*rest)
            if scene.over:
                break
        return scene.finish()

    def _rewind(self) -> None:
        """Put model and optimizers back to the start, seeds of random layers included."""
        for variable, value in self._state:
            variable.assign(value)
        for optimizer, values in self._optimizers.values():
            _assign(optimizer.variables, values)

    def optimizer(self, loop: Loop) -> tuple[keras.optimizers.Optimizer, Weights]:
        """Make the optimizer of a loop, or return the one made before, with its first state."""
        key = loop.clipping, loop.own_clipping, loop.schedule, loop.optimizer
        if key not in self._optimizers:
            made = self.setup.build_optimizer()
            if loop.optimizer is not None:
                name, rate = loop.optimizer
                kind = getattr(keras.optimizers, name)
                made = kind() if rate is None else kind(rate)
            elif not loop.schedule:
                config = made.get_config()
                schedule = keras.optimizers.schedules.deserialize(config["learning_rate"])
                made = type(made).from_config({**config, "learning_rate": float(schedule(0))})
            if not loop.clipping:
                made.clipnorm = made.clipvalue = made.global_clipnorm = None
            if loop.own_clipping is not None:
                setattr(made, *loop.own_clipping)
            made.build(self.model.trainable_variables)
            self._optimizers[key] = made, [v.numpy() for v in made.variables]
        return self._optimizers[key]

    def _predict(self, x: Any, training: bool) -> Any:
        return self.model(x, training=training) if self._takes_training else self.model(x)

    def step(self, loop: Loop, compiled: bool) -> Callable[..., Any]:
        """Make the function that trains on one batch, or return the one made before.

        It returns the losses `minimised`, `given` and `bare` of a `Step`, and the prediction.
        """
        key = loop.step, compiled
        if key not in self._steps:
            step = self._make_step(loop)
            self._steps[key] = (
                tf.function(step, reduce_retracing=True, autograph=False) if compiled else step
            )
        return self._steps[key]

    def _make_step(self, loop: Loop) -> Callable[..., Any]:
        model, (optimizer, _) = self.model, self.optimizer(loop)
        goal = objectives.make(loop.objective, self.setup.loss)
        honest = objectives.make("given", self.setup.loss)
        variables = [v for k, v in enumerate(model.trainable_variables) if k not in loop.left_out]

        def update(x: Any, y: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
            if loop.called_again == "before":
                self._predict(x, True)
            with tf.GradientTape() as tape:
                prediction = self._predict(x, loop.training)
                bare = goal(y, prediction, weight if loop.sample_weights else None)
                if loop.nominal_rows:
                    bare = bare * tf.cast(_count(x), bare.dtype) / loop.nominal_rows
                loss = given = self._with_penalties(loop.penalties, bare, x)
                scaled = optimizer.scale_loss(loss)
            if loop.step != Loop().step:
                # Before the update: model.losses are computed anew each time they are read.
                bare = honest(y, prediction, weight)
                given = self._with_penalties("once", bare, x)
            gradients = tape.gradient(scaled, variables)
            if loop.dense:
                gradients = [g if g is None else tf.convert_to_tensor(g) for g in gradients]
            for _ in range(2 if loop.updates == "gradients_twice" else 1):
                optimizer.apply_gradients(zip(gradients, variables))
            if loop.called_again == "after":
                self._predict(x, True)
            return loss, given, bare, prediction

        def step(x: Any, y: Any, weight: Any = None) -> tuple[Any, Any, Any, Any]:
            logs = update(x, y, weight)
            if loop.updates == "step_twice":
                update(x, y, weight)
            return logs

        return step

    def _with_penalties(self, penalties: str, loss: Any, x: Any) -> Any:
        terms = self.model.losses if penalties != "never" else []
        if penalties == "per_row":
            terms = [tf.cast(_count(x), loss.dtype) * term for term in terms]
        elif penalties == "twice":
            terms = [*terms, *terms]
        return keras.ops.sum([loss, *terms]) if terms else loss

    def epoch_logs(self, steps: Sequence[Step]) -> dict[str, float]:
        """Compute what ``fit`` would hand to the callbacks after an epoch of these steps."""
        logs = {"loss": _mean_loss(steps)}
        if self.setup.metrics:
            logs |= {k: v[0] for k, v in self.metric_logs(steps, reset="epoch").items()}
        if self.validation is not None:
            validated = [self._validate(batch) for batch in self.validation[0]]
            logs["val_loss"] = _mean_loss(validated)
            found = self.metric_logs(validated, reset="epoch")
            logs |= {f"val_{k}": v[0] for k, v in found.items()}
        return logs

    def _validate(self, batch: Any) -> Step:
        x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
        prediction = self._predict(x, False)
        bare = objectives.make("given", self.setup.loss)(y, prediction, weight)
        loss = keras.ops.sum([bare, *self.model.losses]).numpy()
        return Step(0, rows_of(batch), loss, loss, bare.numpy(), batch, prediction)


class _Scene:
    """One run while it is played: each action of a script is a method."""

    def __init__(
        self, reference: Reference, loop: Loop, compiled: bool, noise: int | None, traced: bool
    ) -> None:
        self.reference, self.model = reference, reference.model
        self.optimizer, self._first_state = reference.optimizer(loop)
        self.model.optimizer = self.optimizer
        self._step = reference.step(loop, compiled)
        self._shake = _Noise(self.model, noise)
        self._traced = traced
        self._start = reference.first_weights
        self._counters = [v for v in self.model.variables if not v.dtype.startswith("float")]
        self._drawn = [np.zeros(v.shape, v.dtype) for v in self._counters]
        self._callbacks = self._make_callbacks(loop)
        self.run = Run()
        self.over = False

    def own_start(self) -> None:
        self._start = self.reference.own_start or self._start
        self.model.set_weights(self._start)

    def rate(self, value: float) -> None:
        self.optimizer.learning_rate = value

    def zero_gradients(self) -> None:
        pairs = [(tf.zeros(v.shape, v.dtype), v) for v in self.model.trainable_variables]
        self.optimizer.apply_gradients(pairs)

    def weights_back(self) -> None:
        self.model.set_weights(self._start)

    def new_optimizer(self) -> None:
        _assign(self.optimizer.variables, self._first_state)

    def look(self, source: str, number: int, index: int) -> None:
        self._shake()
        self.reference._predict(getattr(self.reference, source)[number][index][0], True)

    def update(self, source: str, number: int, index: int) -> list[Any]:
        self._shake()
        batch = getattr(self.reference, source)[number][index]
        before = [v.numpy() for v in self._counters]
        found = self._step(*keras.utils.unpack_x_y_sample_weight(batch))
        self._drawn = [v.numpy() - old for v, old in zip(self._counters, before)]
        return [batch, *found]

    def phantom(self) -> None:
        for counter, drawn in zip(self._counters, self._drawn):
            counter.assign(counter.numpy() + drawn)
        if self.optimizer.weight_decay:
            self.optimizer._apply_weight_decay(self.model.trainable_variables)
        self.optimizer.iterations.assign_add(1)

    def train(self, epoch: int, source: str, number: int, index: int) -> None:
        if self._callbacks:
            self._callbacks.on_train_batch_begin(index)
        batch, *losses, prediction = self.update(source, number, index)
        values = [loss.numpy() for loss in losses]
        self.run.steps.append(Step(epoch, rows_of(batch), *values, batch, prediction))
        if self._callbacks:
            self._callbacks.on_train_batch_end(index, {"loss": float(values[0])})
        if self._traced:
            self.run.trace.append(self.model.get_weights())

    def epoch_begins(self, epoch: int) -> None:
        self._callbacks.on_epoch_begin(epoch)

    def epoch_ends(self, epoch: int) -> None:
        steps = [step for step in self.run.steps if step.epoch == epoch]
        self._callbacks.on_epoch_end(epoch, self.reference.epoch_logs(steps))
        self.over = self.model.stop_training

    def finish(self) -> Run:
        self.optimizer.finalize_variable_values(self.model.trainable_variables)
        if self._callbacks:
            self._callbacks.on_train_end()
        self.run.weights = self.model.get_weights()
        return self.run

    def _make_callbacks(self, loop: Loop) -> Any:
        setup = self.reference.setup
        if setup.build_callbacks is None or not loop.callbacks:
            return None
        self.model.stop_training = False
        made = setup.build_callbacks()
        callbacks = keras.callbacks.CallbackList(made, model=self.model, epochs=setup.epochs)
        callbacks.on_train_begin()
        return callbacks


class _Noise:
    """Moves every weight by at most one unit in the last place, as other roundings might."""

    def __init__(self, model: keras.Model, seed: int | None) -> None:
        self._generator = None if seed is None else np.random.default_rng(seed)
        self._variables = [v for v in model.weights if v.dtype.startswith("float")]

    def __call__(self) -> None:
        if self._generator is None:
            return
        for variable in self._variables:
            value = variable.numpy()
            sign = self._generator.integers(-1, 2, value.shape)
            variable.assign(value + (sign * np.spacing(np.abs(value))).astype(value.dtype))


def _kept(dropped: str, batches: list[Any], limit: int) -> range:
    """Numbers of the batches of a pass that a loop trains on."""
    count = min(limit, len(batches))
    if dropped == "first":
        return range(1, count)
    smaller = count and rows_of(batches[count - 1]) < rows_of(batches[0])
    if dropped == "last" or (dropped == "partial" and smaller):
        return range(count - 1)
    return range(count)


def _count(x: Any) -> tf.Tensor:
    """Count the rows of a batch of inputs, in a graph too."""
    return tf.shape(tf.nest.flatten(x)[0])[0]


def _mean_loss(steps: Sequence[Step]) -> float:
    mean = keras.metrics.Mean()
    for step in steps:
        mean.update_state(step.minimised, sample_weight=step.rows)
    return float(mean.result())


def _assign(variables: Sequence[Any], values: Weights) -> None:
    for variable, value in zip(variables, values):
        variable.assign(value)
