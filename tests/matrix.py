"""Whether the lessons' outputs hold elsewhere: ``python tests/matrix.py``, behind ``make matrix``.

Runs nbval for lessons in environments that differ from the usual one in one thing: the version of
Python or of TensorFlow, the processor's instructions, the threads. Prints a table, and keeps it in
``build/matrix/matrix.csv`` together with the rows of earlier runs.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell
from tqdm import tqdm

from utils.run import LESSONS, ROOT, Refusal, find_lessons

BUILD = ROOT / "build" / "matrix"
TABLE = BUILD / "matrix.csv"
LESSON_SECONDS = 7200
DIGEST = """
import hashlib, sys
with open("digest", "w") as file:
    kinds = sys.modules["keras"].Model if "keras" in sys.modules else ()
    models = {k: v for k, v in globals().items() if isinstance(v, kinds)}
    weights = [w.tobytes() for k in sorted(models) for w in models[k].get_weights()]
    file.write(hashlib.sha256(b"".join(weights)).hexdigest() if weights else "")
"""
"""A last cell, for the bits behind the text: a digest of the weights of all models in sight."""


@dataclass(frozen=True)
class Environment:
    """What differs from the usual: the `.venv` of the repository, and no variable set."""

    python: str = ""
    tensorflow: str = ""
    variables: dict[str, str] = field(default_factory=dict)


def threads(count: int) -> Environment:
    names = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    return Environment(variables=dict.fromkeys(names, str(count)))


ENVIRONMENTS = {
    "default": Environment(),
    "onednn-on": Environment(variables={"TF_ENABLE_ONEDNN_OPTS": "1"}),
    "isa-avx2": Environment(variables={"ONEDNN_MAX_CPU_ISA": "AVX2"}),
    "isa-sse41": Environment(variables={"ONEDNN_MAX_CPU_ISA": "SSE41"}),
    "one-thread": threads(1),
    "two-threads": threads(2),
    **{f"tensorflow-2.{k}": Environment(tensorflow=f"2.{k}") for k in (18, 19, 20, 21)},
    **{f"python-3.{k}": Environment(python=f"3.{k}") for k in (10, 11, 12, 13)},
}


@dataclass
class Row:
    """One lesson in one environment.

    Attributes
    ----------
    text : str
        "same", "differs", or why there is no result.
    digest : str
        Of the weights; empty if the lesson leaves no model, or broke.
    differences : str
        The first numbers that differ, cell by cell (1 is the first code cell).
    """

    lesson: str
    environment: str
    text: str
    digest: str = ""
    differences: str = ""
    seconds: int = 0


def uv(*arguments: str, python: str = "") -> None:
    """Run uv, which never fetches a Python of its own."""
    own = {"UV_PYTHON_DOWNLOADS": "never"} | ({"PYENV_VERSION": python} if python else {})
    command = [str(Path(sys.executable).with_name("uv")), *arguments]
    subprocess.run(
        command, env=os.environ | own, cwd=ROOT, check=True, capture_output=True, text=True
    )


def make(name: str, environment: Environment) -> Path:
    """Make an environment once, and return its Python.

    The versions in constraints.txt are kept as far as another TensorFlow lets them be.

    Raises
    ------
    Refusal
        If this version of Python is not installed, or the packages cannot be.
    """
    if not (environment.python or environment.tensorflow):
        return Path(sys.executable)
    folder = BUILD / name
    python = folder / "venv" / "bin" / "python"
    pins = folder / "pins.txt"
    if pins.exists():
        return python
    version = environment.python or "{}.{}".format(*sys.version_info)
    try:
        uv("python", "find", "--no-project", "--system", version, python=version)
    except subprocess.CalledProcessError:
        raise Refusal("not installed") from None
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / "half.txt"
    shutil.copy(ROOT / "constraints.txt", half)
    wanted = folder / "wanted.in"
    wanted.write_text(
        f"-r {ROOT}/requirements-maintainer.txt\n"
        + (f"tensorflow=={environment.tensorflow}.*\n" if environment.tensorflow else "")
    )
    try:
        uv("venv", "--clear", "--python", version, str(folder / "venv"), python=version)
        uv("pip", "compile", "--python", str(python), str(wanted), "-o", str(half))
        uv("pip", "install", "--python", str(python), "-r", str(half))
    except subprocess.CalledProcessError as error:
        raise Refusal(f"not made: {error.stderr.strip().splitlines()[-1]}") from None
    half.rename(pins)
    return python


def differences(report: Path) -> str:
    """Name the cells that failed, and in each the first number that differs."""
    found = []
    for case in ET.parse(report).iter("testcase"):
        failure = case.find("failure")
        if failure is None:
            continue
        cell = int(case.get("name", "").split()[-1]) + 1
        found.append(f"cell {cell}: {first_difference(failure.text or '')}")
    return "; ".join(found)


def first_difference(message: str) -> str:
    """Find in nbval's message the first word that differs, as "stored -> here"."""
    lines = re.sub(r"(#x1B|\x1b)\[\d+m", "", message).splitlines()
    stored, here = (
        " ".join(line.strip()[2:] for line in lines if line.strip().startswith(sign)).split()
        for sign in ("+ ", "- ")
    )
    for old, new in zip(stored, here):
        if old != new:
            return f"{old} -> {new}"
    return "an error, or more or less output"


