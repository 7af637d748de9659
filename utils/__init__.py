"""Helpers shared by the notebooks, one idea a file.

Importing this package imports TensorFlow without its start-up messages. Import it first.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _stderr_discarded() -> Iterator[None]:
    """Send file descriptor 2 to nowhere: TensorFlow's C++ code does not write to sys.stderr."""
    saved = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(nowhere)
        os.close(saved)


# With oneDNN on, TensorFlow rounds differently from one processor to another.
# What the user has set is kept.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Some messages come before TensorFlow reads its log level ("Could not find cuda drivers").
with _stderr_discarded():
    import tensorflow  # noqa: F401
