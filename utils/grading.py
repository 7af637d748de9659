"""Grade submissions on all cores: ``python -m utils.grading FOLDER``.

Reads ``FOLDER/<student>/<assignment>/*.ipynb`` and writes, into ``build/grades/``, ``grades.csv``,
a page of feedback for each student, and the results, by which an interrupted run goes on. Exits
with 0 if all submissions were graded, 1 if some could not be, 2 if the request makes no sense.

A submission is run by a process of its own (grade_one.py), which is killed with all that it has
started. This process takes nothing from there but text.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
import psutil
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader.utils import determine_grade, is_grade
from tqdm.auto import tqdm

from utils import assignments, grade_one, submissions
from utils.grades import Row, Sheet, points_by_hand, write_page, write_table
from utils.run import ROOT, Refusal
from utils.submissions import Assembly, Piece, Submission, Unreadable

BUILD = ROOT / "build" / "grades"
MARK = "FIT_AND_TAPE_SUBMISSION"
"""Variable in the environment of all processes of a submission, by which they are found."""
KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TF_ENABLE_ONEDNN_OPTS")
"""What a student's code sees of the teacher's environment."""
LONGEST_RESULT = 50_000_000

GUARD = """\
import sys as _sys
from IPython import get_ipython as _shell
_sys.path.insert(0, {root!r})
for _name in [n for n in _sys.modules if n == "utils" or n.startswith("utils.")]:
    del _sys.modules[_name]
_shell().ast_transformers.clear()
"""
"""Goes before a test: the series' own modules are read anew, in case a cell has changed them."""


@dataclass(frozen=True)
class Limits:
    """What a submission may use.

    Attributes
    ----------
    cell_seconds : float
        For a cell of the student; a test may take three times as long, and all cells together ten
        times.
    output_bytes : int
        That a cell prints.
    memory_bytes : int
        Of address space; TensorFlow alone reserves three gigabytes and uses less than one.
    file_bytes : int
        Of each file that is written.
    """

    cell_seconds: float = 120
    output_bytes: int = 10_000_000
    memory_bytes: int = 5_000_000_000
    file_bytes: int = 100_000_000


@dataclass(frozen=True)
class Assignment:
    """An assignment as the grader needs it."""

    name: str
    source: NotebookNode
    release: NotebookNode

    @classmethod
    def read(cls, name: str, path: Path) -> Assignment:
        """Read an assignment's source and make its release."""
        source = assignments.read_source(path)
        try:
            submissions.givens(source)
        except SyntaxError as error:
            raise Refusal(f"Assignment {name}: a cell is no Python: {error}.") from error
        return cls(name, source, assignments.release(source, name))

    @functools.cached_property
    def tasks(self) -> dict[str, NotebookNode]:
        """The graded cells of the release, by grade_id."""
        return {submissions.grade_id_of(c): c for c in self.release.cells if is_grade(c)}

    @functools.cached_property
    def titles(self) -> dict[str, str]:
        """The heading above each graded cell, by grade_id; under an empty key the notebook's."""
        found, heading = {}, self.name
        for cell in self.source.cells:
            grade_id = submissions.grade_id_of(cell)
            if is_grade(cell):
                found[grade_id] = heading
            elif cell.cell_type == "markdown":
                lines = [x.strip("# ") for x in cell.source.splitlines() if x.startswith("#")]
                found.setdefault("", lines[0] if lines else self.name)
                heading = lines[-1] if lines else heading
        return found

    @functools.cached_property
    def first_text(self) -> dict[str, str]:
        """What students are given, by grade_id."""
        return {submissions.grade_id_of(c): c.source for c in self.release.cells}

    @functools.cached_property
    def givens(self) -> dict[str, str]:
        """What is put right before each test."""
        return submissions.givens(self.source)

    @functools.cached_property
    def version(self) -> str:
        """A hash of all that the grades depend on, besides the submission."""
        code = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
        return _digest(nbformat.writes(self.source).encode(), *code)


