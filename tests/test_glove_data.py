"""The GloVe data: its builder against values worked out by hand, its loader, and its refusals."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from utils.data import FOLDER, DataError, load_glove

GLOVE = FOLDER / "glove"
FILES = ("cooccurrences.npz", "vocabulary.txt")

_spec = importlib.util.spec_from_file_location("build_glove", FOLDER / "build_glove.py")
build_glove = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(build_glove)

# Two tiny texts. At distance 1 stand a-b, b-a, a-c and, in the second text, c-a; at distance 2 a-a
# and b-c; at distance 3 a-c. Nothing reaches from the first text into the second.
TEXTS = [["a", "b", "a", "c"], ["c", "a"]]
BY_HAND = np.array(
    [
        # a           b             c
        [2 * 60 / 2, 2 * 60, 2 * 60 + 60 / 3],  # a: a-a counts once for each of the two
        [2 * 60, 0, 60 / 2],  # b
        [2 * 60 + 60 / 3, 60 / 2, 0],  # c
    ]
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the committed files that a test may damage."""
    return Path(shutil.copytree(GLOVE, tmp_path / "glove"))


def refusal(folder: Path) -> str:
    """The message with which the loader refuses a folder."""
    with pytest.raises(DataError) as error:
        load_glove(folder=folder)
    return str(error.value)


# --- the builder, by hand


def test_counts_by_hand():
    assert (build_glove.cooccurrences(TEXTS, ["a", "b", "c"]) == BY_HAND).all()


def test_a_smaller_window_leaves_out_what_is_farther():
    near = build_glove.cooccurrences(TEXTS, ["a", "b", "c"], window=1)
    assert near.tolist() == [[0, 120, 120], [120, 0, 0], [120, 0, 0]]


def test_a_word_outside_the_vocabulary_keeps_its_place():
    # Without b: a ? a c, so a-a is at distance 2 and a-c at 1 and 3, as before.
    without_b = build_glove.cooccurrences(TEXTS, ["a", "c"])
    assert (without_b == BY_HAND[np.ix_([0, 2], [0, 2])]).all()


def test_a_smaller_vocabulary_is_a_sub_block():
    rng = np.random.default_rng(0)
    texts = [list(rng.choice(list("abcdefgh"), size)) for size in rng.integers(1, 30, 40)]
    words = list(build_glove.build_vocabulary(texts, 8))
    whole = build_glove.cooccurrences(texts, words)
    for size in (1, 3, 7):
        assert (build_glove.cooccurrences(texts, words[:size]) == whole[:size, :size]).all()


def test_most_frequent_words_first_and_ties_in_alphabetical_order():
    texts = [["z", "b", "a"], ["z", "c", "b"], ["a"]]
    vocabulary = build_glove.build_vocabulary(texts, 3)
    assert list(vocabulary.items()) == [("a", 2), ("b", 2), ("z", 2)]


def test_tokens_are_lower_case_letters_with_inner_apostrophes():
    text = "The Earth's 3 moons; 'tis a \"re-built\" ship's."
    tokens = ["the", "earth's", "moons", "tis", "a", "re", "built", "ship's"]
    assert build_glove.tokenize(text) == tokens


@pytest.mark.parametrize(
    "line, text",
    [
        ("01 03 n 01 entity 0 001 ~ 02 n 0000 | that which is  \n", "entity that which is"),
        ("01 00 s 02 galore(ip) 0 in_plenty 1 000 | much; more", "galore in plenty much; more"),
        # The number of words is hexadecimal.
        ("01 00 n 0b " + "w 0 " * 11 + "000 | x", "w w w w w w w w w w w x"),
    ],
)
def test_an_entry_is_its_words_and_its_gloss(line: str, text: str):
    assert build_glove.entry(line) == text


def test_build_refuses_a_folder_without_wordnet(tmp_path: Path):
    (tmp_path / "data.noun").write_text("another version")
    with pytest.raises(FileNotFoundError, match=r"data\.noun, data\.verb.*wordnet-base"):
        build_glove.build(tmp_path / "out", wordnet=tmp_path)
    assert not (tmp_path / "out").exists()


# --- written and read back


