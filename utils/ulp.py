"""Distance between floating-point numbers in units in the last place (ULP).

0 ULP means the same bits; 1 ULP means neighbours, with no other number between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_INTEGERS = {2: np.int16, 4: np.int32, 8: np.int64}


def ulp_distance(a: Any, b: Any) -> np.ndarray:
    """Count the representable numbers from each element of `a` to its partner in `b`.

    The bits of a positive float, read as an integer, grow by one from each float to the next; the
    bits of a negative one are mirrored first, so that the count goes through zero correctly
    (Bruce Dawson, "Comparing Floating Point Numbers, 2012 Edition").

    Parameters
    ----------
    a, b : array_like of float, same shape and dtype
        float16, float32 or float64; Python floats are float64.

    Returns
    -------
    ndarray of uint64, shape of `a`
        0 for equal numbers (+0 and -0 among them) and for two NaN; the largest uint64 where only
        one is NaN.

    Raises
    ------
    ValueError
        If the shapes or dtypes differ, or the dtype is no float.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ValueError(
            f"ulp_distance: {a.dtype} of shape {a.shape} against {b.dtype} of shape {b.shape}; "
            "shapes and dtypes must be equal"
        )
    if a.dtype.kind != "f":
        raise ValueError(f"ulp_distance: dtype {a.dtype} is not a floating-point type")
    integer = _INTEGERS[a.dtype.itemsize]
    low = np.iinfo(integer).min

    def ordered(x: np.ndarray) -> np.ndarray:
        bits = np.atleast_1d(x).view(integer)
        return np.where(bits < 0, low - bits, bits).astype(np.int64)

    # The distance of two float64 can pass the range of int64, never that of uint64, and unsigned
    # subtraction is exact modulo 2**64.
    left, right = ordered(a), ordered(b)
    distance = np.maximum(left, right).view(np.uint64) - np.minimum(left, right).view(np.uint64)
    nan_a, nan_b = np.isnan(np.atleast_1d(a)), np.isnan(np.atleast_1d(b))
    distance[nan_a & nan_b] = 0
    distance[nan_a ^ nan_b] = np.iinfo(np.uint64).max
    return distance.reshape(a.shape)


def max_ulp(a: Any, b: Any) -> int:
    """Largest ULP distance between two models, two lists of arrays, or two histories.

    Parameters
    ----------
    a, b : keras.Model, sequence of array_like, or array_like
        A model stands for ``model.get_weights()``.

    Returns
    -------
    int
        0 if all numbers have the same bits.

    Raises
    ------
    ValueError
        If the two hold different numbers of arrays, or arrays of different shapes or dtypes.
    """
    left, right = _arrays(a), _arrays(b)
    if len(left) != len(right):
        raise ValueError(f"max_ulp: {len(left)} arrays against {len(right)}")
    return max(
        (int(ulp_distance(x, y).max(initial=0)) for x, y in zip(left, right, strict=True)),
        default=0,
    )


def _arrays(x: Any) -> Sequence[Any]:
    if hasattr(x, "get_weights"):
        # Counters (a Dropout layer's seed state) are integers and have no ULP.
        return [w for w in x.get_weights() if np.asarray(w).dtype.kind == "f"]
    if isinstance(x, (list, tuple)) and x and hasattr(x[0], "shape"):
        return x
    return [np.asarray(x)]
