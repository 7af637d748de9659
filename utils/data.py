"""The data of the lessons, read from ``data/`` or made from what scikit-learn ships.

Nothing is downloaded. A file that is missing or damaged is refused with one sentence that says
which file it is, what was expected, and how to restore it.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits as _sklearn_digits

FOLDER = Path(__file__).resolve().parent.parent / "data"
"""The repository's data folder."""


class DataError(ValueError):
    """A data file is missing, truncated or damaged."""


def load_iris(folder: Path | str = FOLDER / "iris") -> tuple[np.ndarray, np.ndarray]:
    """Load the Iris set in its one fixed random order.

    Parameters
    ----------
    folder : path, default ``data/iris``
        Where ``X_rand.dat`` and ``Y_rand.dat`` are.

    Returns
    -------
    X : ndarray of float32, shape (150, 4)
        Length and width of sepal and petal, in centimetres.
    Y : ndarray of float32, shape (150, 3)
        Species, one-hot: setosa, versicolor, virginica.

    Raises
    ------
    DataError
        If a file is missing, has a word where a number belongs, has another shape, or the rows of
        ``Y_rand.dat`` are not one-hot.
    """
    restore = "restore it with `python data/build_iris.py`"
    x = _load_table(Path(folder) / "X_rand.dat", (150, 4), restore)
    y = _load_table(Path(folder) / "Y_rand.dat", (150, 3), restore)
    if not (np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all()):
        path = Path(folder) / "Y_rand.dat"
        raise DataError(f"{path}: every row must be one-hot, with one 1 and two 0; {restore}.")
    return x, y


def load_digits(pixels: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Load the 1,797 handwritten digits that scikit-learn ships.

    Parameters
    ----------
    pixels : {8, 28}, default 8
        Side of an image. For 28 each image is repeated pixel by pixel to 24 x 24 and framed by
        two dark pixels: the size of MNIST's images, with the detail of 8 x 8.

    Returns
    -------
    images : ndarray of float32, shape (1797, pixels * pixels)
        Brightness from 0 to 1.
    labels : ndarray of int64, shape (1797,)
        0 to 9.

    Raises
    ------
    ValueError
        If `pixels` is neither 8 nor 28.
    """
    if pixels not in (8, 28):
        raise ValueError(f"load_digits: pixels={pixels}; 8 and 28 can be had")
    digits = _sklearn_digits()
    images = (digits.images / 16).astype(np.float32)
    if pixels == 28:
        images = np.pad(images.repeat(3, axis=1).repeat(3, axis=2), ((0, 0), (2, 2), (2, 2)))
    return images.reshape(len(images), -1), digits.target


def load_glove(
    vocab_size: int = 4000, folder: Path | str = FOLDER / "glove"
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Load how often words stand near each other in the entries of a dictionary, WordNet.

    Parameters
    ----------
    vocab_size : int, default 4000
        Keep the pairs of this many of the most frequent words: the same pairs and counts as if only
        these words had been looked for.
    folder : path, default ``data/glove``
        Where ``vocabulary.txt`` and ``cooccurrences.npz`` are.

    Returns
    -------
    words : list of str, length vocab_size
        Most frequent first; word number k is element k.
    pairs : ndarray of int32, shape (N, 2)
        Word numbers, target and context, in row order. Every pair is there both ways round.
    counts : ndarray of float32, shape (N,)
        How often the two stand within five words of each other, at distance d counted as 1/d.

    Raises
    ------
    DataError
        If a file is missing or damaged, or the two files do not belong together.
    ValueError
        If `vocab_size` is below 1 or above the number of words in the files.
    """
    restore = "restore it with `python data/build_glove.py`"
    path = Path(folder) / "cooccurrences.npz"
    arrays = _load_arrays(path, ("step", "sixtieths", "vocabulary_sha256"), restore)
    step, sixtieths, checksum = arrays
    words_path = Path(folder) / "vocabulary.txt"
    if not words_path.is_file():
        raise DataError(f"{words_path} is missing (one word and its count a line); {restore}.")
    lines = words_path.read_bytes()
    if hashlib.sha256(lines).digest() != checksum.tobytes():
        raise DataError(f"{words_path}: not the words that {path.name} counts; {restore}.")
    words = [line.split()[0] for line in lines.decode("ascii").splitlines()]
    if not 1 <= vocab_size <= len(words):
        raise ValueError(f"load_glove: vocab_size={vocab_size}; 1 to {len(words)} can be had")

    # The file holds the cells on and above the diagonal of a symmetric matrix.
    row, column = np.divmod(np.cumsum(step, dtype=np.int64) - 1, len(words))
    inside = column < vocab_size
    row, column, counts = row[inside], column[inside], sixtieths[inside] / 60
    mirror = row < column
    pairs = np.stack([np.r_[row, column[mirror]], np.r_[column, row[mirror]]], axis=1)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    counts = np.r_[counts, counts[mirror]]
    return words[:vocab_size], pairs[order].astype(np.int32), counts[order].astype(np.float32)


def _load_arrays(path: Path, names: tuple[str, ...], restore: str) -> list[np.ndarray]:
    """Read the named arrays of an .npz file, or raise DataError."""
    if not path.is_file():
        raise DataError(f"{path} is missing (arrays {', '.join(names)} expected); {restore}.")
    try:
        with np.load(path) as file:
            return [file[name] for name in names]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = " ".join(str(error).split()).strip("'\".")
        raise DataError(
            f"{path}: arrays {', '.join(names)} expected, but it cannot be read ({reason}); "
            f"{restore}."
        ) from None


def _load_table(path: Path, shape: tuple[int, int], restore: str) -> np.ndarray:
    """Read a text table of float32 and check its shape, or raise DataError."""
    rows, columns = shape
    expected = f"{rows} rows of {columns} numbers"
    if not path.is_file():
        raise DataError(f"{path} is missing ({expected} expected); {restore}.")
    try:
        table = np.loadtxt(path, dtype=np.float32, ndmin=2)
    except ValueError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(
            f"{path}: {expected} expected, but it cannot be read as numbers ({reason}); {restore}."
        ) from None
    if table.shape != shape:
        raise DataError(
            f"{path}: {expected} expected, {table.shape[0]} rows of {table.shape[1]} found; "
            f"{restore}."
        )
    if not np.isfinite(table).all():
        raise DataError(f"{path}: finite numbers expected, NaN or infinity found; {restore}.")
    return table
