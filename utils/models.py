"""The models that more than one lesson trains."""

from __future__ import annotations

import keras


def iris_model(initializer: str = "ones", dtype: str = "float32") -> keras.Sequential:
    """Build ``Dense(8, relu)`` and ``Dense(3, softmax)`` for the four Iris measurements.

    Parameters
    ----------
    initializer : str, default "ones"
        Keras initializer of all kernels. Biases are ones with "ones", and zeros otherwise (the
        default of Keras).
    dtype : str, default "float32"
        Type of weights, inputs and outputs.

    Returns
    -------
    keras.Sequential
        Built for inputs of shape (batch, 4); returns probabilities of shape (batch, 3).
    """
    bias = "ones" if initializer == "ones" else "zeros"
    options = {"kernel_initializer": initializer, "bias_initializer": bias, "dtype": dtype}
    return keras.Sequential(
        [
            keras.Input((4,), dtype=dtype),
            keras.layers.Dense(8, activation="relu", **options),
            keras.layers.Dense(3, activation="softmax", **options),
        ]
    )
