"""Writes grades down: one table for the teacher, one page for each student.

The page holds sentences only: no traceback, no code of a hidden test, no script, nothing to fetch.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup, escape

TABLE = "grades.csv"


@dataclass
class Row:
    """The grade of one task.

    Attributes
    ----------
    student, assignment : str
    task : str
        The grade_id; empty if the submission as a whole could not be graded.
    points : float or None
        None if somebody has to read the answer, or if there is no grade.
    maximum : float
    needs_manual_grading : bool
    reason : str
        Why points are missing, for the student to read.
    """

    student: str
    assignment: str
    task: str
    points: float | None
    maximum: float
    needs_manual_grading: bool
    reason: str


HEADER = tuple(field.name for field in fields(Row))


@dataclass
class Sheet:
    """What a student gets back for one assignment.

    Attributes
    ----------
    title : str
        Of the assignment.
    rows : list of Row
    titles : dict of str to str
        What a task is called, by grade_id.
    written : dict of str to str
        The student's written answers, by grade_id.
    notes : list of str
        What was amiss with the submission.
    """

    title: str
    rows: list[Row]
    titles: dict[str, str]
    written: dict[str, str]
    notes: list[str]

    @property
    def points(self) -> float:
        """Sum of the points given so far."""
        return sum(row.points or 0 for row in self.rows)

    @property
    def maximum(self) -> float:
        """Sum of all points."""
        return sum(row.maximum for row in self.rows)

    @property
    def waiting(self) -> float:
        """Sum of the points that somebody has to give by hand."""
        return sum(row.maximum for row in self.rows if row.needs_manual_grading)


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Feedback for {{ student }}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
caption, th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.6rem }
th, td { border-bottom: 1px solid #999 }
td.points { white-space: nowrap }
pre { white-space: pre-wrap; border-left: 3px solid #999; padding-left: 0.6rem; margin: 0.4rem 0 }
</style>
</head>
<body>
<h1>Feedback for {{ student }}</h1>
{% for sheet in sheets %}
<h2>{{ sheet.title }}</h2>
<p><strong>{{ number(sheet.points) }} of {{ number(sheet.maximum) }} points</strong>
{%- if sheet.waiting %}, and {{ number(sheet.waiting) }} of these are still to be given by hand
{%- endif %}.</p>
{% for note in sheet.notes %}<p>{{ marked(note) }}</p>
{% endfor %}
<table>
<caption>Task by task</caption>
<thead>
<tr><th scope="col">Task</th><th scope="col">Points</th><th scope="col">What to know</th></tr>
</thead>
<tbody>
{% for row in sheet.rows %}
<tr>
<th scope="row">{{ marked(sheet.titles.get(row.task, row.task)) }}<br>
<small>{{ row.task }}</small></th>
<td class="points">
{%- if row.points is none %}–{% else %}{{ number(row.points) }}{% endif %}
 of {{ number(row.maximum) }}</td>
<td>{{ marked(row.reason) }}
{%- if row.needs_manual_grading %} Somebody will read your answer.{% endif %}
{%- if sheet.written.get(row.task) %}<pre>{{ sheet.written[row.task] }}</pre>{% endif %}</td>
</tr>
{% endfor %}
</tbody>
</table>
{% endfor %}
</body>
</html>
"""


def write_table(rows: Iterable[Row], folder: Path) -> Path:
    """Write ``grades.csv``, whole or not at all."""
    with tempfile.NamedTemporaryFile(
        "w", dir=folder, delete=False, newline="", encoding="utf-8", errors="backslashreplace"
    ) as half:
        writer = csv.writer(half)
        writer.writerow(HEADER)
        writer.writerows([_cell(value) for value in astuple(row)] for row in rows)
    path = folder / TABLE
    os.chmod(half.name, 0o644)
    os.replace(half.name, path)
    return path


def points_by_hand(folder: Path) -> dict[tuple[str, str, str], str]:
    """Read the points that stand in an earlier ``grades.csv``.

    Returns
    -------
    dict of (student, assignment, task) to str
        Points as they are written there, where there are any.
    """
    path = folder / TABLE
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return {
            (row.get("student") or "", row.get("assignment") or "", row.get("task") or ""): points
            for row in csv.DictReader(file)
            if (points := (row.get("points") or "").strip())
        }


def write_page(student: str, sheets: list[Sheet], folder: Path) -> Path:
    """Write a student's feedback as one HTML file."""
    environment = Environment(autoescape=True)
    text = environment.from_string(PAGE).render(
        student=student, sheets=sheets, number=lambda points: f"{points:g}", marked=_marked
    )
    path = folder / f"{student}.html"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | int):
        return f"{value:g}"
    text = " ".join(str(value if value is not None else "").split())
    # A spreadsheet would run it as a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _marked(text: str) -> Markup:
    """Show what stands between back-ticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
