"""utils.ulp against neighbours made by hand and by numpy.nextafter."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from utils.ulp import max_ulp, ulp_distance


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("start", [1.0, -1.0, 0.0, -0.0, 1e-3, -40.0])
def test_three_steps_up_are_three_ulp(dtype, start) -> None:
    a = b = dtype(start)
    for _ in range(3):
        b = np.nextafter(b, dtype(np.inf))
    assert int(ulp_distance(a, b)) == int(ulp_distance(b, a)) == 3


def test_zero_has_one_value_and_two_signs() -> None:
    assert int(ulp_distance(np.float32(0.0), np.float32(-0.0))) == 0
    smallest = np.float32(1e-45)
    assert int(ulp_distance(smallest, -smallest)) == 2


def test_the_whole_range_of_float64_does_not_overflow() -> None:
    low, high = -np.finfo(np.float64).max, np.finfo(np.float64).max
    # 2046 exponents of 2**52 fractions on each side of zero, counted with Python's integers.
    assert int(ulp_distance(low, high)) == 2 * (2046 * 2**52 + 2**52 - 1)


def test_nan_equals_only_nan() -> None:
    a, b = np.float32([np.nan, np.nan, 1]), np.float32([np.nan, 1, 1])
    assert ulp_distance(a, b).tolist() == [0, np.iinfo(np.uint64).max, 0]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (np.zeros(2, np.float32), np.zeros(3, np.float32), "shapes and dtypes must be equal"),
        (np.zeros(2, np.float32), np.zeros(2, np.float64), "float32"),
        (np.zeros(2, int), np.zeros(2, int), "not a floating-point type"),
    ],
)
def test_what_cannot_be_compared_is_refused(a, b, words) -> None:
    with pytest.raises(ValueError, match=words):
        ulp_distance(a, b)


def test_models_and_histories() -> None:
    def model() -> keras.Model:
        return keras.Sequential(
            [keras.Input((2,)), keras.layers.Dense(1), keras.layers.Dropout(0.5)]
        )

    first, second = model(), model()
    second.set_weights(first.get_weights())
    assert max_ulp(first, second) == 0
    kernel, bias, *rest = second.get_weights()
    kernel[1, 0] = np.nextafter(kernel[1, 0], np.float32(9))
    second.set_weights([kernel, bias, *rest])
    assert max_ulp(first, second) == 1
    assert max_ulp([1.0, 2.0], [1.0, np.nextafter(2.0, 3)]) == 1
    with pytest.raises(ValueError, match="2 arrays against 1"):
        max_ulp([kernel, bias], [kernel])
