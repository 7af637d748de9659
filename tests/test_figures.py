"""utils.figures: a fault in a plot call must change the description; noise must not."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from utils import figures, plots

EPOCHS = np.arange(1, 6)
FALLING = {"fit": [4.1, 2.2, 1.4, 0.8, 0.33], "tape": [4.1, 3.2, 2.7, 2.4, 2.2]}


def text(draw: Callable[[Axes], None]) -> str:
    """The description of a figure of one pair of axes."""
    figure, ax = plt.subplots()
    draw(ax)
    described = figures.describe(figure)
    plt.close(figure)
    return described


def curves(lines: dict[str, list[float]], **options) -> str:
    words = {"title": "A finding", "ylabel": "loss"} | options
    return text(lambda ax: plots.curves(ax, lines, **words))


def test_description_says_what_a_reader_sees() -> None:
    assert curves(FALLING).splitlines() == [
        "figure",
        "axes 'A finding'",
        "  x: 'epoch', linear",
        "  y: 'loss', linear",
        "  legend: ['fit', 'tape']",
        "  line 'fit': #b0b0b0, -, width 4; 5 points, x 1 3 5, y 4.1 1.4 0.33, "
        "lowest and highest 0.33 4.1",
        "  line 'tape': #0072b2, --, width 1.8; 5 points, x 1 3 5, y 4.1 2.7 2.2, "
        "lowest and highest 2.2 4.1",
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"fit": FALLING["tape"], "tape": FALLING["fit"]}, id="swapped"),
        pytest.param({"tape": FALLING["tape"], "fit": FALLING["fit"]}, id="another order"),
        pytest.param({"fit": FALLING["fit"], "loop": FALLING["tape"]}, id="wrong label"),
        pytest.param({"fit": FALLING["fit"]}, id="one is missing"),
        pytest.param({k: v[1:] for k, v in FALLING.items()}, id="first epoch is missing"),
        pytest.param({k: v[::-1] for k, v in FALLING.items()}, id="backwards"),
        pytest.param({k: np.multiply(v, 1.1) for k, v in FALLING.items()}, id="tenth more"),
    ],
)
def test_other_curves_are_described_otherwise(other) -> None:
    assert curves(other) != curves(FALLING)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda ax: ax.get_legend().remove(), id="no legend"),
        pytest.param(lambda ax: ax.legend(["tape", "fit"]), id="legend in another order"),
        pytest.param(lambda ax: ax.set_title("Another finding"), id="title"),
        pytest.param(lambda ax: ax.set_xlabel("step"), id="x label"),
        pytest.param(lambda ax: ax.set_ylabel("accuracy"), id="y label"),
        pytest.param(lambda ax: ax.set_yscale("log"), id="scale"),
        pytest.param(lambda ax: ax.set_xticks([1, 5]), id="ticks"),
        pytest.param(lambda ax: ax.invert_yaxis(), id="upside down"),
        pytest.param(lambda ax: ax.get_lines()[0].set_color("red"), id="colour"),
        pytest.param(lambda ax: ax.get_lines()[0].set_linestyle(":"), id="dashes"),
        pytest.param(lambda ax: ax.get_lines()[0].set_marker("o"), id="marker"),
        pytest.param(lambda ax: ax.text(1, 1, "here"), id="a note"),
        pytest.param(lambda ax: ax.figure.suptitle("All of them"), id="title of the figure"),
    ],
)
def test_another_look_is_described_otherwise(change) -> None:
    def changed(ax: Axes) -> None:
        plots.curves(ax, FALLING, title="A finding", ylabel="loss")
        change(ax)

    assert text(changed) != curves(FALLING)


def test_noise_is_not_described() -> None:
    noisy = {name: np.multiply(values, 1 + 1e-4) for name, values in FALLING.items()}
    assert curves(noisy) == curves(FALLING)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda ax: ax.bar(["a", "b"], [1, 2]), lambda ax: ax.bar(["a", "b"], [2, 1])),
        (lambda ax: ax.bar(["a", "b"], [1, 2]), lambda ax: ax.bar(["b", "a"], [1, 2])),
        (lambda ax: ax.bar(["a", "b"], [1, 2]), lambda ax: ax.barh(["a", "b"], [1, 2])),
        (lambda ax: ax.scatter([1, 2], [3, 4]), lambda ax: ax.scatter([1, 2], [4, 3])),
        (lambda ax: ax.scatter([1, 2], [3, 4]), lambda ax: ax.scatter([1, 2], [3, 4], c="r")),
        (lambda ax: ax.imshow([[1, 2], [3, 4]]), lambda ax: ax.imshow([[1, 3], [2, 5]])),
        (lambda ax: ax.imshow([[1, 2]]), lambda ax: ax.imshow([[1], [2]])),
        (lambda ax: ax.imshow([[1, 2]]), lambda ax: ax.imshow([[1, 2]], vmax=9)),
        (lambda ax: ax.boxplot([[1, 2, 3]]), lambda ax: ax.boxplot([[1, 2, 5]])),
        (lambda ax: ax.axvline(0.9733), lambda ax: ax.axvline(0.9333)),
    ],
)
def test_other_data_are_described_otherwise(one, other) -> None:
    assert text(one) != text(other)


def ladder(seconds: dict[str, float]) -> str:
    return text(lambda ax: plots.ladder(ax, seconds, baseline="fit", title="", xlabel="seconds"))


def test_times_are_not_described_but_their_names_are() -> None:
    assert ladder({"fit": 2.0, "tape": 0.5}) == ladder({"fit": 2.1, "tape": 3.7})
    assert ladder({"fit": 2.0, "tape": 0.5}) != ladder({"tape": 0.5, "fit": 2.0})


def test_lines_that_coincide_are_named_even_if_their_numbers_vary() -> None:
    same = {"fit": FALLING["fit"], "tape": np.add(FALLING["fit"], 1e-3)}
    assert "'fit' and 'tape' coincide" in curves(same, compared_digits=0)
    assert "coincide" not in curves(FALLING, compared_digits=0)
    elsewhere = {"fit": [9.0, 5.0], "tape": [9.0, 5.0]}
    assert curves({k: v * 1 for k, v in elsewhere.items()}, compared_digits=0) == curves(
        {k: [7.7, 4.4] for k in elsewhere}, compared_digits=0
    )


def test_output_keeps_the_numbers_unrounded() -> None:
    figure, ax = plt.subplots()
    plots.curves(ax, {"only": [1.234, 2.0]}, title="", ylabel="", compared_digits=1)
    metadata = figures._bundle(figure)[1]["text/plain"]
    assert metadata[figures.UNROUNDED] == [[1.234, 1], [1.234, 1]]  # the first, and the lowest
    assert metadata[figures.VARIES] is False
    figures.stable(ax, y=0)
    metadata = figures._bundle(figure)[1]["text/plain"]
    assert metadata == {figures.UNROUNDED: [], figures.VARIES: True}
    plt.close(figure)
