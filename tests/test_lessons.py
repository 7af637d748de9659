"""Every lesson, run by papermill with small parameters: no claim may fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from utils import run

# What takes its time in lesson 5 is compiling loops, which no parameter shrinks.
LESSONS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * path.stem.startswith("05"))
    for path in run.find_lessons()
]


@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_holds_with_small_parameters(lesson: Path, claims_of) -> None:
    claims = claims_of(lesson.stem)
    assert [claim.name for claim in claims.values() if claim.holds is False] == []
    judged = [claim for claim in claims.values() if claim.holds]
    assert len(judged) >= 5, "small parameters leave too little to judge"
