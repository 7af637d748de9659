"""Figures in one style. Colours differ in brightness too, and every line has its own pattern.

Importing this module makes each figure's output carry a description of what it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from utils import figures

figures.register()

# Okabe and Ito's palette, which stays apart for colour-blind readers; dark to bright here.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#CC79A7", "#56B4E9")
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.5)), "dashdot", (0, (3, 1, 1, 1, 1, 1)))


def curves(
    ax: Axes,
    lines: Mapping[str, Sequence[float]],
    *,
    title: str,
    xlabel: str = "epoch",
    ylabel: str,
    x: Sequence[float] | None = None,
    compared_digits: int = 2,
) -> None:
    """Draw named curves into one pair of axes.

    The first line is drawn wide and the later ones narrow, so that curves that coincide can both
    be seen.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    lines : mapping of str to sequence of float
        Legend text to values, at most five.
    title : str
        The finding, as a sentence.
    xlabel, ylabel : str
        With units, where there are any.
    x : sequence of float, optional
        Abscissae of all lines; 1, 2, 3, ... if left out.
    compared_digits : int, default 2
        Significant digits of the values that are the same on another machine; 0 for none (see
        `figures.stable`).

    Raises
    ------
    ValueError
        If there are more lines than distinguishable styles.
    """
    if len(lines) > len(COLOURS):
        raise ValueError(f"curves: {len(lines)} lines; at most {len(COLOURS)} can be told apart")
    for k, (name, values) in enumerate(lines.items()):
        steps = np.arange(1, len(values) + 1) if x is None else x
        width = 4 if k == 0 and len(lines) > 1 else 1.8
        ax.plot(
            steps,
            values,
            color=COLOURS[k] if k else "#B0B0B0" if len(lines) > 1 else COLOURS[0],
            linestyle=DASHES[k],
            linewidth=width,
            label=name,
        )
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    figures.stable(ax, y=compared_digits)
    ax.grid(alpha=0.3)
    if len(lines) > 1:
        ax.legend(frameon=False)


def ladder(
    ax: Axes,
    seconds: Mapping[str, float],
    *,
    baseline: str,
    title: str,
    xlabel: str,
    ratios: Mapping[str, float] | None = None,
) -> None:
    """Draw times as horizontal bars on a log scale, with the ratio to a baseline at each bar.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    seconds : mapping of str to float
        Name to time, drawn from top to bottom. All in the unit that `xlabel` names.
    baseline : str
        The name whose time is 1.0.
    title, xlabel : str
        The finding, and the quantity with its unit.
    ratios : mapping of str to float, optional
        How many times as long the baseline takes, to be written at the bars: a median over rounds
        is better than the quotient of two times, which is written if this is left out.

    Raises
    ------
    KeyError
        If `baseline` is not among the names.
    """
    reference = seconds[baseline]
    names = list(seconds)
    colours = ["#D55E00" if name == baseline else "#0072B2" for name in names]
    bars = ax.barh(names, list(seconds.values()), color=colours)
    for name, bar in zip(names, bars, strict=True):
        ratio = ratios[name] if ratios else reference / seconds[name]
        text = "baseline" if name == baseline else f"{ratio:.3g} × faster"
        if ratio < 1 and name != baseline:
            text = f"{1 / ratio:.3g} × slower"
        ax.annotate(
            text,
            (bar.get_width(), bar.get_y() + bar.get_height() / 2),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    low, high = min(seconds.values()), max(seconds.values())
    ax.set_xlim(low / 3, high * 8)  # room for the text at the longest bar
    ax.invert_yaxis()
    ax.set(title=title, xlabel=xlabel)
    figures.stable(ax, x=0)
    ax.grid(axis="x", alpha=0.3)
