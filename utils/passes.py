"""The passes over a dataset: which batches each epoch of a loop would get."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf


class Passes:
    """The passes over a dataset, read one after the other as they are asked for.

    Parameters
    ----------
    dataset : tf.data.Dataset
    """

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self._dataset = dataset
        self._read: list[list[Any]] = []

    def __getitem__(self, number: int) -> list[Any]:
        """Return the batches of a pass, numbered from 0."""
        while len(self._read) <= number:
            self._read.append(list(self._dataset))
        return self._read[number]


def same(a: list[Any], b: list[Any]) -> bool:
    """Whether two passes hold the same batches in the same order."""
    if len(a) != len(b):
        return False
    pairs = zip(tf.nest.flatten(a), tf.nest.flatten(b))
    return all(x.shape == y.shape and np.array_equal(x.numpy(), y.numpy()) for x, y in pairs)


@contextmanager
def shuffle_does_nothing() -> Iterator[None]:
    """Make ``Dataset.shuffle`` return the dataset as it is."""
    shuffle = tf.data.Dataset.shuffle
    tf.data.Dataset.shuffle = lambda self, *args, **kwargs: self
    try:
        yield
    finally:
        tf.data.Dataset.shuffle = shuffle
