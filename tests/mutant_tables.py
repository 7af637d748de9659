"""The small changes that ``mutants.py`` plants, beside those of the lessons' own tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One small change of one place.

    Attributes
    ----------
    what : str
        What is wrong then.
    where : str
        The file in the repository, or the name of the lesson.
    old, new : str
        What stands there once, and what shall.
    check : str
        For a file of `utils`: the test file, and options of pytest. For a lesson: the claims that
        turn red, or nothing if a text or a figure is changed.
    equivalent : str
        Why no check can see it; empty if one must.
    run : str
        Changes of a lesson that do not touch each other share a run of this name.
    """

    what: str
    where: str
    old: str
    new: str
    check: str = ""
    equivalent: str = ""
    run: str = ""


def by_lesson(mutants: Sequence[Mutant]) -> dict[str, list[Mutant]]:
    """Group by lesson."""
    groups: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault(mutant.where, []).append(mutant)
    return groups


def by_run(mutants: Sequence[Mutant]) -> dict[tuple[str, str], list[Mutant]]:
    """Group by lesson and run."""
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault((mutant.where, mutant.run), []).append(mutant)
    return groups


# --- utils ----------------------------------------------------------------------------------------

FAST = {
    "test_claims.py",
    "test_figures.py",
    "test_plots.py",
    "test_rounding.py",
    "test_timing.py",
    "test_ulp.py",
}
"""Tests that train nothing: their mutants are planted in ``make test``."""

PARTS = "test_parity_parts.py"


def _of(module: str, check: str, *changes: tuple[str, ...]) -> list[Mutant]:
    return [
        Mutant(what, f"utils/{module}.py", old, new, check, *rest)
        for what, old, new, *rest in changes
    ]