@dataclass
class Result:
    """What came out for one submission.

    Attributes
    ----------
    key : str
        Of the submission, the source and the grader: the same key gives the same result.
    graded : bool
    rows : list of Row
    written : dict of str to str
    notes : list of str
    fresh : bool
        Whether it was made in this run.
    """

    key: str
    graded: bool
    rows: list[Row]
    written: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    fresh: bool = True


class Broken(Exception):
    """The process that runs a submission came to no result; the message says why."""


# --- one submission -------------------------------------------------------------------------------


def grade_one_submission(
    submission: Submission, assignment: Assignment | None, results: Path, limits: Limits
) -> Result:
    """Grade a submission, or take its grade from an earlier run.

    Parameters
    ----------
    submission : Submission
    assignment : Assignment or None
        None if there is none of that name.
    results : Path
        Folder of the stored results.
    limits : Limits

    Returns
    -------
    Result
        Whatever the student has handed in: nothing is raised.
    """
    try:
        if assignment is None:
            raise Unreadable(f"There is no assignment {submission.assignment}.")
        content, notes = submissions.load(submission)
        key = _digest(assignment.version.encode(), repr(limits).encode(), content)
        stored = results / submission.student / f"{submission.assignment}.json"
        result = _stored(stored, key)
        if result is None:
            assembly = submissions.assemble(
                assignment.source, submissions.parse(content), assignment.first_text
            )
            assembly.notes[:0] = notes
            result = _graded(submission, assignment, assembly, limits, key)
            _store(stored, result)
        return result
    except (Unreadable, Broken) as error:
        return _ungraded(submission, assignment, str(error))
    except Exception as error:
        return _ungraded(submission, assignment, f"{type(error).__name__}: {error}")


def _graded(
    submission: Submission,
    assignment: Assignment,
    assembly: Assembly,
    limits: Limits,
    key: str,
) -> Result:
    outcomes = run(assembly.pieces, assignment.givens, limits)
    by_test = {
        piece.grade_id: _judge(k, assembly.pieces, outcomes, limits)
        for k, piece in enumerate(assembly.pieces)
        if piece.is_test
    }
    rows = []
    for grade_id, cell in assignment.tasks.items():
        if grade_id in by_test:
            points, maximum, reason = _points_of_test(cell, by_test[grade_id])
        else:
            points, maximum, reason = _points_of_answer(cell, assembly.written.get(grade_id, ""))
        rows.append(_row(submission, grade_id, points, maximum, reason, by_hand=points is None))
    notes = assembly.notes + _broken_cells(assembly.pieces, outcomes, limits)
    return Result(key, True, rows, assembly.written, notes)


def _points_of_test(cell: NotebookNode, complaint: str) -> tuple[float | None, float, str]:
    """Let nbgrader give the points. A number that a cell displays, or a warning, is no grade."""
    cell = nbformat.from_dict(cell)
    cell.outputs = [new_output("error", ename="", evalue="", traceback=[])] if complaint else []
    points, maximum = determine_grade(cell)
    return points, maximum, complaint


def _points_of_answer(cell: NotebookNode, answer: str) -> tuple[float | None, float, str]:
    cell = nbformat.from_dict(cell)
    if answer.strip() in ("", cell.source.strip()):
        return 0.0, float(cell.metadata.nbgrader.points), "Not answered."
    cell.source = answer
    points, maximum = determine_grade(cell)
    return points, maximum, ""


def _judge(number: int, pieces: list[Piece], outcomes: list[dict[str, Any]], limits: Limits) -> str:
    """Say why a test was not passed, in one or two sentences; nothing if it was."""
    outcome = outcomes[number]
    status, name, text = outcome["status"], outcome["name"], outcome["text"].strip()
    if status == grade_one.OK:
        return "" if outcome["finished"] else "The test did not run to its end."
    if status == grade_one.ERROR:
        if name == "Misconception":
            return text
        if name == "NotImplementedError":
            return f"Not written yet. {text}".strip()
        if name == "AssertionError":
            return text or "A check of this test failed."
        return f"The test stopped with {_error(outcome)}"
    if status == grade_one.NOT_RUN:
        return _why_not_run(pieces, outcomes)
    return f"The test {_ending(status, limits.cell_seconds * 3, limits)}."


