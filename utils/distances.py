"""When two trainings are the same but for rounding, and when one is much closer than another.

Distances between weights count in *grains*: for each variable, the most that correct ways to
compute one training differ by. A grain is not a fixed number of ULP, because some weights amplify
rounding: a bias before BatchNormalization has a gradient of zero but for rounding, and Adam makes
steps of full size of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from utils.loops import Weights

ROUNDING = 8.0
"""Grains within which two trainings are the same but for rounding."""

CLOSER = 1000.0
"""How many times closer than ``fit`` a fault must come to be named."""

_EPS = float(np.finfo(np.float32).eps)


def grains(base: Weights, others: Sequence[Weights]) -> list[float]:
    """Measure one grain of each variable.

    Parameters
    ----------
    base : Weights
    others : sequence of Weights
        Of the same training, computed otherwise.

    Returns
    -------
    list of float
        The largest difference from `base`, at least one unit in the last place of the largest
        weight.
    """
    sizes = []
    for k, value in enumerate(base):
        spread = [np.abs(other[k].astype(float) - value).max(initial=0) for other in others]
        sizes.append(float(np.nanmax([*spread, unit(value)])))
    return sizes


def unit(value: np.ndarray) -> float:
    """Return the unit in the last place of the largest element."""
    return float(np.spacing(np.abs(value).max(initial=0))) if value.dtype.kind == "f" else 1.0


def distance(a: Weights, b: Weights, sizes: Sequence[float]) -> float:
    """Return the largest difference between two sets of weights, in grains.

    Equal numbers and pairs of NaN have distance 0, NaN and a number infinity. The result is 0 only
    if all bits agree.
    """
    return max((_apart(x, y) / size for x, y, size in zip(a, b, sizes)), default=0.0)


def is_near(close: float, gap: float) -> bool:
    """Whether a fault at distance `close` explains a loop at distance `gap` from ``fit``."""
    if close == 0 or not np.isfinite(close):
        return close == 0
    return close <= ROUNDING if gap <= ROUNDING else close * CLOSER <= gap


def may_be_near(close: float, gap: float) -> bool:
    """Whether rounding could be all that keeps `is_near` from being true."""
    return bool(np.isfinite(close)) and (close <= ROUNDING or close * CLOSER <= gap)


def same_bits(a: Weights, b: Weights) -> bool:
    """Whether all weights are equal; NaN equals NaN."""
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a, b))


def history_tolerance(series: np.ndarray, batches: int) -> float:
    """How far two ways to average so many float32 losses may differ."""
    return (8 + batches) * _EPS * float(np.nanmax(np.abs(series), initial=0))


def series_is_near(
    series: np.ndarray, candidate: np.ndarray, usual: np.ndarray, allowed: float
) -> bool:
    """Whether a candidate explains a series of logs that is not `usual`.

    Every value must be equal in single precision, or 1,000 times closer than the usual one, or
    within rounding where the usual one is, too.
    """
    if len(candidate) != len(series):
        return False
    gap, off = np.abs(series - candidate), np.abs(series - usual)
    exact = series.astype(np.float32) == candidate.astype(np.float32)
    small = (off <= allowed) & (gap <= allowed)
    return bool((exact | (gap * CLOSER <= off) | small).all())


def _apart(x: np.ndarray, y: np.ndarray) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.abs(x.astype(float) - y.astype(float))
    gap[(x == y) | (np.isnan(x) & np.isnan(y))] = 0
    gap[np.isnan(gap)] = np.inf
    return float(gap.max(initial=0))