UTILS: list[Mutant] = [
    *_of(
        "ulp",
        "test_ulp.py",
        ("bits of negative numbers not mirrored", "np.where(bits < 0, low - bits, bits)", "bits"),
        ("largest distance becomes the smallest", ".max(initial=0)", ".min(initial=0)"),
        (
            "shapes not compared",
            "if a.shape != b.shape or a.dtype != b.dtype:",
            "if a.dtype != b.dtype:",
        ),
        (
            "NaN equal to a number",
            "distance[nan_a ^ nan_b] = np.iinfo(np.uint64).max",
            "distance[nan_a ^ nan_b] = 0",
        ),
        (
            "a missing array unnoticed",
            "if len(left) != len(right):",
            "if not left:",
        ),
    ),
    *_of(
        "training",
        "test_training.py",
        ("no training=True", "model(x, training=True)", "model(x)"),
        ("penalties left out", "if model.losses:", "if False:"),
        ("penalties twice", "loss + sum(model.losses)", "loss + 2 * sum(model.losses)"),
        ("mean not weighted by rows", ", sample_weight=len(y)", ""),
        ("metrics not reset", "tracker.reset_state()", "pass"),
        (
            "labels and predictions exchanged",
            "loss = loss_fn(y, prediction)",
            "loss = loss_fn(prediction, y)",
        ),
        ("an epoch too few", "for epoch in range(epochs):", "for epoch in range(1, epochs):"),
        ("hook gets the next epoch", "on_epoch_begin(epoch)", "on_epoch_begin(epoch + 1)"),
        (
            "step never compiled",
            "tf.function(step, reduce_retracing=True) if compiled else step",
            "step",
        ),
    ),
    *_of(
        "models",
        "test_training.py -k iris_model",
        ("biases of ones are zeros", '"ones" if initializer == "ones" else "zeros"', '"zeros"'),
        ("seven hidden units", "layers.Dense(8,", "layers.Dense(7,"),
        (
            "initializer ignored",
            '{"kernel_initializer": initializer,',
            '{"kernel_initializer": "ones",',
        ),
    ),
    *_of(
        "data",
        "test_data.py",
        (
            "two rows of the data exchanged",
            "    return x, y\n",
            "    return x[[1, 0, *range(2, 150)]], y\n",
        ),
        (
            "columns backwards",
            '"X_rand.dat", (150, 4), restore)',
            '"X_rand.dat", (150, 4), restore)[:, ::-1]',
        ),
        ("wrong axis of the sum", "(y.sum(axis=1) == 1).all()", "(y.sum(axis=0) == 50).all()"),
        ("pixels divided by 15", "digits.images / 16", "digits.images / 15"),
        (
            "float64 instead of float32",
            "np.loadtxt(path, dtype=np.float32",
            "np.loadtxt(path, dtype=float",
        ),
        ("NaN in the data unnoticed", "if not np.isfinite(table).all():", "if False:"),
    ),
    *_of(
        "data",
        "test_glove_data.py -k 'not rebuil'",
        ("pairs only one way round", "mirror = row < column", "mirror = row < 0"),
        ("counts sixty times as large", "sixtieths[inside] / 60", "sixtieths[inside]"),
        ("one word too many", "column < vocab_size", "column <= vocab_size"),
    ),
    *_of(
        "timing",
        "test_timing.py",
        ("mean for median", "np.median(self.steady(name))", "np.mean(self.steady(name))"),
        (
            "ratio upside down",
            "np.median(numerator / denominator)",
            "np.median(denominator / numerator)",
        ),
        ("warm-up counts", "for _ in range(warmup):", "for _ in range(0):"),
        ("one round too few", "range(max(rounds.values()))", "range(1, max(rounds.values()))"),
        (
            "compile time below zero",
            "max(0.0, self.first[name] - self.median(name))",
            "self.first[name] - self.median(name)",
        ),
        ("per step not divided", "self.median(name) / per)", "self.median(name))"),
    ),
    *_of(
        "claims",
        "test_claims.py",
        ("a condition inverted", '"<=": operator.le', '"<=": operator.gt'),
        (
            "bound compared with the rounded value",
            "RELATIONS[relation](measured, bound)",
            "RELATIONS[relation](_plain(measured, digits), bound)",
        ),
        ("claims not judged count as met", "if when else None", "if when else True"),
        ("times in the compared table", '{**asdict(c), "measured": None}', "{**asdict(c)}"),
        ("unrounded times in the metadata", "float) and not timing:", "float):"),
        (
            "first table wins",
            "if claim.measured is not None or claim.name not in found:",
            "if claim.name not in found:",
        ),
        ("HTML not escaped", "html.escape(claim.statement)", "claim.statement"),
    ),
    *_of(
        "rounding",
        "test_rounding.py",
        ("a digit too many", '"{value:.{digits}g}"', '"{value:.{digits + 1}g}"'),
        ("edges below a power of ten", "step / 20 if", "step / 2 if"),
        ("distance not relative", "abs(value)) / abs(value)", "abs(value))"),
        (
            "sign lost",
            "shown = abs(rounded(value, digits))",
            "shown = rounded(abs(value), digits)",
            "abs() and rounding can be exchanged: round-half-even is symmetric",
        ),
    ),
    *_of(
        "plots",
        "test_plots.py",
        (
            "curves in another order",
            "enumerate(lines.items())",
            "enumerate(reversed(lines.items()))",
        ),
        ("legend missing", "        ax.legend(frameon=False)", "        pass"),
        ("one dash pattern for all", "linestyle=DASHES[k]", "linestyle=DASHES[0]"),
        ("ratio upside down", "reference / seconds[name]", "seconds[name] / reference"),
        ("linear instead of logarithmic", 'ax.set_xscale("log")', 'ax.set_xscale("linear")'),
        (
            "labels exchanged",
            "title=title, xlabel=xlabel, ylabel=ylabel",
            "title=title, xlabel=ylabel, ylabel=xlabel",
        ),
    ),
    *_of(
        "figures",
        "test_figures.py",
        ("last point left out", "some = [0, len(up) // 2, -1]", "some = [0, len(up) // 2]"),
        ("legend not described", "if ax.get_legend():", "if False:"),
        ("times described", "if not self.digits:", "if False:"),
        ("names not described", 'return "" if name.startswith("_") else f" {name!r}"', 'return ""'),
        ("every pair of lines coincides", "<= CLOSE * span", "<= span"),
    ),
    *_of(
        "run",
        "test_run.py -k failing_claim",
        (
            "failing claims do not fail the run",
            "return 1 if failed or troubles else 0",
            "return 1 if troubles else 0",
        ),
    ),
    *_of(
        "run",
        "test_run.py -k broken_lesson",
        (
            "a broken lesson does not fail the run",
            "return 1 if failed or troubles else 0",
            "return 1 if failed else 0",
        ),
    ),
    *_of(
        "run",
        "test_run.py -k 'wrong_parameters or page'",
        ("unknown parameters let through", "if name not in known:", "if False:"),
        (
            "solutions open",
            "exporter = HTMLExporter(raw_template=PAGE)",
            "exporter = HTMLExporter(raw_template=PAGE, embed_images=True)",
        ),
    ),
    *_of(
        "run",
        "test_notebooks.py -k 'page_describes and 04'",
        ("no description of figures", "    describe_figures(content)\n", ""),
    ),
    *_of(
        "outputs",
        "test_run.py -k 'trouble and fails'",
        ("failing claims are written", "    if trouble:\n", "    if False:\n"),
    ),
    *_of(
        "outputs",
        "test_run.py -k twice",
        ("metadata kept", "    clean(new)\n", ""),
        (
            "ignored outputs count as changes",
            "if IGNORED in cell.metadata",
            "if False and cell.metadata",
        ),
    ),
    *_of(
        "distances",
        f"{PARTS} -k 'grain or distance or thousand'",
        (
            "smallest spread for largest",
            "np.nanmax([*spread, unit(value)])",
            "np.nanmin([*spread, unit(value)])",
        ),
        ("a hundred times is enough", "CLOSER = 1000.0", "CLOSER = 100.0"),
        ("NaN equal to a number", "gap[np.isnan(gap)] = np.inf", "gap[np.isnan(gap)] = 0"),
    ),
    *_of(
        "objectives",
        f"{PARTS} -k 'squared or weights or logits or ranks'",
        ("sum is a mean", '"summed": _summed', '"summed": _given'),
        ("weights dropped", "given(y, prediction, sample_weight=weight)", "given(y, prediction)"),
        ("flag not flipped", "not takes_logits(loss)", "takes_logits(loss)"),
    ),
    *_of(
        "passes",
        f"{PARTS} -k passes",
        ("shapes and values not compared", "return all(x.shape", "return True or all(x.shape"),
        ("shuffle stays off", "        tf.data.Dataset.shuffle = shuffle", "        pass"),
        ("a pass too far", "return self._read[number]", "return self._read[number - 1]"),
    ),
    *_of(
        "reference",
        f"{PARTS} -k 'reference_loop and classifier'",
        ("one iterator an epoch", "1 if self.unknown_length else 2", "1"),
    ),
    *_of(
        "reference",
        f"{PARTS} -k descent",
        (
            "state not put back",
            "            variable.assign(value)\n        for optimizer",
            "            pass\n        for optimizer",
        ),
    ),
    *_of(
        "histories",
        f"{PARTS} -k styles",
        ("means weighted by one", "step.rows if weighted else 1", "1"),
        (
            "running mean of one epoch",
            "step.epoch <= epoch if running",
            "step.epoch == epoch if running",
        ),
    ),
    *_of(
        "parity",
        "test_parity.py -k unknown_logs",
        (
            "logs not compared",
            "    return all(\n        np.array_equal(np.float32",
            "    return True or all(\n        np.array_equal(np.float32",
        ),
    ),
    *_of(
        "diagnosis",
        f"{PARTS} -k label_rank_broadcast",
        ("off by one step", "return self._place(k + 1, total", "return self._place(k, total"),
    ),
]

