"""Finds out where a learner's loop leaves ``fit``, and which known fault takes it there.

The learner's loop is run on datasets cut to a few batches and epochs, which gives its weights at
some points of the training. A fault is named only if the reference loop with that fault built in
comes out at the learner's weights at every one of these points: bit for bit, or at a thousandth of
the distance to ``fit`` (distances.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from utils import faults, objectives
from utils.blackbox import Outcome
from utils.distances import ROUNDING, distance, grains, is_near, may_be_near, same_bits
from utils.faults import Change, Fault
from utils.histories import LogReader
from utils.loops import Loop, Run, Weights
from utils.reference import Reference

EAGER_STEPS = 120
"""Longest run for which the reference loop is tried without being compiled."""

FEW_STEPS = 8
"""Longest run that is cheaper eager than compiled."""

Point = tuple[int, int]
"""The dataset cut to so many batches, trained for so many epochs."""

Parts = list[tuple[Fault, Change]]
"""One fault or two, each in one variant."""


class NotComparableError(Exception):
    """The reference loop cannot stand in for ``fit`` on this set-up."""


@dataclass(frozen=True)
class Cause:
    """A known fault that reproduces the learner's numbers.

    Attributes
    ----------
    name : str
    evidence : str
        What was seen that only this fault explains.
    fix : str
        What to mend.
    lesson : str
        Notebook that explains it.
    exact : bool
        Whether the numbers are reproduced bit for bit.
    partner : str
        Name of the fault that occurs together with this one, else empty.
    """

    name: str
    evidence: str
    fix: str
    lesson: str
    exact: bool = True
    partner: str = ""


@dataclass(frozen=True)
class Explanation:
    """One or two faults whose loop ends with the learner's weights."""

    parts: Parts
    exact: bool
    compiled: bool

    @property
    def loop(self) -> Loop:
        """The reference loop with these faults."""
        return _loop(self.parts)

    @property
    def names(self) -> list[str]:
        """Names of the faults."""
        return [fault.name for fault, _ in self.parts]


@dataclass(frozen=True)
class Place:
    """Where the weights first differ.

    Attributes
    ----------
    step : int
        Optimizer step, from 1.
    words : str
    mine, fit : Weights
        There, or shortly after.
    sizes : list of float
        Grains there.
    """

    step: int
    words: str
    mine: Weights
    fit: Weights
    sizes: list[float]


