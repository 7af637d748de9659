"""Typical wrong answers, one module an assignment, with the points and the sentence intended.

A module ``NN_name.py`` here holds ``WRONG``, a dict from a name to a `Wrong`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import nbformat

SOURCES = Path(__file__).parents[2] / "notebooks" / "assignments" / "source"


@dataclass(frozen=True)
class Wrong:
    """One wrong submission, as changes to the source with its solutions.

    Attributes
    ----------
    cells : dict of str to str
        New sources of solution cells, by grade_id.
    points : dict of str to float
        Points intended, by grade_id of the test cell. A cell that is not named gets its full
        points.
    says : str
        A fragment of the sentence intended, which stands in the student's feedback.
    """

    cells: dict[str, str]
    points: dict[str, float] = field(default_factory=dict)
    says: str = ""


def changed(assignment: str, grade_id: str, *changes: tuple[str, str]) -> dict[str, str]:
    """Replace pieces of a solution, each where it first occurs; for `Wrong.cells`.

    Raises
    ------
    ValueError
        If a piece does not occur.
    """
    notebook = nbformat.read(SOURCES / assignment / f"{assignment}.ipynb", as_version=4)
    found = [
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id
    ]
    source = found[0].source
    for old, new in changes:
        if old not in source:
            raise ValueError(f"{assignment}, {grade_id}: {old!r} does not occur in the solution.")
        source = source.replace(old, new, 1)
    return {grade_id: source}
