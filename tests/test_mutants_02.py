"""Planted faults in lesson 2: each must turn its claims red, and leave the others alone.

Faults that do not touch each other are planted into one copy of the lesson, to save time. The set
of red claims must then be the union of theirs, no less and no more. That the unchanged lesson is
green with the same small parameters is tested in ``test_lessons.py``.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

LESSON = "02_glove_shuffle_bug"

FAULTS = {
    "a stuck tape in place of fit": (
        "fit_run = train_with_fit(pipeline(",
        "fit_run = train_with_tape(pipeline(",
        {"fit-not-stuck"},
    ),
    "shuffle without reshuffling": (
        "dataset = batches()\ndistinct",
        "dataset = batches(reshuffle_each_iteration=False)\ndistinct",
        {"same-order-false"},
    ),
    "fit on a cached order": (
        "seen = orders_in_fit(batches(), shuffle=False)",
        "seen = orders_in_fit(batches().cache(), shuffle=False)",
        {"fit-shuffles-no-more"},
    ),
    "a shuffled dataset in place of arrays": (
        "orders_in_fit(np.arange(1000), batch_size=50, shuffle=True)",
        "orders_in_fit(batches(), shuffle=False)",
        {"seeded-fit-arrays-repeats"},
    ),
    "repeat with another order": (
        "train_with_repeat(pipeline(pairs, counts, buffer_size), few)",
        "train_with_repeat(pipeline(permuted_pairs, permuted_counts, buffer_size), few)",
        {"repeat-workaround-equivalent"},
    ),
    "every buffer gets permuted rows": (
        "train_with_fit(pipeline(pairs, counts, buffer), two)",
        "train_with_fit(pipeline(permuted_pairs, permuted_counts, buffer), two)",
        {"order-matters-to-fit"},
    ),
    "the best constant without weights": (
        "best = np.sum(w * np.log(x)) / np.sum(w)",
        "best = np.mean(np.log(x))",
        {"plateau-predicted"},
    ),
    "a barrier that is none": (
        "tf.reduce_sum(w * log) / tf.reduce_sum(w)",
        "tf.reduce_mean(log)",
        {"small-buffer-barrier"},
    ),
    "a loss class in place of a function": (
        "loss=spying_loss)",
        'loss=type("Loss", (keras.losses.Loss,), {"call": lambda _, c, p: spying_loss(c, p)})())',
        {"fit-aligns-labels"},
    ),
    "labels not mended": (
        '("tape", "(N,1)", "small buffer"): train_with_tape(sorted_fixed, epochs)',
        '("tape", "(N,1)", "small buffer"): tape_run',
        {"labels-explain-gap", "shuffle-explains-gap"},
    ),
    "no iterator is dropped": (
        "opened = used[1] - used[0]",
        "opened = 1",
        {"fixed-identical"},
    ),
    "the stuck model twice": (
        '"mended": similarities(twin.model)',
        '"mended": similarities(tape_run.model)',
        {"neighbours-better"},
    ),
    "the check never strikes": (
        "if count.shape.rank != prediction.shape.rank:",
        "if count.shape.rank != count.shape.rank:",
        {"mistake-impossible"},
    ),
    "a loss function in place of a class": (
        "loss=SpyingLoss())",
        "loss=SpyingLoss().call)",
        {"loss-class-not-aligned"},
    ),
}
"""What is planted: old text, new text, and the claims that turn red."""

MAIN_RUNS = {
    "labels of the question mended": (
        "tape_run = train_with_tape(pipeline(pairs, counts, buffer_size)",
        "tape_run = train_with_tape(pipeline(pairs, counts[:, None], buffer_size)",
        # A tape that is not stuck changes whatever is compared with it.
        {"tape-stuck", "fit-not-stuck", "repeat-workaround-equivalent", "small-buffer-barrier"},
    ),
    "mended tape not permuted": (
        '("tape", "(N,1)", "permuted"): train_with_tape(permuted_fixed, epochs)',
        '("tape", "(N,1)", "permuted"): train_with_tape(sorted_fixed, epochs)',
        {"fixed-equal-3-decimals", "fixed-identical"},
    ),
    "fit opens one iterator": (
        "in_fit = [row.tolist() for row in orders_in_fit(batches(), shuffle=False)]",
        "in_fit = passes[:4]",
        {"two-iterators-per-epoch"},
    ),
}
"""The same for the runs that the lesson is about."""


def red(claims: dict) -> set[str]:
    """Names of the claims that fail."""
    return {name for name, claim in claims.items() if claim.holds is False}


def test_independent_faults_turn_exactly_their_claims_red(claims_of) -> None:
    claims = claims_of(LESSON, *((old, new) for old, new, _ in FAULTS.values()))
    assert red(claims) == set().union(*(expected for _, _, expected in FAULTS.values()))


def test_faults_of_the_main_runs_turn_their_claims_red(claims_of) -> None:
    faults = ((old, new) for old, new, _ in MAIN_RUNS.values())
    claims = claims_of(LESSON, *faults, until="fixed-identical")
    shares = {"labels-explain-gap", "shuffle-explains-gap"}
    expected = set().union(*(expected for _, _, expected in MAIN_RUNS.values()))
    assert red(claims) - shares == expected
    # A newer Keras would be met by a claim that says what it does.
    assert claims["two-iterators-per-epoch"].measured == "0, 1, 2, 3"
