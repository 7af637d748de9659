"""The findings of a lesson as executable claims: a sentence, a measured value, a condition.

A claim that fails is shown as failed and does not stop the lesson. The tests and ``make run`` read
the same claims back from the notebook's outputs, and they do fail.
"""

from __future__ import annotations

import html
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from IPython.display import display

from utils.rounding import rounded

MIME_TYPE = "application/vnd.fit-and-tape.claims+json"
"""Media type under which a lesson's outputs carry its claims as a list of objects."""

UNROUNDED = "unrounded"
"""Name in the metadata of the table of claims: name of a claim to [measured value, digits]."""

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

VERDICTS = {True: "yes", False: "NO", None: "not judged"}


@dataclass(frozen=True)
class Claim:
    """One finding of a lesson.

    Attributes
    ----------
    lesson : str
        Name of the notebook, without its ending.
    name : str
        Stable short name in lower case, words joined by dashes.
    statement : str
        The finding as one sentence; back-ticks mark code.
    measured : float, int, bool, str or None
        What the run measured, rounded for display. None in the compared table if the claim is a
        timing, because times differ from run to run.
    bound : str
        The condition, for example ``"<= 0.01"``.
    holds : bool or None
        Whether the measured value meets the bound; None if the lesson's parameters are too small
        for the claim to mean anything.
    """

    lesson: str
    name: str
    statement: str
    measured: float | int | bool | str | None
    bound: str
    holds: bool | None


class Claims:
    """Collects the claims of one lesson, in order.

    Parameters
    ----------
    lesson : str
        Name of the notebook, without its ending, for example ``"01_iris_fit_vs_tape"``.
    """

    def __init__(self, lesson: str) -> None:
        self.lesson = lesson
        self._claims: dict[str, Claim] = {}
        self._timings: set[str] = set()
        self._unrounded: dict[str, tuple[float, int]] = {}

    def check(
        self,
        name: str,
        statement: str,
        measured: float | int | bool | str,
        relation: str,
        bound: float | int | bool | str,
        *,
        digits: int = 3,
        timing: bool = False,
        when: bool = True,
    ) -> None:
        """Record a claim and print one line that says whether it holds.

        A cell that is run again replaces its claim.

        Parameters
        ----------
        name : str
            Stable short name in lower case, words joined by dashes.
        statement : str
            The finding as one sentence; back-ticks mark code.
        measured : float, int, bool or str
            The measured value, unrounded: the bound is compared with this one.
        relation : {"==", "<", "<=", ">", ">="}
            How `measured` must stand to `bound`.
        bound : float, int, bool or str
            The value to compare with.
        digits : int, default 3
            Significant digits of `measured` that are shown. Choose them so that another machine
            shows the same.
        timing : bool, default False
            The value depends on the machine's speed: it is shown by `show_timings` only.
        when : bool, default True
            False if the lesson's parameters are too small for the claim; it is then not judged.

        Raises
        ------
        ValueError
            If the name is not in lower case with dashes, or the relation is unknown.
        """
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise ValueError(f"claim name {name!r}: use lower-case words joined by dashes")
        if relation not in RELATIONS:
            raise ValueError(f"claim {name}: relation {relation!r} is none of {list(RELATIONS)}")
        holds = bool(RELATIONS[relation](measured, bound)) if when else None
        self._claims[name] = Claim(
            lesson=self.lesson,
            name=name,
            statement=statement,
            measured=_plain(measured, digits),
            bound=_text(bound) if bound is True else f"{relation} {_text(_plain(bound, 6))}",
            holds=holds,
        )
        (self._timings.add if timing else self._timings.discard)(name)
        self._unrounded.pop(name, None)
        if isinstance(self._claims[name].measured, float) and not timing:
            self._unrounded[name] = (float(measured), digits)
        value = "" if timing else f"{_text(_plain(measured, digits))} "
        print(f"claim {name}: {value}(must be {self._claims[name].bound}): {VERDICTS[holds]}")

    def show(self) -> None:
        """Display all claims as a table. The measured value of a timing is left out.

        The output's metadata, which nobody sees, hold the measured numbers unrounded.
        """
        rows = [
            Claim(**{**asdict(c), "measured": None}) if c.name in self._timings else c
            for c in self._claims.values()
        ]
        _display(rows, f"The claims of lesson {self.lesson}", {UNROUNDED: self._unrounded})

    def show_timings(self) -> None:
        """Display the timing claims with what was measured; call it in a cell not compared."""
        rows = [c for c in self._claims.values() if c.name in self._timings]
        _display(rows, "Timing claims, as measured in this run")


def as_text(claims: Iterable[Claim]) -> str:
    """Lay claims out as a plain-text table, one line each.

    Parameters
    ----------
    claims : iterable of Claim
        The claims, in the order to show.

    Returns
    -------
    str
        Columns: holds, name, measured, bound, lesson.
    """
    header = ("holds", "claim", "measured", "must be", "lesson")
    rows = [header] + [
        (VERDICTS[c.holds], c.name, _text(c.measured), c.bound, c.lesson) for c in claims
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def read(notebook: dict[str, Any]) -> list[Claim]:
    """Read the claims back from an executed notebook.

    Parameters
    ----------
    notebook : dict
        The notebook as nbformat reads it.

    Returns
    -------
    list of Claim
        Each claim once, in order of appearance. Where a claim appears twice (table and timings),
        the measured value is the one that is not None.
    """
    found: dict[str, Claim] = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            for row in output.get("data", {}).get(MIME_TYPE, []):
                claim = Claim(**row)
                if claim.measured is not None or claim.name not in found:
                    found[claim.name] = claim
    return list(found.values())


def _plain(value: Any, digits: int) -> float | int | bool | str:
    """Turn a NumPy or TensorFlow scalar into a JSON value with so many significant digits."""
    if hasattr(value, "item"):
        value = value.item()
    elif hasattr(value, "numpy"):
        value = value.numpy().item()
    return rounded(value, digits) if isinstance(value, float) else value


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _display(
    claims: list[Claim], caption: str, metadata: dict[str, dict[str, Any]] | None = None
) -> None:
    data = {
        MIME_TYPE: [asdict(claim) for claim in claims],
        "text/html": _as_html(claims, caption),
        "text/plain": as_text(claims),
    }
    display(data, metadata={MIME_TYPE: metadata} if metadata else None, raw=True)


def _as_html(claims: list[Claim], caption: str) -> str:
    head = "".join(
        f'<th scope="col" style="text-align:left">{title}</th>'
        for title in ("Claim", "What it says", "Measured", "Must be", "Holds")
    )
    rows = []
    for claim in claims:
        statement = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(claim.statement))
        weight = "bold" if claim.holds is False else "normal"
        cells = [
            f'<th scope="row" style="text-align:left;white-space:nowrap">{claim.name}</th>',
            f'<td style="text-align:left">{statement}</td>',
            f'<td style="text-align:left">{html.escape(_text(claim.measured))}</td>',
            f'<td style="text-align:left;white-space:nowrap">{html.escape(claim.bound)}</td>',
            f'<td style="text-align:left;font-weight:{weight}">{VERDICTS[claim.holds]}</td>',
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