@dataclass
class Finding:
    """What an examination found out."""

    same_weights: bool
    place: Place | None = None
    causes: list[Cause] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Examination:
    """Compares one learner's loop with the reference loop.

    Parameters
    ----------
    reference : Reference
    fit : (Weights, dict)
        Final weights and history of ``fit``.
    full : Outcome
        Of the learner's loop on the whole set-up.
    rerun : callable
        ``rerun(batches, epochs)`` runs the learner's loop on a part; batches may be None.

    Attributes
    ----------
    whole : Point
        The training that the set-up asks for.
    seen : dict of Point to Weights
        The learner's weights, where they are known.
    """

    def __init__(
        self,
        reference: Reference,
        fit: tuple[Weights, dict[str, np.ndarray]],
        full: Outcome,
        rerun: Callable[[int | None, int], Outcome],
    ) -> None:
        self.reference, self.full, self._rerun = reference, full, rerun
        self.fit_weights, self.fit_history = fit
        self.whole: Point = (reference.batches, reference.setup.epochs)
        self.seen: dict[Point, Weights] = {self.whole: full.weights}
        self._updates: dict[Point, int] = {self.whole: full.updates}
        self._grains: dict[Point, list[float]] = {}
        self.logs = LogReader(reference, full.history, self.fit_history)

    def examine(self) -> Finding:
        """Carry the examination out, from the first look to the causes.

        Raises
        ------
        NotComparableError
            If the reference loop, without faults, does not end where ``fit`` does.
        """
        if not self.reference_is_fit():
            raise NotComparableError("it does not end with the weights of `fit`")
        finding = Finding(self.gap(self.whole) <= ROUNDING)
        explanation = None
        if not finding.same_weights:
            self.look_around()
            explanations = self._prefer_by_logs(self.explain())
            explanation = explanations[0] if explanations else None
            finding.causes = causes(explanations, sorted({_size(point) for point in self.seen}))
            finding.place = self.locate(explanation)
            if explanation is None:
                finding.notes += [*self.odd_facts(), self.next_step(finding.place)]
                return finding
        loop, compiled = (explanation.loop, explanation.compiled) if explanation else (Loop(), True)
        logs = self.logs.read(loop, compiled)
        finding.causes += [log_cause(fault, names) for fault, names in logs.faults]
        finding.unexplained = logs.unexplained
        return finding

    # --- distances -----------------------------------------------------------------------------

    def grains(self, point: Point) -> list[float]:
        """Return the size of a grain for each variable at a point."""
        if point not in self._grains:
            runs = [self._usual_run(point, noise=seed) for seed in (1, 2)]
            if _size(point) <= EAGER_STEPS:
                runs.append(self.reference.run(Loop(), *point))
            loss = self.reference.setup.loss
            if objectives.activation_of(loss) and not objectives.takes_logits(loss):
                runs.append(self.reference.run(Loop(objective="unfused"), *point, compiled=True))
            if point == self.whole:
                runs.append(self._usual_run(point))
            self._grains[point] = grains(self.usual(point), [run.weights for run in runs])
        return self._grains[point]

    def usual(self, point: Point) -> Weights:
        """Return the weights of ``fit`` at a point."""
        return self.fit_weights if point == self.whole else self._usual_run(point).weights

    def gap(self, point: Point) -> float:
        """Return the distance of the learner's loop from ``fit`` at a point."""
        return distance(self.seen[point], self.usual(point), self.grains(point))

    def reference_is_fit(self) -> bool:
        """Whether the reference loop without faults ends where ``fit`` does."""
        mine = self._usual_run(self.whole).weights
        shaken = [self._usual_run(self.whole, noise=seed).weights for seed in (1, 2)]
        return distance(mine, self.fit_weights, grains(mine, shaken)) <= ROUNDING

    def _usual_run(self, point: Point, noise: int | None = None, traced: bool = False) -> Run:
        return self.reference.run(Loop(), *point, compiled=True, noise=noise, traced=traced)

    # --- the learner's loop --------------------------------------------------------------------

    def look(self, point: Point) -> bool:
        """Run the learner's loop up to a point; False if it does not get there."""
        if point not in self.seen:
            outcome = self._rerun(self._cut(point), point[1])
            if outcome.problem:
                return False
            self.seen[point], self._updates[point] = outcome.weights, outcome.updates
        return True

    def look_around(self) -> None:
        """See the weights before the first step, after it, and after two epochs of two steps."""
        batches, epochs = self.whole
        start = self._rerun(None, 0)
        at_rest = not start.problem and not start.updates
        if at_rest and not same_bits(start.weights, start.first_weights):
            self.reference.own_start = start.weights
        if self.look((1, 1)) and self._is_cut():
            self.look((min(2, batches), min(2, epochs)))
        else:
            self.seen = {self.whole: self.full.weights}
            self.look((batches, 1))

    def _is_cut(self) -> bool:
        """Whether the loop trains on the dataset that it is given, rather than on other data."""
        one, longer = (1, 1), (self.whole[0], 1)
        if one in (longer, self.whole) or self._updates[one] == 1:
            return True
        if same_bits(self.seen[one], self.full.first_weights) or not self.look(longer):
            return True
        return not same_bits(self.seen[one], self.seen[longer])

    def repeats(self) -> bool:
        """Whether the loop does the same when run again."""
        point = min(self.seen, key=_size)
        again = self._rerun(self._cut(point), point[1])
        return not again.problem and (
            distance(again.weights, self.seen[point], self.grains(point)) <= ROUNDING
        )

    def odd_facts(self) -> list[str]:
        """Say what can be said of a loop that no known fault explains."""
        facts = []
        if not self.repeats():
            facts.append(
                "The loop does not repeat itself: from the same seed it trains otherwise. "
                "Look for a seed, a clock, or a state kept outside of it."
            )
        made, expected = self.full.updates, _size(self.whole)
        if made != expected:
            facts.append(
                f"The optimizer made {made} updates; `fit` makes {expected}."
                if made
                else "The loop does not use the optimizer that it was given."
            )
        return facts

    def next_step(self, place: Place) -> str:
        """Say where to look, when no known fault explains the loop."""
        model, batches = self.reference.model, self.whole[0]
        trainable = {id(v) for v in model.trainable_variables}
        rows = zip(model.weights, place.mine, place.fit, place.sizes)
        far = [v for v, mine, fit, size in rows if distance([mine], [fit], [size]) > ROUNDING]
        if not any(id(v) in trainable for v in far):
            return (
                "Only weights that no gradient moves differ: look at how often a step calls the "
                "model, and with which `training`."
            )
        if place.step > batches:
            return "The epoch before agrees: look at what is done between epochs."
        if place.step > 1:
            return (
                f"Look at what batch {place.step} has that those before it have not, and at what "
                "is carried over from batch to batch."
            )
        return (
            "Compare the first step by hand: the loss, the gradients, what `apply_gradients` gets; "
            "then what is done where an epoch ends."
        )

    def _cut(self, point: Point) -> int | None:
        return None if point[0] == self.whole[0] else point[0]

    # --- faults of the weights -----------------------------------------------------------------

    def explain(self) -> list[Explanation]:
        """Find the faults, or else the pairs of faults, that reproduce the learner's weights."""
        known = list(faults.variants(self._patient()))
        found = self._confirmed([one] for one in known)
        if not found and _size(min(self.seen, key=_size)) <= FEW_STEPS:
            found = self._confirmed(
                [a, b]
                for a, b in combinations(known, 2)
                if a[0] is not b[0] and a[0].in_pairs and b[0].in_pairs and not a[1].keys() & b[1]
            )
        best: dict[tuple[str, ...], Explanation] = {}
        for explanation in sorted(found, key=lambda e: not e.exact):
            best.setdefault(tuple(explanation.names), explanation)
        return list(best.values())

    def _patient(self) -> faults.Patient:
        first_step = self.seen.get((1, 1))
        return faults.Patient(
            reference=self.reference,
            first=self.full.first_weights,
            after_one=first_step,
            last=self.full.weights,
            fit_after_one=None if first_step is None else self.usual((1, 1)),
            fit_last=self.fit_weights,
            updates=self.full.updates,
        )

    def _confirmed(self, suspects: Iterable[Parts]) -> list[Explanation]:
        found = (self._confirm(parts) for parts in suspects if not self._is_ruled_out(parts))
        return [explanation for explanation in found if explanation is not None]

    def _is_ruled_out(self, parts: Parts) -> bool:
        """Whether a few steps are enough to see that it is something else."""
        for point in sorted(self.seen, key=_size)[:2]:
            run = self.reference.run(_loop(parts), *point, compiled=_size(point) > FEW_STEPS)
            if not may_be_near(self._far(run, point), self.gap(point)):
                return True
        return False

    def _confirm(self, parts: Parts) -> Explanation | None:
        """Run the fault to every point, eager and compiled; None if neither is near at all."""
        found = None
        for compiled in (False, True):
            if not compiled and _size(self.whole) > EAGER_STEPS:
                continue
            exact = self._is_near_everywhere(_loop(parts), compiled)
            if exact:
                return Explanation(parts, True, compiled)
            if exact is not None:
                found = Explanation(parts, False, compiled)
        return found

    def _is_near_everywhere(self, loop: Loop, compiled: bool) -> bool | None:
        """True if bit for bit, False if only near, None if not even that."""
        exact = True
        for point in sorted(self.seen, key=_size):
            far = self._far(self.reference.run(loop, *point, compiled=compiled), point)
            if not is_near(far, self.gap(point)):
                return None
            exact = exact and far == 0
        return exact

    def _far(self, run: Run, point: Point) -> float:
        return distance(run.weights, self.seen[point], self.grains(point))

    def _prefer_by_logs(self, found: list[Explanation]) -> list[Explanation]:
        """Where several faults lead to the same weights, the history may tell them apart."""
        if len(found) < 2:
            return found
        return [e for e in found if not self.logs.odd(e.loop, e.compiled)] or found

    # --- where it begins -----------------------------------------------------------------------

    def locate(self, explanation: Explanation | None) -> Place:
        """Find the first step after which the weights differ."""
        own = self.reference.own_start
        if own is not None and (
            explanation is None or "initial_weights_differ" in explanation.names
        ):
            first = self.reference.first_weights
            return Place(1, "before the first step", own, first, grains(first, []))
        return self._follow(explanation) if explanation else self._bisect()

    def _follow(self, explanation: Explanation) -> Place:
        """Go through the training step by step: the fault's and ``fit``'s are both known."""
        how = {"compiled": explanation.compiled, "traced": True}
        faulty = self.reference.run(explanation.loop, *self.whole, **how).trace
        usual = self.reference.run(Loop(), *self.whole, **how).trace
        shaken = self._usual_run(self.whole, noise=1, traced=True).trace
        total = max(len(faulty), len(usual))
        for k, (mine, fit, other) in enumerate(zip(faulty, usual, shaken)):
            sizes = grains(fit, [other])
            if distance(mine, fit, sizes) > ROUNDING:
                return self._place(k + 1, total, mine, fit, sizes)
        step = min(len(faulty), len(usual)) + (len(faulty) != len(usual))
        whole = self.whole
        return self._place(step, total, self.seen[whole], self.usual(whole), self.grains(whole))

    def _bisect(self) -> Place:
        """Cut the data until the difference goes away."""
        batches, epochs = self.whole
        if not self._differs((batches, 1)):
            epoch = _smallest(lambda e: self._differs((batches, e)), 1, epochs)
            point, step = (batches, epoch), (epoch - 1) * batches + 1
            words = f"in epoch {epoch} (steps {step} to {epoch * batches})"
        elif (1, 1) in self.seen:
            step = _smallest(lambda k: self._differs((k, 1)), 0, batches)
            point = step, 1
            words = f"when the data is cut to its first {step} batches; with {step - 1} they agree"
            if step == 1:
                words = "even when the data is cut to its first batch, for one epoch"
        else:
            point, step = (batches, 1), 1
            words = f"in epoch 1 (steps 1 to {batches})"
        if not self.look(point):
            point = self.whole
        return Place(step, words, self.seen[point], self.usual(point), self.grains(point))

    def _differs(self, point: Point) -> bool:
        return not self.look(point) or self.gap(point) > ROUNDING

    def _place(
        self, step: int, total: int, mine: Weights, fit: Weights, sizes: list[float]
    ) -> Place:
        epoch, batch = divmod(max(step, 1) - 1, self.whole[0])
        words = f"after step {step} of {total} (epoch {epoch + 1}, batch {batch + 1})"
        return Place(step, words, mine, fit, sizes)


