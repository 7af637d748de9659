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
    seconds : dict of str to ndarray, shape (repeats of that function,)
        Seconds of each later call, in order. Element k of all functions is of the same round.
        Empty for a function that was called once only: its first call then stands for the others.
    """

    first: dict[str, float]
    seconds: dict[str, np.ndarray]

    def steady(self, name: str) -> np.ndarray:
        """Seconds of the calls that count: all but the first, or the first if there is no other."""
        later = self.seconds[name]
        return later if len(later) else np.array([self.first[name]])

    def median(self, name: str) -> float:
        """Median seconds of the calls that count."""
        return float(np.median(self.steady(name)))

    def compile(self, name: str) -> float:
        """Seconds that the first call took longer than the median of the others, at least 0."""
        return max(0.0, self.first[name] - self.median(name))

    def rate(self, name: str, items: float) -> float:
        """Items a second, if one call works through so many."""
        return items / self.median(name)

    def ratio(self, slow: str, fast: str) -> float:
        """How many times as long `slow` takes as `fast`.

        The median over rounds of the ratio, if both took part in the same rounds; else the ratio of
        their medians.
        """
        numerator, denominator = self.steady(slow), self.steady(fast)
        if len(numerator) != len(denominator):
            return self.median(slow) / self.median(fast)
        return float(np.median(numerator / denominator))

    def spread(self, slow: str, fast: str) -> tuple[float, float]:
        """Smallest and largest ratio of `slow` to `fast`.

        Over the rounds, if both took part in the same rounds; else over all pairs of their times.
        """
        numerator, denominator = self.steady(slow), self.steady(fast)
        if len(numerator) != len(denominator):
            numerator = numerator[:, None]
        ratios = numerator / denominator
        return float(ratios.min()), float(ratios.max())

    def table(self, baseline: str, *, per: int = 1, unit: str = "call") -> str:
        """Plain-text table: compile time, steady time, and speed as a multiple of the baseline's.

        Parameters
        ----------
        baseline : str
            The function that the others are compared with.
        per : int, default 1
            Steady times are divided by it: for example the number of steps in a call.
        unit : str, default "call"
            What `per` counts, in the singular.

        Returns
        -------
        str
        """
        width = max(map(len, self.seconds))
        lines = [
            f"{'':{width}}  {'first call':>10}  {'compiling':>9}  {f'per {unit}':>9}"
            f"  {baseline} takes ... times as long"
        ]
        for name in self.seconds:
            low, high = self.spread(baseline, name)
            compiling = as_time(self.compile(name)) if self.compile(name) else "–"
            lines.append(
                f"{name:{width}}  {as_time(self.first[name]):>10}"
                f"  {compiling:>9}  {as_time(self.median(name) / per):>9}"
                f"  {self.ratio(baseline, name):.2f} ({low:.2f} to {high:.2f})"
            )
        return "\n".join(lines)


def compare(
    functions: Mapping[str, Callable[[], Any]],
    *,
    repeats: int | Mapping[str, int] = 5,
    warmup: int = 0,
) -> Timings:
    """Time functions against each other, turn by turn.

    The first call of each is timed apart. Then come `warmup` rounds that do not count, then
    `repeats` rounds that do; in each round every function is called once, in the given order.

    Parameters
    ----------
    functions : mapping of str to callable
        Functions without arguments. Each must wait for its own result.
    repeats : int or mapping of str to int, default 5
        Rounds that count, at least 1. With a mapping, a function takes part in the first so many
        rounds, or in none: a slow one need not be called as often as a fast one.
    warmup : int, default 0
        Rounds after the first calls that do not count.

    Returns
    -------
    Timings

    Raises
    ------
    ValueError
        If there is no function, there is no repeat at all, or a mapping has other names.
    """
    rounds = dict.fromkeys(functions, repeats) if isinstance(repeats, int) else dict(repeats)
    if rounds.keys() != functions.keys():
        raise ValueError("timing.compare: repeats must name the functions, and no others")
    if not functions or min(rounds.values()) < 0 or max(rounds.values()) < 1:
        raise ValueError("timing.compare needs at least one function and one repeat")
    first = {name: _seconds(function) for name, function in functions.items()}
    for _ in range(warmup):
        for function in functions.values():
            function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for k in range(max(rounds.values())):
        for name, function in functions.items():
            if k < rounds[name]:
                times[name].append(_seconds(function))
    return Timings(first, {name: np.array(values) for name, values in times.items()})


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
    # Rounded first, so that 0.9999 s becomes 1.00 s and not 1000 ms.
    values = {unit: float(f"{seconds * n:.3g}") for n, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"))}
    unit = next((unit for unit, value in values.items() if value >= 1), "µs")
    value = values[unit]
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:#.3g} {unit}"


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
