"""utils.data: the Iris files, their loader's refusals, and the digits."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from utils import data

IRIS = data.FOLDER / "iris"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the Iris files that a test may damage."""
    return Path(shutil.copytree(IRIS, tmp_path / "iris"))


def test_iris_is_scikit_learns_in_another_order() -> None:
    x, y = data.load_iris()
    assert x.shape == (150, 4) and y.shape == (150, 3)
    assert x.dtype == y.dtype == np.float32
    ours = sorted(map(tuple, np.column_stack([x, y.argmax(axis=1)])))
    iris = datasets.load_iris()
    theirs = sorted(map(tuple, np.column_stack([iris.data, iris.target]).astype(np.float32)))
    assert ours == theirs
    assert not (y.argmax(axis=1) == iris.target).all()
    for array, name in ((x, "X_rand.dat"), (y, "Y_rand.dat")):
        assert (array == np.loadtxt(IRIS / name, dtype=np.float32)).all()


def test_iris_is_rebuilt_byte_for_byte(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("build_iris", data.FOLDER / "build_iris.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.build(tmp_path)
    for name in ("X_rand.dat", "Y_rand.dat"):
        assert (tmp_path / name).read_bytes() == (IRIS / name).read_bytes()


def test_checksums_are_those_of_the_files() -> None:
    lines = (data.FOLDER / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split() for line in lines)}
    files = [p for p in data.FOLDER.glob("*/*") if p.is_file()]
    assert set(listed) == {p.relative_to(data.FOLDER).as_posix() for p in files}
    for name, digest in listed.items():
        assert hashlib.sha256((data.FOLDER / name).read_bytes()).hexdigest() == digest, name


def drop_last_line(path: Path) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def replace_first_number(text: str):
    def damage(path: Path) -> None:
        path.write_text(text + path.read_text()[path.read_text().index(" ") :])

    return damage


def two_ones_in_a_row(path: Path) -> None:
    """Move a 1 within its column, so that every column still has 50."""
    table = np.loadtxt(path)
    giver, taker = (int(np.flatnonzero(table[:, k])[0]) for k in (0, 1))
    table[giver, 0], table[taker, 0] = 0, 1
    np.savetxt(path, table)


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("X_rand.dat", Path.unlink, "is missing"),
        ("Y_rand.dat", Path.unlink, "is missing"),
        ("X_rand.dat", drop_last_line, "149 rows of 4 found"),
        ("X_rand.dat", replace_first_number("abc"), "cannot be read as numbers"),
        ("X_rand.dat", replace_first_number("nan"), "finite numbers expected"),
        ("Y_rand.dat", replace_first_number("1"), "must be one-hot"),
        ("Y_rand.dat", two_ones_in_a_row, "must be one-hot"),
        ("Y_rand.dat", lambda p: shutil.copy(p.parent / "X_rand.dat", p), "150 rows of 4 found"),
        ("X_rand.dat", lambda p: p.write_text("1 2 3\n4 5\n"), "cannot be read as numbers"),
    ],
)
def test_damaged_iris_is_refused_in_one_sentence(folder, name, damage, words) -> None:
    damage(folder / name)
    with pytest.raises(data.DataError) as refusal:
        data.load_iris(folder)
    message = str(refusal.value)
    assert name in message and words in message
    assert "python data/build_iris.py" in message
    assert "\n" not in message


def test_digits_at_both_sizes() -> None:
    small, labels = data.load_digits()
    large, same = data.load_digits(28)
    assert small.shape == (1797, 64) and large.shape == (1797, 784)
    assert (labels == same).all() and large.dtype == np.float32
    assert large.min() == 0 and large.max() == 1
    # Every pixel stands nine times, and the frame adds nothing.
    np.testing.assert_allclose(large.sum(axis=1), 9 * small.sum(axis=1), rtol=1e-5)
    image = large[0].reshape(28, 28)
    assert (image[2:5, 2:5] == small[0, 0]).all() and (image[:2] == 0).all()
    with pytest.raises(ValueError, match="8 and 28"):
        data.load_digits(16)