def _ending(status: str, seconds: float, limits: Limits) -> str:
    return {
        grade_one.STOPPED: f"ran for more than {seconds:g} seconds and was stopped",
        grade_one.FLOOD: f"printed more than {limits.output_bytes / 1e6:g} MB and was stopped",
        grade_one.DEAD: "ended the kernel",
    }[status]


def _why_not_run(pieces: list[Piece], outcomes: list[dict[str, Any]]) -> str:
    """Blame the last cell that ran, unless it ended well."""
    ran = [(p, o) for p, o in zip(pieces, outcomes) if o["status"] != grade_one.NOT_RUN]
    if ran and ran[-1][1]["status"] != grade_one.OK:
        return f"Not run: {_called(ran[-1][0])} ended the kernel or could not be stopped."
    return "Not run: the kernel had ended, or the time for the whole notebook was over."


def _broken_cells(pieces: list[Piece], outcomes: list[dict[str, Any]], limits: Limits) -> list[str]:
    """Say which of the student's cells did not run."""
    notes = []
    for piece, outcome in zip(pieces, outcomes):
        status = outcome["status"]
        if piece.is_test or status in (grade_one.OK, grade_one.NOT_RUN):
            continue
        called = _called(piece)
        called = called[0].upper() + called[1:]
        if status != grade_one.ERROR:
            notes.append(f"{called} {_ending(status, limits.cell_seconds, limits)}.")
        elif outcome["name"] != "NotImplementedError":
            notes.append(f"{called} stopped with {_error(outcome)}")
    return notes


def _error(outcome: dict[str, Any]) -> str:
    """Name an error, without the name that IPython gives to a cell's file."""
    text = re.sub(r"\(\d+\.py, (line \d+)\)", r"(\1)", outcome["text"].strip())
    return f"{outcome['name'] or 'an error'}: {text}".rstrip(": .") + "."


def _called(piece: Piece) -> str:
    return f"the cell `{piece.grade_id}`" if piece.grade_id else "a cell of your own"


def _ungraded(submission: Submission, assignment: Assignment | None, reason: str) -> Result:
    tasks = assignment.tasks if assignment else {"": None}
    rows = [
        _row(
            submission,
            grade_id,
            None,
            float(cell.metadata.nbgrader.points) if cell else 0.0,
            reason,
            by_hand=False,
        )
        for grade_id, cell in tasks.items()
    ]
    return Result("", False, rows)


def _row(
    submission: Submission,
    task: str,
    points: float | None,
    maximum: float,
    reason: str,
    *,
    by_hand: bool,
) -> Row:
    names = submission.student, submission.assignment, task
    return Row(*names, points, maximum, by_hand, reason)


# --- running --------------------------------------------------------------------------------------