# --- texts ----------------------------------------------------------------------------------------

TEXTS: list[Mutant] = [
    Mutant(what, where, old, new)
    for what, where, old, new in (
        (
            "observed median mistyped",
            "01_iris_fit_vs_tape",
            "the median is 0.92, and",
            "the median is 0.29, and",
        ),
        (
            "published accuracy mistyped",
            "01_iris_fit_vs_tape",
            "reports an accuracy of 0.9733 after",
            "reports an accuracy of 0.9337 after",
        ),
        (
            "published accuracy mistyped in the figure",
            "01_iris_fit_vs_tape",
            "axvline(0.9733",
            "axvline(0.9337",
        ),
        (
            "published loss mistyped",
            "02_glove_shuffle_bug",
            "0.352, 0.285, 0.282",
            "0.352, 0.258, 0.282",
        ),
        ("published losses exchanged", "02_glove_shuffle_bug", "0.1192, 0.1029", "0.1029, 0.1192"),
        (
            "count in a figure's description mistyped",
            "02_glove_shuffle_bug",
            "at a count of 0.2 to",
            "at a count of 0.3 to",
        ),
        (
            "published seconds mistyped",
            "03_tf_function_speedups",
            "1.8 s down to 0.8 s",
            "1.8 s down to 0.6 s",
        ),
        (
            "batch size mistyped",
            "03_tf_function_speedups",
            "once for batches of 32",
            "once for batches of 23",
        ),
        (
            "number of steps mistyped",
            "04_custom_train_step",
            "and 41 cannot be",
            "and 14 cannot be",
        ),
        (
            "logged loss mistyped",
            "04_custom_train_step",
            "But the loss it logs is 0.1,",
            "But the loss it logs is 0.7,",
        ),
        (
            "shape mistyped",
            "05_parity_clinic",
            "The last batch has 44 rows",
            "The last batch has 46 rows",
        ),
    )
]

