"""What a figure shows, in words and coarse numbers, so that a comparison of texts can compare it.

The tests compare a lesson's stored outputs with new ones, and cannot see pictures. So each figure's
output carries, beside its picture, a text with its titles, labels, legend, and a summary of what is
drawn. Notebooks and pages show the picture only.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from IPython import get_ipython
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from utils.rounding import rounded

VARIES = "varies"
"""Name in an output's metadata: whether some of what is drawn differs from run to run."""
UNROUNDED = "unrounded"
"""Name in an output's metadata: the numbers of its text, as [value, digits]."""
CLOSE = 0.01
"""Lines that are nearer than this share of all that is drawn coincide for the eye."""

_digits: weakref.WeakKeyDictionary[Axes, tuple[int, int]] = weakref.WeakKeyDictionary()


def stable(ax: Axes, *, x: int = 2, y: int = 2) -> None:
    """Say how many digits of what is drawn are the same on another machine; 2 if nothing is said.

    Parameters
    ----------
    ax : matplotlib Axes
    x, y : int, default 2
        Significant digits in this direction; 0 for times and for rounding errors, of which the
        description then says nothing.
    """
    _digits[ax] = (x, y)


def describe(figure: Figure) -> str:
    """Describe what a figure shows.

    Parameters
    ----------
    figure : matplotlib Figure

    Returns
    -------
    str
        Some lines for each pair of axes: title, labels, scales, chosen ticks, legend; then each
        line, group of bars, cloud of points and image with its name, its style and its data.
    """
    return _bundle(figure)[0]["text/plain"]


def register() -> None:
    """Let the outputs of this kernel carry the description of each figure; elsewhere do nothing."""
    shell = get_ipython()
    if shell is not None:
        shell.display_formatter.mimebundle_formatter.for_type(Figure, _bundle)


def _bundle(figure: Figure) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """Return the description as an output's data, and what the tests want to know besides."""
    title = figure.get_suptitle()
    lines = [f"figure {title!r}" if title else "figure"]
    unrounded: list[list[float]] = []
    varies = False
    for ax in figure.axes:
        x, y = (_Numbers(digits) for digits in _digits.get(ax, (2, 2)))
        lines += _axes(ax, x, y)
        unrounded += x.unrounded + y.unrounded
        varies |= 0 in (x.digits, y.digits)
    metadata = {UNROUNDED: unrounded, VARIES: varies}
    return {"text/plain": "\n".join(lines)}, {"text/plain": metadata}


class _Numbers:
    """Writes numbers of one direction; keeps them unrounded unless they are integers."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.unrounded: list[list[float]] = []

    def __call__(self, values: Iterable[float]) -> str:
        if not self.digits:
            return "not compared"
        values = [float(value) for value in values]
        self.unrounded += [[value, self.digits] for value in values if not value.is_integer()]
        return " ".join(f"{rounded(value, self.digits):g}" for value in values)


def _axes(ax: Axes, x: _Numbers, y: _Numbers) -> Iterator[str]:
    yield f"axes {ax.get_title()!r}"
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        reverse = ", inverted" if axis.get_inverted() else ""
        yield f"  {name}: {axis.get_label_text()!r}, {axis.get_scale()}{reverse}{_ticks(axis)}"
    if ax.get_legend():
        yield f"  legend: {[text.get_text() for text in ax.get_legend().get_texts()]}"
    for line in ax.get_lines():
        yield f"  line{_name(line)}: {_style(line)}; {_points(*line.get_data(), x, y)}"
    yield from (f"  {first} and {second} coincide" for first, second in _coinciding(ax))
    for bars in ax.containers:
        if isinstance(bars, BarContainer):
            yield f"  bars{_name(bars)}: {_bars(bars, x, y)}"
    for drawn in ax.collections:
        if isinstance(drawn, PathCollection):
            colour = to_hex(drawn.get_facecolor()[0])
            yield f"  points{_name(drawn)}: {colour}; {_points(*drawn.get_offsets().T, x, y)}"
    for image in ax.get_images():
        yield f"  image: {_image(image, y)}"
    if x.digits and y.digits:
        yield from (f"  text: {text.get_text()!r}" for text in ax.texts if text.get_text())


def _ticks(axis: Axis) -> str:
    """What stands at the ticks, where the lesson chose them."""
    if not isinstance(axis.get_major_locator(), (FixedLocator, StrCategoryLocator)):
        return ""
    return f", ticks {[label.get_text() for label in axis.get_ticklabels()]}"


def _name(artist: Line2D | BarContainer | PathCollection) -> str:
    """The name for the legend; matplotlib's own names start with an underscore."""
    name = str(artist.get_label())
    return "" if name.startswith("_") else f" {name!r}"


def _style(line: Line2D) -> str:
    marker = line.get_marker()
    marked = "" if marker in ("None", "", None) else f", marker {marker}"
    width = line.get_linewidth()
    return f"{to_hex(line.get_color())}, {line.get_linestyle()}, width {width:g}{marked}"


def _points(across: np.ndarray, up: np.ndarray, x: _Numbers, y: _Numbers) -> str:
    """How many points, and where: first, middle and last one, and the extremes upwards."""
    if not len(up):
        return "no points"
    across, up = np.asarray(across, float), np.asarray(up, float)
    some = [0, len(up) // 2, -1]
    places = f"x {x(across[some])}, y {y(up[some])}"
    extremes = f", lowest and highest {y([up.min(), up.max()])}" if y.digits else ""
    return f"{len(up)} points, {places}{extremes}"


def _coinciding(ax: Axes) -> Iterator[tuple[str, str]]:
    """Pairs of named lines that the eye cannot tell apart: true of results that vary, too."""
    lines = [line for line in ax.get_lines() if _name(line)]
    heights = [np.asarray(line.get_ydata(), float) for line in lines]
    span = np.ptp(np.concatenate(heights)) if lines else 0
    for k, line in enumerate(lines):
        for j in range(k):
            same_places = np.array_equal(lines[j].get_xdata(), line.get_xdata())
            if same_places and np.abs(heights[j] - heights[k]).max() <= CLOSE * span:
                yield _name(lines[j]).strip(), _name(line).strip()


def _bars(bars: BarContainer, x: _Numbers, y: _Numbers) -> str:
    colours = " ".join(to_hex(bar.get_facecolor()) for bar in bars)
    if bars.orientation == "horizontal":
        return f"{colours}; horizontal, {x(bar.get_width() for bar in bars)}"
    return f"{colours}; vertical, {y(bar.get_height() for bar in bars)}"


def _image(image: AxesImage, numbers: _Numbers) -> str:
    pixels = np.ma.getdata(image.get_array()).astype(float)
    corners = [pixels.flat[0], pixels.flat[-1], pixels.min(), pixels.max()]
    return (
        f"{' × '.join(map(str, pixels.shape))}, {image.get_cmap().name} "
        f"over {numbers(image.get_clim())}; first, last, lowest, highest {numbers(corners)}"
    )
