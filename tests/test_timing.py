"""utils.timing, on a clock that the tests turn by hand: no test here depends on the machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from utils import timing


class Clock:
    """Stands in for the clock; a function made by `takes` moves it on."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[str] = []

    def takes(self, name: str, *seconds: float) -> Callable[[], None]:
        """A function that takes the next of these times at each call."""
        left = list(seconds)

        def function() -> None:
            self.calls.append(name)
            self.now += left.pop(0)

        return function


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock.now)
    return clock


@pytest.fixture
def times(clock) -> timing.Timings:
    return timing.compare(
        {"a": clock.takes("a", 5, 1, 2, 9), "b": clock.takes("b", 7, 2, 1, 3)}, repeats=3
    )


def test_calls_alternate_and_first_ones_stand_apart(clock, times) -> None:
    assert clock.calls == ["a", "b"] * 4
    assert times.first == {"a": 5, "b": 7}
    assert {name: list(s) for name, s in times.seconds.items()} == {"a": [1, 2, 9], "b": [2, 1, 3]}


def test_medians_ratios_and_rates(times) -> None:
    assert (times.median("a"), times.median("b")) == (2, 2)
    # The rounds give 1/2, 2/1, 9/3; the ratio of the medians would be 1.
    assert times.ratio("a", "b") == 2
    assert times.spread("a", "b") == (0.5, 3)
    # 2/1, 1/2, 3/9.
    assert times.ratio("b", "a") == 0.5
    assert times.rate("a", 10) == 5


def test_compile_time_is_what_the_first_call_took_longer(times) -> None:
    assert (times.compile("a"), times.compile("b")) == (3, 5)


def test_compile_time_is_never_negative(clock) -> None:
    times = timing.compare({"a": clock.takes("a", 1, 2)}, repeats=1)
    assert times.compile("a") == 0
    assert times.table("a").splitlines()[1].split()[3] == "–"


def test_mean_is_not_mistaken_for_median(clock) -> None:
    times = timing.compare({"a": clock.takes("a", 9, 1, 1, 1, 1, 96)}, repeats=5)
    assert times.median("a") == 1


def test_warm_up_does_not_count(clock) -> None:
    times = timing.compare({"a": clock.takes("a", 5, 50, 60, 1, 3)}, repeats=2, warmup=2)
    assert times.first["a"] == 5
    assert list(times.seconds["a"]) == [1, 3]


def test_each_function_may_have_its_own_number_of_rounds(clock) -> None:
    functions = {
        "slow": clock.takes("slow", 50, 40),
        "once": clock.takes("once", 30),
        "fast": clock.takes("fast", 9, 1, 2, 4),
    }
    times = timing.compare(functions, repeats={"slow": 1, "once": 0, "fast": 3})
    assert clock.calls == ["slow", "once", "fast", "slow", "fast", "fast", "fast"]
    assert [len(times.seconds[name]) for name in functions] == [1, 0, 3]
    # The only call stands for the later ones.
    assert times.median("once") == 30 and times.compile("once") == 0
    # Medians 40 and 2; the extremes are 40/4 and 40/1.
    assert times.ratio("slow", "fast") == 20
    assert times.spread("slow", "fast") == (10, 40)
    # The other way round: 1/40 to 4/40.
    assert times.spread("fast", "slow") == (0.025, 0.1)


@pytest.mark.parametrize(
    ("functions", "repeats", "message"),
    [
        ({}, 3, "at least one function"),
        ({"a": print}, 0, "one repeat"),
        ({"a": print}, {"a": 0}, "one repeat"),
        ({"a": print, "b": print}, {"a": 2, "b": -1}, "one repeat"),
        ({"a": print, "b": print}, {"a": 2}, "must name the functions"),
        ({"a": print}, {"a": 2, "b": 2}, "must name the functions"),
    ],
)
def test_nonsense_is_refused(functions, repeats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        timing.compare(functions, repeats=repeats)


def test_table_shows_compile_and_steady_time_and_the_spread(times) -> None:
    head, *lines = times.table("b", per=1000, unit="step").splitlines()
    assert "first call  compiling   per step  b takes ... times as long" in head
    assert lines == [
        "a      5.00 s     3.00 s    2.00 ms  0.50 (0.33 to 2.00)",
        "b      7.00 s     5.00 s    2.00 ms  1.00 (1.00 to 1.00)",
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1234.0, "1230 s"),
        (123.4, "123 s"),
        (12.0, "12.0 s"),
        (1.0, "1.00 s"),
        (0.9996, "1.00 s"),
        (0.0456, "45.6 ms"),
        (0.9994, "999 ms"),
        (0.001, "1.00 ms"),
        (0.00099951, "1.00 ms"),
        (789e-6, "789 µs"),
        (1e-6, "1.00 µs"),
        (0.0, "0.00 µs"),
    ],
)
def test_times_get_three_digits_and_a_fitting_unit(seconds: float, text: str) -> None:
    assert timing.as_time(seconds) == text


def test_times_of_real_calls_are_finite_and_not_negative() -> None:
    times = timing.compare({"sum": lambda: sum(range(100))}, repeats=2)
    measured = np.array([times.first["sum"], *times.seconds["sum"]])
    assert np.isfinite(measured).all() and (measured >= 0).all()