# --- figures --------------------------------------------------------------------------------------

_ONE, _TWO, _THREE = "01_iris_fit_vs_tape", "02_glove_shuffle_bug", "03_tf_function_speedups"
_FOUR, _FIVE = "04_custom_train_step", "05_parity_clinic"

FIGURES: list[Mutant] = [
    Mutant(
        "curves that coincide exchanged",
        _ONE,
        '{"fit": fit_log["loss"], "tape": tape_loss}',
        '{"fit": tape_loss, "tape": fit_log["loss"]}',
        equivalent="they differ by less than a millionth, which no reader can see",
    ),
    *(
        Mutant(what, where, old, new)
        for what, where, old, new in (
            (
                "accuracy drawn as loss",
                _ONE,
                '{"fit": fit_log["loss"], "tape": tape_loss}',
                '{"fit": fit_log["loss"], "tape": tape_accuracy}',
            ),
            (
                "legend in another order",
                _ONE,
                '{"fit": fit_log["loss"], "tape": tape_loss}',
                '{"tape": tape_loss, "fit": fit_log["loss"]}',
            ),
            ("panels exchanged", _ONE, "fig, (left, right) =", "fig, (right, left) ="),
            (
                "first epoch missing",
                _ONE,
                '{"difference": loss_gap}',
                '{"difference": loss_gap[1:]}',
            ),
            (
                "images exchanged",
                _ONE,
                '{"Ones: equal columns": ones_kernel, "Default: all different": default_kernel}',
                '{"Ones: equal columns": default_kernel, "Default: all different": ones_kernel}',
            ),
            ("image upside down", _ONE, "ax.imshow(kernel,", "ax.imshow(kernel[::-1],"),
            (
                "boxes in another order",
                _ONE,
                "list(reached.values()), orientation",
                "list(reached.values())[::-1], orientation",
            ),
            ("published number drawn elsewhere", _ONE, "ax.axvline(0.9733", "ax.axvline(0.9333"),
            (
                "bars in another order",
                _ONE,
                "list(weight_gap.values()), color",
                "list(weight_gap.values())[::-1], color",
            ),
            ("wrong unit", _ONE, 'xlabel="milliseconds an epoch', 'xlabel="seconds an epoch'),
            (
                "another baseline",
                _ONE,
                'baseline="fit",\n    title="One decorator',
                'baseline="eager tape",\n    title="One decorator',
            ),
            ("scale not logarithmic", _TWO, 'x=grid,\n)\nax.set_xscale("log")\n', "x=grid,\n)\n"),
            (
                "curve upside down",
                _TWO,
                '{"weight": weight(grid).numpy()}',
                '{"weight": 1 - weight(grid).numpy()}',
            ),
            (
                "published curves for ours",
                _TWO,
                "plots.curves(ax, ours,",
                "plots.curves(ax, published,",
            ),
            (
                "curves exchanged",
                _TWO,
                "plots.curves(ax, ours,",
                "plots.curves(ax, dict(zip(ours, list(ours.values())[::-1])),",
            ),
            (
                "axes exchanged",
                _TWO,
                "some / small, rows[some] / small,",
                "rows[some] / small, some / small,",
            ),
            (
                "label at the wrong axis",
                _TWO,
                'axes[0].set_ylabel("place in the file',
                'axes[0].set_xlabel("place in the file',
            ),
            ("one epoch twice", _TWO, "[losses[k] for losses in", "[losses[0] for losses in"),
            (
                "colours exchanged",
                _TWO,
                '2 if loop == "tape" else 1]',
                '1 if loop == "tape" else 2]',
            ),
            (
                "legend missing",
                _TWO,
                "ax.margins(y=0.15)\nax.legend(frameon=False)",
                "ax.margins(y=0.15)",
            ),
            (
                "bars by height, names by run",
                _TWO,
                "ax.bar(bars, list(judged.values()),",
                "ax.bar(bars, sorted(judged.values()),",
            ),
            (
                "ladder upside down",
                _THREE,
                "/ (epochs * steps) for name in rungs},\n    baseline",
                "/ (epochs * steps) for name in list(rungs)[::-1]},\n    baseline",
            ),
            (
                "colours exchanged",
                _THREE,
                "[plots.COLOURS[2], plots.COLOURS[1]] * 5",
                "[plots.COLOURS[1], plots.COLOURS[2]] * 5",
            ),
            (
                "curves exchanged",
                _THREE,
                "ax.plot(seconds, losses[name],",
                "ax.plot(seconds, losses[list(epoch_of)[-1 - k]][: len(seconds)],",
            ),
            (
                "curves without names",
                _THREE,
                "ls=plots.DASHES[k], label=name)",
                "ls=plots.DASHES[k])",
            ),
            (
                "values under the next name",
                _FOUR,
                "plots.curves(ax, logged,",
                "plots.curves(ax, dict(zip(logged, sorted(logged.values()))),",
            ),
            (
                "a crossed-out step is not the one",
                _FOUR,
                "ax.scatter(number[out], power[out],",
                "ax.scatter(number[out] + 1, power[out],",
            ),
            ("legend missing", _FOUR, "ax.legend(frameon=False)\nplt.show()", "plt.show()"),
            ("scale not logarithmic", _FIVE, 'ax.set_yscale("log")\n', ""),
            (
                "curves backwards",
                _FIVE,
                "np.maximum(values, 1e-9) for name, values in distances.items()",
                "np.maximum(values, 1e-9)[::-1] for name, values in distances.items()",
            ),
        )
    ),
]

