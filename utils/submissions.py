"""What students hand in: found, read without trust, and put together with the teacher's cells.

Nothing here runs a student's code. A file that cannot be graded raises `Unreadable`, whose text
goes into the table of grades.
"""

from __future__ import annotations

import ast
import json
import os
import stat
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_grade, is_locked, is_solution

LARGEST_FILE = 50_000_000
"""Bytes; a notebook that is larger holds outputs that nobody wants to read."""


class Unreadable(Exception):
    """A submission that cannot be graded; the message says why and what to do."""


@dataclass(frozen=True)
class Submission:
    """One student's folder for one assignment.

    Attributes
    ----------
    student, assignment : str
        Names of the two folders.
    folder : Path
    """

    student: str
    assignment: str
    folder: Path


@dataclass(frozen=True)
class Piece:
    """A cell to be run.

    Attributes
    ----------
    source : str
    grade_id : str
        Of the assignment's cell, or empty for a cell of the student's own.
    is_test : bool
        Whether it is one of the teacher's test cells, hidden tests included.
    """

    source: str
    grade_id: str = ""
    is_test: bool = False


@dataclass
class Assembly:
    """A submission that is ready to be run.

    Attributes
    ----------
    pieces : list of Piece
        In the order of the source: the teacher's cells as they are there, the student's in between.
    written : dict of str to str
        Written answers by grade_id.
    notes : list of str
        What was found amiss and put right, a sentence each.
    """

    pieces: list[Piece] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find(folder: Path) -> list[Submission]:
    """Find all submissions under ``<student>/<assignment>/``.

    Parameters
    ----------
    folder : Path
        Hidden files and folders in it are left out, and those that archives of macOS add.

    Returns
    -------
    list of Submission
        In order of student and assignment. A student's notebook that lies in no folder of an
        assignment is listed under its own name, so that it is not overlooked.
    """
    found = []
    for student in _visible(folder):
        if not student.is_dir() or student.is_symlink():
            continue
        for entry in _visible(student):
            name = entry.stem if entry.suffix == ".ipynb" else entry.name
            if entry.is_dir() or entry.is_symlink() or entry.suffix == ".ipynb":
                found.append(Submission(student.name, name, entry))
    return found


def load(submission: Submission) -> tuple[bytes, list[str]]:
    """Read the notebook of a submission as bytes.

    Returns
    -------
    content : bytes
    notes : list of str
        A sentence if the file was not named as it should be.

    Raises
    ------
    Unreadable
        If there is no notebook, if there are several and none has the right name, or if the file
        is empty, too large or no regular file.
    """
    name = f"{submission.assignment}.ipynb"
    if submission.folder.is_symlink() or not submission.folder.is_dir():
        raise Unreadable(
            f"It does not lie in a folder of an assignment: put it into {submission.student}/"
            f"{submission.assignment}/."
        )
    notebooks = [p for p in _visible(submission.folder) if p.suffix.lower() == ".ipynb"]
    named = [p for p in notebooks if p.name == name]
    if not notebooks:
        others = ", ".join(p.name for p in _visible(submission.folder)) or "nothing"
        raise Unreadable(f"There is no notebook; {name} was expected, and there is {others}.")
    if not named and len(notebooks) > 1:
        names = ", ".join(p.name for p in notebooks)
        raise Unreadable(f"There are several notebooks and none is named {name}: {names}.")
    path = (named or notebooks)[0]
    notes = [] if path.name == name else [f"The file is named {path.name}, not {name}."]
    if named and len(notebooks) > 1:
        others = ", ".join(p.name for p in notebooks if p.name != name)
        notes.append(f"Only {name} was graded, not {others}.")
    return _content(path), notes


def parse(content: bytes) -> NotebookNode:
    """Read a notebook of any format, without trusting it.

    Returns
    -------
    NotebookNode
        Of format 4.

    Raises
    ------
    Unreadable
        If it is no notebook.
    """
    try:
        raw = json.loads(content.decode("utf-8-sig"))
        if not isinstance(raw, dict) or not isinstance(raw.get("nbformat"), int):
            raise ValueError("it lacks the number of its format")
        if not any(isinstance(raw.get(key), list) for key in ("cells", "worksheets")):
            raise ValueError("it has no list of cells")
        if raw["nbformat"] < 4:
            return nbformat.convert(nbformat.reader.reads(json.dumps(raw)), 4)
        return nbformat.from_dict(raw)
    except (Exception, RecursionError) as error:
        words = " ".join(str(error).split())[:120]
        raise Unreadable(f"The file is no notebook ({type(error).__name__}: {words}).") from error


def assemble(source: NotebookNode, student: NotebookNode, first_text: dict[str, str]) -> Assembly:
    """Put a student's cells and the teacher's together, in the order of the source.

    Locked cells and test cells are always those of the source, whatever the student did to them.
    Cells of the student's own stay behind the cell that they followed.

    Parameters
    ----------
    source : NotebookNode
        With hidden tests.
    student : NotebookNode
        As `parse` returns it.
    first_text : dict of str to str
        The students' version of every cell, by grade_id, to tell what was changed.

    Returns
    -------
    Assembly

    Raises
    ------
    Unreadable
        If the student's notebook has none of the assignment's cells.
    """
    known = {grade_id_of(c): c for c in source.cells if grade_id_of(c)}
    theirs, own, duplicates = _sort_out(student, known)
    if not theirs:
        raise Unreadable(
            "None of the assignment's cells is in it: hand in the notebook that was given out, "
            "saved by JupyterLab."
        )
    assembly = Assembly(notes=_amiss(known, theirs, duplicates, first_text))
    assembly.pieces += own[""]
    for grade_id, cell in known.items():
        mine = theirs.get(grade_id)
        if is_solution(cell):
            answer = "" if mine is None else text_of(mine)
            if is_grade(cell) and cell.cell_type != "code":
                assembly.written[grade_id] = answer
            elif mine is not None and mine.get("cell_type") == "code":
                assembly.pieces.append(Piece(answer, grade_id))
        elif cell.cell_type == "code":
            assembly.pieces.append(Piece(cell.source, grade_id, is_test=is_grade(cell)))
        assembly.pieces += own[grade_id]
    return assembly


