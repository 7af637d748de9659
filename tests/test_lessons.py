"""Every lesson, run by papermill with small parameters: no claim may fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from utils import run


@pytest.mark.parametrize("lesson", run.find_lessons(), ids=lambda path: path.stem)
def test_lesson_holds_with_small_parameters(lesson: Path, claims_of) -> None:
    claims = claims_of(lesson.stem)
    assert [claim.name for claim in claims.values() if claim.holds is False] == []
    judged = [claim for claim in claims.values() if claim.holds]
    assert len(judged) >= 5, "small parameters leave too little to judge"