# --- lessons --------------------------------------------------------------------------------------

LESSONS: list[Mutant] = [
    Mutant(what, _ONE, old, new, red, run=run)
    for run, what, old, new, red in (
        (
            "a",
            "learning rate of the tape 1 % larger",
            "tape_optimizer = new_sgd()",
            "tape_optimizer = keras.optimizers.SGD(0.0101)",
            "weights-identical",
        ),
        (
            "a",
            "seed not set",
            "keras.utils.set_random_seed(seed)\n    for _ in range(models_before)",
            "for _ in range(models_before)",
            "same-start-and-order-suffice",
        ),
        (
            "a",
            "metric not reset",
            "mean_loss.reset_state()\n        for x, y in digits",
            "for x, y in digits",
            "digits-losses-identical",
        ),
        (
            "a",
            "wrong axis of a sum",
            "probability.sum(axis=-1, keepdims=True)",
            "probability.sum(axis=-2, keepdims=True)",
            "numpy-trainer-agrees",
        ),
        (
            "b",
            "batches begin a row late",
            "range(0, len(x), batch)) * passes",
            "range(1, len(x), batch)) * passes",
            "batch-sizes-identical",
        ),
        (
            "b",
            "a condition inverted",
            'int(np.count_nonzero(loss_gap >= 1e-5)),\n    "=="',
            'int(np.count_nonzero(loss_gap >= 1e-5)),\n    ">"',
            "curves-close",
        ),
        (
            "b",
            "loss of a batch not weighted by its rows",
            "mean_loss.update_state(loss, sample_weight=batch_size)",
            "mean_loss.update_state(loss)",
            "losses-identical-with-same-metric",
        ),
        (
            "c",
            "rows of a batch backwards, with their labels",
            "train_step(X[rows], Y[rows])",
            "train_step(X[rows][::-1], Y[rows][::-1])",
            "weights-identical",
        ),
        (
            "c",
            "no model in between",
            "models_before=1)",
            "models_before=0)",
            "start-or-order-missing-differs",
        ),
        (
            "c",
            "no training flag",
            "digit_loss(y, model(x, training=training))",
            "digit_loss(y, model(x))",
            "digits-weights-identical",
        ),
    )
]