def check(lesson: Path, name: str) -> Row:
    """Run one lesson in one environment and compare its outputs with the stored ones."""
    environment = ENVIRONMENTS[name]
    row = Row(lesson.stem, name, "same")
    begin = time.perf_counter()
    try:
        python = make(name, environment)
    except Refusal as refusal:
        row.text = str(refusal)
        return row
    folder = BUILD / name / lesson.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    notebook = nbformat.read(lesson, as_version=4)
    notebook.cells.append(new_code_cell(DIGEST))  # nbval compares nothing in a cell never run
    nbformat.write(notebook, folder / lesson.name)
    command = [str(python), "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-o", "addopts="]
    command += ["--nbval", "--nbval-current-env", "--nbval-cell-timeout=1800", "-vv"]
    command += [f"--timeout={LESSON_SECONDS}", "--junitxml=report.xml", lesson.name]
    with (folder / "log").open("w") as log:
        own = os.environ | environment.variables
        done = subprocess.run(command, cwd=folder, env=own, stdout=log, stderr=log)
    row.seconds = round(time.perf_counter() - begin)
    if done.returncode > 1:
        row.text = f"did not run; see {folder.relative_to(ROOT)}/log"
        return row
    row.differences = differences(folder / "report.xml")
    row.text = "differs" if done.returncode else "same"
    if (folder / "digest").exists():
        row.digest = (folder / "digest").read_text()
    return row


def read_table() -> dict[tuple[str, str], Row]:
    """Read the rows of earlier runs, by lesson and environment."""
    if not TABLE.exists():
        return {}
    with TABLE.open(newline="") as file:
        rows = [Row(**row) for row in csv.DictReader(file)]  # type: ignore[arg-type]
    return {(row.lesson, row.environment): row for row in rows}


def write_table(rows: dict[tuple[str, str], Row]) -> None:
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows.values())


def verdict(row: Row, usual: Row | None) -> str:
    """Say "same bits" only if the weights behind the same text are the usual environment's."""
    if row.text == "same":
        bits = usual is not None and row.digest and row.digest == usual.digest
        return "same bits" if bits else "same text"
    return f"{row.text} ({row.differences})" if row.differences else row.text


def as_text(rows: dict[tuple[str, str], Row]) -> str:
    """Lay the table out, a line for each lesson and environment."""
    return "\n".join(
        f"{lesson:25} {name:16} {verdict(row, rows.get((lesson, 'default')))}"
        for (lesson, name), row in sorted(
            rows.items(), key=lambda item: (item[0][0], list(ENVIRONMENTS).index(item[0][1]))
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns 1 if a lesson's text differs somewhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lesson", default="", help="numbers of the lessons, all if left out")
    parser.add_argument("--environments", default="", help="names, all if left out")
    options = parser.parse_args(arguments)
    names = options.environments.split() or list(ENVIRONMENTS)
    try:
        lessons = find_lessons(options.lesson, LESSONS)
        for name in names:
            if name not in ENVIRONMENTS:
                known = ", ".join(ENVIRONMENTS)
                raise Refusal(f"There is no environment {name!r}; there are {known}.")
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return 2
    rows = read_table()
    for lesson, name in tqdm([(lesson, name) for lesson in lessons for name in names]):
        rows[lesson.stem, name] = check(lesson, name)
        write_table(rows)
    print(as_text(rows))
    return int(any(row.text == "differs" for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
