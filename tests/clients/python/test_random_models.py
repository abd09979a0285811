"""Derivatives of random models beside differences: a few seeds of what tests/random_models.sh does with any number."""

from __future__ import annotations

import doctest

import pytest

from random_models import differences, random_model

SEEDS = (*range(24), 44, 47, 84)  # these three: sensors of limits, welded cameras, sensors under noslip


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives(seed: int) -> None:
    report = differences.compare_derivatives(random_model(seed, exact=True), seed)
    print(f"seed {seed}: {report.outcome}, {dict(report.verdicts)}")
    assert not report.differs, f"tests/random_models.sh --only derivatives --seeds {seed}"
    # What says nothing would hide what differs, and so would what is refused.
    print(f"refused: {report.refused}")
    assert report.verdicts["agrees"] >= (30 if report.outcome == "compared" else 0)
    assert report.verdicts["rough"] + report.verdicts["kink"] <= 0.15 * report.verdicts.total()


def test_most_models_are_compared() -> None:
    outcomes = [differences.compare_derivatives(random_model(seed, exact=True), seed, "qvel").outcome for seed in SEEDS]
    assert outcomes.count("compared") >= 0.8 * len(outcomes)


def test_a_seed_gives_one_model() -> None:
    assert random_model(3) == random_model(3) != random_model(4)


def test_verdicts() -> None:
    assert doctest.testmod(differences).failed == 0
