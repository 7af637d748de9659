"""utils.claims: what is recorded, shown, and read back."""

from __future__ import annotations

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from utils import claims


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Collect what is displayed instead of showing it."""
    collected: list[dict] = []
    monkeypatch.setattr(
        claims,
        "display",
        lambda data, raw, metadata: collected.append(data | {"metadata": metadata}),
    )
    return collected


@pytest.mark.parametrize(
    ("measured", "relation", "bound", "holds"),
    [
        (1, "==", 1, True),
        (1, "==", 2, False),
        (0.5, "<", 0.5, False),
        (0.5, "<=", 0.5, True),
        (2, ">", 1, True),
        (0, ">=", 1, False),
        (float("nan"), "<=", 1, False),
        (float("nan"), ">=", 1, False),
        (np.float32(2.0), ">", 1, True),
        ("1 and 4", "==", "1 and 4", True),
    ],
)
def test_relation_decides(shown, measured, relation, bound, holds) -> None:
    record = claims.Claims("09_lesson")
    record.check("a-claim", "A sentence.", measured, relation, bound)
    record.show()
    assert shown[0][claims.MIME_TYPE][0]["holds"] is holds


def test_bound_is_compared_with_the_unrounded_value(shown) -> None:
    record = claims.Claims("09_lesson")
    record.check("a-claim", "A sentence.", 0.9999, ">=", 1, digits=2)
    record.show()
    row = shown[0][claims.MIME_TYPE][0]
    assert (row["measured"], row["holds"]) == (1.0, False)


def test_metadata_hold_the_unrounded_numbers_but_no_times(shown) -> None:
    record = claims.Claims("09_lesson")
    record.check("ratio", "A number.", np.float32(0.75), ">=", 0, digits=1)
    record.check("count", "Another.", 3, "==", 3)
    record.check("fast", "Fast.", 7.25, ">=", 2, timing=True)
    record.check("gone", "A number.", 0.5, ">=", 0)
    record.check("gone", "Now a count.", 1, ">=", 0)
    record.show()
    record.show_timings()
    assert shown[0]["metadata"] == {claims.MIME_TYPE: {claims.UNROUNDED: {"ratio": (0.75, 1)}}}
    assert shown[1]["metadata"] is None


def test_claim_with_too_small_parameters_is_not_judged(shown, capsys) -> None:
    record = claims.Claims("09_lesson")
    record.check("a-claim", "A sentence.", 0, "==", 1, when=False)
    record.show()
    assert shown[0][claims.MIME_TYPE][0]["holds"] is None
    assert "not judged" in capsys.readouterr().out


def test_running_a_cell_again_replaces_its_claim(shown) -> None:
    record = claims.Claims("09_lesson")
    record.check("a-claim", "A sentence.", 0, "==", 1, timing=True)
    record.check("a-claim", "A sentence.", 1, "==", 1)
    record.show()
    assert [(r["measured"], r["holds"]) for r in shown[0][claims.MIME_TYPE]] == [(1, True)]


def test_timing_is_shown_only_in_its_own_table(shown, capsys) -> None:
    record = claims.Claims("09_lesson")
    record.check("fast", "Fast.", 7.25, ">=", 2, timing=True)
    record.check("equal", "Equal.", 0, "==", 0)
    assert "7.25" not in capsys.readouterr().out
    record.show()
    record.show_timings()
    compared, timings = shown
    assert [row["measured"] for row in compared[claims.MIME_TYPE]] == [None, 0]
    assert [row["measured"] for row in timings[claims.MIME_TYPE]] == [7.25]
    assert "7.25" not in compared["text/html"] + compared["text/plain"]


@pytest.mark.parametrize("name", ["Upper", "under_score", "", "end-", "two  words"])
def test_bad_name_is_refused(name) -> None:
    with pytest.raises(ValueError, match="lower-case words"):
        claims.Claims("09_lesson").check(name, "A sentence.", 0, "==", 0)


def test_unknown_relation_is_refused() -> None:
    with pytest.raises(ValueError, match="relation '~'"):
        claims.Claims("09_lesson").check("a-claim", "A sentence.", 0, "~", 0)


def test_statement_is_escaped_and_code_is_marked(shown) -> None:
    record = claims.Claims("09_lesson")
    record.check("a-claim", "`a<b` holds", 0, "==", 0)
    record.show()
    assert "<code>a&lt;b</code> holds" in shown[0]["text/html"]


def test_read_joins_the_two_tables() -> None:
    def output(measured) -> nbformat.NotebookNode:
        row = claims.Claim("09_lesson", "fast", "Fast.", measured, ">= 2", True)
        return new_output("display_data", data={claims.MIME_TYPE: [vars(row)]})

    cells = [new_code_cell("", outputs=[output(None)]), new_code_cell("", outputs=[output(7.5)])]
    for order in (cells, cells[::-1]):
        found = claims.read(new_notebook(cells=order))
        assert [(c.name, c.measured) for c in found] == [("fast", 7.5)]


def test_text_table_marks_failures() -> None:
    rows = [
        claims.Claim("09_lesson", "good", "", True, "true", True),
        claims.Claim("09_lesson", "bad", "", 0.25, ">= 1", False),
    ]
    lines = claims.as_text(rows).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["yes", "good", "true"],
        ["NO", "bad", "0.25"],
    ]
