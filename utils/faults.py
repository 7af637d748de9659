"""The known faults of training loops: what each changes in the reference loop, and how to mend it.

To add one: give `Loop` in reference.py the decision that goes wrong, then add a `Fault` here with
the values of that decision, and a patient to tests/test_parity_faults.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from utils import objectives
from utils.loops import Loop, Weights, rows_of
from utils.reference import Reference

IRIS, GLOVE = "01_iris_fit_vs_tape", "02_glove_shuffle_bug"
STEP, CLINIC = "04_custom_train_step", "05_parity_clinic"

Change = dict[str, Any]
"""Decisions of the reference loop, by field name of `Loop`."""


@dataclass(frozen=True)
class Patient:
    """What is known of the learner's loop when faults are looked for.

    Attributes
    ----------
    reference : Reference
        Of the same set-up.
    first, after_one, last : Weights
        The learner's, before training, after one step (None if not known), and at the end.
    fit_after_one, fit_last : Weights
        Those of ``fit``.
    updates : int
        How many the optimizer made that the loop was given.
    """

    reference: Reference
    first: Weights
    after_one: Weights | None
    last: Weights
    fit_after_one: Weights | None
    fit_last: Weights
    updates: int


@dataclass(frozen=True)
class Fault:
    """One way in which a loop goes wrong.

    Attributes
    ----------
    name : str
    says : str
        What the loop does, as a clause; fields of the change in braces.
    fix : str
        The line to mend.
    lesson : str
        Notebook that explains it.
    separate : str
        What would tell this fault from one with the same effect.
    changes : callable
        Takes a `Patient` and returns the variants that this set-up allows, each a change to the
        decisions of the reference loop. Empty for a fault of the logs.
    log_style : str
        For a fault of the logs: a style that `histories.candidates` knows.
    in_pairs : bool
        Whether it is also tried together with other faults.
    """

    name: str
    says: str
    fix: str
    lesson: str
    separate: str
    changes: Callable[[Patient], list[Change]] = lambda patient: []
    log_style: str = ""
    in_pairs: bool = True


def variants(patient: Patient) -> Iterator[tuple[Fault, Change]]:
    """List every fault of the weights that could occur on this set-up, in all its variants."""
    for fault in FAULTS:
        for change in fault.changes(patient):
            yield fault, change


def changed(*changes: Change) -> Loop:
    """Build the reference loop with these decisions changed."""
    loop = Loop()
    for change in changes:
        loop = replace(loop, **change)
    return loop


def _always(*changes: Change) -> Callable[[Patient], list[Change]]:
    return lambda patient: list(changes)


def _label_rank(patient: Patient) -> list[Change]:
    reference = patient.reference
    prediction, _ = reference.forward(training=False)
    if not objectives.ranks_differ(reference.passes[0][0][1], prediction):
        return []
    loss = reference.setup.loss
    plain = callable(loss) and not isinstance(loss, keras.losses.Loss)
    return [{"objective": "broadcast"}] + [{"objective": "broadcast_call"}] * plain


def _training_flag(patient: Patient) -> list[Change]:
    quiet, busy = (patient.reference.forward(training) for training in (False, True))
    same = _equal([quiet[0]], [busy[0]]) and _equal(quiet[1], busy[1])
    return [] if same else [{"training": False}]


def _regularization(patient: Patient) -> list[Change]:
    patient.reference.forward(training=True)
    return [{"penalties": "never"}] if patient.reference.model.losses else []


def _loss_summed(patient: Patient) -> list[Change]:
    if objectives.as_loss(patient.reference.setup.loss).reduction == "sum":
        return []
    patient.reference.forward(training=True)
    per_row = [{"objective": "summed", "penalties": "per_row"}]
    return [{"objective": "summed"}] + per_row * bool(patient.reference.model.losses)


def _logits(patient: Patient) -> list[Change]:
    loss = patient.reference.setup.loss
    if objectives.activation_of(loss) is None:
        return []
    squashed = [{"objective": "squashed_twice"}] * objectives.takes_logits(loss)
    return [{"objective": "flag_flipped"}, *squashed]


def _sample_weight(patient: Patient) -> list[Change]:
    weighted = len(patient.reference.passes[0][0]) == 3
    return [{"sample_weights": False}] if weighted else []


def _weights_averaged(patient: Patient) -> list[Change]:
    return [{"objective": "weights_averaged"}] * bool(_sample_weight(patient))


def _nominal_rows(patient: Patient) -> list[Change]:
    batches = patient.reference.passes[0]
    first, last = rows_of(batches[0]), rows_of(batches[-1])
    return [{"nominal_rows": first}] if last < first else []


def _penalties_twice(patient: Patient) -> list[Change]:
    return [{"penalties": "twice"}] * bool(_regularization(patient))


def _schedule(patient: Patient) -> list[Change]:
    setup = patient.reference.setup
    rate = setup.build_optimizer().get_config().get("learning_rate")
    has_schedule = isinstance(rate, dict)
    sets_rate = setup.build_callbacks is not None and any(
        isinstance(
            callback,
            (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau),
        )
        for callback in setup.build_callbacks()
    )
    return [{"schedule": False}] * has_schedule + [{"callbacks": False}] * sets_rate


def _clipping(patient: Patient) -> list[Change]:
    optimizer = patient.reference.setup.build_optimizer()
    clips = optimizer.clipnorm or optimizer.clipvalue or optimizer.global_clipnorm
    return [{"clipping": False}] if clips else []


def _own_clipping(patient: Patient) -> list[Change]:
    """Not with an embedding, whose gradient clipping would make a full matrix: another fault."""
    if _clipping(patient) or _dense(patient):
        return []
    kinds = ("clipnorm", "global_clipnorm", "clipvalue")
    # People write round limits.
    return [{"own_clipping": (kind, limit)} for kind in kinds for limit in (0.5, 1.0, 5.0)]


def _swapped(patient: Patient) -> list[Change]:
    """Only where the loss can take the two in either order."""
    reference = patient.reference
    y, (prediction, _) = reference.passes[0][0][1], reference.forward(training=False)
    if not (tf.is_tensor(y) and tf.is_tensor(prediction) and y.dtype.is_floating):
        return []
    alike = y.shape == prediction.shape or objectives.ranks_differ(y, prediction)
    return [{"objective": "swapped"}] * alike


def _called_again(patient: Patient) -> list[Change]:
    """Only where a call leaves something behind: statistics, or the counter of a seed."""
    (_, quiet), (_, busy) = (patient.reference.forward(training) for training in (False, True))
    return [] if _equal(quiet, busy) else [{"called_again": "before"}, {"called_again": "after"}]


def _left_out(patient: Patient) -> list[Change]:
    """Find the variables that the learner's loop never moved, and that ``fit`` did."""
    model = patient.reference.model
    places = {id(v): k for k, v in enumerate(model.weights)}
    still = tuple(
        number
        for number, variable in enumerate(model.trainable_variables)
        if np.array_equal(patient.last[places[id(variable)]], patient.first[places[id(variable)]])
        and not np.array_equal(
            patient.fit_last[places[id(variable)]], patient.first[places[id(variable)]]
        )
    )
    return [{"left_out": still}] if still else []


