"""Rebuild ``data/iris`` from scikit-learn's copy of the Iris set, byte for byte.

Run it from any folder: ``python data/build_iris.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

SEED = 0
FOLDER = Path(__file__).parent / "iris"


def build(folder: Path = FOLDER, seed: int = SEED) -> None:
    """Write ``X_rand.dat`` and ``Y_rand.dat``.

    Parameters
    ----------
    folder : Path
        Where to write; made if missing.
    seed : int
        Seed of the one random order, for NumPy's legacy generator, whose stream is frozen.
    """
    iris = load_iris()
    order = np.random.RandomState(seed).permutation(len(iris.target))
    one_hot = np.eye(3, dtype=int)[iris.target]
    folder.mkdir(parents=True, exist_ok=True)
    # Bytes, not text: the files are the same on Windows.
    with open(folder / "X_rand.dat", "wb") as file:
        np.savetxt(file, iris.data[order], fmt="%.1f")
    with open(folder / "Y_rand.dat", "wb") as file:
        np.savetxt(file, one_hot[order], fmt="%d")


if __name__ == "__main__":
    build()
    print(f"Wrote {FOLDER / 'X_rand.dat'} and {FOLDER / 'Y_rand.dat'}")