def causes(found: list[Explanation], lengths: list[int]) -> list[Cause]:
    """Put explanations into words; where there are several, say what would separate them."""
    made: dict[str, Cause] = {}
    for explanation in found:
        how = "bit for bit" if explanation.exact else "at a thousandth of the distance of `fit`"
        for fault, change in explanation.parts:
            partner = "".join(n for n in explanation.names if n != fault.name)
            both = f" and {partner}" if partner else ""
            evidence = (
                f"{_sentence(fault, change)} A loop with this fault{both} ends with your "
                f"weights, {how}, after {_listed(lengths)} step{'s' * (lengths != [1])}."
            )
            others = {n: None for e in found for n in e.names if n not in explanation.names}
            if others:
                evidence += f" So has {', '.join(others)}; to separate them: {fault.separate}."
            cause = Cause(fault.name, evidence, fault.fix, fault.lesson, explanation.exact, partner)
            made.setdefault(fault.name, cause)
    return list(made.values())


def log_cause(fault: Fault, names: list[str]) -> Cause:
    """Put a fault of the logs into words."""
    series = " and ".join(f"`{name}`" for name in names)
    verb = "comes" if len(names) == 1 else "come"
    evidence = f"{_sentence(fault, {})} Computed like this, {series} {verb} out as yours."
    return Cause(fault.name, evidence, fault.fix, fault.lesson)


def _listed(numbers: list[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def _sentence(fault: Fault, change: Change) -> str:
    says = fault.says.format(**change)
    return f"{says[0].upper()}{says[1:]}."


def _loop(parts: Parts) -> Loop:
    return faults.changed(*(change for _, change in parts))


def _smallest(differs: Callable[[int], bool], same: int, other: int) -> int:
    """Find the smallest number that differs, between one that does not and one that does."""
    while other - same > 1:
        middle = same + 1 if same == 0 else (same + other) // 2
        same, other = (same, middle) if differs(middle) else (middle, other)
    return other


def _size(point: Point) -> int:
    return point[0] * point[1]
