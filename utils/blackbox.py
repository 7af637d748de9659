"""Runs a learner's training loop without trusting it: it may raise, hang, or return nonsense.

A thread cannot be killed in Python, and a child process cannot be given functions from a notebook,
so a run is stopped in two ways that work inside a Jupyter kernel:

- An alarm signal interrupts Python code (main thread, not on Windows). It repeats every second, so
  that a bare ``except:`` in the loop does not swallow it.
- The dataset refuses to hand out batches after the deadline, which also ends loops that are
  compiled into a graph.

What neither stops is a graph that loops for ever over data it has cached; the command line leaves
the process then (`leave_when_stuck`).
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from utils.loops import Setup, Weights

Train = Callable[..., Any]
"""``train(model, optimizer, loss, dataset, epochs)`` -> history or None."""

leave_when_stuck = False
"""Whether a run that cannot be interrupted ends the process. For the command line only."""

_GRACE = 10.0
_GATE = "parity: no more batches after the time limit"


class OutOfTimeError(BaseException):
    """Raised inside the loop; no Exception, so that ``except Exception`` lets it pass."""


@dataclass
class Outcome:
    """What one run of the learner's loop did.

    Attributes
    ----------
    weights : Weights
        After the run; empty if there are none to be compared.
    first_weights : Weights
        Before the run.
    history : dict of str to ndarray
        One value an epoch, or whatever number of values was returned.
    updates : int
        By the optimizer that was handed to the loop.
    problem : str
        A sentence if the run did not end as it should, else empty.
    warnings : list of str
        What Keras said of missing gradients.
    """

    weights: Weights = field(default_factory=list)
    first_weights: Weights = field(default_factory=list)
    trainable: list[bool] = field(default_factory=list)
    history: dict[str, np.ndarray] = field(default_factory=dict)
    updates: int = 0
    problem: str = ""
    warnings: list[str] = field(default_factory=list)


def run(setup: Setup, train: Train, *, batches: int | None, epochs: int, seconds: float) -> Outcome:
    """Run the loop once, on fresh objects from the same seed.

    What it prints is dropped.

    Parameters
    ----------
    setup : Setup
    train : callable
        The learner's loop.
    batches : int or None
        The dataset is cut to so many batches; None: left whole.
    epochs : int
    seconds : float
        Time limit.

    Returns
    -------
    Outcome
    """
    outcome = _run(setup, train, batches, epochs, seconds, built=False)
    if "singleton tf.Variable" in outcome.problem:
        # A tf.function outside of the loop, kept from one run to the next, may make the variables
        # of an optimizer in its first run only.
        outcome = _run(setup, train, batches, epochs, seconds, built=True)
    return outcome


def _run(
    setup: Setup, train: Train, batches: int | None, epochs: int, seconds: float, *, built: bool
) -> Outcome:
    model, optimizer, dataset = setup.build()
    if built:
        optimizer.build(model.trainable_variables)
    dataset = _closing(dataset, time.time() + seconds)
    if batches is not None:
        dataset = dataset.take(batches)
    loss = keras.losses.get(setup.loss) if isinstance(setup.loss, str) else setup.loss
    outcome = Outcome(first_weights=model.get_weights())
    with warnings.catch_warnings(record=True) as warned, _silence():
        warnings.simplefilter("always")
        returned, outcome.problem = _call(train, (model, optimizer, loss, dataset, epochs), seconds)
    if outcome.problem:
        return outcome
    outcome.weights = model.get_weights()
    outcome.trainable = [v.trainable for v in model.weights]
    outcome.updates = int(optimizer.iterations.numpy())
    if any("Gradients do not exist" in str(w.message) for w in warned):
        outcome.warnings.append("Keras warned that some variables get no gradient.")
    outcome.history, outcome.problem = _as_history(returned)
    if [w.shape for w in outcome.weights] != [w.shape for w in outcome.first_weights]:
        outcome.weights = []
        outcome.problem = "The loop changed the model: its variables are not what they were."
    return outcome


def _call(train: Train, arguments: tuple[Any, ...], seconds: float) -> tuple[Any, str]:
    """Call the loop; return what it returns, and a sentence if it does not return."""
    deadline = time.time() + seconds
    try:
        with _alarm(seconds):
            return train(*arguments), ""
    except OutOfTimeError:
        return None, _too_long(seconds)
    except (Exception, SystemExit) as error:
        late = time.time() > deadline or _GATE in str(error)
        return None, _too_long(seconds) if late else _raised(error, train)


def _as_history(returned: Any) -> tuple[dict[str, np.ndarray], str]:
    """Read what the loop returned; the second part is a sentence if it cannot be read."""
    returned = getattr(returned, "history", returned)
    if returned is None:
        return {}, ""
    if not isinstance(returned, dict):
        return {}, (
            f"The loop returned {type(returned).__name__}; "
            'a dict such as {"loss": [...]}, or None, is expected.'
        )
    history = {}
    for name, values in returned.items():
        try:
            history[str(name)] = np.array([float(v) for v in values])
        except (TypeError, ValueError):
            return {}, f"The loop returned no list of numbers under {name!r}."
    return history, ""


def _closing(dataset: tf.data.Dataset, deadline: float) -> tf.data.Dataset:
    """Hand the batches on until the deadline, then raise."""

    def gate(*batch: Any) -> Any:
        open_still = tf.debugging.assert_less(
            tf.timestamp(), tf.constant(deadline, tf.float64), message=_GATE
        )
        with tf.control_dependencies([open_still]):
            return tf.nest.map_structure(tf.identity, batch)

    return dataset.map(gate)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise OutOfTimeError in the main thread after so many seconds, and every second from then."""
    watch = threading.Timer(seconds + _GRACE, _leave, [seconds]) if leave_when_stuck else None
    if watch:
        watch.daemon = True
        watch.start()
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not usable:
        try:
            yield
        finally:
            if watch:
                watch.cancel()
        return

    def ring(number: int, frame: Any) -> None:
        raise OutOfTimeError

    # Someone else (pytest-timeout) may use the same alarm: give it back with the time left.
    handler = signal.signal(signal.SIGALRM, ring)
    before, _ = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    started = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if before:
            left = max(0.001, before - (time.monotonic() - started))
            signal.setitimer(signal.ITIMER_REAL, left)
        if watch:
            watch.cancel()


