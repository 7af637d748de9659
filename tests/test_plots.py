"""utils.plots: what is drawn, under which names, in which order."""

from __future__ import annotations

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from utils import plots


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_curves_draw_the_values_under_their_names(ax) -> None:
    plots.curves(ax, {"fit": [3, 2, 1], "tape": [3, 2, 0]}, title="A finding", ylabel="loss")
    first, second = ax.get_lines()
    assert (first.get_label(), list(first.get_ydata())) == ("fit", [3, 2, 1])
    assert (second.get_label(), list(second.get_ydata())) == ("tape", [3, 2, 0])
    assert list(second.get_xdata()) == [1, 2, 3]
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("A finding", "epoch", "loss")
    assert first.get_linewidth() > second.get_linewidth()
    assert first.get_linestyle() != second.get_linestyle()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fit", "tape"]


def test_curves_take_their_own_abscissae(ax) -> None:
    plots.curves(ax, {"only": [1, 2]}, title="", ylabel="", xlabel="rows", x=[10, 20])
    assert list(ax.get_lines()[0].get_xdata()) == [10, 20]
    assert ax.get_legend() is None


def test_too_many_curves_are_refused(ax) -> None:
    with pytest.raises(ValueError, match="6 lines; at most 5"):
        plots.curves(ax, {str(k): [1] for k in range(6)}, title="", ylabel="")


def test_colours_differ_in_greyscale() -> None:
    brightness = sorted(float(np.dot(to_rgb(c), [0.2126, 0.7152, 0.0722])) for c in plots.COLOURS)
    assert min(np.diff(brightness)) > 0.05
    assert len(plots.DASHES) == len(plots.COLOURS) == len(set(map(str, plots.DASHES)))


def test_ladder_shows_ratios_to_the_baseline(ax) -> None:
    seconds = {"slow": 8.0, "fit": 2.0, "fast": 0.5}
    plots.ladder(ax, seconds, baseline="fit", title="A finding", xlabel="seconds")
    assert [bar.get_width() for bar in ax.patches] == [8.0, 2.0, 0.5]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["slow", "fit", "fast"]
    words = [text.get_text() for text in ax.texts]
    assert "4" in words[0] and "slower" in words[0]
    assert "4" in words[2] and "faster" in words[2]
    assert ax.get_xscale() == "log" and ax.yaxis_inverted()


def test_ladder_writes_the_given_ratios(ax) -> None:
    seconds, ratios = {"fit": 2.0, "fast": 0.5}, {"fit": 1.0, "fast": 3.5}
    plots.ladder(ax, seconds, baseline="fit", title="", xlabel="seconds", ratios=ratios)
    assert [bar.get_width() for bar in ax.patches] == [2.0, 0.5]
    assert "3.5" in ax.texts[1].get_text()


def test_ladder_needs_its_baseline(ax) -> None:
    with pytest.raises(KeyError):
        plots.ladder(ax, {"a": 1.0}, baseline="fit", title="", xlabel="")
