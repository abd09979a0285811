"""Derivatives of random models and costs of random tasks: a few seeds of what tests/random_models.sh does with any."""

from __future__ import annotations

import doctest

import pytest

from random_models import costs, differences, random_model

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


@pytest.mark.parametrize("seed", range(48))
def test_costs(seed: int) -> None:
    report = costs.compare_costs(random_model(seed, exact=True), seed)
    print(f"seed {seed}: {report.outcome}, {dict(report.verdicts)}, refused: {report.refused}")
    assert not report.differs, f"tests/random_models.sh --only costs --seeds {seed}"


def test_most_costs_are_compared() -> None:
    reports = [costs.compare_costs(random_model(seed, exact=True), seed) for seed in range(24)]
    assert [report.outcome for report in reports].count("compared") >= 0.7 * len(reports)
    assert sum(report.verdicts["agrees"] for report in reports) >= 2.5 * len(reports)


def test_a_seed_gives_one_model() -> None:
    assert random_model(3) == random_model(3) != random_model(4)


def test_verdicts() -> None:
    assert doctest.testmod(differences).failed == 0