def run(pieces: list[Piece], givens: dict[str, str], limits: Limits) -> list[dict[str, Any]]:
    """Run the cells of a submission in a process of its own.

    Returns
    -------
    list of dict
        How each cell ended, as grade_one.py says it.

    Raises
    ------
    Broken
        If that process came to no result.
    """
    mark = secrets.token_hex(16)
    with (
        tempfile.TemporaryDirectory(prefix="grade", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as job,
        tempfile.TemporaryFile() as result,
    ):
        job.write(json.dumps(_job(pieces, givens, limits, folder, mark)).encode())
        job.seek(0)
        _running.add(mark)
        worker = subprocess.Popen(
            [sys.executable, "-I", grade_one.__file__],
            stdin=job,
            stdout=result,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=_environment(folder, mark),
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.wait(timeout=limits.cell_seconds * 10 + 180)
        finally:
            _kill(mark)
            _running.discard(mark)
            worker.wait()
        result.seek(0)
        return _outcomes(result.read(LONGEST_RESULT), len(pieces), worker.returncode)


_running: set[str] = set()
"""Marks of the submissions that are being run."""


def _job(
    pieces: list[Piece], givens: dict[str, str], limits: Limits, folder: str, mark: str
) -> dict[str, Any]:
    cells = []
    for piece in pieces:
        source, seconds, token = piece.source, limits.cell_seconds, ""
        if piece.is_test:
            token, seconds = secrets.token_hex(16), seconds * 3
            guard = GUARD.format(root=str(ROOT))
            source = "\n".join([guard, givens[piece.grade_id], source, f"print({token!r})"])
        cells.append({"source": source, "seconds": seconds, "token": token})
    return {
        "cells": cells,
        "folder": folder,
        "environment": _environment(folder, mark) | {"PYTHONPATH": str(ROOT)},
        "seconds": limits.cell_seconds * 10,
        "output_bytes": limits.output_bytes,
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
    }


def _environment(folder: str, mark: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    homes = dict.fromkeys(("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR"), folder)
    # Each core grades another student, so one thread each is best.
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), "1"
    )
    # The C library reserves address space for each core.
    return kept | homes | threads | {"MALLOC_ARENA_MAX": "2", "MPLBACKEND": "Agg", MARK: mark}


def _kill(mark: str) -> None:
    """Kill every process that a submission has started, however far it has run away."""
    for _ in range(20):
        found = [process for process in psutil.process_iter() if _has_mark(process, mark)]
        if not found:
            return
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, timeout=1)


def _has_mark(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):
        return False


def _outcomes(text: bytes, count: int, code: int) -> list[dict[str, Any]]:
    """Read what the process wrote; a student's code may have had a hand in it."""
    try:
        outcomes = json.loads(text)
        kinds = {"status": str, "name": str, "text": str, "finished": bool}
        for outcome in outcomes:
            if {name: type(value) for name, value in outcome.items()} != kinds:
                raise ValueError
        if len(outcomes) != count:
            raise ValueError
        return outcomes
    except (ValueError, TypeError, AttributeError, RecursionError):
        how = f"it ended with code {code}"
        if code < 0:
            how = f"it was killed by {signal.Signals(-code).name}"
        raise Broken(
            f"The process that ran this submission left no result ({how}). "
            "Grade it again; if it stays so, run the notebook by hand."
        ) from None


# --- results of earlier runs ----------------------------------------------------------------------


def _digest(*parts: bytes) -> str:
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def _stored(path: Path, key: str) -> Result | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["key"] != key:
            return None
        data["rows"] = [Row(**row) for row in data["rows"]]
        return Result(**data | {"fresh": False})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(path: Path, result: Result) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as half:
        json.dump(asdict(result), half)
    os.replace(half.name, path)


# --- all submissions ------------------------------------------------------------------------------


def grade(
    folder: Path,
    out: Path = BUILD,
    sources: Path = assignments.SOURCES,
    limits: Limits = Limits(),
    workers: int | None = None,
) -> int:
    """Grade all submissions in a folder, and write the table and the pages.

    Parameters
    ----------
    folder : Path
        Holds ``<student>/<assignment>/*.ipynb``.
    out : Path
        Gets ``grades.csv``, ``<student>.html`` and ``results/``.
    sources : Path
        Holds the sources of the assignments.
    limits : Limits
    workers : int, optional
        Submissions graded at the same time; by default as many as there are cores.

    Returns
    -------
    int
        0 if all submissions were graded, else 1.

    Raises
    ------
    Refusal
        If the folder holds no submission, or a source is not in order.
    """
    if not folder.is_dir():
        raise Refusal(f"SUBMISSIONS: there is no folder {folder}.")
    found = submissions.find(folder)
    if not found:
        raise Refusal(f"SUBMISSIONS: no notebook lies in {folder / '<student>' / '<assignment>'}.")
    known = {n: Assignment.read(n, p) for n, p in assignments.find_sources(sources).items()}
    out.mkdir(parents=True, exist_ok=True)
    by_hand = points_by_hand(out)

    def work(submission: Submission) -> Result:
        assignment = known.get(submission.assignment)
        return grade_one_submission(submission, assignment, out / "results", limits)

    results = _all(work, found, workers or _cores())
    for result in results:
        if not result.fresh:
            _take_over(result, by_hand)
    table = write_table((row for result in results for row in _with_notes(result)), out)
    _write_pages(found, results, known, out)
    return _summary(found, results, table)