def test_loader_reads_what_the_builder_wrote(tmp_path: Path):
    vocabulary = build_glove.build_vocabulary(TEXTS, 3)
    assert list(vocabulary) == ["a", "c", "b"]
    matrix = build_glove.cooccurrences(TEXTS, list(vocabulary))
    build_glove.write(tmp_path, vocabulary, matrix)
    words, pairs, counts = load_glove(3, tmp_path)
    assert words == ["a", "c", "b"]
    assert pairs.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    expected = np.float32([1, 7 / 3, 2, 7 / 3, 0.5, 2, 0.5])
    assert counts.tolist() == expected.tolist()
    assert (pairs.dtype, counts.dtype) == (np.int32, np.float32)
    words, pairs, counts = load_glove(2, tmp_path)
    assert (words, pairs.tolist()) == (["a", "c"], [[0, 0], [0, 1], [1, 0]])


@pytest.mark.skipif(bool(build_glove.missing_sources()), reason="wordnet-base is not installed")
def test_rebuilding_yields_the_committed_bytes(tmp_path: Path):
    build_glove.build(tmp_path)
    vocabulary, counts = (tmp_path / "vocabulary.txt"), (tmp_path / "cooccurrences.npz")
    assert vocabulary.read_bytes() == (GLOVE / "vocabulary.txt").read_bytes()
    with zipfile.ZipFile(counts) as new, zipfile.ZipFile(GLOVE / "cooccurrences.npz") as old:
        assert new.namelist() == old.namelist()
        assert all(new.read(name) == old.read(name) for name in old.namelist())
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:  # zlib-ng compresses to other bytes
        assert counts.read_bytes() == (GLOVE / "cooccurrences.npz").read_bytes()


# --- the committed files


@pytest.mark.parametrize("name", FILES)
def test_checksums_are_on_record(name: str):
    sums = dict(re.findall(r"^(\w{64})  (.+)$", (FOLDER / "SHA256SUMS").read_text(), re.M))
    assert f"glove/{name}" in sums.values()
    assert sums[hashlib.sha256((GLOVE / name).read_bytes()).hexdigest()] == f"glove/{name}"


def test_all_pairs():
    words, pairs, counts = load_glove()
    assert len(words) == len(set(words)) == 4000 and words[:3] == ["the", "a", "of"]
    assert pairs.shape == (1_376_534, 2) and counts.shape == (1_376_534,)
    cells = pairs[:, 0].astype(np.int64) * 4000 + pairs[:, 1]
    assert (np.diff(cells) > 0).all()  # in row order, no pair twice
    assert counts.min() == np.float32(0.2)  # one neighbour at distance 5
    matrix = np.zeros((4000, 4000), np.float32)
    matrix[pairs[:, 0], pairs[:, 1]] = counts
    assert (matrix == matrix.T).all()


def test_fewer_words_are_the_sub_block():
    words, pairs, counts = load_glove()
    few_words, few_pairs, few_counts = load_glove(vocab_size=137)
    inside = (pairs < 137).all(axis=1)
    assert few_words == words[:137]
    assert (few_pairs == pairs[inside]).all() and (few_counts == counts[inside]).all()


# --- refusals


@pytest.mark.parametrize("vocab_size", [0, -1, 4001])
def test_refuses_a_size_that_cannot_be_had(vocab_size: int):
    with pytest.raises(ValueError, match=rf"vocab_size={vocab_size}; 1 to 4000 can be had"):
        load_glove(vocab_size)


@pytest.mark.parametrize("name", FILES)
def test_refuses_a_missing_file(copy: Path, name: str):
    (copy / name).unlink()
    message = refusal(copy)
    assert f"{name} is missing" in message and "python data/build_glove.py" in message


def test_refuses_words_that_do_not_belong_to_the_counts(copy: Path):
    path = copy / "vocabulary.txt"
    path.write_bytes(path.read_bytes().replace(b"the ", b"tho ", 1))
    message = refusal(copy)
    assert "vocabulary.txt: not the words that cooccurrences.npz counts" in message
    assert "python data/build_glove.py" in message


def test_refuses_a_shortened_vocabulary(copy: Path):
    path = copy / "vocabulary.txt"
    path.write_bytes(path.read_bytes()[:-100])
    assert "not the words" in refusal(copy)


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "flipped", "array missing"])
def test_refuses_damaged_counts(copy: Path, damage: str):
    path = copy / "cooccurrences.npz"
    content = bytearray(path.read_bytes())
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "text":
        path.write_text("version https://git-lfs.github.com/spec/v1\n")
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 3] ^= 255
        path.write_bytes(content)
    else:
        with np.load(path) as file:
            np.savez(path, step=file["step"], vocabulary_sha256=file["vocabulary_sha256"])
    message = refusal(copy)
    assert re.search(r"cooccurrences\.npz: .* cannot be read \(.+\)", message)
    assert "python data/build_glove.py" in message and "\n" not in message
