"""Typical wrong answers to the assignment 02_glove_repair."""

from __future__ import annotations

from assignments import Wrong

EXAMINE = """\
def examine(dataset, epochs=3):
    seen = walk(dataset, epochs)
    _, label = dataset.element_spec
    rank, rows = len(label.shape), sum(len(batch) for batch in seen[0])
    orders = len({tuple(row for batch in epoch for row in batch) for epoch in seen})
    packings = len({frozenset(frozenset(batch) for batch in epoch) for epoch in seen})
    return {"label rank": rank, "rows": rows, "orders": orders, "packings": packings}
"""

DATASET = """\
def dataset_with(repairs, pairs, counts, batch_size, seed):
    labels = counts[:, None] if "shape" in repairs else counts
    rows = tf.data.Dataset.from_tensor_slices(((pairs[:, 0], pairs[:, 1]), labels))
    n = len(counts)
    if "packing" in repairs:
        dataset = rows.shuffle(n, seed=seed).batch(batch_size)
    else:
        dataset = rows.batch(batch_size).shuffle(n, seed=seed)
    return dataset if "order" in repairs else dataset.cache()
"""

TRAIN = """\
def train(model, optimizer, loss, dataset, epochs):
    variables = model.trainable_variables
    optimizer.build(variables)
    mean_loss = keras.metrics.Mean()

    @tf.function(reduce_retracing=True)
    def train_step(inputs, count):
        with tf.GradientTape() as tape:
            prediction = model(inputs, training=True)
            batch_loss = loss(tf.reshape(count, tf.shape(prediction)), prediction)
        gradients = tape.gradient(batch_loss, variables)
        optimizer.apply_gradients(zip(gradients, variables))
        mean_loss.update_state(batch_loss, sample_weight=tf.shape(prediction)[0])

    losses = []
    for _ in range(epochs):
        mean_loss.reset_state()
        for inputs, count in dataset:
            train_step(inputs, count)
        losses.append(float(mean_loss.result()))
    return {"loss": losses}
"""

SHARES = """\
def shares(judge, repairs):
    choices = [c for k in range(len(repairs) + 1) for c in itertools.combinations(repairs, k)]
    loss = {frozenset(choice): judge(frozenset(choice)) for choice in choices}
    everything, nothing = frozenset(repairs), frozenset()
    way = loss[nothing] - loss[everything]

    def gain(repair, before):
        return (loss[before] - loss[before | {repair}]) / way

    table = {}
    for repair in repairs:
        orders = itertools.permutations(repairs)
        gains = [gain(repair, frozenset(o[: o.index(repair)])) for o in orders]
        alone, last = gain(repair, nothing), gain(repair, everything - {repair})
        fair = sum(gains) / len(gains)
        table[repair] = {"alone": alone, "last": last, "fair": fair}
    return table
"""

PLATEAU = """\
def half_mended_plateau(counts):
    x = counts.astype(np.float64)
    w, log = np.minimum((x / 100) ** 0.75, 1), np.log(x)
    constant = log.mean()
    return constant, w.mean() * log.var()
"""


