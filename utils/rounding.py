"""Rounding to significant digits, and how far a number is from being rounded otherwise."""

from __future__ import annotations

import math

SPREAD = 1e-5
"""Relative difference that a result may have between the environments that are supported."""


def rounded(value: float, digits: int) -> float:
    """Round to significant digits.

    Parameters
    ----------
    value : float
        May be infinite or not a number; it is then returned as it is.
    digits : int
        At least 1.
    """
    return float(f"{value:.{digits}g}")


def clearance(value: float, digits: int) -> float:
    """How far a number is from the nearest one that is rounded otherwise.

    Parameters
    ----------
    value : float
        The unrounded number.
    digits : int
        Significant digits that are shown.

    Returns
    -------
    float
        The distance divided by the size of `value`; infinite for 0 and for what is not finite.
    """
    if value == 0 or not math.isfinite(value):
        return math.inf
    shown = abs(rounded(value, digits))
    power = math.floor(math.log10(shown) + 1e-9)
    step = 10.0 ** (power - digits + 1)
    # Below a power of ten the steps are ten times finer.
    lower = shown - (step / 20 if math.isclose(shown, 10.0**power) else step / 2)
    return min(abs(value) - lower, shown + step / 2 - abs(value)) / abs(value)