def _all(
    work: Callable[[Submission], Result], found: list[Submission], workers: int
) -> list[Result]:
    """Do the work for every submission, several at a time, with a progress bar."""
    pool = ThreadPoolExecutor(workers)
    futures = [pool.submit(work, submission) for submission in found]
    try:
        for _ in tqdm(as_completed(futures), total=len(futures), desc="grading", unit=" sub"):
            pass
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        while not all(future.done() for future in futures):
            for mark in list(_running):
                _kill(mark)
            time.sleep(0.1)
        raise
    finally:
        pool.shutdown()


def _take_over(result: Result, by_hand: dict[tuple[str, str, str], str]) -> None:
    """Keep the points that the teacher has given to an answer that has not changed since."""
    for row in result.rows:
        text = by_hand.get((row.student, row.assignment, row.task))
        if row.task not in result.written or text is None:
            continue
        try:
            points = float(text)
        except ValueError:
            points = -1.0
        if 0 <= points <= row.maximum:
            row.points, row.needs_manual_grading = points, False
        else:
            row.reason = f"The points by hand, {text}, are none from 0 to {row.maximum:g}."


def _with_notes(result: Result) -> list[Row]:
    """Put what is to be said of the whole submission before the first reason."""
    first, *others = result.rows
    reason = " ".join([*result.notes, first.reason]).strip()
    return [replace(first, reason=reason), *others]


def _write_pages(
    found: list[Submission], results: list[Result], known: dict[str, Assignment], out: Path
) -> None:
    sheets: dict[str, list[Sheet]] = {}
    for submission, result in zip(found, results):
        assignment = known.get(submission.assignment)
        titles = assignment.titles if assignment else {}
        sheet = Sheet(
            titles.get("", submission.assignment),
            result.rows,
            titles,
            result.written,
            result.notes,
        )
        sheets.setdefault(submission.student, []).append(sheet)
    for student, theirs in sheets.items():
        write_page(student, theirs, out)


def _summary(found: list[Submission], results: list[Result], table: Path) -> int:
    bad = [(s, r.rows[0].reason) for s, r in zip(found, results) if not r.graded]
    old = sum(not result.fresh for result in results)
    waiting = sum(row.needs_manual_grading for result in results for row in result.rows)
    print(f"{len(found) - len(bad)} of {len(found)} submissions graded", end="")
    print(f", {old} of them in an earlier run" if old else "", end="")
    print(f"; {waiting} answers to be read; see {table}")
    for submission, reason in bad:
        print(f"{submission.student}/{submission.assignment}: {reason}", file=sys.stderr)
    return 1 if bad else 0


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of ``python -m utils.grading``."""
    parser = argparse.ArgumentParser(prog="python -m utils.grading", description=__doc__)
    parser.add_argument("submissions", help="folder with <student>/<assignment>/*.ipynb")
    parser.add_argument("--out", type=Path, default=BUILD, help="folder to write to")
    parser.add_argument("--sources", type=Path, default=assignments.SOURCES)
    parser.add_argument("--cell-seconds", type=float, default=Limits.cell_seconds)
    parser.add_argument("--workers", type=int, help="at the same time; by default one a core")
    options = parser.parse_args(arguments)
    # A polite end is an interruption too: what was started is to be killed.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not options.submissions:
            raise Refusal("Say where the submissions are: make grade SUBMISSIONS=folder")
        limits = Limits(cell_seconds=options.cell_seconds)
        folder = Path(options.submissions)
        return grade(folder, options.out, options.sources, limits, options.workers)
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on where it stopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
