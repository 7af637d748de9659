"""Planted faults in lesson 1: each must turn its claims red, and leave the others alone."""

from __future__ import annotations

import pytest

LESSON = "01_iris_fit_vs_tape"

FAULTS = {
    "rows of a batch in another order than their labels": (
        "prediction = tape_model(x, training=True)",
        "prediction = tape_model(x[::-1])",
        {"weights-identical", "curves-close", "losses-identical-with-same-metric"},
        "accuracies-identical",
    ),
    "L2 penalty missing": (
        "loss += sum(model.losses)",
        "pass",
        {"digits-weights-identical", "digits-losses-identical", "unweighted-mean-is-only-a-log"},
        "unweighted-mean-is-only-a-log",
    ),
    "float64 mean": (
        "metric_loss.append(float(mean_loss.result()))",
        "metric_loss.append(np.mean(losses, dtype=float))",
        {"losses-identical-with-same-metric"},
        "accuracies-identical",
    ),
}
"""What is planted: old text, new text, the claims that turn red, the last claim that is needed."""


@pytest.mark.parametrize("name", FAULTS)
def test_fault_turns_its_claims_red(name, claims_of) -> None:
    old, new, red, until = FAULTS[name]
    claims = claims_of(LESSON, (old, new), until=until)
    failed = {name for name, claim in claims.items() if claim.holds is False}
    assert red <= failed
    # Answers that are right by chance may or may not change with the rows.
    assert failed - red <= {"accuracies-identical"}