def _leave(seconds: float) -> None:
    os.write(1, f"broken: {_too_long(seconds)}\n".encode())
    os._exit(1)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop what is printed, and TensorFlow's complaints that the same function is traced anew."""
    nowhere, logger = io.StringIO(), tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield
    finally:
        logger.setLevel(level)


def _too_long(seconds: float) -> str:
    return f"The loop was stopped after {seconds:.0f} s: it runs for ever, or is very slow."


def _raised(error: BaseException, train: Train) -> str:
    """Say what was raised, and which line of the learner's file it comes from."""
    code = getattr(train, "__code__", None)
    file = code.co_filename if code is not None else ""
    message = first_line(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.line for frame in frames if frame.filename == file and frame.line]
    if message == "in user code:":
        # A function that TensorFlow has rewritten: the message holds a traceback of its own.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        message = first_line(lines[-1])
        own = [b for a, b in pairwise(lines) if a.startswith(f'File "{file}"')]
    where = f" at `{own[-1]}`" if own else ""
    kind = type(error).__name__
    return f"The loop raised {kind}{where}: {message.removeprefix(f'{kind}: ')}"


def first_line(message: Any) -> str:
    """Return the first line of an error that has any text, cut to fit a report."""
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    if lines[:1] == ["Graph execution error:"]:
        # The reason comes last, before the names of nodes.
        lines = [line for line in lines if not line.startswith(("[[", "[Op:"))][-1:]
    text = lines[0] if lines else "(no message)"
    return text if len(text) <= 160 else text[:157] + "..."