def _frozen(patient: Patient) -> list[Change]:
    return [{"passes": (0, 0)}, {"passes": (1, 0)}] if patient.reference.reshuffles else []


def _not_shuffled(patient: Patient) -> list[Change]:
    return [{"shuffled": False}] if patient.reference.shuffles else []


def _other_passes(patient: Patient) -> list[Change]:
    reference = patient.reference
    if not reference.reshuffles:
        return []
    usual = (0, reference.fit_stride)
    return [{"passes": p} for p in ((0, 1), (0, 2), (1, 1), (1, 2)) if p != usual]


def _dropped(patient: Patient) -> list[Change]:
    batches = patient.reference.passes[0]
    smaller = rows_of(batches[-1]) < rows_of(batches[0])
    partial = [{"dropped": "partial"}] if smaller else []
    return [*partial, {"dropped": "last"}]


def _rate(patient: Patient) -> list[Change]:
    """Estimate the learner's rate: the length of the first step is in proportion to it."""
    rate = patient.reference.setup.build_optimizer().get_config().get("learning_rate")
    if patient.after_one is None or patient.fit_after_one is None or isinstance(rate, dict):
        return []
    mine, usual = (_first_move(patient, w) for w in (patient.after_one, patient.fit_after_one))
    if not (usual.any() and np.isfinite(mine).all()):
        return []
    estimate = rate * float(np.median(mine[usual != 0] / usual[usual != 0]))
    # People write rates with few digits.
    rates = {float(f"{estimate:.{digits}g}") for digits in (2, 5)}
    return [{"rate": r} for r in sorted(rates) if r > 0 and abs(r / rate - 1) > 1e-6]


