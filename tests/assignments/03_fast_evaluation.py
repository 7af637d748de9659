"""Typical wrong answers to assignment 3."""

from __future__ import annotations

from assignments import Wrong

TRACES = """
def count_traces(calls):
    def signature(argument):
        if isinstance(argument, (list, tuple)):
            return (type(argument).__name__, *map(signature, argument))
        if tf.is_tensor(argument) or isinstance(argument, (np.ndarray, np.generic)):
            return ("tensor", tuple(argument.shape), tf.as_dtype(argument.dtype).name)
        return ("value", argument)

    return len({signature(arguments) for arguments in calls})
"""

EVALUATE = """
def make_evaluate(model):
    mean_loss, accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()
    confusion = tf.Variable(tf.zeros((10, 10), tf.int32))
    hardest = tf.Variable(0.0)

    @tf.function
    def step(x, y):
        prediction = model(x, training=False)
        losses = row_losses(y, prediction)
        mean_loss.update_state(losses)
        accuracy.update_state(y, prediction)
        confusion.assign_add(tf.math.confusion_matrix(y, tf.argmax(prediction, axis=1), 10))
        hardest.assign(tf.maximum(hardest, tf.reduce_max(losses)))

    def evaluate(batches):
        mean_loss.reset_state()
        accuracy.reset_state()
        confusion.assign(tf.zeros_like(confusion))
        hardest.assign(0.0)
        for x, y in batches:
            step(x, y)
        return {
            "loss": float(mean_loss.result()),
            "accuracy": float(accuracy.result()),
            "confusion": confusion.numpy(),
            "hardest": float(hardest),
        }

    return evaluate
"""

STEP = """
def make_step(model, optimizer):
    variables = model.trainable_variables
    optimizer.build(variables)

    @tf.function(reduce_retracing=True)
    def graph_step(x, y):
        with tf.GradientTape() as tape:
            loss = iris_loss(y, model(x, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    def step(x, y, rate):
        optimizer.learning_rate = rate
        return graph_step(x, y)

    return step
"""

EPOCH = """
def make_epoch(model, optimizer, loss, x, y, batch_size):
    x, y, variables = tf.constant(x), tf.constant(y), model.trainable_variables
    optimizer.build(variables)
    mean_loss = keras.metrics.Mean()

    @tf.function
    def epoch():
        mean_loss.reset_state()
        for first in tf.range(0, len(x), batch_size):
            rows, truth = x[first : first + batch_size], y[first : first + batch_size]
            with tf.GradientTape() as tape:
                value = loss(truth, model(rows, training=True))
            optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
            mean_loss.update_state(value, sample_weight=tf.shape(rows)[0])
        return mean_loss.result()

    return epoch
"""

GAIN = """
def gain(times, slow, fast, calls):
    def total(name, calls):
        return times.first[name] + (calls - 1) * times.median(name)

    steady = times.ratio(slow, fast)
    whole = total(slow, calls) / total(fast, calls)
    even = next((n for n in range(1, 1000) if total(fast, n) <= total(slow, n)), None)
    return {"steady": steady, "total": whole, "break even": even}
"""


def changed(grade_id: str, source: str, *changes: tuple[str, str]) -> dict[str, str]:
    """Change lines of a right answer."""
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return {grade_id: source}


def traces(*changes: tuple[str, str]) -> dict[str, str]:
    return changed("task1_count_traces", TRACES, *changes)


def evaluate(*changes: tuple[str, str]) -> dict[str, str]:
    return changed("task2_make_evaluate", EVALUATE, *changes)


def step(*changes: tuple[str, str]) -> dict[str, str]:
    return changed("task3_make_step", STEP, *changes)


def epoch(*changes: tuple[str, str]) -> dict[str, str]:
    return changed("task4_make_epoch", EPOCH, *changes)


def gain(*changes: tuple[str, str]) -> dict[str, str]:
    return changed("task5_gain", GAIN, *changes)