def givens(source: NotebookNode) -> dict[str, str]:
    """Write out, for each test cell, what the teacher's locked cells before it import and define.

    Run again before a test, this puts right what a student's cell has renamed. Names that a
    solution is meant to define are left out.

    Returns
    -------
    dict of str to str
        Python code by grade_id of the test cell.
    """
    taken = {
        name
        for cell in source.cells
        if cell.cell_type == "code" and is_solution(cell)
        for node in ast.parse(cell.source).body
        for name in _bound(node)
    }
    code: list[str] = []
    found = {}
    for cell in source.cells:
        if cell.cell_type != "code" or is_solution(cell):
            continue
        if is_grade(cell):
            found[grade_id_of(cell)] = "\n".join(code)
        elif is_locked(cell):
            code += [
                ast.unparse(node)
                for node in ast.parse(cell.source).body
                if isinstance(node, (ast.Import, ast.ImportFrom, ast.FunctionDef))
                and not taken.intersection(_bound(node))
            ]
    return found


def grade_id_of(cell: Any) -> str:
    """Return the grade_id of a cell, or an empty string: a student's metadata may be anything."""
    metadata = cell.get("metadata", {})
    nbgrader = metadata.get("nbgrader", {}) if isinstance(metadata, dict) else {}
    grade_id = nbgrader.get("grade_id", "") if isinstance(nbgrader, dict) else ""
    return grade_id if isinstance(grade_id, str) else ""


def text_of(cell: Any) -> str:
    """Return the source of a cell, which a file may also hold as a list of lines."""
    text = cell.get("source", "")
    lines = text if isinstance(text, list) else [text]
    # What is no text at all (half a surrogate pair) could not be sent to a kernel.
    return "".join(map(str, lines)).encode("utf-8", "replace").decode("utf-8")


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if not p.name.startswith((".", "__")))
    except OSError:  # A folder that nobody may read.
        return []


def _content(path: Path) -> bytes:
    """Read a file that may be a link to anything, a pipe that never ends, or gigabytes long."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path.name} is no regular file.")
    if status.st_size == 0:
        raise Unreadable(f"{path.name} is empty.")
    if status.st_size > LARGEST_FILE:
        raise Unreadable(
            f"{path.name} has {status.st_size / 1e6:.0f} MB, more than "
            f"{LARGEST_FILE / 1e6:.0f}: clear its outputs and hand it in again."
        )
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            return file.read(LARGEST_FILE)
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}.") from error


def _sort_out(
    student: NotebookNode, known: dict[str, NotebookNode]
) -> tuple[dict[str, Any], dict[str, list[Piece]], list[str]]:
    """Separate the assignment's cells from the student's own.

    Of several cells with one grade_id the last one counts, as in nbgrader; earlier solutions are
    run like cells of the student's own, since the last one may build on them.
    """
    cells = [c for c in student.get("cells", []) if isinstance(c, dict)]
    last = {grade_id_of(c): k for k, c in enumerate(cells) if grade_id_of(c) in known}
    theirs, own, duplicates = {}, defaultdict(list), []
    before = ""
    for number, cell in enumerate(cells):
        grade_id = grade_id_of(cell)
        if last.get(grade_id) == number:
            theirs[grade_id] = cell
            before = grade_id
            continue
        if grade_id in known:
            duplicates.append(grade_id)
            if not is_solution(known[grade_id]):
                continue
        if cell.get("cell_type") == "code":
            own[before].append(Piece(text_of(cell)))
    return theirs, own, duplicates


def _amiss(
    known: dict[str, NotebookNode],
    theirs: dict[str, Any],
    duplicates: list[str],
    first_text: dict[str, str],
) -> list[str]:
    missing = [i for i in known if i not in theirs]
    lost = [i for i in missing if is_solution(known[i])]
    restored = [i for i in missing if not is_solution(known[i]) and known[i].cell_type == "code"]
    edited = [
        i
        for i, cell in theirs.items()
        if not is_solution(known[i])
        and known[i].cell_type == "code"
        and text_of(cell).strip() != first_text.get(i, "").strip()
    ]
    other_type = [
        i
        for i, cell in theirs.items()
        if is_solution(known[i]) and cell.get("cell_type") != known[i].cell_type
    ]
    rows = (
        (lost, "Missing: {}."),
        (restored, "Deleted, and taken from the assignment: {}."),
        (edited, "Edited, and taken from the assignment: {}."),
        (other_type, "Of another type of cell than given: {}."),
        (list(dict.fromkeys(duplicates)), "There more than once, the last one counts: {}."),
    )
    return [sentence.format(", ".join(ids)) for ids, sentence in rows if ids]


def _bound(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement binds at the top of a cell."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
    else:
        targets = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
        yield from (n.id for n in targets if isinstance(n.ctx, ast.Store))