def _first_move(patient: Patient, after: Weights) -> np.ndarray:
    model, before = patient.reference.model, patient.reference.first_weights
    return np.concatenate(
        [
            (a.astype(float) - b).ravel()
            for v, a, b in zip(model.weights, after, before)
            if v.trainable
        ]
    )


def _other_optimizer(patient: Patient) -> list[Change]:
    if patient.updates:
        return []
    given = patient.reference.setup.build_optimizer()
    rate = given.get_config().get("learning_rate")
    rates = [None] if isinstance(rate, dict) else [None, rate]
    options = [(name, r) for name in ("Adam", "SGD", "RMSprop") for r in rates]
    if _clipping(patient):
        # The same but for clipping has a name of its own.
        options = [o for o in options if o != (type(given).__name__, rate)]
    return [{"optimizer": option} for option in options]


def _dense(patient: Patient) -> list[Change]:
    layers = patient.reference.model._flatten_layers()
    return [{"dense": True}] * any(isinstance(la, keras.layers.Embedding) for la in layers)


def _phantom(patient: Patient) -> list[Change]:
    return [{"phantom": False}] if patient.reference.unknown_length else []


def _callbacks(patient: Patient) -> list[Change]:
    ignored = patient.reference.setup.build_callbacks is not None and not _schedule(patient)
    return [{"callbacks": False}] if ignored else []


def _own_start(patient: Patient) -> list[Change]:
    return [{"own_start": True}] if patient.reference.own_start is not None else []


def _equal(a: list[Any], b: list[Any]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b))


