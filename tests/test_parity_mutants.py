"""Planted faults in lesson 5: wherever a loop is exchanged, the claim about it turns red.

That the unchanged lesson is green with the same small parameters is tested in ``test_lessons.py``.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

LESSON = "05_parity_clinic"

HEALTHY_FOR_SICK = {
    "label-rank-broadcast": ("compare(petals, loop(patient_1))", "compare(digits, train)"),
    "variables-left-out": ("compare(digits, loop(patient_2))", "compare(digits, train)"),
    "logits-mismatch": ("compare(digits, loop(patient_3))", "compare(digits, train)"),
    "loss-summed": ("compare(digits, loop(patient_4))", "compare(digits, train)"),
    "clipping-missing": ("compare(clipping, patient_5)", "compare(clipping, train)"),
    "schedule-ignored": ("compare(scheduled, train)", "compare(digits, train)"),
    "last-batch-dropped": ("compare(digits, patient_7)", "compare(digits, train)"),
    "training-flag-missing": ("compare(digits, loop(patient_8))", "compare(digits, train)"),
    "order-frozen": ("compare(shuffled, patient_13)", "compare(shuffled, train_shuffled)"),
    "shuffle-pass-differs": ("compare(shuffled, patient_14)", "compare(shuffled, train_shuffled)"),
}
SICK_FOR_MENDED = {
    "regularization-missing": (
        'loop(mend(patient_9, "training=True))", penalized))',
        "loop(patient_9)",
    ),
    "validation-updates-weights": (
        "model(x, training=False)) for x, y in held_out()",
        "model(x, training=True)) for x, y in held_out()",
    ),
    "epoch-mean-unweighted": (
        "mended = parity.compare(digits, train)",
        "mended = parity.compare(digits, patient_11)",
    ),
    "metric-not-reset": ('mend(patient_12, "range(epochs):", reset)', "patient_12"),
    "initial-weights-differ": ('mend(patient_15, "digits_model()", "model")', "patient_15"),
    "phantom-step-missing": ("parity.compare(counted, train)", "parity.compare(uncounted, train)"),
}
OTHERS = {
    "healthy-loop-is-identical": (
        "report = parity.compare(digits, train)\nclaims",
        "report = parity.compare(digits, lambda *arguments: None)\nclaims",
    ),
    "one-suspect-fits": (
        "value = loss(y, model(x)) + model.losses[0]",
        "value = loss(y, model(x))",
    ),
    "phantom-steps": ("steps = epochs * -(-rows // batch)", "steps = epochs * (rows // batch)"),
    "unknown-bug-is-not-named": ("if number == 2 else y", "if number == 1 else y"),
    "rounding-is-no-fault": (
        "parity.compare(normalized, train)",
        "parity.compare(shuffled, patient_12)",
    ),
    "silent-lr": ("optimizer.lr = 0.5\n", "optimizer.lr = optimizer.learning_rate = 0.5\n"),
}


def test_every_claim_turns_red(claims_of):
    faults = HEALTHY_FOR_SICK | SICK_FOR_MENDED | OTHERS
    claims = claims_of(LESSON, *faults.values())
    red = {name for name, claim in claims.items() if claim.holds is False}
    assert red == set(faults)
    assert red == set(claims)
