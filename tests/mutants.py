"""Plant every known fault and see it found: ``python tests/mutants.py``, or ``make mutants``.

A mutant is one small change to a copy of the repository. Each is run through the cheapest check
that should find it, and the same check is run on what is not changed:

- "test": a test file on a copy of ``utils``; the copies are tested in forked processes, which share
  one import of TensorFlow.
- "text": the tests of the numbers in the texts, in this process.
- "figure": the description of a figure; all mutants of a lesson's figures share one run of it.
- "claim": the claims of a lesson with small parameters; mutants that do not touch each other share
  a run.

Writes ``build/mutants.csv``. Exits non-zero if a mutant survives whose entry does not say why it
may, if one no longer applies, or if a check fails on what is not changed.
"""

from __future__ import annotations

import argparse
import csv
import gc
import multiprocessing
import os
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot  # noqa: F401  (once here, not once in every copy)
import mutant_tables as tables
import nbformat
import pytest
import test_mutants_01
import test_mutants_02
import test_mutants_03
import test_mutants_04
import test_parity_mutants
from conftest import SMALL, claims_after, plant, shrink
from mutant_tables import Mutant
from nbclient import NotebookClient
from test_texts import CITED, SOURCED, miscited, unprinted

from utils import run
from utils.claims import Claim

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "mutants.csv"
SECONDS = 300
"""A check that runs longer has found something."""
WORKERS = min(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Result:
    """What became of a mutant: the check that found it, or nothing."""

    mutant: Mutant
    kind: str
    found_by: str
    seconds: float
    trouble: str = ""

    @property
    def verdict(self) -> str:
        """One of "found", "survived", "equivalent" and "trouble"."""
        if self.trouble:
            return "trouble"
        if self.found_by:
            return "found"
        return "equivalent" if self.mutant.equivalent else "survived"


# --- tests of utils -------------------------------------------------------------------------------


def copy_repository(folder: Path) -> None:
    """Copy what the tests of `utils` read; the large folders are linked."""
    for name in ("utils", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("data", "notebooks", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)


def outcome_of_test(job: tuple[Mutant | None, str]) -> tuple[int, float, str]:
    """Run a test on a changed copy, in a process of its own: exit code, seconds, output."""
    mutant, check = job
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_repository(folder)
        if mutant:
            changed = folder / mutant.where
            source = changed.read_text(encoding="utf-8")
            if source.count(mutant.old) != 1:
                count = source.count(mutant.old)
                return -1, 0.0, f"{mutant.old!r} stands in {count} places of {mutant.where}"
            changed.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        code = _pytest_on(folder, check)
        said = (folder / "said").read_text(encoding="utf-8", errors="replace")
    return code, time.perf_counter() - start, said


def _pytest_on(folder: Path, check: str) -> int:
    for name in list(sys.modules):
        if name.split(".")[0] in ("utils", "conftest") or name.startswith("test_"):
            del sys.modules[name]
    ours = {str(ROOT), str(ROOT / "tests")}
    sys.path = [str(folder)] + [path for path in sys.path if path not in ours]
    os.environ["PYTHONPATH"] = str(folder)
    os.chdir(folder)
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    file, *options = shlex.split(check)
    # Only the plug-in that the tests need: loading the others takes longer than most tests.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    plain = ["-p", "pytest_timeout", "-p", "no:cacheprovider", "-p", "no:unraisableexception"]
    arguments = [*plain, "-o", "addopts=", "-x", "-q", f"--timeout={SECONDS}", *options]
    code = int(pytest.main([*arguments, f"tests/{file}"]))
    sys.stdout.flush()
    return code


def by_tests(mutants: Sequence[Mutant]) -> Iterator[Result]:
    """Run the tests on what is not changed, then on each mutant."""
    if not mutants:
        return
    checks = sorted({mutant.check for mutant in mutants})
    jobs = [(None, check) for check in checks] + [(m, m.check) for m in mutants]
    gc.freeze()  # what is imported by now is not looked through again in every process
    with multiprocessing.get_context("fork").Pool(WORKERS, maxtasksperchild=1) as pool:
        outcomes = pool.imap(outcome_of_test, jobs)
        sound = {}
        for (mutant, check), (code, seconds, said) in zip(jobs, outcomes):
            if mutant is None:
                sound[check] = code == 0
                print(f"  {check}: {'passes' if code == 0 else said} ({seconds:.0f} s)", flush=True)
                continue
            trouble = "" if sound[check] else f"{check} fails on what is not changed"
            if code not in (0, 1):
                trouble = " ".join(said.split())[-300:]
            yield Result(mutant, "test", check if code == 1 else "", seconds, trouble)


# --- texts ----------------------------------------------------------------------------------------


def by_texts(mutants: Iterable[Mutant]) -> Iterator[Result]:
    """Check the numbers of a changed text."""
    for mutant in mutants:
        start = time.perf_counter()
        notebook = nbformat.read(run.LESSONS / f"{mutant.where}.ipynb", as_version=4)
        places = [cell for cell in notebook.cells if mutant.old in cell.source]
        if len(places) != 1 or places[0].source.count(mutant.old) != 1:
            trouble = f"{mutant.old!r} stands in {len(places)} cells"
            yield Result(mutant, "text", "", 0.0, trouble)
            continue
        places[0].source = places[0].source.replace(mutant.old, mutant.new)
        found = unprinted(notebook, SOURCED[mutant.where])
        found += miscited(notebook, CITED.get(mutant.where, []))
        by = "test_texts.py" if found else ""
        yield Result(mutant, "text", by, time.perf_counter() - start)


# --- figures --------------------------------------------------------------------------------------


def with_figures_changed(lesson: str, mutants: Sequence[Mutant]) -> nbformat.NotebookNode:
    """The lesson with small parameters, and before each changed cell the cell as it was changed."""
    notebook = nbformat.read(run.LESSONS / f"{lesson}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.metadata.pop("mutant", None)
    unchanged = nbformat.from_dict(notebook)
    for number, mutant in enumerate(mutants):
        changed = nbformat.from_dict(unchanged)
        plant(changed, mutant.old, mutant.new)
        pairs = zip(unchanged.cells, changed.cells)
        (place,) = (k for k, (a, b) in enumerate(pairs) if a.source != b.source)
        copy = nbformat.v4.new_code_cell(changed.cells[place].source)
        # An error in it is a find; the cells after it go on.
        copy.metadata.update(mutant=number, tags=["raises-exception"])
        original = next(c for c in notebook.cells if c.id == unchanged.cells[place].id)
        notebook.cells.insert(notebook.cells.index(original), copy)
    shrink(notebook, SMALL[lesson])
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return notebook


def shown(cell: nbformat.NotebookNode) -> list[str]:
    """The descriptions of the figures below a cell, or the error."""
    return [
        output.get("ename") or output.data["text/plain"]
        for output in cell.outputs
        if output.output_type == "error" or "image/png" in output.get("data", {})
    ]


def by_figures(lesson: str, mutants: Sequence[Mutant]) -> list[Result]:
    """Run a lesson once with all mutants of its figures."""
    start = time.perf_counter()
    notebook = with_figures_changed(lesson, mutants)
    execute(notebook)
    seconds = (time.perf_counter() - start) / max(1, len(mutants))
    results: list[Result] = []
    right: list[str] = []
    for cell in reversed(notebook.cells):
        if "mutant" not in cell.metadata:
            right = shown(cell)
            continue
        mutant = mutants[cell.metadata["mutant"]]
        trouble = "" if right else "the cell shows no figure"
        by = "description" if shown(cell) != right else ""
        results.append(Result(mutant, "figure", by, seconds, trouble))
    return results


def execute(notebook: nbformat.NotebookNode) -> None:
    """Execute a notebook in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook,
            timeout=600,
            startup_timeout=300,
            kernel_name="python3",
            extra_arguments=list(run.KERNEL_ARGUMENTS),
            resources=resources,
        ).execute()


# --- claims ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LessonRun:
    """A run of a lesson with faults that do not touch each other, and what each must turn red."""

    claims: Callable[[], dict[str, Claim]]
    mutants: list[tuple[Mutant, set[str]]]


def lesson_run(
    lesson: str, faults: Sequence[tuple[Mutant, set[str]]], until: str = ""
) -> LessonRun:
    """A run by papermill with small parameters."""

    def claims() -> dict[str, Claim]:
        pairs = [(mutant.old, mutant.new) for mutant, _ in faults]
        with tempfile.TemporaryDirectory() as folder:
            return claims_after(Path(folder), lesson, *pairs, until=until)

    return LessonRun(claims, list(faults))


def lesson_runs() -> Iterator[LessonRun]:
    """All runs of lessons with faults: those of the tests, and those of the table."""

    def fault(lesson: str, old: str, new: str, what: str = "") -> Mutant:
        return Mutant(
            what or f"{old.splitlines()[0]} -> {new.splitlines()[0] if new else ''}",
            lesson,
            old,
            new,
        )

    first = test_mutants_01
    for what, (old, new, red, until) in first.FAULTS.items():
        yield lesson_run(first.LESSON, [(fault(first.LESSON, old, new, what), red)], until)
    second = test_mutants_02
    for faults, until in ((second.FAULTS, ""), (second.MAIN_RUNS, "fixed-identical")):
        rows = [(fault(second.LESSON, o, n, what), red) for what, (o, n, red) in faults.items()]
        yield lesson_run(second.LESSON, rows, until)
    third = test_mutants_03
    for name in ("slow", "wrong"):
        rows = [(r, o, n) for r, o, n in third.FAULTS[name] if r]
        made = [(fault(third.LESSON.stem, o, n), set(r.split())) for r, o, n in rows]
        yield LessonRun(lambda name=name: third.execute(name), made)
    fourth = test_mutants_04
    for name in ("around", "step"):
        rows = [
            (fault(fourth.LESSON.stem, f.old, f.new, f"{f.marker} {f.old.splitlines()[0]}"), f.red)
            for f in fourth.RUNS[name][1]
        ]
        made = [(mutant, set(red.split())) for mutant, red in rows]
        yield LessonRun(lambda name=name: fourth.execute(name), made)
    fifth = test_parity_mutants
    table = fifth.HEALTHY_FOR_SICK | fifth.SICK_FOR_MENDED | fifth.OTHERS
    yield lesson_run(fifth.LESSON, [(fault(fifth.LESSON, *f), {red}) for red, f in table.items()])
    for (lesson, _), mutants in tables.by_run(tables.LESSONS).items():
        yield lesson_run(lesson, [(mutant, set(mutant.check.split())) for mutant in mutants])


def by_claims(lesson: LessonRun) -> list[Result]:
    """Run a lesson with its faults; each is found if a claim of its own has turned red."""
    start = time.perf_counter()
    claims = lesson.claims()
    seconds = (time.perf_counter() - start) / len(lesson.mutants)
    red = {name for name, claim in claims.items() if claim.holds is False}
    return [
        Result(mutant, "claim", ", ".join(sorted(red & expected)), seconds)
        for mutant, expected in lesson.mutants
    ]


def by_lessons(only: str) -> Iterator[Result]:
    """Run the lessons with `only` in their name, two at a time."""
    figures = tables.by_lesson([m for m in tables.FIGURES if only in m.where])
    runs = [run for run in lesson_runs() if only in run.mutants[0][0].where]
    jobs = [(lambda k=k, v=v: by_figures(k, v), v) for k, v in figures.items()]
    jobs += [(lambda run=run: by_claims(run), [m for m, _ in run.mutants]) for run in runs]
    with ThreadPoolExecutor(WORKERS) as pool:
        for future, mutants in [(pool.submit(job), mutants) for job, mutants in jobs]:
            try:
                yield from future.result()
            except Exception:
                trouble = " ".join(traceback.format_exc().split())[-300:]
                yield from (Result(mutant, "claim", "", 0.0, trouble) for mutant in mutants)


# --- the report -----------------------------------------------------------------------------------


def report(results: Sequence[Result], seconds: float, path: Path) -> int:
    """Write and print the table; 0 if every mutant is found or may survive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ("verdict", "kind", "found by", "seconds", "where", "what", "old", "new", "note")
        )
        for r in results:
            note = r.trouble or r.mutant.equivalent
            row = (r.verdict, r.kind, r.found_by, f"{r.seconds:.1f}", r.mutant.where, r.mutant.what)
            writer.writerow((*row, r.mutant.old, r.mutant.new, note))
    print(
        f"\n{'check':10}{'mutants':>8}{'found':>7}{'may survive':>13}{'survived':>10}{'s each':>8}"
    )
    for kind in dict.fromkeys(r.kind for r in results):
        some = [r for r in results if r.kind == kind]
        count = Counter(r.verdict for r in some)
        mean = sum(r.seconds for r in some) / len(some)
        print(
            f"{kind:10}{len(some):8}{count['found']:7}{count['equivalent']:13}"
            f"{count['survived'] + count['trouble']:10}{mean:8.1f}"
        )
    for r in results:
        if r.verdict != "found":
            why = r.trouble or r.mutant.equivalent
            print(f"{r.verdict}: {r.mutant.where}: {r.mutant.what}. {why}")
    bad = sum(r.verdict in ("survived", "trouble") for r in results)
    print(f"{len(results)} mutants, {bad} not accounted for, {seconds:.0f} s; table in {path}")
    return 1 if bad else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Plant every known fault and see it found.")
    parser.add_argument("--fast", action="store_true", help="texts, and tests that train nothing")
    parser.add_argument("--only", default="", help="only mutants of places with this in their name")
    parser.add_argument("--report", type=Path, default=REPORT, help="where the table is written")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    results: list[Result] = []
    chosen = [m for m in tables.UTILS if options.only in m.where]
    if options.fast:
        chosen = [m for m in chosen if m.check.split()[0] in tables.FAST]

    def add(found: Iterable[Result]) -> None:
        for result in found:
            results.append(result)
            print(f"{result.verdict:10} {result.mutant.where}: {result.mutant.what}", flush=True)
            if result.trouble:
                print(f"  {result.trouble}", flush=True)

    add(by_texts(m for m in tables.TEXTS if options.only in m.where))
    add(by_tests(chosen))  # before TensorFlow has started its threads, which do not survive a fork
    if not options.fast:
        add(by_lessons(options.only))
    return report(results, time.perf_counter() - start, options.report)


if __name__ == "__main__":
    sys.exit(main())
