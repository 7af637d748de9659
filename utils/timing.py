"""Timing by comparison: alternating repeats in one process, medians, ratios.

Absolute times differ from machine to machine and from minute to minute. A ratio of two medians that
were measured turn by turn is steadier, so that is what the lessons state.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Timings:
    """Times of several functions, measured in turn.

    Attributes
    ----------
    first : dict of str to float
        Seconds of each function's first call, with tracing and compiling.
    seconds : dict of str to ndarray, shape (repeats,)
        Seconds of each later call, in order. Element k of all functions is of the same round.
    """

    first: dict[str, float]
    seconds: dict[str, np.ndarray]

    def median(self, name: str) -> float:
        """Median seconds of a call, the first one left out."""
        return float(np.median(self.seconds[name]))

    def compile(self, name: str) -> float:
        """Seconds that the first call took longer than the median of the others, at least 0."""
        return max(0.0, self.first[name] - self.median(name))

    def ratio(self, slow: str, fast: str) -> float:
        """How many times longer `slow` takes than `fast`: the median over rounds of the ratio."""
        return float(np.median(self.seconds[slow] / self.seconds[fast]))

    def spread(self, slow: str, fast: str) -> tuple[float, float]:
        """Smallest and largest ratio of `slow` to `fast` over the rounds."""
        ratios = self.seconds[slow] / self.seconds[fast]
        return float(ratios.min()), float(ratios.max())

    def table(self, baseline: str) -> str:
        """Plain-text table: first call, median, and speed as a multiple of the baseline's."""
        width = max(map(len, self.seconds))
        lines = [
            f"{'':{width}}  {'first call':>10}  {'median':>10}  {baseline} takes ... times as long"
        ]
        for name in self.seconds:
            low, high = self.spread(baseline, name)
            lines.append(
                f"{name:{width}}  {as_time(self.first[name]):>10}  {as_time(self.median(name)):>10}"
                f"  {self.ratio(baseline, name):.2f} ({low:.2f} to {high:.2f})"
            )
        return "\n".join(lines)


def compare(
    functions: Mapping[str, Callable[[], Any]], *, repeats: int = 5, warmup: int = 0
) -> Timings:
    """Time functions against each other, turn by turn.

    The first call of each is timed apart. Then come `warmup` rounds that do not count, then
    `repeats` rounds that do; in each round every function is called once, in the given order.

    Parameters
    ----------
    functions : mapping of str to callable
        Functions without arguments. Each must wait for its own result.
    repeats : int, default 5
        Rounds that count, at least 1.
    warmup : int, default 0
        Rounds after the first calls that do not count.

    Returns
    -------
    Timings

    Raises
    ------
    ValueError
        If there is no function, or `repeats` is below 1.
    """
    if not functions or repeats < 1:
        raise ValueError("timing.compare needs at least one function and one repeat")
    first = {name: _seconds(function) for name, function in functions.items()}
    for _ in range(warmup):
        for function in functions.values():
            function()
    rounds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            rounds[name].append(_seconds(function))
    return Timings(first, {name: np.array(values) for name, values in rounds.items()})


def as_time(seconds: float) -> str:
    """Write a time with three digits and a fitting unit: ``1.23 s``, ``45.6 ms``, ``789 µs``.

    Parameters
    ----------
    seconds : float
        A time, at least 0.

    Returns
    -------
    str
    """
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:#.3g} {unit}".replace(". ", " ")
    return f"{seconds * 1e6:#.3g} µs".replace(". ", " ")


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
