"""Typical wrong answers to `04_train_step`: the solutions with one line or two gone wrong."""

from __future__ import annotations

from functools import partial

from assignments import Wrong
from assignments import changed as changed_in

changed = partial(changed_in, "04_train_step")


def lost(task: int, *tests: str) -> dict[str, float]:
    """No points in these test cells of a task."""
    return {f"task{task}_test_{test}": 0.0 for test in tests}


TRACKED = "        self.metrics[0].update_state(loss, sample_weight=tf.shape(x)[0])\n"
APPLIED = "        self.optimizer.apply_gradients(zip(total, self.trainable_variables))\n"
SHARED = "mean * tf.cast((cut.stop - cut.start) / rows, mean.dtype)"
WITH_WEIGHTS = "p, None if w is None else w[cut])"
BY_HAND = """mean = tf.reduce_mean(
                    cross_entropy("none")(y[cut], p, None if w is None else w[cut])
                ) + sum(self.losses)"""
UNEVEN = ("uneven", "training", "few_rows", "other_optimizer", "scaled")

WRONG: dict[str, Wrong] = {
    # --- task 1
    "the old name of the rate": Wrong(
        changed("task1", ("self.optimizer.learning_rate =", "self.optimizer.lr =")),
        lost(1, "warm_up", "training"),
        "makes a new attribute that nobody reads",
    ),
    "a warm-up that begins at zero": Wrong(
        changed("task1", ("(done + 1.0)", "done")),
        lost(1, "warm_up", "training", "more"),
        "The rate of your first step is 0",
    ),
    "a test step that updates no mean": Wrong(
        changed("task1", ("training=False)\n" + TRACKED, "training=False)\n")),
        lost(1, "evaluate"),
        "computes, and updates nothing",
    ),
    "a loss mean over batches": Wrong(
        changed("task1", (TRACKED, "        self.metrics[0].update_state(loss)\n")),
        lost(1, "training"),
        "lets the smaller last batch count as much as a full one",
    ),
    "a test step without weights": Wrong(
        changed("task1", ("p, w, training=False)", "p, training=False)")),
        lost(1, "evaluate"),
        "leaves the sample weights out of the loss",
    ),
    "the old step scales no loss": Wrong(
        changed("task1", ("self.optimizer.scale_loss(loss)", "loss")),
        lost(1, "more"),
        "your update is 1024 times too short",
    ),
    "metrics of the training without weights": Wrong(
        changed("task1", ("compute_metrics(x, y, p, w)", "compute_metrics(x, y, p)")),
        lost(1, "more"),
        "Your `train_step` leaves the sample weights out of the metrics",
    ),
    # --- task 2
    "every piece counts the same": Wrong(
        changed("task2", (SHARED, "mean / self.pieces")),
        lost(2, *UNEVEN),
        "lets every piece count the same",
    ),
    "gradients added up without shares": Wrong(
        changed("task2", (SHARED, "mean")),
        lost(2, "one_step", *UNEVEN),
        "as if each were the whole batch",
    ),
    "an update for every piece": Wrong(
        changed(
            "task2",
            ("total = [t + g for t, g in zip(total, gradients)]", "total = gradients"),
            (
                "            loss, predictions = loss + part, [*predictions, p]\n" + APPLIED,
                "            loss, predictions = loss + part, [*predictions, p]\n    " + APPLIED,
            ),
        ),
        lost(2, "one_step", *UNEVEN),
        "4 updates for one batch",
    ),
    "gradients replaced": Wrong(
        changed(
            "task2", ("total = [t + g for t, g in zip(total, gradients)]", "total = gradients")
        ),
        lost(2, "one_step", *UNEVEN),
        "Only the last piece reaches the update",
    ),
    "weights dropped": Wrong(
        changed("task2", (WITH_WEIGHTS, "p)")),
        lost(2, *UNEVEN),
        "leaves out the sample weights",
    ),
    "pieces of one size, the rest left over": Wrong(
        changed(
            "task2",
            (
                "slice(rows * k // self.pieces, rows * (k + 1) // self.pieces)",
                "slice(rows // self.pieces * k, rows // self.pieces * (k + 1))",
            ),
        ),
        lost(2, *UNEVEN),
        "63 of 64 rows go through the model",
    ),
    "a mean by hand": Wrong(
        changed("task2", (f"mean = self.compute_loss(x[cut], y[cut], {WITH_WEIGHTS}", BY_HAND)),
        lost(2, "few_rows", "other_optimizer"),
        "a piece without rows, or without weight, has no mean",
    ),
    "the penalty once a piece": Wrong(
        changed(
            "task2",
            (
                f"part = {SHARED}",
                "penalty = sum(self.losses)\n                part = (mean - penalty) * "
                "tf.cast((cut.stop - cut.start) / rows, mean.dtype) + penalty",
            ),
        ),
        lost(2, "one_step", *UNEVEN),
        "counts `model.losses` once for each piece",
    ),
    "no loss scaled": Wrong(
        changed("task2", ("self.optimizer.scale_loss(part)", "part")),
        lost(2, "scaled"),
        "your update is 1024 times too short",
    ),
    "the loss of the last piece is logged": Wrong(
        changed("task2", ("loss + part,", "mean,")),
        lost(2, "one_step", *UNEVEN),
        "Your update is right; the loss that you log is",
    ),
    "the whole batch at once": Wrong(
        {
            "task2": "class Accumulating(keras.Model):\n    pieces = 4\n\n"
            "    def train_step(self, data):\n        return super().train_step(data)\n"
        },
        lost(2, "one_step", "uneven", "training", "other_optimizer", "scaled"),
        "64 rows go through the model at once",
    ),
    # --- task 3
    "nothing changed": Wrong(
        {"task3": "class AccumulatingAny(Accumulating):\n    pass\n"},
        lost(3, "weighted_mean", "sum", "weights"),
        "this loss does not divide by rows",
    ),
    "a sum that counts the penalty in every piece": Wrong(
        changed(
            "task3",
            ("one) - penalty", "one)"),
            (
                "bare * self.share(cut, rows, w) + penalty / self.pieces",
                "bare * self.share(cut, rows, w)",
            ),
        ),
        lost(3, "sum"),
        "counts `model.losses` once for each piece",
    ),
    "a sum made a mean of pieces": Wrong(
        changed("task3", ("return 1.0", "return 1.0 / self.pieces")),
        lost(3, "sum"),
        "lets every piece count the same",
    ),
    "the penalty lost": Wrong(
        changed("task3", (" + penalty / self.pieces", "")),
        lost(3, "weighted_mean", "sum", "weights"),
        "leaves out `model.losses`",
    ),
    # --- task 4
    "the norms of the pieces": Wrong(
        changed(
            "task4",
            (
                "            loss, predictions = loss + part, [*predictions, p]\n",
                "            loss, predictions = loss + part, [*predictions, p]\n"
                "            share = tf.cast((cut.stop - cut.start) / rows, 'float32')\n"
                "            self.grad_norm.update_state(\n"
                "                tf.linalg.global_norm(gradients)\n"
                "                / share\n"
                "                / self.optimizer.scale_loss(1.0)\n"
                "            )\n",
            ),
            (
                "        self.grad_norm.update_state(tf.linalg.global_norm(total) / "
                "self.optimizer.scale_loss(1.0))\n",
                "",
            ),
        ),
        lost(4, "norm", "scaled"),
        "the mean norm of the pieces",
    ),
    "a metric that nobody resets": Wrong(
        changed(
            "task4",
            ("class Watched", "NORM = keras.metrics.Mean('grad_norm')\n\n\nclass Watched"),
            ('self.grad_norm = keras.metrics.Mean("grad_norm")', "pass"),
            ("self.grad_norm.update_state", "NORM.update_state"),
            (
                "return self.compute_metrics(x, y, tf.concat(predictions, 0), w)",
                "logs = self.compute_metrics(x, y, tf.concat(predictions, 0), w)\n"
                "        return {**logs, 'grad_norm': NORM.result()}",
            ),
            ('logs.pop("grad_norm")', ""),
        ),
        lost(4, "norm", "scaled"),
        "an average since the first epoch",
    ),
    "a norm where no gradient is": Wrong(
        changed("task4", ('logs.pop("grad_norm")', "")),
        lost(4, "evaluate"),
        "reports a `grad_norm`, and takes no gradient",
    ),
    "the norm of scaled gradients": Wrong(
        changed("task4", (" / self.optimizer.scale_loss(1.0)", "")),
        lost(4, "scaled"),
        "that of the scaled gradients",
    ),
}
