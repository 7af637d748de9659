"""Typical wrong answers, one module an assignment, with the points and the sentence intended.

A module ``NN_name.py`` here holds ``WRONG``, a dict from a name to a `Wrong`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


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
