"""The result of a comparison, in words: a dozen lines of text, or a table in a notebook."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import keras
import numpy as np

from utils import ulp
from utils.blackbox import Outcome, first_line
from utils.diagnosis import Cause, Examination, Finding, Place
from utils.distances import distance, same_bits, unit
from utils.histories import comparable
from utils.loops import Weights

IDENTICAL, ROUNDING, DIFFERENT, BROKEN = "identical", "rounding", "different", "broken"

_LINES = 12
_FEW_ULP = 64
_WIDTH = 100


@dataclass(frozen=True)
class Report:
    """The result of a comparison; print it, or leave it at the end of a cell.

    Attributes
    ----------
    verdict : {"identical", "rounding", "different", "broken"}
        0 ULP in weights and returned history; equal but for the order of roundings; not equal; no
        training that could be compared.
    summary : str
        The verdict as a sentence.
    first_step : int or None
        Optimizer step, from 1, after which the weights first differ. None if they never do. Where
        no cause is known and the difference begins after the first epoch, the first step of that
        epoch.
    variable : str or None
        Path of the variable that differs most there, with its distance in ULP.
    causes : tuple of Cause
        Best first; empty if no known fault reproduces what the loop did.
    notes : tuple of str
        Further facts, a sentence each.
    """

    verdict: str
    summary: str
    first_step: int | None = None
    variable: str | None = None
    causes: tuple[Cause, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the loop trains as ``fit`` does."""
        return self.verdict in (IDENTICAL, ROUNDING)

    def __str__(self) -> str:
        lines = self._lines(causes_told=2)
        if len(lines) > _LINES:
            lines = self._lines(causes_told=1)
        return "\n".join(lines[:_LINES])

    __repr__ = __str__

    def _lines(self, causes_told: int) -> list[str]:
        lines = _wrapped(f"{self.verdict}: {self.summary}")
        for cause in self.causes[:causes_told]:
            lines += _wrapped(f"{cause.name}: {cause.evidence}", "  ")
            lines += _wrapped(f"mend: {cause.fix} (see {cause.lesson}.ipynb)", "    ")
        others = ", ".join(cause.name for cause in self.causes[causes_told:])
        for note in ([f"Also: {others}."] if others else []) + list(self.notes):
            lines += _wrapped(note, "  ")
        return lines

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{self.verdict}</strong>: {_marked(self.summary)}</p>"]
        if self.causes:
            head = "".join(
                f'<th scope="col" style="text-align:left">{title}</th>'
                for title in ("Cause", "What was seen", "How to mend it", "Lesson")
            )
            rows = "".join(_row(cause) for cause in self.causes)
            parts.append(
                "<table><caption>Faults that reproduce this loop</caption>"
                f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            )
        return "".join(parts + [f"<p>{_marked(note)}</p>" for note in self.notes])


def from_finding(examination: Examination, finding: Finding, notes: Sequence[str]) -> Report:
    """Put a finding into words.

    Parameters
    ----------
    examination : Examination
    finding : Finding
    notes : sequence of str
        What was noticed before, put before what the finding says.
    """
    told = [
        *notes,
        *(f"`{n}` differs, {_odd_log(finding)}" for n in finding.unexplained),
    ]
    build = _same_weights if finding.same_weights else _other_weights
    return build(examination, finding, tuple(told + finding.notes))


def _odd_log(finding: Finding) -> str:
    if finding.same_weights:
        return "and no known fault explains how."
    return "and not only by what is named above; mend that first, then compare again."


def without_diagnosis(
    full: Outcome, fit: Weights, error: Exception, notes: Sequence[str]
) -> Report:
    """Report on a set-up that the reference loop cannot train, such as one with many outputs."""
    far = distance(full.weights, fit, [unit(w) for w in fit])
    note = f"No cause was looked for: the reference loop fails here ({first_line(error)})."
    if far <= _FEW_ULP:
        summary = (
            "the loop trains as `fit` does: the weights are within "
            f"{far:.0f} ULP of the largest weight of a variable."
        )
        return Report(ROUNDING, summary, notes=(*notes, note))
    return Report(DIFFERENT, "the weights are not those of `fit`.", notes=(*notes, note))


