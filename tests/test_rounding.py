"""utils.rounding: what is shown, and how near to the next step a number may be."""

from __future__ import annotations

import math

import pytest

from utils.rounding import clearance, rounded


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(0.1234, 2, 0.12), (1797.0, 2, 1800.0), (-9.96, 2, -10.0), (0.0, 3, 0.0)],
)
def test_significant_digits_are_kept(value: float, digits: int, shown: float) -> None:
    assert rounded(value, digits) == shown


@pytest.mark.parametrize(
    ("value", "digits", "edge"),
    [
        (1.24, 2, 1.25),
        (1.26, 2, 1.25),
        (-1.24, 2, -1.25),
        (123456.0, 3, 123500.0),
        (2.5e-7, 1, 2.5e-7),
        (9.94, 2, 9.95),
        (9.96, 2, 9.95),
        (10.01, 2, 9.95),  # the steps below 10 are finer than those above
        (10.4, 2, 10.5),
        (0.0996, 2, 0.0995),
    ],
)
def test_clearance_is_the_distance_to_the_edge(value: float, digits: int, edge: float) -> None:
    assert clearance(value, digits) == pytest.approx(abs(value - edge) / abs(value), abs=1e-12)


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_what_has_no_digits_is_on_no_edge(value: float) -> None:
    assert clearance(value, 2) == math.inf


def test_within_the_clearance_the_same_is_shown() -> None:
    for k in range(1, 400):
        value = 0.317 * 1.07**k
        near = value * (1 + 0.999 * clearance(value, 3)), value * (1 - 0.999 * clearance(value, 3))
        assert {rounded(v, 3) for v in near} == {rounded(value, 3)}
        beyond = {rounded(value * (1 + s * 1.001 * clearance(value, 3)), 3) for s in (1, -1)}
        assert beyond != {rounded(value, 3)}