WRONG = {
    # Task 1: traces.
    "tensors counted by value": Wrong(
        traces(('("tensor", tuple(argument.shape), tf.as', '("tensor", str(argument), tf.as')),
        {"task1_test_tensors": 0.0, "task1_test_numpy": 0.0, "task1_test_nested": 0.0},
        "Tensors that differ in their values only share one trace.",
    ),
    "rank instead of shape": Wrong(
        traces(("tuple(argument.shape)", "len(argument.shape)")),
        {"task1_test_tensors": 0.0},
        "Each shape has a trace of its own",
    ),
    "dtype forgotten": Wrong(
        traces((", tf.as_dtype(argument.dtype).name", "")),
        {"task1_test_tensors": 0.0, "task1_test_numpy": 0.0, "task1_test_nested": 0.0},
        "The dtype is part of the signature.",
    ),
    "Python numbers by type": Wrong(
        traces(('("value", argument)', '("value", type(argument))')),
        {"task1_test_python": 0.0, "task1_test_nested": 0.0},
        "A Python number counts by its value",
    ),
    "NumPy numbers by value": Wrong(
        traces(
            (
                " or isinstance(argument, (np.ndarray, np.generic))",
                " or isinstance(argument, np.ndarray)",
            )
        ),
        {"task1_test_numpy": 0.0, "task1_test_nested": 0.0},
        "A single number of NumPy becomes a tensor, too",
    ),
    "asks tf.function": Wrong(
        {
            "task1_count_traces": """
def count_traces(calls):
    f = tf.function(lambda *arguments: 0)
    for arguments in calls:
        f(*arguments)
    return f.experimental_get_tracing_count()
"""
        },
        dict.fromkeys(
            (f"task1_test_{name}" for name in ("tensors", "python", "numpy", "nested")), 0.0
        ),
        "Predict it from the arguments alone",
    ),
    # Task 2: the evaluation.
    "left eager": Wrong(
        {
            "task2_make_evaluate": """
def make_evaluate(model):
    return lambda batches: slow_evaluate(model, batches)
"""
        },
        {"task2_test_again": 0.0, "task2_test_speed": 0.0},
        "it is not in a graph",
    ),
    "decorated anew in each call": Wrong(
        {
            "task2_make_evaluate": EVALUATE.replace("def make_evaluate(", "def make_once(")
            + """

def make_evaluate(model):
    return lambda batches: make_once(model)(batches)
"""
        },
        {"task2_test_again": 0.0, "task2_test_speed": 0.0},
        "the decorated function is made in each call",
    ),
    "plain mean of the batches": Wrong(
        evaluate(("update_state(losses)", "update_state(tf.reduce_mean(losses))")),
        {"task2_test_results": 0.0, "task2_test_again": 0.0, "task2_test_other": 0.0},
        "Your loss is the plain mean of the batches",
    ),
    "last batch dropped": Wrong(
        evaluate(
            (
                "for x, y in batches:",
                "for x, y in batches.unbatch().batch(32, drop_remainder=True):",
            )
        ),
        {"task2_test_results": 0.0, "task2_test_again": 0.0, "task2_test_other": 0.0},
        "Is the last batch lost?",
    ),
    "metrics never reset": Wrong(
        evaluate(("        mean_loss.reset_state()\n        accuracy.reset_state()\n", "")),
        {"task2_test_again": 0.0, "task2_test_other": 0.0},
        "In the second call: Your loss",
    ),
    "confusion turned over": Wrong(
        evaluate(
            (
                "confusion_matrix(y, tf.argmax(prediction, axis=1), 10)",
                "confusion_matrix(tf.argmax(prediction, axis=1), y, 10)",
            )
        ),
        {"task2_test_results": 0.0, "task2_test_again": 0.0, "task2_test_other": 0.0},
        "Your confusion is turned over",
    ),
    "hardest of the last batch": Wrong(
        evaluate(("tf.maximum(hardest, tf.reduce_max(losses))", "tf.reduce_max(losses)")),
        {"task2_test_results": 0.0, "task2_test_again": 0.0, "task2_test_other": 0.0},
        "Your hardest is",
    ),
    # Task 3: the step.
    "rate captured": Wrong(
        step(
            (
                "        optimizer.learning_rate = rate\n        return graph_step(x, y)",
                "        optimizer.rate = rate\n        return graph_step(x, y)",
            ),
            (
                "optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))",
                "optimizer.learning_rate = optimizer.rate\n"
                "        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))",
            ),
        ),
        {"task3_test_bits": 0.0, "task3_test_other": 0.0},
        "keeps the rate of the call in which it was traced",
    ),
    "rate set under the old name": Wrong(
        step(("optimizer.learning_rate = rate", "optimizer.lr = rate")),
        {"task3_test_bits": 0.0, "task3_test_other": 0.0},
        "never heeds the rate",
    ),
    "rate as a Python argument": Wrong(
        step(
            (
                "def graph_step(x, y):",
                "def graph_step(x, y, rate):\n        optimizer.learning_rate = rate",
            ),
            (
                "        optimizer.learning_rate = rate\n        return graph_step(x, y)",
                "        return graph_step(x, y, rate)",
            ),
        ),
        {"task3_test_traces": 0.0},
        "the rate goes into the graph as a Python number",
    ),
    "a trace for each shape": Wrong(
        step(("(reduce_retracing=True)", "")),
        {"task3_test_traces": 0.0},
        "each shape has its trace",
    ),
    "step left eager": Wrong(
        step(("    @tf.function(reduce_retracing=True)\n", "")),
        {"task3_test_traces": 0.0},
        "it is eager, or decorated anew in each call",
    ),
    # Task 4: the epoch.
    "epoch drops the smaller batch": Wrong(
        epoch(
            ("tf.range(0, len(x), batch_size)", "tf.range(0, len(x) - batch_size + 1, batch_size)")
        ),
        {"task4_test_weights": 0.0, "task4_test_losses": 0.0},
        "drops the last batch of every epoch",
    ),
    "plain mean over the epoch": Wrong(
        epoch((", sample_weight=tf.shape(rows)[0]", "")),
        {"task4_test_losses": 0.0},
        "lets the smaller last batch count as much as a full one",
    ),
    "unrolled": Wrong(
        epoch(("tf.range(0", "range(0")),
        {"task4_test_graph": 0.0},
        "the graph holds ten copies of it",
    ),
    "epoch left eager": Wrong(
        epoch(("    @tf.function\n", "")),
        {"task4_test_graph": 0.0},
        "it is not in a graph",
    ),
    "epoch loss never reset": Wrong(
        epoch(("        mean_loss.reset_state()\n", "")),
        {"task4_test_losses": 0.0},
        "never resets its metric",
    ),
    # Task 5: the gain.
    "medians divided": Wrong(
        gain(("times.ratio(slow, fast)", "times.median(slow) / times.median(fast)")),
        {"task5_test_other": 0.0},
        "You divide the medians.",
    ),
    "first calls left out": Wrong(
        gain(
            ("times.first[name] + (calls - 1) * times.median(name)", "calls * times.median(name)")
        ),
        {"task5_test_gain": 0.0, "task5_test_other": 0.0},
        "Your total leaves out the first calls",
    ),
    "one call too many": Wrong(
        gain(("(calls - 1) * ", "calls * ")),
        {"task5_test_gain": 0.0, "task5_test_other": 0.0},
        "One of the calls is the first.",
    ),
    "never is not thought of": Wrong(
        gain(
            (
                "if total(fast, n) <= total(slow, n)), None)",
                "if total(fast, n) <= total(slow, n)), 999)",
            )
        ),
        {"task5_test_other": 0.0},
        "The fast one has caught up after None call(s)",
    ),
}
