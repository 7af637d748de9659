"""Typical wrong answers to `05_clinic`: the solutions with one line or two gone wrong."""

from __future__ import annotations

from functools import partial

from assignments import Wrong
from assignments import changed as changed_in

changed = partial(changed_in, "05_clinic")


def lost(task: int, *tests: str) -> dict[str, float]:
    """No points in these test cells of a task."""
    return {f"task{task}_test_{test}": 0.0 for test in tests}


TELLING = "build_optimizer=lambda: keras.optimizers.SGD(0.1, momentum=0.9)"
WEIGHTS = "np.random.default_rng(0).uniform(0.2, 3.0, 86)"

WRONG: dict[str, Wrong] = {
    # --- task 1
    "one fault of two": Wrong(
        changed(
            "task1",
            ('{"regularization_twice", "first_batch_skipped"}', '{"regularization_twice"}'),
            ("in dataset:", "in dataset.skip(1):"),
        ),
        lost(1, "mended", "names", "elsewhere"),
        "skips the first batch of every epoch",
    ),
    "the penalty taken away altogether": Wrong(
        changed("task1", ("+ sum(self.model.losses)", "")),
        lost(1, "mended", "elsewhere"),
        "leaves out `model.losses`",
    ),
    "a fault that it does not have": Wrong(
        changed("task1", ('"first_batch_skipped"', '"last_batch_dropped"')),
        lost(1, "names"),
        "the fault last_batch_dropped ends at other weights than this one",
    ),
    # --- task 2
    "a set-up without a memory": Wrong(
        changed("task2", (TELLING, "epochs=3")),
        lost(2, "telling"),
        "On your set-up, too, the loop is equal to `fit`",
    ),
    "the wrong name": Wrong(
        changed("task2", ('{"optimizer_state_lost"}', '{"other_optimizer"}')),
        lost(2, "telling", "names"),
        "the report names another fault than you do",
    ),
    "mended with an optimizer of its own": Wrong(
        changed(
            "task2",
            (
                '    log = {"loss": []}\n',
                '    log, optimizer = {"loss": []}, keras.optimizers.SGD(0.1)\n',
            ),
        ),
        lost(2, "mended", "elsewhere"),
        "uses an optimizer of its own instead of the given one",
    ),
    "a mean over batches": Wrong(
        changed(
            "task2",
            ("tot + float(L) * len(yb), cnt + len(yb)", "tot + float(L), cnt + 1"),
        ),
        lost(2, "mended", "elsewhere"),
        "lets the smaller last batch count as much as a full one",
    ),
    # --- task 3
    "the line that sets the rate, not the step that uses it": Wrong(
        changed("task3", ('"leaves_fit_3": 2', '"leaves_fit_3": 1')),
        lost(3, "facts"),
        "The first rate is right, by luck",
    ),
    "refuted where it leaves fit": Wrong(
        changed("task3", ('"refuted_3": 3', '"refuted_3": 2')),
        lost(3, "facts"),
        "takes the same rates as this one, for a while",
    ),
    "the rate taken away": Wrong(
        changed("task3", ("        optimizer.learning_rate = planned(epoch)\n", "")),
        lost(3, "mended", "elsewhere"),
        "keeps the first learning rate for ever",
    ),
    "the rates of this set-up": Wrong(
        changed("task3", ("planned(epoch)\n", "0.2 * 0.5**epoch\n")),
        lost(3, "elsewhere"),
        "Your loop does not train as `fit` does",
    ),
    # --- task 4
    "full batches only": Wrong(
        changed("task4", (WEIGHTS, WEIGHTS.replace("86", "64")), ("rows=86", "rows=64")),
        lost(4, "fourth"),
        "The fourth loop does not show itself on your set-up",
    ),
    "one weight for all": Wrong(
        changed("task4", (WEIGHTS, "np.full(86, 3.0)")),
        lost(4, "separate", "healthy"),
        "All your sample weights are the same",
    ),
    "too large": Wrong(
        changed("task4", ("rows=86,", "rows=86, batch=8,")),
        lost(4, "separate"),
        "11 batches and 2 epochs: at most 10 and 3, please",
    ),
    # --- task 5
    "the penalty counts as a gradient": Wrong(
        changed("task5", ("sample_weight=w)", "sample_weight=w) + sum(model.losses)")),
        lost(5, "dead"),
        "only the penalty pulls at these weights",
    ),
    "only None is no gradient": Wrong(
        changed("task5", ("g is None or not np.any(tf.convert_to_tensor(g))", "g is None")),
        lost(5, "dead"),
        "Some gradients are zero",
    ),
    "the head, judged by the first loss": Wrong(
        changed(
            "task5",
            (
                'bool(setup.loss.get_config()["from_logits"]) == probabilities',
                "abs(float(value) - np.log(10)) > 2",
            ),
        ),
        lost(5, "head"),
        "The first loss is near log 10 all the same",
    ),
    "frozen variables are missed": Wrong(
        changed(
            "task5",
            (
                "gradients = tape.gradient(value, model.trainable_variables)",
                "variables = [v for v in model.weights if v.dtype == 'float32']\n"
                "    gradients = tape.gradient(value, variables)",
            ),
        ),
        lost(5, "rate"),
        "The first layer is frozen on purpose",
    ),
}
