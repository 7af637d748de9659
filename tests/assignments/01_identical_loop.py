"""Typical wrong answers to assignment 1."""

from __future__ import annotations

from assignments import Wrong

LOOP = """
def train(model, optimizer, loss, dataset, epochs):
    mean_loss, history = keras.metrics.Mean(), []
    for _ in range(epochs):
        mean_loss.reset_state()
        for batch in dataset:
            x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)
            with tf.GradientTape() as tape:
                prediction = model(x, training=True)
                value = loss(y, prediction, sample_weight=sample_weight)
                if model.losses:
                    value += sum(model.losses)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
            mean_loss.update_state(value, sample_weight=len(y))
        history.append(float(mean_loss.result()))
    return {"loss": history}
"""
"""A right answer; most wrong ones differ by a line or two."""

FIT = """
def train(model, optimizer, loss, dataset, epochs):
    model.compile(optimizer, loss)
    return model.fit(dataset, epochs=epochs, verbose=0).history
"""
STEPS = """
def first_difference(run_a, run_b):
    for step, (weights_a, weights_b) in enumerate(zip(run_a, run_b), start=1):
        for position, (a, b) in enumerate(zip(weights_a, weights_b)):
            if not {same}:
                return step, position
    return None
"""


def loop(*changes: tuple[str, str]) -> dict[str, str]:
    """Change lines of the right loop."""
    source = LOOP
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return {"task1_train": source}


def steps(same: str) -> dict[str, str]:
    """Compare two arrays in another way."""
    return {"task2_first_difference": STEPS.format(same=same)}


NO_POINTS_FOR_ALL = {"task1_test_all": 0.0}
NO_POINTS = dict.fromkeys(
    (f"task1_test_{name}" for name in ("mode", "penalties", "weights", "history", "all")), 0.0
)

WRONG = {
    "forgets training mode": Wrong(
        loop((", training=True", "")),
        {"task1_test_mode": 0.0} | NO_POINTS_FOR_ALL,
        "Your loop trains exactly as a loop that calls the model without `training=True` would. "
        "Read lesson 1, section ‘9. A harder model’.",
    ),
    "forgets the penalties": Wrong(
        loop(
            ("                if model.losses:\n", ""),
            ("                    value += sum(model.losses)\n", ""),
        ),
        {"task1_test_penalties": 0.0} | NO_POINTS_FOR_ALL,
        "Your loop trains exactly as a loop that leaves out `model.losses` would. "
        "Read lesson 1, section ‘9. A harder model’.",
    ),
    "adds one penalty by hand": Wrong(
        loop(
            ("if model.losses:", "if model.layers[0].kernel_regularizer:"),
            ("sum(model.losses)", "0.02 * tf.reduce_sum(model.layers[0].kernel ** 2)"),
        ),
        {"task1_test_penalties": 0.0} | NO_POINTS_FOR_ALL,
        "Your loop does not train as `fit` does",
    ),
    "leaves the sample weights out": Wrong(
        loop((", sample_weight=sample_weight)", ")")),
        {"task1_test_weights": 0.0} | NO_POINTS_FOR_ALL,
        "Your loop trains exactly as a loop that leaves out the sample weights would. "
        "Read lesson 4, section ‘Sample weights and class weights’.",
    ),
    "knows two parts of a batch only": Wrong(
        loop(
            ("x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(batch)", "x, y = batch"),
            (", sample_weight=sample_weight)", ")"),
        ),
        {"task1_test_weights": 0.0} | NO_POINTS_FOR_ALL,
        "too many values to unpack",
    ),
    "divides by the sum of the weights": Wrong(
        loop(
            (
                "value = loss(y, prediction, sample_weight=sample_weight)",
                "value = loss(y, prediction, sample_weight=sample_weight)\n"
                "                if sample_weight is not None:\n"
                "                    value *= len(y) / tf.reduce_sum(sample_weight)",
            )
        ),
        {"task1_test_weights": 0.0} | NO_POINTS_FOR_ALL,
        "a loop that divides by the sum of the sample weights instead of the number of rows would",
    ),
    "averages over batches": Wrong(
        loop(("value, sample_weight=len(y))", "value)")),
        {"task1_test_history": 0.0},
        "Your loop trains as `fit` does, but logs as a loop that lets the smaller last batch "
        "count as much as a full one would. "
        "Read lesson 5, section ‘Patient 11: off in the third digit’.",
    ),
    "never resets the mean": Wrong(
        loop(("        mean_loss.reset_state()\n", "")),
        {"task1_test_history": 0.0},
        "logs as a loop that never resets its metric would",
    ),
    "returns a list": Wrong(
        loop(('return {"loss": history}', "return history")),
        {"task1_test_history": 0.0},
        'Two epochs must give {"loss": [one number, another number]}.',
    ),
    "makes plain steps by hand": Wrong(
        loop(
            (
                "optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))",
                "for v, g in zip(variables, tape.gradient(value, variables)):\n"
                "                v.assign_sub(optimizer.learning_rate * g)",
            )
        ),
        NO_POINTS_FOR_ALL,
        "a loop that uses an optimizer of its own instead of the given one would",
    ),
    "calls fit": Wrong(
        {"task1_train": FIT},
        NO_POINTS,
        "This task asks for a loop of your own, without `fit`.",
    ),
    "compares roughly": Wrong(
        steps("np.allclose(a, b, equal_nan=True)"),
        {"task2_test_bits": 0.0},
        "Your function calls two numbers equal that are 1 ULP apart. "
        "Read lesson 1, section ‘6. Take the difference apart’.",
    ),
    "forgets that NaN is not NaN": Wrong(
        steps("(a == b).all()"),
        {"task2_test_bits": 0.0},
        "Your function finds a difference where both runs hold NaN: `==` never holds for NaN.",
    ),
    "takes the largest difference": Wrong(
        steps("np.abs(a.astype(float) - b).max() < 1e-9"),
        {"task2_test_bits": 0.0},
        "Your function calls two numbers equal because both are small",
    ),
    "overlooks one NaN": Wrong(
        steps("(~(np.isnan(a) | np.isnan(b)) & (a != b)).sum() == 0"),
        {"task2_test_bits": 0.0},
        "Your function overlooks a NaN that only one of the runs holds.",
    ),
    "counts steps from 0": Wrong(
        {"task2_first_difference": STEPS.replace(", start=1", "").format(same="(a == b).all()")},
        {"task2_test_plain": 0.0, "task2_test_bits": 0.0},
        "you say (2, 1). Steps count from 1, arrays from 0.",
    ),
}