def _changed(source: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return source


def _examine(*changes: tuple[str, str]) -> dict[str, str]:
    return {"task1_examine": _changed(EXAMINE, *changes)}


def _dataset(*changes: tuple[str, str]) -> dict[str, str]:
    return {"task2_dataset": _changed(DATASET, *changes)}


def _train(*changes: tuple[str, str]) -> dict[str, str]:
    return {"task3_train": _changed(TRAIN, *changes)}


def _shares(*changes: tuple[str, str]) -> dict[str, str]:
    return {"task4_shares": _changed(SHARES, *changes)}


def _plateau(*changes: tuple[str, str]) -> dict[str, str]:
    return {"task5_plateau": _changed(PLATEAU, *changes)}


WRONG = {
    # Task 1: examine.
    "batches compared in sequence": Wrong(
        _examine(("frozenset(frozenset(batch) for batch in epoch)", "tuple(map(tuple, epoch))")),
        {"task1_test_orders": 0, "task1_test_other": 0},
        "The same rows make the same batch, at whatever place in the epoch",
    ),
    "epochs counted instead of orders": Wrong(
        _examine(
            ("len({tuple(row for batch in epoch for row in batch) for epoch in seen})", "epochs")
        ),
        {"task1_test_orders": 0, "task1_test_other": 0},
        "You count epochs.",
    ),
    "only the first batch compared": Wrong(
        _examine(("row for batch in epoch for row in batch", "epoch[0]")),
        {"task1_test_other": 0},
        "Compare the rows of whole epochs",
    ),
    "rank of one label": Wrong(
        _examine(("len(label.shape)", "len(label.shape) - 1")),
        {"task1_test_shapes": 0, "task1_test_other": 0},
        "You give the rank of one label.",
    ),
    "rows of all epochs": Wrong(
        _examine(("for batch in seen[0]", "for epoch in seen for batch in epoch")),
        {"task1_test_shapes": 0, "task1_test_other": 0},
        "You count the rows of all epochs",
    ),
    # Task 2: the pipeline.
    "batched, then shuffled": Wrong(
        _dataset(
            ("rows.shuffle(n, seed=seed).batch(batch_size)", "rows.batch(batch_size).shuffle(n)")
        ),
        {"task2_test_packing": 0, "task2_test_order": 0, "task2_test_other": 0},
        "Shuffle rows, then make batches, not the other way round.",
    ),
    "buffer of 10,000 rows": Wrong(
        _dataset(("rows.shuffle(n,", "rows.shuffle(10_000,")),
        {"task2_test_packing": 0, "task2_test_other": 0},
        "Your buffer is smaller than the file",
    ),
    "last batch dropped": Wrong(
        _dataset(
            (".batch(batch_size)\n    else", ".batch(batch_size, drop_remainder=True)\n    else")
        ),
        {"task2_test_packing": 0, "task2_test_other": 0},
        "the smaller last batch is lost",
    ),
    "permuted once, beforehand": Wrong(
        _dataset(
            (
                "labels = counts",
                "order = np.random.default_rng(seed).permutation(len(counts))\n"
                '    if "packing" in repairs:\n'
                "        pairs, counts = pairs[order], counts[order]\n"
                "    labels = counts",
            ),
            ("rows.shuffle(n, seed=seed).batch(batch_size)", "rows.batch(batch_size)"),
        ),
        {"task2_test_order": 0, "task2_test_other": 0},
        "each epoch must have a new one",
    ),
    "pairs and counts mixed apart": Wrong(
        _dataset(
            (
                "labels = counts",
                "generator = np.random.default_rng(seed)\n"
                '    if "packing" in repairs:\n'
                "        pairs = generator.permutation(pairs)\n"
                "    labels = counts",
            ),
        ),
        {"task2_test_shape": 0, "task2_test_other": 0},
        "Pairs and counts have come apart",
    ),
    "shape always mended": Wrong(
        _dataset((' if "shape" in repairs else counts', "")),
        {"task2_test_shape": 0},
        'Change the shape for the repair "shape", and only for it.',
    ),
    "cache kept": Wrong(
        _dataset((' if "order" in repairs else dataset.cache()', ".cache()")),
        {"task2_test_order": 0, "task2_test_other": 0},
        'With "order" each epoch must have a new one',
    ),
    # Task 3: the loop.
    "labels as they come": Wrong(
        _train(("tf.reshape(count, tf.shape(prediction))", "count")),
        {"task3_test_training": 0, "task3_test_other": 0},
        "subtracts labels of shape (N,) from predictions of shape (N, 1)",
    ),
    "plain mean of the batches": Wrong(
        _train((", sample_weight=tf.shape(prediction)[0]", "")),
        {"task3_test_report": 0, "task3_test_other": 0},
        "lets the smaller last batch count as much as a full one",
    ),
    "metric never reset": Wrong(
        _train(("        mean_loss.reset_state()\n", "")),
        {"task3_test_report": 0, "task3_test_other": 0},
        "never resets its metric",
    ),
    "stranger's loop": Wrong(
        {"task3_train": "train = strangers_train\n"},
        {"task3_test_training": 0, "task3_test_report": 0, "task3_test_other": 0},
        "subtracts labels of shape (N,) from predictions of shape (N, 1)",
    ),
    # Task 4: shares.
    "alone and last swapped": Wrong(
        _shares(('"alone": alone, "last": last', '"alone": last, "last": alone')),
        {"task4_test_alone_last": 0},
        "You have swapped the two",
    ),
    "divided by the broken loss": Wrong(
        _shares(("loss[nothing] - loss[everything]", "loss[nothing]")),
        {"task4_test_alone_last": 0, "task4_test_fair": 0},
        "You divide by the loss of the broken loop.",
    ),
    "fair as the mean of alone and last": Wrong(
        _shares(("sum(gains) / len(gains)", "(alone + last) / 2")),
        {"task4_test_fair": 0},
        "You take the mean of alone and last.",
    ),
    "fair as the mean over choices": Wrong(
        _shares(
            (
                "sum(gains) / len(gains)",
                "np.mean([gain(repair, c) for c in loss if repair not in c])",
            )
        ),
        {"task4_test_fair": 0},
        "average over orders, not over choices",
    ),
    "judge asked again and again": Wrong(
        _shares(
            ("loss[before] - loss[before | {repair}]", "judge(before) - judge(before | {repair})")
        ),
        {"task4_test_calls": 0},
        "Ask once for each choice",
    ),
    # Task 5: the plateau.
    "constant of lesson 2": Wrong(
        _plateau(("log.mean()", "(w * log).sum() / w.sum()")),
        {"task5_test_constant": 0, "task5_test_loss": 0, "task5_test_other": 0},
        "You weigh the logs as lesson 2 does.",
    ),
    "each weight beside its own error": Wrong(
        _plateau(("w.mean() * log.var()", "np.mean(w * (log - constant) ** 2)")),
        {"task5_test_loss": 0, "task5_test_other": 0},
        "You multiply each weight by the error of its own row",
    ),
    "weights left out": Wrong(
        _plateau(("w.mean() * log.var()", "log.var()")),
        {"task5_test_loss": 0, "task5_test_other": 0},
        "You have left out the weights.",
    ),
    "log of the mean count": Wrong(
        _plateau(("log.mean()", "np.log(x.mean())")),
        {"task5_test_constant": 0, "task5_test_loss": 0, "task5_test_other": 0},
        "The log of the mean count is not the mean of the logs",
    ),
}