FAULTS = (
    Fault(
        "initial_weights_differ",
        "the loop does not start from the weights that the model came with",
        "Train the model you are given; build none anew, and seed before it is built.",
        IRIS,
        "the weights before the first step",
        _own_start,
    ),
    Fault(
        "label_rank_broadcast",
        "labels (N,) against predictions (N, 1) broadcast to (N, N)",
        "Give both one shape before you subtract: `y = tf.reshape(y, tf.shape(prediction))`.",
        GLOVE,
        "labels that vary more within a batch",
        _label_rank,
    ),
    Fault(
        "training_flag_missing",
        "Dropout and BatchNormalization work as in prediction",
        "Call `model(x, training=True)` in the step.",
        STEP,
        "a model with Dropout or BatchNormalization",
        _training_flag,
    ),
    Fault(
        "model_called_twice",
        "every step calls the model once more with `training=True`: BatchNormalization's moving "
        "statistics move twice, Dropout draws twice",
        "Keep the predictions of the call inside the tape, for the metrics too.",
        STEP,
        "a model with BatchNormalization or Dropout",
        _called_again,
    ),
    Fault(
        "regularization_missing",
        "the penalties of the layers do not reach the gradients: left out, or added outside the "
        "tape",
        "Add them inside the tape: `loss += sum(model.losses)`.",
        STEP,
        "a larger penalty",
        _regularization,
    ),
    Fault(
        "loss_summed",
        "the loss of a batch is a sum, not a mean; so is its gradient",
        "Take the mean over the rows: `tf.reduce_mean(loss(y, prediction))`.",
        IRIS,
        "batches of another size",
        _loss_summed,
    ),
    Fault(
        "logits_mismatch",
        "the loss takes logits for probabilities, or the other way round",
        "Set `from_logits=True` exactly if the last layer has no activation; functions of `tf.nn` "
        "that end in `with_logits` always want a layer without one.",
        STEP,
        "a model whose outputs are far from 0 and 1",
        _logits,
    ),
    Fault(
        "arguments_swapped",
        "the loss gets predictions and labels in the wrong order",
        "Labels come first: `loss(y, prediction)`.",
        STEP,
        "a loss that is not symmetric",
        _swapped,
        in_pairs=False,
    ),
    Fault(
        "sample_weight_ignored",
        "the sample weights do not reach the loss",
        "Pass them on: `loss(y, prediction, sample_weight=weight)`.",
        STEP,
        "sample weights that vary more",
        _sample_weight,
    ),
    Fault(
        "clipping_missing",
        "gradients are not clipped",
        "Use the optimizer you are given, with `optimizer.apply_gradients`.",
        STEP,
        "larger gradients",
        _clipping,
    ),
    Fault(
        "clipping_added",
        "gradients are clipped, `{own_clipping[0]}={own_clipping[1]:g}`, where `fit` does not clip",
        "Leave the gradients alone, or give the limit to the optimizer of both.",
        STEP,
        "larger gradients",
        _own_clipping,
        in_pairs=False,
    ),
    Fault(
        "gradients_applied_twice",
        "every batch changes the weights twice",
        "Call `apply_gradients` once a batch; compute logs from the same step.",
        IRIS,
        "batches of another size, or an optimizer with momentum",
        _always({"updates": "gradients_twice"}, {"updates": "step_twice"}),
    ),
    Fault(
        "variables_left_out",
        "some trainable variables never change",
        "Take gradients for, and apply them to, all of `model.trainable_variables`.",
        STEP,
        "a larger learning rate",
        _left_out,
    ),
    Fault(
        "schedule_ignored",
        "the learning rate stays what it was at the start",
        "Use the optimizer you are given; set `optimizer.learning_rate` where a callback would. A "
        "Python number in a `tf.function` stays what it was when the function was traced.",
        STEP,
        "a schedule that falls faster",
        _schedule,
    ),
    Fault(
        "last_batch_dropped",
        "the last batch of every epoch is not trained on",
        "Round the number of steps up, or loop over the dataset itself.",
        IRIS,
        "a number of rows that the batch size does not divide",
        _dropped,
    ),
    Fault(
        "order_frozen",
        "every epoch takes the rows in the same order",
        "Iterate over the dataset anew each epoch; keep no list or cache of shuffled batches.",
        GLOVE,
        "more epochs",
        _frozen,
    ),
    Fault(
        "order_not_shuffled",
        "the rows come in the order of the file",
        "Loop over the dataset you are given, which shuffles.",
        GLOVE,
        "rows sorted by label",
        _not_shuffled,
    ),
    Fault(
        "shuffle_pass_differs",
        "it takes other passes over the shuffled dataset than `fit`: harmless, other random orders",
        "To be equal to `fit`, open one more `iter(dataset)` before each epoch but the first, "
        "and peek at no batch.",
        GLOVE,
        "more epochs",
        _other_passes,
    ),
    Fault(
        "optimizer_state_reused",
        "the optimizer has made steps before: its counter and averages are not those of a new one",
        "Make a new optimizer for each training; build it with `optimizer.build(variables)`, "
        "not by a step.",
        STEP,
        "an optimizer with momentum",
        _always({"warm_up": "zeros"}, {"warm_up": "step"}, {"warm_up": "epoch"}),
        in_pairs=False,
    ),
    Fault(
        "optimizer_state_lost",
        "the optimizer starts anew every epoch",
        "Make the optimizer once, before the loop over epochs.",
        STEP,
        "an optimizer with momentum",
        _always({"between": "new_optimizer"}),
        in_pairs=False,
    ),
    Fault(
        "validation_updates_weights",
        "what follows an epoch changes the model: validation with `training=True` or with updates",
        "Validate with `model(x, training=False)`, outside the tape, without `apply_gradients`.",
        STEP,
        "more epochs",
        _always({"between": "forward"}, {"between": "steps"}),
    ),
    Fault(
        "regularization_twice",
        "the penalties of the layers are added twice",
        "Add `model.losses` in one place; `model.compute_loss` adds them already.",
        STEP,
        "a larger penalty",
        _penalties_twice,
    ),
    Fault(
        "sample_weight_averaged",
        "the weighted sum is divided by the sum of the weights, where `fit` divides by the rows",
        "Let the Keras loss average: `loss(y, prediction, sample_weight=weight)`.",
        STEP,
        "sample weights whose mean is far from 1",
        _weights_averaged,
    ),
    Fault(
        "batch_size_fixed",
        "the sum over a batch is divided by {nominal_rows}, in the smaller last batch too",
        "Divide by the rows of this batch, as `tf.reduce_mean` does.",
        STEP,
        "a last batch that is smaller",
        _nominal_rows,
    ),
    Fault(
        "first_batch_skipped",
        "the first batch of every epoch is not trained on",
        "Peek with an iterator of its own; loop over the dataset itself.",
        IRIS,
        "rows that differ more",
        _always({"dropped": "first"}),
    ),
    Fault(
        "epochs_miscounted",
        "the loop trains one epoch too many or too few ({more_epochs:+d})",
        "Loop over `range(epochs)`.",
        IRIS,
        "another number of epochs",
        _always({"more_epochs": -1}, {"more_epochs": 1}),
        in_pairs=False,
    ),
    Fault(
        "phantom_step_missing",
        "`fit` does not know the length of this dataset: it ends every epoch with a step that "
        "finds no batch, and yet moves the optimizer's counter, Dropout's seeds and weight decay; "
        "the loop does not, and is right",
        "Tell TensorFlow the length: apply `tf.data.experimental.assert_cardinality`.",
        CLINIC,
        "a dataset of known length",
        _phantom,
    ),
    Fault(
        "callbacks_ignored",
        "the callbacks of `fit` are not called",
        "Do in the loop what the callbacks do at the end of an epoch.",
        STEP,
        "callbacks that do more",
        _callbacks,
    ),
    Fault(
        "other_optimizer",
        "the loop uses an optimizer of its own, {optimizer[0]}, not the one it was given",
        "Use the optimizer that is handed to the loop.",
        STEP,
        "more steps",
        _other_optimizer,
        in_pairs=False,
    ),
    Fault(
        "learning_rate_differs",
        "the learning rate is another one, about {rate:g}",
        "Use the optimizer that is handed to the loop, and leave its rate alone.",
        IRIS,
        "batches of another size, or an optimizer with momentum",
        _rate,
        in_pairs=False,
    ),
    Fault(
        "embedding_gradient_dense",
        "the gradient of an embedding is made a full matrix: ids that repeat in a batch are added "
        "up before the optimizer squares them, where `fit` squares each",
        "Hand gradients to `apply_gradients` as the tape returns them.",
        GLOVE,
        "ids that repeat in a batch",
        _dense,
        in_pairs=False,
    ),
    Fault(
        "epoch_mean_unweighted",
        "the epoch's value is the plain mean over batches, and the last batch is smaller",
        "Weigh by rows: `mean_loss.update_state(loss, sample_weight=len(y))`.",
        IRIS,
        "a last batch that is smaller",
        log_style="unweighted",
    ),
    Fault(
        "metric_not_reset",
        "the value is an average since the first epoch, not over one epoch",
        "Call `metric.reset_state()` at the start of every epoch.",
        IRIS,
        "more epochs",
        log_style="running",
    ),
    Fault(
        "penalties_not_logged",
        "the value lacks the penalties of the layers, which the loss of `fit` includes",
        "Log the loss that the tape differentiates, `sum(model.losses)` included.",
        STEP,
        "a larger penalty",
        log_style="bare",
    ),
    Fault(
        "last_batch_logged",
        "the value is that of the last batch, not of the epoch",
        "Average over the epoch with `keras.metrics.Mean`, reset once an epoch. `train_on_batch` "
        "resets its metrics at each call.",
        STEP,
        "more batches",
        log_style="last",
    ),
)
"""Every fault that can be named."""
