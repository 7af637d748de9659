"""Rebuild ``data/glove`` from the files of WordNet 3.0, byte for byte.

Run it from any folder: ``python data/build_glove.py [folder with data.noun and the others]``.
On Debian and Ubuntu the package ``wordnet-base`` puts the files into ``/usr/share/wordnet``.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

WORDNET = Path("/usr/share/wordnet")
SOURCES = {
    "data.noun": "fea17d2f9656611334eac790e5d69e47645fa180c4aa481fb4cd9b3520754ca2",
    "data.verb": "adcf43e35b581e8036d8b5a52d63d9cd3d3b4870b2720d3c03c799df44777bc2",
    "data.adj": "c89120dfc1f046ddff4a631bf9b7e9fa1a36b5e86565a23bf82dbe14f30b88a7",
    "data.adv": "444a63bf3955080ab7524f5079cfc07ff9bc682cb98bdb1db73b0fb9829f1139",
}
"""The files that are read, in this order, and the SHA-256 of each in ``wordnet-base`` 1:3.0-37."""

VOCAB_SIZE = 4000
WINDOW = 5
UNIT = 60
"""Counts are stored as whole numbers of 1/60: with a window of 5, 1/distance always is one."""

FOLDER = Path(__file__).parent / "glove"


def missing_sources(wordnet: Path = WORDNET) -> list[str]:
    """Name the WordNet files that are missing or of another version.

    Parameters
    ----------
    wordnet : Path
        The folder of ``data.noun``, ``data.verb``, ``data.adj`` and ``data.adv``.

    Returns
    -------
    list of str
        Empty if all four are there, with the bytes that ``SOURCES`` names.
    """
    return [
        name
        for name, checksum in SOURCES.items()
        if not (wordnet / name).is_file()
        or hashlib.sha256((wordnet / name).read_bytes()).hexdigest() != checksum
    ]


def entry(line: str) -> str:
    """Turn a line of a WordNet data file into a dictionary entry: the words, then the gloss.

    Parameters
    ----------
    line : str
        Offset, file number, part of speech, the number of words in hexadecimal; each word with a
        number after it; more fields; ``|`` and the gloss.

    Returns
    -------
    str
        For example ``"physical entity an entity that has physical existence"``.
    """
    fields, gloss = line.split("|", 1)
    _, _, _, count, *rest = fields.split()
    words = rest[: 2 * int(count, 16) : 2]
    # Adjectives may carry the place in which they stand: galore(ip).
    plain = [re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in words]
    return " ".join([*plain, gloss.strip()])


def read_entries(wordnet: Path = WORDNET) -> list[str]:
    """Read every dictionary entry of WordNet; the licence at the head of each file is left out."""
    return [
        entry(line)
        for name in SOURCES
        for line in (wordnet / name).read_text(encoding="ascii").splitlines()
        if not line.startswith(" ")
    ]


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words; an apostrophe inside a word belongs to it."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower())


def build_vocabulary(texts: Sequence[Sequence[str]], size: int) -> dict[str, int]:
    """Find the most frequent words.

    Parameters
    ----------
    texts : sequence of sequence of str
        The words of each text.
    size : int
        How many words to keep.

    Returns
    -------
    dict of str to int
        Word to number of occurrences, most frequent first; ties in alphabetical order.
    """
    counts = Counter(word for text in texts for word in text)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:size])


def cooccurrences(
    texts: Sequence[Sequence[str]], vocabulary: Sequence[str], window: int = WINDOW
) -> np.ndarray:
    """Count which words stand near which, a neighbour at distance d as 1/d.

    Words outside the vocabulary keep their places, so that a smaller vocabulary yields a sub-block
    of the matrix of a larger one. Windows do not reach from one text into the next.

    Parameters
    ----------
    texts : sequence of sequence of str
        The words of each text.
    vocabulary : sequence of str
        Word number k is element k.
    window : int, default 5
        Largest distance that counts, 1 to 5.

    Returns
    -------
    ndarray of int64, shape (len(vocabulary), len(vocabulary))
        Symmetric, in units of 1/60.
    """
    size = len(vocabulary)
    number = {word: k for k, word in enumerate(vocabulary)}
    gap = [-1] * window
    line = np.array([k for text in texts for k in [*(number.get(w, -1) for w in text), *gap]])
    matrix = np.zeros((size, size), np.int64)
    for distance in range(1, window + 1):
        left, right = line[:-distance], line[distance:]
        known = (left >= 0) & (right >= 0)
        cells = left[known] * size + right[known]
        counts = np.bincount(cells, minlength=size * size).reshape(size, size)
        matrix += (counts + counts.T) * (UNIT // distance)
    return matrix


def write(folder: Path, vocabulary: dict[str, int], matrix: np.ndarray) -> None:
    """Write ``vocabulary.txt`` and ``cooccurrences.npz``.

    Parameters
    ----------
    folder : Path
        Where to write; made if missing.
    vocabulary : dict of str to int
        Word to number of occurrences, in the order of the matrix.
    matrix : ndarray of int, shape (len(vocabulary), len(vocabulary))
        Symmetric, in units of 1/60.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{word} {count}\n" for word, count in vocabulary.items()).encode("ascii")
    (folder / "vocabulary.txt").write_bytes(lines)
    # The matrix is symmetric: the cells on and above the diagonal suffice. Steps from one filled
    # cell to the next, in row order, are small numbers, which compress well.
    cells = np.flatnonzero(np.triu(matrix))
    np.savez_compressed(
        folder / "cooccurrences.npz",
        step=np.diff(cells, prepend=-1).astype("<u4"),
        sixtieths=matrix.ravel()[cells].astype("<u4"),
        vocabulary_sha256=np.frombuffer(hashlib.sha256(lines).digest(), np.uint8),
    )


def build(folder: Path = FOLDER, wordnet: Path = WORDNET, vocab_size: int = VOCAB_SIZE) -> None:
    """Build the two files from WordNet.

    Parameters
    ----------
    folder : Path
        Where to write.
    wordnet : Path
        Where the WordNet files are.
    vocab_size : int
        How many of the most frequent words to keep.

    Raises
    ------
    FileNotFoundError
        If a WordNet file is missing or is not the one that the committed data was built from.
    """
    if missing := missing_sources(wordnet):
        raise FileNotFoundError(
            f"{wordnet}: {', '.join(missing)} missing or of another version than WordNet 3.0 in "
            "Debian's wordnet-base 1:3.0-37; install that package, or name its folder."
        )
    texts = [tokenize(text) for text in read_entries(wordnet)]
    vocabulary = build_vocabulary(texts, vocab_size)
    write(folder, vocabulary, cooccurrences(texts, list(vocabulary)))


if __name__ == "__main__":
    build(wordnet=Path(sys.argv[1]) if len(sys.argv) > 1 else WORDNET)
    print(f"Wrote {FOLDER / 'vocabulary.txt'} and {FOLDER / 'cooccurrences.npz'}")
