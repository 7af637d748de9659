"""What a loop reports of its epochs, and which fault of the logs explains what it returned.

A history is a dict of name to one value an epoch. Every way to average a handful of float32 numbers
rounds differently, so each style of logging yields several candidates, which differ in rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf

from utils.distances import ROUNDING, history_tolerance, series_is_near
from utils.faults import FAULTS, Fault
from utils.loops import Loop, Run, Step
from utils.reference import Reference

Series = np.ndarray
"""One value an epoch, float64."""


@dataclass
class LogFinding:
    """Which faults of the logs explain which series, and the series that none explains."""

    faults: list[tuple[Fault, list[str]]] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)


class LogReader:
    """Explains the history that a learner's loop returned.

    Parameters
    ----------
    reference : Reference
    returned, fit : dict of str to ndarray
        Histories of the learner's loop and of ``fit``.
    """

    def __init__(
        self, reference: Reference, returned: dict[str, Series], fit: dict[str, Series]
    ) -> None:
        self.reference, self.fit = reference, fit
        self.whole = (reference.batches, reference.setup.epochs)
        self.returned = {k: v for k, v in returned.items() if k in comparable(returned, fit)}

    def read(self, loop: Loop, compiled: bool) -> LogFinding:
        """Explain every series, given the loop that reproduces the learner's weights."""
        finding = LogFinding()
        styles: dict[str, list[str]] = {}
        for name in self.odd(loop, compiled):
            found = self._styles(name, loop, compiled)
            if not found:
                finding.unexplained.append(name)
            for style in found:
                styles.setdefault(style, []).append(name)
        finding.faults = [(f, styles[f.log_style]) for f in FAULTS if f.log_style in styles]
        return finding

    def odd(self, loop: Loop, compiled: bool) -> list[str]:
        """Name the series that are not what this loop should report."""
        names = []
        for name, series in self.returned.items():
            expected = self._candidates(name, loop, compiled, "fit")
            allowed = history_tolerance(expected[0], self.whole[0]) + self._shake(name, loop)
            if not any(len(e) == len(series) and _within(series, e, allowed) for e in expected):
                names.append(name)
        return names

    def _styles(self, name: str, loop: Loop, compiled: bool) -> list[str]:
        usual = self._candidates(name, loop, compiled, "fit")[0]
        allowed = history_tolerance(usual, self.whole[0])

        def fits(style: str) -> bool:
            candidates = self._candidates(name, loop, compiled, style)
            return any(series_is_near(self.returned[name], c, usual, allowed) for c in candidates)

        styles = [f.log_style for f in FAULTS if f.log_style and fits(f.log_style)]
        return styles or (["unweighted", "running"] if fits("running_unweighted") else [])

    def _candidates(self, name: str, loop: Loop, compiled: bool, style: str) -> list[Series]:
        if style == "fit" and (loop == Loop() or name.startswith("val_")):
            return [self.fit[name]]
        run = self.reference.run(loop, *self.whole, compiled=compiled)
        return candidates(self.reference, run, name, style)

    def _shake(self, name: str, loop: Loop) -> Series:
        """How much a series moves if all roundings are shaken, with a margin."""
        if loop != Loop() or name.startswith("val_"):
            return np.zeros(1)
        moved = []
        for seed in (1, 2):
            run = self.reference.run(loop, *self.whole, compiled=True, noise=seed)
            moved.append(candidates(self.reference, run, name, "fit")[0] - self.fit[name])
        return ROUNDING * np.abs(moved).max(axis=0)


def comparable(returned: dict[str, Series], fit: dict[str, Series]) -> list[str]:
    """Name the series that both have, with the same number of values."""
    return [k for k, v in returned.items() if k in fit and len(v) == len(fit[k])]


def candidates(reference: Reference, run: Run, name: str, style: str) -> list[Series]:
    """Compute what a run would report under one name in one style.

    Parameters
    ----------
    reference : Reference
    run : Run
    name : str
        "loss" or the name of a metric.
    style : str
        "fit": mean over rows. "unweighted": mean over batches. "running": mean over all rows since
        the first epoch. "running_unweighted": over all batches. "last": the last batch alone.
        "bare": mean over rows, without the penalties of the layers.

    Returns
    -------
    list of ndarray
        With different roundings. For the loss also from the loss that the loop minimised, and
        from the one that ``fit`` would have computed at the same weights.
    """
    found: list[Series] = []
    if name == "loss":
        for which in ("bare",) if style == "bare" else ("minimised", "given"):
            values = [getattr(step, which) for step in run.steps]
            found += _averages(run.steps, values, style)
    elif style in ("fit", "running"):
        reset = "epoch" if style == "fit" else "never"
        logs = reference.metric_logs(run.steps, reset=reset)
        found = [np.array(logs[name])] if name in logs else []
    elif style != "bare":
        logs = reference.metric_logs(run.steps, reset="batch")
        found = _averages(run.steps, np.float32(logs[name]), style) if name in logs else []
    return list({series.tobytes(): series for series in found}.values())


def _averages(steps: Sequence[Step], values: Sequence[np.float32], style: str) -> list[Series]:
    running, weighted = style.startswith("running"), style in ("fit", "running", "bare")
    variants: dict[str, list[float]] = {}
    for epoch in sorted({step.epoch for step in steps}):
        chosen = [
            (value, step.rows if weighted else 1)
            for step, value in zip(steps, values)
            if (step.epoch <= epoch if running else step.epoch == epoch)
        ]
        for name, mean in _means(chosen[-1:] if style == "last" else chosen).items():
            variants.setdefault(name, []).append(mean)
    return [np.array(series) for series in variants.values()]


def _means(weighted: Sequence[tuple[np.float32, int]]) -> dict[str, float]:
    """Average (value, weight) pairs in single precision, in double, and as NumPy and TF do."""
    values = np.array([value for value, _ in weighted], np.float32)
    weights = np.array([weight for _, weight in weighted], np.float32)
    total = np.float32(0)
    for value, weight in zip(values, weights):
        total = np.float32(total + np.float32(value * weight))
    return {
        "single": float(total / weights.sum()),
        "double": float((values.astype(float) * weights).sum() / weights.sum()),
        "numpy": float(np.mean(values * weights) / np.mean(weights)),
        "tf": float(tf.reduce_sum(values * weights) / weights.sum()),
    }


def _within(series: Series, expected: Series, allowed: Series) -> bool:
    same = np.isnan(series) & np.isnan(expected)
    return bool((same | (np.abs(series - expected) <= allowed)).all())