def _same_weights(examination: Examination, finding: Finding, notes: tuple[str, ...]) -> Report:
    full, fit = examination.full, examination.fit_history
    same = "the weights are bit-identical to those of `fit` (0 ULP)"
    if not same_bits(full.weights, examination.fit_weights):
        same = f"the weights are those of `fit` but for rounding ({_rounding(examination)})"
    names = comparable(full.history, fit)
    if finding.causes or finding.unexplained:
        return Report(
            DIFFERENT, f"in what it logs; {same}.", None, None, tuple(finding.causes), notes
        )
    if any(name in fit and name not in names for name in full.history):
        return Report(DIFFERENT, f"in what it logs, which cannot be compared; {same}.", notes=notes)
    logs = "; the history agrees within rounding" if names else ""
    return Report(ROUNDING, f"the loop trains as `fit` does: {same}{logs}.", notes=notes)


def _other_weights(examination: Examination, finding: Finding, notes: tuple[str, ...]) -> Report:
    place = finding.place
    verdict, summary = DIFFERENT, "the weights are not those of `fit`."
    variable = None
    if place is not None:
        variable = _variable(examination.reference.model, place)
        summary = f"the weights differ from those of `fit` {place.words}, most in {variable}."
    if any(np.isnan(w).any() for w in examination.full.weights if w.dtype.kind == "f"):
        verdict, summary = BROKEN, f"the loop leaves NaN in the weights; {summary[4:]}"
    if not finding.causes:
        notes = ("No known fault reproduces this loop.", *notes)
    step = None if place is None else place.step
    return Report(verdict, summary, step, variable, tuple(finding.causes), notes)


def _rounding(examination: Examination) -> str:
    """Count the difference in units in the last place of the largest weight of each variable."""
    counts, sensitive = [0], []
    rows = zip(
        paths(examination.reference.model),
        examination.full.weights,
        examination.fit_weights,
        examination.grains(examination.whole),
    )
    for path, mine, fit, grain in rows:
        if grain > 64 * unit(fit):
            sensitive.append(path)
        else:
            gap = np.abs(mine.astype(float) - fit).max(initial=0)
            counts.append(int(np.ceil(gap / unit(fit))))
    text = f"at most {max(counts)} ULP of the largest weight of a variable"
    if sensitive:
        text += f"; more in {', '.join(sensitive)}, as with any other order of roundings"
    return text


def _variable(model: keras.Model, place: Place) -> str:
    """Name the variable that differs most beyond rounding, and by how many ULP."""
    far = [
        np.nan_to_num(np.abs(mine.astype(float) - fit).max(initial=0) / size, nan=np.inf)
        for mine, fit, size in zip(place.mine, place.fit, place.sizes)
    ]
    most = int(np.argmax(far))
    path = paths(model)[most]
    if place.mine[most].dtype.kind != "f":
        return path
    mine, fit = place.mine[most], place.fit[most]
    gap = float(np.abs(mine.astype(float) - fit).max())
    if not np.isfinite(gap):
        return path
    count = int(ulp.ulp_distance(mine, fit).max())
    rough = str(count) if count < 100 else f"1e{_magnitude(count)}"
    return f"{path} (by about {10.0 ** _magnitude(gap):g}, {rough} ULP)"


def _magnitude(value: float) -> int:
    """Round to a power of ten, so that other machines write the same."""
    return round(np.log10(value)) if value else 0


def paths(model: keras.Model) -> list[str]:
    """Layer and name of each weight; numbers of automatic names count from this model's first.

    Keras numbers layers through the whole session, so that ``dense_7`` may be the first one.
    """
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    found = []
    for variable in model.weights:
        *_, layer, name = ["", *variable.path.split("/")]
        if layer not in names:
            stem = re.sub(r"_\d+$", "", layer)
            number = counts[stem] = counts.get(stem, -1) + 1
            names[layer] = f"{stem}_{number}" if number else stem
        found.append(f"{names[layer]}/{name}" if layer else name)
    return found


def _row(cause: Cause) -> str:
    cells = "".join(
        f'<td style="text-align:left">{_marked(text)}</td>'
        for text in (cause.evidence, cause.fix, cause.lesson)
    )
    return f'<tr><th scope="row" style="text-align:left">{html.escape(cause.name)}</th>{cells}</tr>'


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))
